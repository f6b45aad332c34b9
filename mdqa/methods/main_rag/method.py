"""MAIN-RAG: every document is answered alone, judged with its answer, and goes on if it reaches the mean judgement.

Chang et al., MAIN-RAG: Multi-Agent Filtering Retrieval-Augmented Generation, ACL 2025 (arXiv 2501.00332). MADARA cites
it as the origin of its three-agent baseline, which is another algorithm (``treatment=three_agent`` there).

1. The Predictor answers from each document alone.
2. The Judge sees document, question and that answer, and is asked whether the document is of use and the answer follows
   from it: score = log p("Yes") - log p("No").
3. The adaptive judge bar of the question is the mean of its scores, lowered by n standard deviations.
4. The documents that reach the bar go to the Final-Predictor, best first.

Our reading, where public summaries of the paper leave it open, and our choices:

- n = 0, the mean itself; the deviation is that of the population; a negative n raises the bar;
- the probabilities are those of the replies "Yes" and "No" as the model would begin its turn, over all their tokens;
- replies are greedy, at most 64 tokens; Predictor and Final-Predictor share MADARA's generator prompts, so that the
  two methods differ in what they do with the documents and not in words, and FEVER claims can be answered;
- a document without an answer is not judged (a status, never 0) and dropped; if none has an answer, all go on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import ClassVar, Literal

from pydantic import Field

from mdqa.backends.base import Capability, GenerationRequest
from mdqa.methods.base import Method, MethodConfig, documents_in_order
from mdqa.methods.main_rag.judging import NO_ANSWER, Bar, judge_bar, log_odds, reasons, select
from mdqa.methods.recorder import Recorder
from mdqa.methods.tasks import Task, answer_text, generator_prompt, task_of
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, Opinion, Question

REPLIES = ("Yes", "No")


class MainRAGConfig(MethodConfig):
    """Options of MAIN-RAG."""

    task: Literal["auto", "factoid", "fever"] = Field(
        "auto", description="Prompts: factoid answer, FEVER label, or auto (by the question's data set)"
    )
    n: float = Field(
        0.0,
        ge=-5,
        le=5,
        description="The bar is the mean score minus n standard deviations: 0 is the mean, higher keeps more documents",
    )
    order: Literal["best_first", "best_last"] = Field(
        "best_first",
        description="Where the best document stands in the last prompt: first, as in the paper, or beside the question",
    )
    max_new_tokens: int = Field(64, ge=1, le=1024, description="Longest answer in tokens, of a document and at the end")
    temperature: float = Field(0.0, ge=0, le=2, description="0 is greedy decoding; higher is more varied")


class MainRAG(Method):
    """Multi-Agent Filtering Retrieval-Augmented Generation."""

    name: ClassVar[str] = "main_rag"
    title: ClassVar[str] = "MAIN-RAG"
    summary: ClassVar[str] = (
        "Each document is answered alone and judged with its answer; those whose log-odds of Yes reach the mean of all "
        "go to the last call, best first."
    )
    Config: ClassVar[type[MethodConfig]] = MainRAGConfig
    controls: ClassVar[tuple[str, ...]] = ("n", "order")
    config: MainRAGConfig

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """The Judge is read by likelihoods and never writes."""
        return ("generate", "likelihood")

    def answer(self, item: Question, run: Recorder) -> str:
        """Predict, judge, answer."""
        task = task_of(item) if self.config.task == "auto" else self.config.task
        answers = self._predict(item, task, run)
        kept = self._judge(item, answers, task, run)
        return self._answer(item, kept, task, run)

    def _predict(self, item: Question, task: Task, run: Recorder) -> dict[str, str]:
        """The Predictor's answer from each document alone, all in one batch; empty where it gave none."""
        with run.stage("prediction", "Predictor answers from each document alone", item.document_ids) as stage:
            replies = run.generate("predictor", [self._request(item, [d], task, run.seed) for d in item.documents])
            answers = {i: answer_text(r.text, task) for i, r in zip(item.document_ids, replies, strict=True)}
            for (document, answer), reply in zip(answers.items(), replies, strict=True):
                run.opinion(
                    Opinion(
                        role="predictor",
                        title="Predictor, one document",
                        answer=answer,
                        documents=(document,),
                        status="ok" if answer else "parse_error",
                        call=reply.call,
                    )
                )
            said = {i: f"answers {answer!r}" if answer else "gave no answer" for i, answer in answers.items()}
            stage.keep(item.document_ids, said)
        return answers

    def _judge(self, item: Question, answers: Mapping[str, str], task: Task, run: Recorder) -> list[str]:
        """The documents that reach the judge bar, in the order in which they are read."""
        with run.stage("judging", "Judge weighs document, question and answer", item.document_ids) as stage:
            judged = [document for document in item.documents if answers[document.id]]
            prompts = [
                judge_prompt(item.question, document, answers[document.id], task).with_reply(reply)
                for document in judged
                for reply in REPLIES
            ]
            results = run.log_likelihood("judge", prompts, target="reply") if prompts else []
            scores, calls, shares = dict.fromkeys(item.document_ids, NO_ANSWER), {}, []
            for document, (yes, call), (no, _) in zip(judged, results[::2], results[1::2], strict=True):
                scores[document.id] = log_odds(yes.logprob, no.logprob)
                calls[document.id] = call
                shares.append(math.exp(yes.logprob) + math.exp(no.logprob))
            bar = judge_bar(scores, self.config.n)
            stage.score("log_odds", scores, calls=calls, threshold=None if bar is None else bar.value)
            stage.note = _note(bar, self.config.n, shares)
            if bar is None:
                run.notice("The Judge has no score for any document; all go on.", warning=True, fallback=True)
            kept = select(scores, bar)
            why = reasons(scores, bar, kept)
            if bar is not None and self.config.order == "best_last":
                kept = kept[::-1]
            stage.keep(kept, why)
        return kept

    def _answer(self, item: Question, kept: Sequence[str], task: Task, run: Recorder) -> str:
        """The Final-Predictor's answer from the kept documents together."""
        with run.stage("answer", "Final-Predictor reads the kept documents together", kept):
            request = self._request(item, documents_in_order(item, kept), task, run.seed)
            (reply,) = run.generate("final_predictor", [request], stream=True)
            answer = answer_text(reply.text, task)
            if not answer:
                run.notice("The Final-Predictor's reply is empty.", warning=True)
        run.opinion(
            Opinion(
                role="final_predictor",
                title="Final-Predictor",
                answer=answer,
                documents=tuple(kept),
                chosen=True,
                status="ok" if answer else "parse_error",
                call=reply.call,
            )
        )
        return answer

    def _request(self, item: Question, documents: Sequence[Document], task: Task, seed: int) -> GenerationRequest:
        return GenerationRequest(
            generator_prompt(item.question, documents, task),
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            seed=seed,
        )


def judge_prompt(question: str, document: Document, answer: str, task: Task) -> Prompt:
    """The Judge's prompt: the triplet of document, question and answer, and whether the first bears out the last."""
    return load_template("mdqa.methods.main_rag", f"judge_{task}").fill(
        question=question_segment(question), document=document_segments([document]), answer=Segment(answer)
    )


def _note(bar: Bar | None, n: float, shares: Sequence[float]) -> str:
    """How the bar came about, and how much of its probability the model gives to the two replies that are read."""
    if bar is None:
        return ""
    shift = f" {-n:+g} x" if n else ","
    return (
        f"Bar: mean {bar.mean:+.3f}{shift} standard deviation {bar.deviation:.3f}. "
        f"Yes and No together have {fmean(shares):.1%} of the probability on average."
    )
