"""Leave one out: what a run would have been without each of its documents, beside the attention they got.

Does what the heads look at matter? Every document of a stored run is switched off once, everything else (options,
seed, model) stays. A document's *effect* is what its absence does to the answer:

- ``answer``: 1 minus the token F1 of the answers with and without it (0: the same words, 1: no word in common),
- ``f1``: the F1 with it minus the F1 without it, against the accepted answers (above 0: it helped, below: it misled).

Each is set against the attention mass of the document in the run that had them all, and against every score that the
run gave it, by Spearman's rank correlation over the documents of this one question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mdqa.errors import InputError
from mdqa.interventions import SwitchOff, apply
from mdqa.records import Document, Question, RunResult, Stage
from mdqa.scoring.answers import f1_empty_equal, normalize
from mdqa.scoring.losses import deciding_signal, own_stage, own_stages, reached
from mdqa.studies.base import Mass, Outcome, Tally, Variant, attention_mass, outcome, tally

FEWEST = 3
"""Documents without which no rank correlation is given: two are always in line."""

EFFECTS = ("answer", "f1")
"""The effects, in the order in which they are shown."""

ATTENTION = "attention"
"""The name of the predictor that is no score of a stage."""


@dataclass(frozen=True)
class Shift:
    """How a signal of a stage changed for the other documents that both runs score: |after - before|.

    ``document`` is the one with the largest change, ``lost`` counts those that have a number in one of the runs only.
    """

    stage: str
    title: str
    signal: str
    mean: float | None
    largest: float | None
    document: str
    n: int
    lost: int


@dataclass(frozen=True)
class Row:
    """One document: what it got in the run with all of them, and what the run without it was.

    ``same``: whether both answers have one normal form (None unless the run without it ended well). ``gained`` and
    ``dropped`` are documents that reached the answer in one of the runs only. ``shifts``: the headline signal first.
    """

    document: Document = field(repr=False)
    number: int
    attention: float | None
    without: Outcome
    same: bool | None = None
    effects: Mapping[str, float] = field(default_factory=dict)
    sub_em_change: float | None = None
    f1_change: float | None = None
    route_changed: bool | None = None
    judge_changed: bool | None = None
    gained: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    shifts: tuple[Shift, ...] = ()


@dataclass(frozen=True)
class Predictor:
    """A number per document of the base run: its attention mass, or a signal of a stage."""

    name: str
    stage: str
    signal: str
    values: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True)
class Correlation:
    """Spearman's correlation of a predictor with an effect over ``n`` documents; ``why`` says why there is none."""

    predictor: str
    effect: str
    rho: float | None
    n: int
    why: str = ""


@dataclass(frozen=True)
class LeaveOneOut:
    """The study as far as it got. ``mass`` is None where the base run did not look at attention."""

    base: Outcome
    rows: tuple[Row, ...]
    tally: Tally
    mass: Mass | None
    predictors: tuple[Predictor, ...]
    correlations: tuple[Correlation, ...]

    def correlation(self, predictor: str, effect: str) -> Correlation:
        """One of them; KeyError if there is none."""
        for found in self.correlations:
            if (found.predictor, found.effect) == (predictor, effect):
                return found
        raise KeyError((predictor, effect))


def check(run: RunResult) -> None:
    """InputError unless the run came to an answer and has at least two documents."""
    where = f"run {run.id[:8]}"
    if run.status != "ok":
        raise InputError(f"the run ended as {run.status!r}; only a finished one can be set against others", place=where)
    if len(run.question.documents) < 2:
        raise InputError("there are fewer than two documents, so there is nothing to leave out or to move", place=where)


def variants(run: RunResult) -> tuple[Variant, ...]:
    """The run's question without each of its documents, in their order; the key is the document's id.

    InputError as in :func:`check`.
    """
    check(run)
    return tuple(
        Variant(document.id, run.method, apply(run.question, [SwitchOff(document=document.id)]))
        for document in run.question.documents
    )


def leave_one_out(base: RunResult, results: Mapping[str, RunResult]) -> LeaveOneOut:
    """The study from the base run and those members that there are, by the id of the document that is left out."""
    mass = attention_mass(base)
    before = outcome(base)
    rows = tuple(
        _row(document, number, base, before, results.get(document.id), mass)
        for number, document in enumerate(base.question.documents, 1)
    )
    predictors = _predictors(base, mass)
    effects = [name for name in EFFECTS if name == "answer" or base.question.answers]
    return LeaveOneOut(
        base=before,
        rows=rows,
        tally=tally(row.without.state for row in rows),
        mass=mass,
        predictors=predictors,
        correlations=tuple(_correlation(predictor, effect, rows) for predictor in predictors for effect in effects),
    )


def _row(
    document: Document, number: int, base: RunResult, before: Outcome, run: RunResult | None, mass: Mass | None
) -> Row:
    attention = mass.documents.get(document.id) if mass is not None else None
    after = outcome(run)
    if run is None or after.state != "ok":
        return Row(document, number, attention, after)
    effects = {"answer": 1.0 - f1_empty_equal(after.answer, [before.answer])}
    if before.f1 is not None and after.f1 is not None:
        effects["f1"] = before.f1 - after.f1
    kept, now = (reached(one) - {document.id} for one in (base, run))
    return Row(
        document=document,
        number=number,
        attention=attention,
        without=after,
        same=normalize(after.answer) == normalize(before.answer),
        effects=effects,
        sub_em_change=_minus(after.sub_em, before.sub_em),
        f1_change=_minus(after.f1, before.f1),
        route_changed=after.route != before.route if before.route or after.route else None,
        judge_changed=after.judge != before.judge if before.judge or after.judge else None,
        gained=_in_order(base.question, now - kept),
        dropped=_in_order(base.question, kept - now),
        shifts=_shifts(base, run, document.id),
    )


def _minus(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _in_order(question: Question, ids: set[str]) -> tuple[str, ...]:
    return tuple(document_id for document_id in question.document_ids if document_id in ids)


def _shifts(base: RunResult, run: RunResult, left_out: str) -> tuple[Shift, ...]:
    """Every signal that both runs have; first the deciding one of the stage that scores most documents."""
    found: list[tuple[int, bool, Shift]] = []
    for stage in _scoring_stages(base):
        other = own_stage(run, stage.name)
        deciding = deciding_signal(stage)
        for signal in stage.scores if other is not None else ():
            if other is not None and signal in other.scores:
                found.append((len(stage.documents), signal == deciding, _shift(stage, other, signal, left_out)))
    ordered = sorted(found, key=lambda entry: (-entry[0] * entry[1], -entry[0]))
    return tuple(shift for _, _, shift in ordered)


def _scoring_stages(run: RunResult) -> list[Stage]:
    """The first stage of each name, as far as they score documents."""
    stages = {stage.name: stage for stage in reversed(own_stages(run.stages)) if stage.scores}
    return list(reversed(stages.values()))


def _shift(before: Stage, after: Stage, signal: str, left_out: str) -> Shift:
    old, new = before.scores[signal], after.scores[signal]
    changes: dict[str, float] = {}
    lost = 0
    for name, score in old.items():
        if name == left_out or name not in new:
            continue  # what did not come into the stage this time is a matter of the stages before it
        then, now = score.value, new[name].value
        if then is not None and now is not None:
            changes[name] = abs(now - then)
        else:
            lost += (then is None) != (now is None)
    largest = max(changes, key=lambda name: changes[name], default="")
    mean = math.fsum(changes.values()) / len(changes) if changes else None
    return Shift(before.name, before.title, signal, mean, changes.get(largest), largest, len(changes), lost)


def _predictors(base: RunResult, mass: Mass | None) -> tuple[Predictor, ...]:
    """Attention where it was looked at, then every signal with a number for enough documents."""
    found = [] if mass is None else [Predictor(ATTENTION, mass.title, ATTENTION, mass.documents)]
    for stage in _scoring_stages(base):
        for signal, scores in stage.scores.items():
            values = {name: score.value for name, score in scores.items() if score.value is not None}
            if len(values) >= FEWEST:
                found.append(Predictor(f"{stage.name}/{signal}", stage.title, signal, values))
    return tuple(found)


def _correlation(predictor: Predictor, effect: str, rows: Sequence[Row]) -> Correlation:
    pairs = [
        (predictor.values[row.document.id], row.effects[effect])
        for row in rows
        if effect in row.effects and row.document.id in predictor.values
    ]
    rho, why = rank_correlation([x for x, _ in pairs], [y for _, y in pairs])
    return Correlation(predictor.name, effect, rho, len(pairs), why)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> tuple[float | None, str]:
    """Spearman's rho with mid-ranks for ties (scipy), or None and the reason in words."""
    if len(first) < FEWEST:
        return None, f"only {len(first)} of the documents have both numbers; it takes {FEWEST}"
    if len(set(second)) == 1:
        return None, "the effect is the same for every document, so there is nothing to rank"
    if len(set(first)) == 1:
        return None, "the number is the same for every document, so there is nothing to rank"
    from scipy.stats import spearmanr  # noqa: PLC0415 (seconds that most of the program need not wait for)

    return float(spearmanr(first, second).statistic), ""
