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
from mdqa.methods.duquad.agents import (
    Statement,
    View,
    agent_prompt,
    agent_schema,
    agent_title,
    judge_prompt,
    judge_schema,
    numbers_of,
)
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.evidence import (
    ask_score_agent,
    continuous_scores,
    key_sentences,
    prune,
    written_scores,
)
from mdqa.methods.duquad.fusion import arrange, fuse, normalise, rank
from mdqa.methods.duquad.parsing import (
    AgentReply,
    JudgeReply,
    agent_parser,
    agrees_with,
    parse_judge,
    raw_answer,
)
from mdqa.methods.duquad.signals import (
    TITLES,
    Signal,
    attention_contrast,
    measure,
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
        ranking = self._structural_fusion(item, run)
        statements: list[Statement] = []
        if not self.config.without_local:
            statements.append(self._agent("local", item, ranking.local, ranking.prefix, run))
        if not self.config.without_global:
            statements.append(self._agent("global", item, item.document_ids, ranking.prefix, run))
        ranking = replace(ranking, prefix=None)  # its keys and values would take memory until the run ends
        candidates = self._candidates(item, statements, ranking, run)
        evidence: Mapping[str, Sequence[str] | None]
        if self.config.without_pruning:
            evidence = dict.fromkeys(candidates)
        else:
            evidence = self._doc_score(item, candidates, ranking, run)
        return self._judge(item, evidence, statements, run)

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

    def _signals(self, item: Question, run: Recorder, stage: StageDraft) -> dict[str, Signal]:
        """Every signal with a weight; one that cannot be measured is said."""
        config = self.config
        compute = {
            "sim": lambda: semantic_relevance(item, run),
            "ppl": lambda: structural_inference(item, run),
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
            who = {i: [s.title for s in statements if i in s.cited] for i in item.document_ids}
            stage.score("citations", {i: float(len(titles)) for i, titles in who.items()})
            reasons = {
                i: f"kept: cited by the {' and the '.join(titles)}" if titles else "dropped: no agent cites it"
                for i, titles in who.items()
            }
            candidates = tuple(i for i in item.document_ids if who[i])
            if not candidates:
                candidates = ranking.order[:1]
                reasons[candidates[0]] = "kept: no agent cites any document; this one ranks first by SFS"
                run.notice(
                    f"No agent cites a document; {candidates[0]}, first by SFS, is the only candidate.", fallback=True
                )
            stage.keep(candidates, reasons)
        return candidates

    def _doc_score(
        self, item: Question, candidates: Sequence[str], ranking: Ranking, run: Recorder
    ) -> dict[str, tuple[str, ...]]:
        """Prune the candidates by DocScore and take the key sentences of those that stay."""
        config = self.config
        with run.stage("doc_score", "DocScore and key sentences", candidates) as stage:
            asked = config.key_sentences == "agent" or not config.continuous_doc_score
            replies = ask_score_agent(item, run, candidates, config) if asked else {}
            scored = written_scores(candidates, replies)
            if config.continuous_doc_score:
                if asked:
                    stage.score("DocScore_written", scored.scores, calls=scored.calls)
                scored = continuous_scores(item, run, candidates)
            scores = stage.score("DocScore", scored.scores, calls=scored.calls, threshold=config.threshold)
            best_ranked = next(i for i in ranking.order if i in candidates)
            verdict = prune(candidates, scores, config.threshold, best_ranked)
            if verdict.fallback:
                run.notice(f"Evidence pruning: {verdict.fallback} ({verdict.kept[0]}).", fallback=True)
            stage.keep(verdict.kept, verdict.reasons)
            sentences = key_sentences(item, run, verdict.kept, replies, config)
            stage.key_sentences = sentences
        return sentences

    def _judge(
        self,
        item: Question,
        evidence: Mapping[str, Sequence[str] | None],
        statements: Sequence[Statement],
        run: Recorder,
    ) -> str:
        """The final answer, from both reasonings and the evidence; asked even where the agents agree."""
        with run.stage("judge", "Judge", tuple(evidence)) as stage:
            request = self._request(
                judge_prompt(item, evidence, statements),
                self.config.judge_max_tokens,
                judge_schema(self.config.judge_max_tokens),
                run,
            )
            [reply] = ask(run, "judge", [request], parse_judge, stream=True)
            said = reply.value or JudgeReply("", _last_resort(reply, statements, run))
            by_view = {statement.view: statement.answer for statement in statements}
            group = agrees_with(said.answer, local_answer=by_view.get("local"), global_answer=by_view.get("global"))
            stage.keep(tuple(evidence), dict.fromkeys(evidence, "kept: read by the judge"))
            stage.note = _agreement(group)
            run.opinion(
                Opinion(
                    role="judge",
                    title="Judge",
                    answer=said.answer,
                    reasoning=said.reasoning,
                    documents=tuple(evidence),
                    group=group,
                    chosen=True,
                    status=reply.status,
                    call=reply.call,
                )
            )
        return said.answer

    def _request(self, prompt: Prompt, max_tokens: int, schema: Mapping[str, Any], run: Recorder) -> GenerationRequest:
        return GenerationRequest(
            prompt=prompt,
            max_new_tokens=max_tokens,
            temperature=self.config.temperature,
            top_p=self.config.top_p,
            seed=run.seed,
            schema=schema,
        )


def _rank_reasons(order: Sequence[str], k: int, fused: Mapping[str, DocumentScore]) -> dict[str, str]:
    reasons = {}
    for place, document_id in enumerate(order, 1):
        by = "by SFS" if fused[document_id].value is not None else "in input order (no SFS)"
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


def _last_resort(reply: Reply[JudgeReply], statements: Sequence[Statement], run: Recorder) -> str:
    """The judge's raw text, or an agent's answer if the judge wrote nothing; said as a fallback."""
    answer, source = raw_answer(reply.raw), "its answer is taken from the raw text"
    if not answer:
        agent = next((s for s in reversed(statements) if s.answer), None)
        answer = agent.answer if agent else ""
        source = f"the {agent.title}'s answer stands" if agent else "there is no answer"
    run.notice(f"The judge's reply could not be read ({reply.detail}); {source}.", warning=True, fallback=True)
    return answer


def _agreement(group: str) -> str:
    return {
        "both": "The judge agrees with both agents.",
        "local": "The judge agrees with the Local Agent.",
        "global": "The judge agrees with the Global Agent.",
    }.get(group, "The judge gives an answer that no agent gave.")
