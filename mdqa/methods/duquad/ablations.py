"""The ablations of Table 2, carried out in the run of the whole method (``compare_ablations``).

They share all that they have in common with it: the agents' replies, the DocScores and the key sentences. What is
left are the judge's calls, which go out as one batch. Each answer is the one that a run of its own
(``without_local``, ``without_global``, ``without_pruning``) gives with the same seed and greedy decoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mdqa.methods.asking import ask
from mdqa.methods.duquad.agents import Statement, View
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.evidence import Assessment, assess, gather, key_sentences, prune
from mdqa.methods.duquad.judging import Evidence, judge_request, judgement
from mdqa.methods.duquad.parsing import parse_judge
from mdqa.methods.recorder import Recorder
from mdqa.records import ASIDE, Opinion, Question

WHOLE = "duquad"


@dataclass(frozen=True)
class Ablation:
    """What is left of the method: whose statements the judge reads, and whether weak documents are pruned."""

    title: str
    views: tuple[View, ...] = ("local", "global")
    pruning: bool = True


ABLATIONS: Mapping[str, Ablation] = MappingProxyType(
    {
        "without_local": Ablation("Without the Local Agent", views=("global",)),
        "without_global": Ablation("Without the Global Agent", views=("local",)),
        "without_pruning": Ablation("Without Quality Pruning", pruning=False),
    }
)


@dataclass(frozen=True)
class Made:
    """What the whole method has made: both statements, the ranking, DocScores, and the key sentences so far."""

    statements: tuple[Statement, ...]
    order: tuple[str, ...]
    assessment: Assessment
    sentences: Mapping[str, tuple[str, ...]]


def carry_out(item: Question, run: Recorder, made: Made, own: Opinion, config: DuQUADConfig) -> None:
    """Record the outcome of the whole method (``own``, the judge's opinion) and of every ablation as opinions."""
    with run.stage("ablations", "The ablations", item.document_ids, branch=ASIDE) as stage:
        known = _Known(item, run, made, config)
        statements = {
            key: tuple(s for s in made.statements if s.view in ablation.views) for key, ablation in ABLATIONS.items()
        }
        evidence = {key: known.evidence(ablation, statements[key]) for key, ablation in ABLATIONS.items()}
        requests = [judge_request(item, evidence[key], statements[key], config, run.seed) for key in ABLATIONS]
        replies = dict(zip(ABLATIONS, ask(run, "judge", requests, parse_judge), strict=True))
        for key in ABLATIONS:
            stage.score(key, {i: float(i in evidence[key]) for i in item.document_ids})
    run.opinion(own.model_copy(update={"role": "ablation", "title": "DuQUAD", "group": WHOLE}))
    for key, reply in replies.items():
        found = judgement(reply, statements[key])
        run.opinion(
            Opinion(
                role="ablation",
                title=ABLATIONS[key].title,
                answer=found.answer,
                reasoning=found.reasoning or found.fallback,
                documents=tuple(evidence[key]),
                group=key,
                status=reply.status,
                call=reply.call,
            )
        )


class _Known:
    """DocScores and key sentences, each found out once; what the whole method did not need is added."""

    def __init__(self, item: Question, run: Recorder, made: Made, config: DuQUADConfig) -> None:
        self._item, self._run, self._made, self._config = item, run, made, config
        self._scores = dict(made.assessment.deciding.scores)
        self._replies = dict(made.assessment.replies)
        self._sentences = dict(made.sentences)

    def evidence(self, ablation: Ablation, statements: Sequence[Statement]) -> Evidence:
        """What the judge reads under this ablation."""
        order = self._made.order
        candidates = gather(self._item.document_ids, statements, order[0]).ids
        if not ablation.pruning:
            return dict.fromkeys(candidates)
        if new := [i for i in candidates if i not in self._scores]:
            found = assess(self._item, self._run, new, self._config)
            self._scores |= found.deciding.scores
            self._replies |= found.replies
        best = next(i for i in order if i in candidates)
        kept = prune(candidates, self._scores, self._config.threshold, best).kept
        if new := [i for i in kept if i not in self._sentences]:
            self._sentences |= key_sentences(self._item, self._run, new, self._replies, self._config, own=False)
        return {i: self._sentences[i] for i in kept}
