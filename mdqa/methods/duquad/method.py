"""DuQUAD: two views on the documents, scored evidence, and a judge.

A Structural Fusion Score ranks the documents; the Local Agent reads the best k of them, the Global Agent reads all.
What they cite is scored document by document, weak documents are pruned, and the judge answers from both agents'
reasoning and the key sentences of what is left.

The text of the paper that is public has results, weights and the overview (Figure 2), but no formula and no prompt:
every formula, default and fallback here is our reading and not the authors' definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from mdqa.backends.base import Capability, GenerationRequest
from mdqa.methods.asking import Reply, ask
from mdqa.methods.base import Method, MethodConfig, documents_in_order
from mdqa.methods.duquad.ablations import Made, carry_out
from mdqa.methods.duquad.agents import (
    Statement,
    View,
    agent_prompt,
    agent_schema,
    agent_title,
    numbers_of,
)
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.evidence import Assessment, assess, gather, key_sentences, prune
from mdqa.methods.duquad.fusion import arrange, fuse, normalise, rank
from mdqa.methods.duquad.judging import Evidence, judge_request, judgement
from mdqa.methods.duquad.parsing import AgentReply, agent_parser, parse_judge, raw_answer
from mdqa.methods.duquad.signals import (
    TITLES,
    Signal,
    attention_contrast,
    measure,
    ranker_scores,
    semantic_relevance,
    structural_inference,
)
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.prompting import Prompt
from mdqa.records import DocumentScore, Opinion, Question


@dataclass(frozen=True)
class Ranking:
    """All documents, best SFS first; those the Local Agent reads, in its order; keys and values to use again."""

    order: tuple[str, ...]
    local: tuple[str, ...]
    prefix: Any


class DuQUAD(Method):
    """Dual-view answering with quality-aware evidence pruning (Figure 2 of the paper, formulas our reading)."""

    name: ClassVar[str] = "duquad"
    title: ClassVar[str] = "DuQUAD"
    summary: ClassVar[str] = (
        "Two agents, one over the best documents and one over all; what they cite is scored and pruned, and a judge "
        "answers from both reasonings and the key sentences."
    )
    Config: ClassVar[type[MethodConfig]] = DuQUADConfig
    controls: ClassVar[tuple[str, ...]] = ("k", "threshold", "max_cited", "weight_sim", "weight_ppl", "weight_cont")
    config: DuQUADConfig

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """Likelihoods and attention only where signals that need them must not be missing."""
        assert isinstance(config, DuQUADConfig)
        likelihood = ("ppl" in config.weights and not config.allow_missing_signals) or (
            config.continuous_doc_score and not config.without_pruning
        )
        attention = "cont" in config.weights and not config.allow_missing_signals
        needed: list[Capability] = ["generate"]
        needed += ["likelihood"] if likelihood else []
        needed += ["attention"] if attention else []
        return tuple(needed)

    def answer(self, item: Question, run: Recorder) -> str:
        """SFS, both agents, candidates, DocScore with key sentences, judge (Figure 2)."""
        fused = self.config.local_ranker == "sfs"
        ranking = self._structural_fusion(item, run) if fused else self._other_ranking(item, run)
        statements: list[Statement] = []
        if not self.config.without_local:
            statements.append(self._agent("local", item, ranking.local, ranking.prefix, run))
        if not self.config.without_global:
            statements.append(self._agent("global", item, item.document_ids, ranking.prefix, run))
        ranking = replace(ranking, prefix=None)  # its keys and values would take memory until the run ends
        candidates = self._candidates(item, statements, ranking, run)
        if self.config.without_pruning:
            return self._judge(item, dict.fromkeys(candidates), statements, run).answer
        assessment, sentences = self._doc_score(item, candidates, ranking, run)
        own = self._judge(item, sentences, statements, run)
        if self.config.compare_ablations:
            made = Made(tuple(statements), ranking.order, assessment, sentences)
            carry_out(item, run, made, own, self.config)
        return own.answer

    def _structural_fusion(self, item: Question, run: Recorder) -> Ranking:
        """Measure, normalise and fuse the signals; the best k go to the Local Agent."""
        config, documents = self.config, item.document_ids
        with run.stage("structural_fusion", "Structural Fusion Score", documents, branch="local") as stage:
            signals = self._signals(item, run, stage)
            normalised = {name: normalise(signal.scores, config.normalisation) for name, signal in signals.items()}
            for name, scores in normalised.items():
                stage.score(f"{name}_normalised", scores)
            fused = stage.score("SFS", fuse(normalised, config.weights))
            order = rank(documents, fused)
            local = arrange(order[: config.k], documents, config.local_order)
            stage.keep(local, _rank_reasons(order, config.k, fused))
            stage.note = "SFS = " + " + ".join(f"{weight:g} N({name})" for name, weight in config.weights.items())
            if config.without_local:
                stage.note += "; without the Local Agent this ranking only serves as a fallback"
            if all(score.value is None for score in fused.values()):
                run.notice("No signal could be measured; documents rank in input order.", warning=True, fallback=True)
        prefix = next((signal.prefix for signal in signals.values() if signal.prefix is not None), None)
        return Ranking(order, local, prefix)

    def _other_ranking(self, item: Question, run: Recorder) -> Ranking:
        """Another ranker in the place of the SFS (Figure 4)."""
        config, documents = self.config, item.document_ids
        name = config.local_ranker
        with run.stage("local_selection", f"Local selection by {name}", documents, branch="local") as stage:
            values = ranker_scores(name, item, run)
            scores = stage.score(name, dict(zip(documents, values, strict=True)))
            order = rank(documents, scores)
            local = arrange(order[: config.k], documents, config.local_order)
            stage.keep(local, _rank_reasons(order, config.k, scores, name))
        return Ranking(order, local, None)

    def _signals(self, item: Question, run: Recorder, stage: StageDraft) -> dict[str, Signal]:
        """Every signal with a weight; one that cannot be measured is said."""
        config = self.config
        compute = {
            "sim": lambda: semantic_relevance(item, run),
            "ppl": lambda: structural_inference(item, run, restriction=config.ppl_restriction),
            "cont": lambda: attention_contrast(item, run, kind=config.contrast, max_cited=config.max_cited),
        }
        signals: dict[str, Signal] = {}
        for name in config.weights:
            signal = measure(item, compute[name], allow_missing=config.allow_missing_signals)
            if signal.missing:
                run.notice(
                    f"The signal {name} ({TITLES[name]}) is not available and counts nothing: {signal.missing}",
                    warning=True,
                    fallback=True,
                )
            stage.score(name, signal.scores, calls=signal.calls)
            signals[name] = signal
        return signals

    def _agent(self, view: View, item: Question, seen: Sequence[str], prefix: Any, run: Recorder) -> Statement:
        """One agent's reading: its answer and the documents that it cites."""
        title, numbers = agent_title(view), numbers_of(item)
        with run.stage(f"{view}_agent", title, seen, branch=view) as stage:
            shown = [numbers[document_id] for document_id in seen]
            request = self._request(
                agent_prompt(item, documents_in_order(item, seen), self.config.max_cited),
                self.config.agent_max_tokens,
                agent_schema(shown, self.config.max_cited, self.config.agent_max_tokens),
                run,
            )
            parse = agent_parser(shown, self.config.max_cited)
            [reply] = ask(run, f"{view}_agent", [request], parse, stream=True, prefix=prefix)
            said = reply.value or AgentReply("", raw_answer(reply.raw), ())
            by_number = {number: document_id for document_id, number in numbers.items()}
            cited = tuple(by_number[number] for number in said.documents)
            stage.score("cited", _citations(seen, cited, reply), calls=dict.fromkeys(seen, reply.call))
            stage.keep(cited, {i: _citation_reason(title, i in cited, reply) for i in seen})
            _say_what_is_odd(title, said, reply, run)
            run.opinion(
                Opinion(
                    role=f"{view}_agent",
                    title=title,
                    answer=said.answer,
                    reasoning=said.reasoning,
                    documents=cited,
                    group=view,
                    status=reply.status,
                    call=reply.call,
                )
            )
        return Statement(view, said.answer, said.reasoning, cited, tuple(seen))

    def _candidates(
        self, item: Question, statements: Sequence[Statement], ranking: Ranking, run: Recorder
    ) -> tuple[str, ...]:
        """What either agent cites, in input order; the best document by SFS if there is nothing."""
        with run.stage("candidates", "Candidate evidence", item.document_ids) as stage:
            found = gather(item.document_ids, statements, ranking.order[0])
            stage.score("citations", {i: float(sum(i in s.cited for s in statements)) for i in item.document_ids})
            if found.fallback:
                run.notice(found.fallback, fallback=True)
            stage.keep(found.ids, found.reasons)
        return found.ids

    def _doc_score(
        self, item: Question, candidates: Sequence[str], ranking: Ranking, run: Recorder
    ) -> tuple[Assessment, dict[str, tuple[str, ...]]]:
        """Prune the candidates by DocScore and take the key sentences of those that stay."""
        config = self.config
        with run.stage("doc_score", "DocScore and key sentences", candidates) as stage:
            found = assess(item, run, candidates, config)
            if found.written is not None:
                stage.score("DocScore_written", found.written.scores, calls=found.written.calls)
            deciding = found.deciding
            scores = stage.score("DocScore", deciding.scores, calls=deciding.calls, threshold=config.threshold)
            best_ranked = next(i for i in ranking.order if i in candidates)
            verdict = prune(candidates, scores, config.threshold, best_ranked)
            if verdict.fallback:
                run.notice(f"Evidence pruning: {verdict.fallback} ({verdict.kept[0]}).", fallback=True)
            stage.keep(verdict.kept, verdict.reasons)
            sentences = key_sentences(item, run, verdict.kept, found.replies, config)
            stage.key_sentences = sentences
        return found, sentences

    def _judge(self, item: Question, evidence: Evidence, statements: Sequence[Statement], run: Recorder) -> Opinion:
        """The final answer, from both reasonings and the evidence; asked even where the agents agree."""
        with run.stage("judge", "Judge", tuple(evidence)) as stage:
            request = judge_request(item, evidence, statements, self.config, run.seed)
            [reply] = ask(run, "judge", [request], parse_judge, stream=True)
            found = judgement(reply, statements)
            if found.fallback:
                run.notice(found.fallback, warning=True, fallback=True)
            stage.keep(tuple(evidence), dict.fromkeys(evidence, "kept: read by the judge"))
            stage.note = found.agreement
            opinion = Opinion(
                role="judge",
                title="Judge",
                answer=found.answer,
                reasoning=found.reasoning,
                documents=tuple(evidence),
                group=found.group,
                chosen=True,
                status=reply.status,
                call=reply.call,
            )
            run.opinion(opinion)
        return opinion

    def _request(self, prompt: Prompt, max_tokens: int, schema: Mapping[str, Any], run: Recorder) -> GenerationRequest:
        return GenerationRequest(
            prompt=prompt,
            max_new_tokens=max_tokens,
            temperature=self.config.temperature,
            top_p=self.config.top_p,
            seed=run.seed,
            schema=schema,
        )


def _rank_reasons(
    order: Sequence[str], k: int, scores: Mapping[str, DocumentScore], ranker: str = "SFS"
) -> dict[str, str]:
    reasons = {}
    for place, document_id in enumerate(order, 1):
        by = f"by {ranker}" if scores[document_id].value is not None else f"in input order (no {ranker})"
        fate = "kept" if place <= k else "dropped"
        rest = "" if place <= k else f", the Local Agent reads {k}"
        reasons[document_id] = f"{fate}: rank {place} of {len(order)} {by}{rest}"
    return reasons


def _citations(seen: Sequence[str], cited: Sequence[str], reply: Reply[AgentReply]) -> dict[str, DocumentScore]:
    if reply.value is None:
        return dict.fromkeys(seen, DocumentScore(status=reply.status, detail=reply.detail))
    return {i: DocumentScore(value=float(i in cited)) for i in seen}


def _citation_reason(title: str, cited: bool, reply: Reply[AgentReply]) -> str:
    if reply.value is None:
        return f"dropped: the {title}'s reply could not be read ({reply.detail})"
    return f"kept: cited by the {title}" if cited else f"dropped: not cited by the {title}"


def _say_what_is_odd(title: str, said: AgentReply, reply: Reply[AgentReply], run: Recorder) -> None:
    if reply.value is None:
        run.notice(
            f"The {title}'s reply could not be read ({reply.detail}); its answer is taken from the raw text and it "
            "cites no document.",
            warning=True,
            fallback=True,
        )
    elif said.dropped:
        run.notice(
            f"The {title} cites {', '.join(said.dropped)}: not among the documents it read, or beyond the limit; "
            "left out."
        )
    elif not said.documents:
        run.notice(f"The {title} cites no document.")
