"""In-context retrieval: the model itself says which documents matter, then answers.

The baseline of CAFE (Peng et al., EMNLP 2025) in the two forms that the paper describes: in section 3.1 (Table 1) the
model names the most relevant documents by number and answers from those only; in Appendix B (Table 3) it writes out
the key documents, which are appended to the whole context. The paper prints no prompt; these are ours, and the prompts
of the answer are those of direct answering over what was chosen. Chosen documents keep their input order, since the
paper names no other.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from mdqa.backends.base import GenerationRequest
from mdqa.methods import answers
from mdqa.methods.asking import ask
from mdqa.methods.base import Method, MethodConfig, documents_in_order
from mdqa.methods.in_context.parsing import (
    Named,
    copied_sentences,
    copied_shares,
    numbers_parser,
    numbers_schema,
)
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Question

STAGE = "in_context_retrieval"

BEGUN = '{"documents": ['
"""How the reply begins where the backend cannot be held to a JSON schema."""


class InContextConfig(MethodConfig):
    """Options of in-context retrieval."""

    form: Literal["indices", "append"] = Field(
        "indices",
        description="The model names documents by number and answers from those only (indices: section 3.1), or writes "
        "out the passages that support the answer, which are appended to all documents (append: Appendix B).",
    )
    top_k: int = Field(5, ge=1, le=100, description="Documents the model is asked for.")
    retrieval_max_tokens: int = Field(
        256, ge=16, le=4096, description="Longest reply of the retrieval in tokens: the numbers, or the passages."
    )
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest answer in tokens.")
    temperature: float = Field(0.0, ge=0.0, le=2.0, description="0 is greedy decoding; higher is more varied.")

    @property
    def reply_tokens(self) -> int:
        """The longest reply; appended passages stand in the second prompt as well, beside the answer."""
        longest = super().reply_tokens
        return longest if self.form == "indices" else self.retrieval_max_tokens + self.max_new_tokens


class InContextRetrieval(Method):
    """Asks the model for the relevant documents, then for the answer."""

    name: ClassVar[str] = "in_context"
    title: ClassVar[str] = "In-context retrieval"
    summary: ClassVar[str] = "The model picks the relevant documents, or writes out the key passages, then answers."
    Config: ClassVar[type[MethodConfig]] = InContextConfig
    config: InContextConfig

    def answer(self, item: Question, run: Recorder) -> str:
        """The model's reply up to its first line break."""
        with run.stage(STAGE, "In-context retrieval", item.document_ids) as stage:
            if self.config.form == "indices":
                passages, prefix = "", None
                self._choose(item, run, stage)
            else:
                passages, prefix = self._write(item, run, stage)
        documents = documents_in_order(item, stage.kept)
        with run.stage("answer", "Answer", stage.kept):
            request = self._request(answer_prompt(item.question, documents, passages), self.config.max_new_tokens, run)
            (reply,) = run.generate("answer", [request], stream=True, prefix=prefix)
            answer = answers.short_answer(reply.text)
            if not answer:
                run.notice("The model's reply is empty.", warning=True)
        return answer

    def _choose(self, item: Question, run: Recorder, stage: StageDraft) -> None:
        """Form ``indices``: keep the documents that the model names."""
        documents, count = len(item.documents), self.config.top_k
        if documents <= count:
            run.notice(f"{documents} documents are no more than the {count} to be chosen: the model is not asked.")
            all_fit = DocumentScore(status="unavailable", detail=f"all {documents} documents are kept without asking")
            stage.score("reciprocal_place", dict.fromkeys(item.document_ids, all_fit))
            return
        structured = "structured" in run.tools.backend.capabilities
        prompt = numbers_prompt(item, count)
        request = self._request(
            prompt if structured else prompt.with_reply(BEGUN),
            self.config.retrieval_max_tokens,
            run,
            schema=numbers_schema(documents, count) if structured else None,
        )
        (reply,) = ask(run, STAGE, [request], numbers_parser(documents, count))
        calls = dict.fromkeys(item.document_ids, reply.call)
        if reply.value is None:
            unread = DocumentScore(status=reply.status, detail=reply.detail)
            stage.score("reciprocal_place", dict.fromkeys(item.document_ids, unread), calls=calls)
            stage.keep(item.document_ids, dict.fromkeys(item.document_ids, "kept: the model's choice is unreadable"))
            run.notice(
                f"The model's choice of documents could not be read ({reply.detail}); all documents are kept.",
                warning=True,
                fallback=True,
            )
            return
        places = {item.document_ids[number - 1]: place for place, number in enumerate(reply.value.numbers, 1)}
        scores = {d: 1 / places[d] if d in places else 0.0 for d in item.document_ids}
        stage.score("reciprocal_place", scores, calls=calls)
        stage.keep(
            [d for d in item.document_ids if d in places],
            {d: f"named in place {places[d]}" if d in places else "not named" for d in item.document_ids},
        )
        self._say_what_is_odd(reply.value, run)

    def _say_what_is_odd(self, named: Named, run: Recorder) -> None:
        if named.dropped:
            run.notice(f"Numbers left out of the model's choice: {', '.join(named.dropped)}.")
        if len(named.numbers) < self.config.top_k:
            run.notice(f"The model named {len(named.numbers)} documents where it was asked for {self.config.top_k}.")

    def _write(self, item: Question, run: Recorder, stage: StageDraft) -> tuple[str, Any]:
        """Form ``append``: the passages that the model writes, and keys and values over the documents for the answer.

        Both prompts begin with the same system text and documents. An attention pass is the one call that hands its
        keys and values on; where the backend has none, the documents are computed twice.
        """
        prompt = passages_prompt(item, self.config.top_k)
        prefix = None
        if "attention" in run.tools.backend.capabilities:
            title = "Documents, computed once for both prompts"
            prefix = run.attend(STAGE, prompt, publish=False, title=title, rows="last", keep_prefix=True).prefix
        request = self._request(prompt, self.config.retrieval_max_tokens, run)
        (reply,) = run.generate(STAGE, [request], stream=True, prefix=prefix)
        passages = reply.text.strip()
        shares = dict(zip(item.document_ids, copied_shares(passages, item.documents), strict=True))
        stage.score("copied", shares, calls=dict.fromkeys(item.document_ids, reply.call))
        stage.keep(item.document_ids, {d: _origin(share) for d, share in shares.items()})
        sentences = {document.id: copied_sentences(passages, document) for document in item.documents}
        stage.key_sentences.update({d: texts for d, texts in sentences.items() if texts})
        stage.note = "Nothing is removed: the passages are appended to all documents."
        if reply.finish_reason == "length":
            run.notice(f"The passages were cut at {self.config.retrieval_max_tokens} tokens.")
        if not passages:
            run.notice("The model wrote no passage; it answers from the documents alone.", warning=True, fallback=True)
        elif not any(shares.values()):
            run.notice("The passages that the model wrote stand in no document; they are appended all the same.")
        return passages, prefix

    def _request(self, prompt: Prompt, tokens: int, run: Recorder, schema: Any = None) -> GenerationRequest:
        return GenerationRequest(
            prompt, max_new_tokens=tokens, temperature=self.config.temperature, seed=run.seed, schema=schema
        )


def numbers_prompt(item: Question, count: int) -> Prompt:
    """All documents under their numbers, and the request for ``count`` of these numbers."""
    return load_template(__package__, "numbers").fill(
        documents=document_segments(item.documents), question=question_segment(item.question), count=str(count)
    )


def passages_prompt(item: Question, count: int) -> Prompt:
    """All documents, and the request for the passages, of at most ``count`` of them, that support the answer."""
    return load_template(__package__, "passages").fill(
        documents=document_segments(item.documents), question=question_segment(item.question), count=str(count)
    )


def answer_prompt(question: str, documents: tuple[Document, ...], passages: str = "") -> Prompt:
    """The common prompt over these documents; with passages, these between them and the question.

    What the model wrote is plain text of the prompt: it belongs to no document and opens no turn.
    """
    if not passages:
        return answers.answer_prompt(question, documents)
    return load_template(__package__, "answer_appended").fill(
        documents=document_segments(documents), question=question_segment(question), passages=Segment(passages)
    )


def _origin(share: float) -> str:
    return f"{share:.0%} of the written passages stand in it" if share else "nothing of the written passages is from it"
