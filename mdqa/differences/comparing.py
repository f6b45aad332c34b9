"""Setting two runs against each other.

Documents are the same where they have the same id (:mod:`mdqa.interventions` keeps ids), stages where they have the
same name and branch and come the same number of times before. Numbers are those of the ledgers. Ranks count from 1
among the documents that came into the stage, equal scores share the better rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mdqa.differences.records import (
    DecisionChange,
    Differences,
    DocumentChange,
    OptionChange,
    Place,
    RouteChange,
    SignalChange,
    StageChange,
)
from mdqa.interventions import longest_rising, words_between
from mdqa.records import Document, DocumentScore, Opinion, Question, Routing, RunResult, Stage
from mdqa.scoring.answers import run_is_right
from mdqa.scoring.losses import reached


def comparable(before: RunResult, after: RunResult) -> bool:
    """Whether two runs can be set against each other: one method, and one question whatever was done to its documents.

    A question that somebody typed has no id that tells it from others, so they must share at least one document too.
    """
    one, two = before.question, after.question
    return (
        before.method == after.method
        and (one.id, one.question, one.answers) == (two.id, two.question, two.answers)
        and (one.documents == two.documents or bool(set(one.document_ids) & set(two.document_ids)))
    )


def differences(before: RunResult, after: RunResult) -> Differences:
    """What is different in ``after``, a later run of the same method on the same question."""
    return Differences(
        before=before.id,
        after=after.id,
        answer_before=before.answer,
        answer_after=after.answer,
        correct_before=run_is_right(before),
        correct_after=run_is_right(after),
        options=_options(before.config, after.config),
        interventions=words_between(before.question, after.question),
        documents=_documents(before, after),
        decisions=_decisions(before.opinions, after.opinions),
        route=_route(before.routing, after.routing),
        cost_before=before.cost,
        cost_after=after.cost,
    )


def _options(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[OptionChange, ...]:
    names = [*after, *(name for name in before if name not in after)]
    return tuple(
        OptionChange(name=name, before=before.get(name), after=after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    )


def _documents(before: RunResult, after: RunResult) -> tuple[DocumentChange, ...]:
    old, new = _numbered(before.question), _numbered(after.question)
    # Read as in `plan`, so that of two neighbours that changed places the same one counts as moved.
    still = set(longest_rising([new[name][0] for name in old if name in new]))
    pairs = _paired(before.stages, after.stages)
    at_the_end = reached(before), reached(after)
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        number_before, earlier = old.get(name, (None, None))
        number_after, later = new.get(name, (None, None))
        shown = later or earlier
        assert shown is not None
        found.append(
            DocumentChange(
                id=name,
                title=shown.title or shown.text,
                gold=shown.gold,
                number_before=number_before,
                number_after=number_after,
                edited=None not in (earlier, later) and earlier != later,
                shifted=number_before is not None and number_after in still and number_before != number_after,
                reached_before=name in at_the_end[0],
                reached_after=name in at_the_end[1],
                stages=tuple(change for one, two in pairs if (change := _stage(name, one, two)) is not None),
            )
        )
    return tuple(found)


def _numbered(question: Question) -> dict[str, tuple[int, Document]]:
    return {document.id: (number, document) for number, document in enumerate(question.documents, 1)}


def _paired(before: Sequence[Stage], after: Sequence[Stage]) -> list[tuple[Stage | None, Stage | None]]:
    """The stages of both runs, the later run's in its order, then those that only the earlier one has."""
    old, new = _keyed(before), _keyed(after)
    return [(old.get(key), new.get(key)) for key in [*new, *(key for key in old if key not in new)]]


def _keyed(stages: Iterable[Stage]) -> dict[tuple[str, str, int], Stage]:
    found: dict[tuple[str, str, int], Stage] = {}
    for stage in stages:
        number = sum(key[:2] == (stage.name, stage.branch) for key in found)
        found[stage.name, stage.branch, number] = stage
    return found


def _stage(document: str, before: Stage | None, after: Stage | None) -> StageChange | None:
    """The document in a stage of both runs; None where it came into neither."""
    places = [_place(document, stage) for stage in (before, after)]
    shown = after or before
    if places == [None, None] or shown is None:
        return None
    signals = dict.fromkeys([*(after.scores if after else ()), *(before.scores if before else ())])
    changes = (_signal(document, name, before, after) for name in signals)
    return StageChange(
        stage=shown.name,
        title=shown.title,
        branch=shown.branch,
        before=places[0],
        after=places[1],
        signals=tuple(change for change in changes if (change.before, change.after) != (None, None)),
    )


def _place(document: str, stage: Stage | None) -> Place | None:
    if stage is None or document not in stage.documents:
        return None
    position = stage.kept.index(document) + 1 if document in stage.kept else None
    return Place(position=position, reason=stage.reasons.get(document, ""))


def _signal(document: str, name: str, before: Stage | None, after: Stage | None) -> SignalChange:
    (old, rank_before), (new, rank_after) = (_ranked(document, name, stage) for stage in (before, after))
    return SignalChange(signal=name, before=old, after=new, rank_before=rank_before, rank_after=rank_after)


def _ranked(document: str, name: str, stage: Stage | None) -> tuple[DocumentScore | None, int | None]:
    scores = stage.scores.get(name, {}) if stage is not None else {}
    own = scores.get(document)
    if own is None or own.value is None:
        return own, None
    return own, 1 + sum(other.value > own.value for other in scores.values() if other.value is not None)


def _decisions(before: Sequence[Opinion], after: Sequence[Opinion]) -> tuple[DecisionChange, ...]:
    """Voices whose answer, citations, weight or choice differ."""
    alone = _reading_alone(before) | _reading_alone(after)
    old, new = _voices(before, alone), _voices(after, alone)
    found = []
    for key in [*new, *(key for key in old if key not in new)]:
        one, two = old.get(key), new.get(key)
        shown = two or one
        assert shown is not None
        if _said(one) != _said(two):
            found.append(DecisionChange(name=shown.title, role=shown.role, before=one, after=two))
    return tuple(found)


def _reading_alone(opinions: Sequence[Opinion]) -> set[str]:
    """Roles of which several read one document each, so that the document tells them apart."""
    by_role: dict[str, list[int]] = {}
    for opinion in opinions:
        by_role.setdefault(opinion.role, []).append(len(opinion.documents))
    return {role for role, counts in by_role.items() if len(counts) > 1 and set(counts) == {1}}


def _voices(opinions: Sequence[Opinion], alone: set[str]) -> dict[tuple[str, ...], Opinion]:
    """Opinions by what makes them the same voice in another run: role, title, document read alone, number of these."""
    found: dict[tuple[str, ...], Opinion] = {}
    for opinion in opinions:
        read = opinion.documents[0] if opinion.role in alone and opinion.documents else ""
        number = sum(key[:3] == (opinion.role, opinion.title, read) for key in found)
        found[opinion.role, opinion.title, read, str(number)] = opinion
    return found


def _said(opinion: Opinion | None) -> tuple[object, ...] | None:
    if opinion is None:
        return None
    return opinion.answer.strip(), opinion.documents, opinion.weight, opinion.chosen, opinion.status


def _route(before: Routing | None, after: Routing | None) -> RouteChange | None:
    old, new = (routing.measures if routing else {} for routing in (before, after))
    names = [*new, *(name for name in old if name not in new)]
    measures = tuple((name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name))
    change = RouteChange(before=before, after=after, measures=measures)
    return change if change.treatment_changed or measures else None
