"""Where a document was lost on its way through a run, from the ledger alone: it knows no method by name.

Stages of the branch :data:`~mdqa.records.ASIDE` are left out: they show what was not done. Of the others, some say more
than which documents went on. A *citing* stage is one in which an agent read the documents and those that it cites go
on. In a *voting* one every document is read alone and its reading votes: there a document is read, whoever wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from mdqa.records import ASIDE, DocumentScore, Opinion, RunResult, Stage

Fate = Literal["reached", "never_in", "dropped", "not_cited"]
"""Read at the end; not among the documents; removed by a stage; read by an agent that did not cite it."""

ASIDE_ROLES = frozenset({"treatment", "ablation", "reading"})
"""Roles of opinions about what was carried out beside the run's own way, to compare."""


@dataclass(frozen=True)
class Placing:
    """A document in a stage's deciding signal.

    ``score`` is None where there is none, and ``status`` then says why; ``rank`` counts from 1 among the ``of``
    documents that came in (None without a score). ``instead``: the documents without evidence that were kept, best
    first. ``margin``: score minus threshold where the signal has one.
    """

    document: str
    signal: str
    score: float | None
    status: str
    rank: int | None
    of: int
    threshold: float | None
    margin: float | None
    instead: tuple[str, ...]
    reason: str

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready object."""
        return {**asdict(self), "instead": list(self.instead)}


@dataclass(frozen=True)
class Loss:
    """What became of a document, and the stage that decided it (None where no stage did)."""

    document: str
    fate: Fate
    stage: Stage | None = None


def own_stages(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages that led to the run's answer."""
    return tuple(stage for stage in stages if stage.branch != ASIDE)


def reached(result: RunResult) -> set[str]:
    """Ids of the documents that the answer was written from: what the last stage on the run's own way kept."""
    with_documents = [stage for stage in own_stages(result.stages) if stage.documents]
    return set(with_documents[-1].kept) if with_documents else set()


def own_stage(result: RunResult, name: str) -> Stage | None:
    """The first of them that has this name; None without one."""
    return next((stage for stage in own_stages(result.stages) if stage.name == name), None)


def own_opinions(result: RunResult) -> tuple[Opinion, ...]:
    """The opinions that led to the run's answer."""
    return tuple(opinion for opinion in result.opinions if opinion.role not in ASIDE_ROLES)


def ballots(result: RunResult) -> tuple[Opinion, ...]:
    """The readings that voted: opinions of a role that reads one document each, and of which some were chosen.

    Where every reading abstains, none is chosen; a weight then still says that there was a vote.
    """
    by_role: dict[str, list[Opinion]] = {}
    for opinion in own_opinions(result):
        by_role.setdefault(opinion.role, []).append(opinion)
    return tuple(
        opinion
        for group in by_role.values()
        if all(len(o.documents) == 1 for o in group) and any(o.chosen or o.weight is not None for o in group)
        for opinion in group
    )


def fate(result: RunResult, document: str) -> Loss:
    """What became of one document of the run.

    A document that an agent read and did not cite is ``not_cited`` there, whatever was dropped elsewhere; one that no
    citing agent read is ``dropped`` by the last stage before them that did not keep it. Without citing stages, the last
    stage that it came into decides. A run without a ledger gives every document to its answer.
    """
    stages = own_stages(result.stages)
    if document not in result.question.document_ids:
        return Loss(document, "never_in")
    if not stages:
        return Loss(document, "reached")
    seen = [stage for stage in stages if document in stage.documents]
    if not seen:
        return Loss(document, "dropped")
    voting, last = ballots(result), stages[-1]
    if seen[-1] is last and (document in last.kept or _is_voting(last, voting)):
        return Loss(document, "reached")
    citing = [stage for stage in stages if _citing(stage, result, voting)]
    readers = [stage for stage in seen if stage in citing]
    if citing and not any(document in stage.kept for stage in readers):
        if readers:
            return Loss(document, "not_cited", _readable(readers))
        before = seen[: _until(seen, stages.index(citing[0]), stages)]
        drops = [stage for stage in before if document not in stage.kept]
        return Loss(document, "dropped", drops[-1] if drops else seen[-1])
    return Loss(document, "dropped", seen[-1])


def placing(stage: Stage, document: str, gold: Sequence[str]) -> Placing:
    """A document in the signal that decided a stage, and what was kept in its place."""
    signal = deciding_signal(stage)
    scores = stage.scores.get(signal, {})
    order = _falling(stage.documents, scores)
    own = scores.get(document, DocumentScore(status="unavailable", detail="the stage records no score"))
    kept = [other for other in order if other in stage.kept and other not in gold]
    threshold = stage.thresholds.get(signal)
    return Placing(
        document=document,
        signal=signal,
        score=own.value,
        status=own.status,
        rank=order.index(document) + 1 if own.value is not None else None,
        of=len(stage.documents),
        threshold=threshold,
        margin=None if threshold is None or own.value is None else own.value - threshold,
        instead=tuple(kept),
        reason=stage.reasons.get(document, ""),
    )


def deciding_signal(stage: Stage) -> str:
    """The signal that says best why documents were kept; empty if there is none.

    One with a threshold; else the last that has no dropped document above a kept one; else the last with numbers; else
    the last.
    """
    held = [name for name in stage.scores if name in stage.thresholds]
    numbered = [name for name, scores in stage.scores.items() if any(s.value is not None for s in scores.values())]
    separating = [name for name in numbered if _separates(stage, stage.scores[name])]
    for names in (held, separating, numbered, list(stage.scores)):
        if names:
            return names[-1]
    return ""


def _separates(stage: Stage, scores: dict[str, DocumentScore]) -> bool:
    kept = [scores[d].value for d in stage.documents if d in stage.kept]
    dropped = [scores[d].value for d in stage.documents if d not in stage.kept]
    low = min((value for value in kept if value is not None), default=None)
    high = max((value for value in dropped if value is not None), default=None)
    return low is not None and high is not None and low >= high and low > min(_numbers(scores))


def _numbers(scores: dict[str, DocumentScore]) -> list[float]:
    return [score.value for score in scores.values() if score.value is not None]


def _falling(documents: Sequence[str], scores: dict[str, DocumentScore]) -> list[str]:
    """Documents by falling score; equal ones, and last those without a score, in the order in which they came in."""

    def key(document: str) -> tuple[bool, float]:
        value = scores[document].value if document in scores else None
        return (value is None, 0.0 if value is None else -value)

    return sorted(documents, key=key)


def _calls(stage: Stage) -> set[int]:
    return {call for calls in stage.calls.values() for call in calls.values()}


def _is_voting(stage: Stage, voting: Sequence[Opinion]) -> bool:
    """Whether the stage's documents are those whose readings voted."""
    return bool(voting) and {opinion.documents[0] for opinion in voting} == set(stage.documents)


def _citing(stage: Stage, result: RunResult, voting: Sequence[Opinion]) -> bool:
    """Whether what goes on from the stage is what one agent cites in it. A stage that keeps all decides nothing."""
    if set(stage.kept) == set(stage.documents):
        return any(o.role == stage.name and o.call in _calls(stage) for o in own_opinions(result) if o not in voting)
    return any(
        set(opinion.documents) == set(stage.kept) and (opinion.role == stage.name or opinion.call in _calls(stage))
        for opinion in own_opinions(result)
        if opinion not in voting
    )


def _readable(stages: Sequence[Stage]) -> Stage:
    """The last of the stages whose agent's reply could be read; the last if none could."""
    readable = [stage for stage in stages if all(_numbers(scores) for scores in stage.scores.values())]
    return (readable or list(stages))[-1]


def _until(seen: Sequence[Stage], place: int, stages: Sequence[Stage]) -> int:
    """How many of the stages ``seen`` stand before the given place among all."""
    return sum(1 for stage in seen if stages.index(stage) < place)
