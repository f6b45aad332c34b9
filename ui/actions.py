"""The verbs of the page, without Gradio: what can be chosen, what stands in the way, start, follow, stop, look back."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from mdqa.differences.comparing import comparable
from mdqa.errors import CapabilityError, ConfigError, MdqaError
from mdqa.methods.base import Method, MethodConfig
from mdqa.records import AttentionMap, Overflow, Question, RunResult
from mdqa.registry import METHODS, method_class
from mdqa.run import check_question, new_run_id
from mdqa.scoring.answers import run_is_right
from mdqa.trace import ModelCall
from storage.runs import RunFilter, UnknownRun
from ui.context import Context
from ui.following import Order, error_sentence
from ui.forms import FormField, form_fields, read_form
from ui.views.ledger import final_stage
from ui.views.live import Snapshot

MAX_SEED = 2**31 - 1
LOOK_EVERY = 0.25
"""Seconds between two looks at a run that is followed."""


@dataclass(frozen=True)
class MethodInfo:
    """A method as the picker shows it. ``controls``: its fields that a result offers to be changed."""

    name: str
    title: str
    summary: str
    fields: tuple[FormField, ...]
    uses_profile: bool
    controls: tuple[FormField, ...] = ()


@dataclass(frozen=True)
class View:
    """A stored run with everything its page shows. ``before``: the run that it repeats with something changed."""

    run: RunResult
    title: str
    calls: tuple[ModelCall, ...]
    maps: tuple[AttentionMap, ...]
    correct: bool | None
    vanilla: RunResult | None
    gold_reached: tuple[int, int] | None
    before: RunResult | None = None

    @property
    def calls_by_index(self) -> dict[int, ModelCall]:
        """The model calls by their index."""
        return {call.index: call for call in self.calls}


BASELINES = ("direct", "retrieve_read", "in_context", "main_rag")
"""Methods that the others are set beside; they come after them in every list to choose from."""


def methods() -> tuple[MethodInfo, ...]:
    """All methods of the registry with the fields of their forms; the papers' methods before the baselines."""
    order = sorted(METHODS, key=lambda name: name in BASELINES)  # a stable sort
    return tuple(_info(method_class(name)) for name in order)


def _info(cls: type[Method]) -> MethodInfo:
    fields = form_fields(cls.Config)
    controls = tuple(field for name in cls.controls for field in fields if field.name == name)
    return MethodInfo(cls.name, cls.title, cls.summary, fields, cls.uses_profile, controls)


def read_config(method: str, values: Mapping[str, Any]) -> MethodConfig:
    """A method's checked configuration from its form; ConfigError names the option."""
    cls = method_class(method)
    try:
        config: MethodConfig = cls.Config.parse(read_form(cls.Config, values))
    except ConfigError as problem:
        raise ConfigError(f"{cls.title}: {problem}") from None
    return config


def obstacles(context: Context, names: Sequence[str], model: str, configs: Mapping[str, MethodConfig]) -> list[str]:
    """What each chosen method cannot do with this model, in words, before anything runs."""
    card = context.card(model)
    able = context.engine.capabilities if context.engine.loaded() == model else None
    known = set(able if able is not None else card.capabilities if card else ())
    lines = []
    for name in names:
        cls = method_class(name)
        missing = [c for c in cls.needs(configs[name]) if c not in known]
        if missing:
            lines.append(f"{cls.title} needs {' and '.join(missing)}, which {model} does not give here.")
        if cls.profile_needed(configs[name]) and context.profile_for(name, model) is None:
            lines.append(cls.profile_advice(model) + ".")
    return lines


def start_runs(
    context: Context,
    item: Question,
    choices: Mapping[str, MethodConfig],
    *,
    model: str,
    profile: str = "",
    seed: int = 0,
    overflow: str = "refuse",
) -> list[str]:
    """Put one run per method in line and return their ids at once; MdqaError says what is wrong with the choice."""
    if not choices:
        raise ConfigError("choose at least one method")
    if context.card(model) is None:
        raise ConfigError(f"the model {model!r} is not offered here")
    if overflow not in get_args(Overflow):
        raise ConfigError(f"there is no rule {overflow!r} for long documents")
    if not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"the seed is {seed}; it must be between 0 and {MAX_SEED:,}")
    check_question(item)
    blocked = obstacles(context, list(choices), model, choices)
    if blocked:
        raise CapabilityError(" ".join(blocked))
    known = {(found.method, found.name) for found in context.profiles(model)}
    if profile and profile not in {name for _, name in known}:
        raise ConfigError(f"there is no profile {profile!r} for {model}")
    ids = []
    for name, config in choices.items():
        cls = method_class(name)
        own = profile if (name, profile) in known else ""
        order = Order(new_run_id(), name, cls.title, config, item, model, own, seed, overflow)  # type: ignore[arg-type]
        ids.append(context.engine.submit(order))
    return ids


def run_again(context: Context, run_id: str, changes: Mapping[str, Any], question: Question | None = None) -> str:
    """Put a stored run in line once more with some options changed, or over other documents; the new run's id.

    Model, profile, seed and rule for long documents are the stored run's, and so is the question where none is given.
    MdqaError says what is wrong with a value, or what of the run is not there any more.
    """
    run = context.store.runs.get(run_id)
    [new] = start_runs(
        context,
        run.question if question is None else question,
        {run.method: changed_config(run, changes)},
        model=context.asked_as(run.model),
        profile=run.profile,
        seed=run.seed,
        overflow=run.overflow,
    )
    return new


def changed_config(run: RunResult, changes: Mapping[str, Any]) -> MethodConfig:
    """The run's configuration with some options changed; ConfigError names the option that cannot be so."""
    cls = method_class(run.method)
    try:
        config: MethodConfig = cls.Config.parse({**run.config, **read_form(cls.Config, changes)})
    except ConfigError as problem:
        raise ConfigError(f"{cls.title}: {problem}") from None
    return config


def snapshots(context: Context, run_ids: Sequence[str]) -> list[Snapshot]:
    """The runs that this program carries out or has just carried out, now."""
    found = (context.engine.snapshot(run_id) for run_id in run_ids)
    return [snapshot for snapshot in found if snapshot is not None]


def follow(context: Context, run_ids: Sequence[str], every: float = LOOK_EVERY) -> Iterator[list[Snapshot]]:
    """The runs' states until all have ended, the last one included; equal states in a row are left out."""
    while True:
        now = snapshots(context, run_ids)
        yield now
        if all(snapshot.finished for snapshot in now):
            return
        time.sleep(every)


def stop(context: Context, run_ids: Sequence[str]) -> int:
    """Ask these runs to stop; how many of them were still going."""
    return sum(context.engine.stop(run_id) for run_id in run_ids)


def load_view(context: Context, run_id: str, before: str = "") -> View:
    """A run from the store with what its page needs; UnknownRun if there is none. ``before``: an earlier run's id."""
    run = context.store.runs.get(run_id)
    if run.error is not None:
        shown = run.error.model_copy(update={"message": error_sentence(run.error, run.id)})
        run = run.model_copy(update={"error": shown})
    calls = tuple(event for event in context.store.runs.events(run_id) if isinstance(event, ModelCall))
    return View(
        run=run,
        title=title_of(run.method),
        calls=calls,
        maps=tuple(context.store.runs.maps(run_id)),
        correct=run_is_right(run),
        vanilla=_vanilla(context, run),
        gold_reached=_gold_reached(run),
        before=run_before(context, run, before),
    )


def run_before(context: Context, run: RunResult, run_id: str) -> RunResult | None:
    """The run of this id, if it can be set against ``run``: the same method on the same question; None for no id."""
    try:
        found = context.store.runs.get(run_id) if run_id else None
    except UnknownRun:
        return None
    return found if found is not None and comparable(found, run) else None


def title_of(method: str) -> str:
    """A method's title; its name if it is no longer there."""
    try:
        return str(method_class(method).title)
    except MdqaError:
        return method


def _gold_reached(run: RunResult) -> tuple[int, int] | None:
    gold, last = run.question.gold_ids, final_stage(run.stages)
    return (len(set(gold) & set(last.kept)), len(gold)) if gold and last else None


def _vanilla(context: Context, run: RunResult) -> RunResult | None:
    """The newest direct answer to the same question and documents by the same model, to compare the cost with."""
    if run.method == "direct":
        return None
    filters = RunFilter(method="direct", model=run.model, status="ok", text=run.question.question)
    for row in context.store.runs.list(filters, limit=5):
        if row.question == run.question.question:
            found = context.store.runs.get(row.id)
            if found.question.documents == run.question.documents:
                return found
    return None


def run_id_from(text: object) -> str:
    """A run id from an address; UnknownRun if it does not look like one."""
    value = str(text or "").strip().lower()
    if not 1 <= len(value) <= 64 or not all(c.isalnum() or c in "-_" for c in value):
        raise UnknownRun("the address names no run: it should end in ?run= and 32 letters and digits")
    return value
