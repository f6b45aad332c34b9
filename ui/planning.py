"""The verbs of a calibration, without Gradio: what it would take, what stands in its way, start, follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice, zip_longest
from typing import Any

from mdqa.benchmarks.base import SPLITS, in_split
from mdqa.calibration import JUDGED_RUNS, accepts, calibration_options, planned
from mdqa.errors import ConfigError, InputError, MdqaError
from mdqa.passes import Passes
from mdqa.records import Question
from mdqa.registry import CALIBRATIONS, load, method_class
from mdqa.run import new_run_id
from storage.annotations import Judged
from ui.actions import MAX_SEED, title_of
from ui.calibrating import CalibrationOrder
from ui.context import Context
from ui.forms import FormField, form_fields, read_form
from ui.inputs import MAX_LOADED, LoadedFile, load_file
from ui.profiles import check_name
from ui.verdicts import judged
from ui.views.calibration import CalibrationState, Plan
from ui.views.preview import Refusal

SHOWN_ENDED = 2
"""Ended calibrations that stay on the page beside those that wait or work."""

OTHER_PART = {"calibration": "held-out", "held-out": "calibration", "all": "all"}
"""Where the questions to measure on come from; those that are calibrated on are never among them."""


@dataclass(frozen=True)
class CalibrationInfo:
    """A method that can be calibrated, as the form shows it. ``measures``: on held-out questions, if they are given.

    ``judged``: whether people's verdicts can stand in for gold answers.
    """

    name: str
    title: str
    summary: str
    fields: tuple[FormField, ...]
    resumes: bool
    measures: bool
    judged: bool


@dataclass(frozen=True)
class Wish:
    """What the form says, unchecked. ``options``: the values of the method's own form.

    ``before``: measure the profile that would be taken now beside the new one.
    """

    method: str
    model: str
    files: tuple[LoadedFile, ...] = field(default=(), repr=False)
    split: str = "calibration"
    limit: object = None
    held_out: object = 0
    name: str = ""
    seed: object = 42
    replace: bool = False
    labels: bool = False
    before: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


def calibrations() -> tuple[CalibrationInfo, ...]:
    """All methods of the registry that can be calibrated."""
    return tuple(_info(name) for name in CALIBRATIONS)


def _info(name: str) -> CalibrationInfo:
    calibrate = load(CALIBRATIONS, name, "calibration")
    fields = tuple(f for f in form_fields(calibration_options(calibrate)) if f.name != "data")
    cls = method_class(name)
    return CalibrationInfo(
        name,
        cls.title,
        cls.summary,
        fields,
        resumes=accepts(calibrate, "passes"),
        measures=accepts(calibrate, "held_out"),
        judged=takes_verdicts(name),
    )


def takes_verdicts(method: str) -> bool:
    """Whether people's verdicts on stored answers can stand in for gold answers in a method's calibration."""
    return method in JUDGED_RUNS and accepts(load(CALIBRATIONS, method, "calibration"), "verdicts")


def load_files(paths: Sequence[str], context: Context) -> tuple[LoadedFile, ...]:
    """The questions of uploaded files; a question whose id an earlier file has is refused by name."""
    seen: dict[str, str] = {}
    loaded = []
    for path in paths:
        file = load_file(path, context.settings)
        kept, refused = [], list(file.refused)
        for item in file.questions:
            if item.id in seen:
                refused.append(Refusal(f"{file.name}, {item.id}", f"is in {seen[item.id]} too; it is taken once."))
            else:
                kept.append(item)
        seen.update((item.id, file.name) for item in kept)
        loaded.append(LoadedFile(file.name, tuple(kept), tuple(refused), file.notices))
    return tuple(loaded)


def plan(context: Context, wish: Wish) -> Plan:
    """What the calibration would do, and everything that stands in its way; never raises for what people typed."""
    title = title_of(wish.method)
    obstacles: list[str] = []
    try:
        order = _order(context, wish)
    except MdqaError as problem:
        return Plan(title, read=_read(wish), split=wish.split, obstacles=(str(problem),), pieces=_pieces(context, wish))
    passes = used = 0
    calibrate = load(CALIBRATIONS, wish.method, "calibration")
    try:
        used, passes = planned(
            calibrate, order.questions, held_out=order.held_out, seed=order.seed, options=order.options
        )
    except MdqaError as problem:
        obstacles.append(str(problem))
    judged = _judged(context, wish, order.questions)
    for check in (_check_model, _check_name, lambda *_: _check_labels(wish, judged)):
        try:
            check(context, wish)
        except MdqaError as problem:
            obstacles.append(str(problem))
    return Plan(
        title,
        read=_read(wish),
        part=sum(1 for _ in in_split(_questions(wish.files), wish.split)),
        split=wish.split,
        taken=len(order.questions),
        unmarked=sum(not item.gold_ids for item in order.questions),
        used=used,
        held_out=len(order.held_out) if accepts(calibrate, "held_out") else None,
        passes=passes,
        unanswered=judged.unanswered if judged else 0,
        judged=len(judged.found.right) if judged and judged.found else None,
        tied=judged.found.tied if judged and judged.found else 0,
        pieces=_pieces(context, wish),
        obstacles=tuple(obstacles),
    )


def start(context: Context, wish: Wish) -> str:
    """Put the calibration in line and return its id; MdqaError, before any model work, says what is wrong."""
    order = _order(context, wish)
    _check_model(context, wish)
    _check_name(context, wish)
    calibrate = load(CALIBRATIONS, wish.method, "calibration")
    planned(calibrate, order.questions, held_out=order.held_out, seed=order.seed, options=order.options)
    judged = _judged(context, wish, order.questions)
    _check_labels(wish, judged)
    if judged and judged.found:
        order = replace(order, verdicts=dict(judged.found.right))
    return context.engine.calibrate(order)


def shown_calibrations(context: Context) -> list[CalibrationState]:
    """Those that wait or work, and the last ones that have ended; of one profile the latest attempt, newest first."""
    latest: dict[tuple[str, str, str], CalibrationState] = {}
    for state in context.engine.calibrations():
        latest.setdefault((state.title, state.model, state.name), state)
    ended = [state for state in latest.values() if state.finished][:SHOWN_ENDED]
    return [state for state in latest.values() if not state.finished or state in ended]


@dataclass(frozen=True)
class _Judging:
    """How many questions have no gold answers and, where they are wished for, people's verdicts on them."""

    unanswered: int
    found: Judged | None


def _judged(context: Context, wish: Wish, questions: Sequence[Question]) -> _Judging | None:
    """What is known of the questions without gold answers; None where the method measures no answers."""
    if not takes_verdicts(wish.method):
        return None
    unanswered = [item for item in questions if not item.answers]
    if not wish.labels:
        return _Judging(len(unanswered), None)
    return _Judging(len(unanswered), judged(context, unanswered, wish.model, JUDGED_RUNS[wish.method]))


def _check_labels(wish: Wish, judged: _Judging | None) -> None:
    """InputError if verdicts are wished for and needed, and there are none."""
    if judged and judged.found and judged.unanswered and not judged.found.right:
        runs = JUDGED_RUNS[wish.method]
        raise InputError(
            f"nobody has judged a stored answer to any of the {judged.unanswered} questions without gold answers: ask "
            f"them with {title_of(runs['method'])}, treatment {runs['treatment']}, and {wish.model}, and say under the "
            "answers whether they are right",
            place="People's verdicts",
        )


def _order(context: Context, wish: Wish) -> CalibrationOrder:
    """The wish as a checked order, except for what depends on the model and on stored names."""
    calibrate = load(CALIBRATIONS, wish.method, "calibration")
    cls = calibration_options(calibrate)
    config = cls.parse(read_form(cls, wish.options))
    if wish.split not in SPLITS:
        raise ConfigError(f"there is no part {wish.split!r} of a file")
    limit = _whole(wish.limit, "the number of questions", 1, MAX_LOADED)
    held_out = _whole(wish.held_out, "the number of held-out questions", 0, MAX_LOADED)
    seed = _whole(wish.seed, "the seed", 0, MAX_SEED)
    if not _read(wish):
        raise InputError("load a file of questions first", place="Questions")
    questions = tuple(islice(in_split(_questions(wish.files), wish.split), limit))
    if not questions:
        raise InputError(
            f"none of {_read(wish)} falls into the {wish.split} half; take all of them or load more", place="Questions"
        )
    taken = {item.id for item in questions}
    others = in_split(_questions(wish.files), OTHER_PART[wish.split])
    measured = tuple(islice((q for q in others if q.gold_ids and q.id not in taken), held_out))
    names = ", ".join(file.name for file in wish.files if file.questions)
    return CalibrationOrder(
        run_id=new_run_id(),
        method=wish.method,
        title=title_of(wish.method),
        model=wish.model,
        name=wish.name.strip(),
        questions=questions,
        held_out=measured if accepts(calibrate, "held_out") else (),
        options={name: value for name, value in config if name != "data"},
        seed=seed,
        data=f"{names} ({wish.split})",
        replace=wish.replace,
        passes=_passes(context, wish),
        before=context.profile_for(wish.method, wish.model) if wish.before else None,
        found=_pieces(context, wish) or 0,
    )


def _questions(files: Sequence[LoadedFile]) -> list[Question]:
    """The questions of all files, one of each in turn, so that the first N are spread over the files."""
    rows = zip_longest(*(file.questions for file in files))
    return [item for item in chain.from_iterable(rows) if item is not None]


def _read(wish: Wish) -> int:
    return sum(len(file.questions) for file in wish.files)


def _whole(value: object, what: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ConfigError(f"{what} must be a whole number")
    if not low <= value <= high:
        raise ConfigError(f"{what} is {int(value):,}; it must be between {low:,} and {high:,}")
    return int(value)


def _passes(context: Context, wish: Wish) -> Passes | None:
    """Where finished pieces are kept; None where the method keeps none."""
    if not accepts(load(CALIBRATIONS, wish.method, "calibration"), "passes"):
        return None
    return Passes.for_profile(context.settings.cache, wish.method, wish.model, wish.name.strip())


def _pieces(context: Context, wish: Wish) -> int | None:
    try:
        passes = _passes(context, wish)
    except MdqaError:
        return 0
    return None if passes is None else passes.count()


def _check_model(context: Context, wish: Wish) -> None:
    """ConfigError if the model is not offered or cannot do what the method needs."""
    card = context.card(wish.model)
    if card is None:
        raise ConfigError(f"the model {wish.model!r} is not offered here")
    able = context.engine.capabilities if context.engine.loaded() == wish.model else None
    known = set(card.capabilities if able is None else able)
    cls = method_class(wish.method)
    missing = [c for c in cls.needs(cls.Config()) if c not in known]
    if missing:
        raise ConfigError(f"{cls.title} needs {' and '.join(missing)}, which {wish.model} does not give here")


def _check_name(context: Context, wish: Wish) -> None:
    check_name(context, wish.method, wish.model, wish.name.strip(), replace=wish.replace)
