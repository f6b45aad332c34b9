"""The verbs of the studies, without Gradio: what one would take, start it or go on, follow, stop, look at it.

A study is planned from its base run alone (and from what it varies), so that the same request finds the same study,
and one that was stopped or killed goes on with the runs that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mdqa.errors import CapabilityError, ConfigError, InputError, MdqaError
from mdqa.interventions import done_to
from mdqa.methods.base import MethodConfig
from mdqa.records import Cost, RunResult, RunStatus
from mdqa.registry import METHODS, method_class
from mdqa.run import check_question, new_run_id
from mdqa.studies import leave_one_out as leaving
from mdqa.studies import position_sweep as sweeping
from mdqa.studies.base import Variant, spent
from mdqa.studies.leave_one_out import LeaveOneOut
from mdqa.studies.position_sweep import PositionSweep
from storage.studies import Study, StudyKind, StudyRun, UnknownStudy
from ui.actions import obstacles, title_of
from ui.context import Context
from ui.following import Order
from ui.study_jobs import StudyOrder
from ui.views.studies import Estimate, StudyState

MAX_RUNS = 400
"""Runs of one study."""

TITLES: Mapping[StudyKind, str] = {"leave_one_out": "Leave one out", "position_sweep": "Position sweep"}

FEW, EVERY, CHOSEN = "few", "every", "chosen"
"""Which positions a sweep takes: first, middle and last; all; those that were typed."""


@dataclass(frozen=True)
class SweepWish:
    """What the form of a sweep says, unchecked. ``document``: an id, or empty for the gold documents."""

    document: str = sweeping.GOLD
    which: str = FEW
    typed: str = ""
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class StudyView:
    """A study with everything that its page shows. ``cost`` is that of all its runs, earlier tries too."""

    study: Study
    base: RunResult = field(repr=False)
    state: StudyState
    result: LeaveOneOut | PositionSweep = field(repr=False)
    cost: Cost
    runs: int

    @property
    def document(self) -> str:
        """The document that a sweep moves; empty for the gold ones."""
        return str(self.study.about.get("document", sweeping.GOLD))


@dataclass(frozen=True)
class _Plan:
    """What a study asks for. ``keys`` in order; those of ``given`` are answered by the base run itself."""

    kind: StudyKind
    base: RunResult
    about: Mapping[str, Any]
    keys: tuple[str, ...]
    given: frozenset[str]
    methods: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        """The keys that take a run of their own."""
        return tuple(key for key in self.keys if key not in self.given)

    def variants(self) -> tuple[Variant, ...]:
        """The questions; this takes a moment for many documents."""
        if self.kind == "leave_one_out":
            return leaving.variants(self.base)
        document, positions = str(self.about["document"]), tuple(self.about["positions"])
        return sweeping.variants(self.base.question, self.methods, positions, document)

    def words(self, variant: Variant) -> str:
        """What is different in a member."""
        if self.kind == "leave_one_out":
            return str(done_to(variant.question)[-1]["words"])
        return f"{title_of(variant.method)}, position {variant.key.rpartition('@')[2]}"


def estimate_leave_one_out(context: Context, base: RunResult) -> Estimate:
    """What leaving every document out would take; what stands in its way, in words."""
    return _estimate(context, lambda: _plan_leaving(base), base)


def estimate_sweep(context: Context, base: RunResult, wish: SweepWish) -> Estimate:
    """What the sweep would take; what stands in its way, in words."""
    return _estimate(context, lambda: _plan_sweep(base, wish), base)


def start_leave_one_out(context: Context, run_id: str, who: str) -> str:
    """Put the study of a stored run in line, or what is left of it; its id. MdqaError says what is wrong."""
    return _start(context, _plan_leaving(context.store.runs.get(run_id)), who)


def start_sweep(context: Context, run_id: str, wish: SweepWish, who: str) -> str:
    """Put the sweep of a stored run in line, or what is left of it; its id. MdqaError says what is wrong."""
    return _start(context, _plan_sweep(context.store.runs.get(run_id), wish), who)


def go_on(context: Context, study_id: str, who: str) -> str:
    """Put what is left of a study in line again: its runs without an answer, failed ones among them."""
    study = find(context, study_id)
    return _start(context, _plan_of(study, context.store.runs.get(study.base)), who)


def stop(context: Context, study_id: str) -> bool:
    """Ask a study to stop; its finished runs stay. False if it is not going on."""
    return context.engine.stop(find(context, study_id).id)


def find(context: Context, study_id: object) -> Study:
    """A study by what an address or a page says; InputError if there is none."""
    try:
        return context.store.studies.get(str(study_id or "").strip().lower()[:64])
    except UnknownStudy:
        raise InputError("there is no such study; it may have been deleted with its run", place="Study") from None


def study_state(context: Context, study: Study) -> StudyState:
    """How far it is: as the engine says, or by its stored runs."""
    base = context.store.runs.get(study.base)
    return _state(context, study, _plan_of(study, base), context.store.studies.members(study.id))


def studies_of(context: Context, base: RunResult) -> list[tuple[str, str]]:
    """Title and id of every study of a run, the newest first."""
    return [(_title(study, _plan_of(study, base)), study.id) for study in context.store.studies.of_run(base.id)]


def load_study(context: Context, study_id: str) -> StudyView:
    """A study with its result as far as it got; InputError if there is none."""
    study = find(context, study_id)
    base = context.store.runs.get(study.base)
    plan = _plan_of(study, base)
    log = context.store.studies.log(study.id)
    runs = context.store.runs.get_all([member.run for member in log])
    members = context.store.studies.members(study.id)
    results = {member.key: runs[member.run] for member in members if member.run in runs}
    results |= dict.fromkeys(plan.given, base)
    return StudyView(
        study=study,
        base=base,
        state=_state(context, study, plan, members),
        result=_result(plan, results),
        cost=spent(run.cost for run in runs.values()),
        runs=len(runs),
    )


def _plan_leaving(base: RunResult) -> _Plan:
    leaving.check(base)
    return _Plan("leave_one_out", base, {}, base.question.document_ids, frozenset(), (base.method,))


def _plan_sweep(base: RunResult, wish: SweepWish) -> _Plan:
    leaving.check(base)
    question, document = base.question, wish.document
    match wish.which:
        case "few":
            positions = sweeping.few_positions(question, document)
        case "every":
            positions = sweeping.every_position(question, document)
        case "chosen":
            positions = sweeping.read_positions(wish.typed[:4000], sweeping.last_position(question, document))
        case _:
            raise ConfigError(f"positions: there is no choice {wish.which!r}")
    unknown = [name for name in wish.methods if name not in METHODS]
    if unknown:
        raise ConfigError(f"there is no method {unknown[0]!r}; there is: {', '.join(METHODS)}")
    if not wish.methods:
        raise ConfigError("methods: choose at least one")
    configs = {
        name: base.config if name == base.method else method_class(name).Config().model_dump(mode="json")
        for name in wish.methods
    }
    return _sweep(base, {"document": document, "positions": list(positions), "methods": configs})


def _sweep(base: RunResult, about: Mapping[str, Any]) -> _Plan:
    methods = tuple(sorted(about["methods"], key=lambda name: (name != base.method, name)))
    keys = tuple(sweeping.key(method, position) for position in about["positions"] for method in methods)
    if len(keys) > MAX_RUNS:
        raise ConfigError(f"these are {len(keys):,} runs; at most {MAX_RUNS} make a study, choose fewer positions")
    given = set()
    if about["methods"].get(base.method) == base.config:
        position = sweeping.given_position(base.question, str(about["document"]))
        given = {sweeping.key(base.method, position)} & set(keys) if position is not None else set()
    return _Plan("position_sweep", base, about, keys, frozenset(given), methods)


def _plan_of(study: Study, base: RunResult) -> _Plan:
    return _plan_leaving(base) if study.kind == "leave_one_out" else _sweep(base, study.about)


def _result(plan: _Plan, results: Mapping[str, RunResult]) -> LeaveOneOut | PositionSweep:
    if plan.kind == "leave_one_out":
        return leaving.leave_one_out(plan.base, results)
    about = plan.about
    return sweeping.position_sweep(
        plan.base.question, plan.methods, tuple(about["positions"]), results, str(about["document"])
    )


def _title(study: Study, plan: _Plan) -> str:
    title = TITLES[study.kind]
    if study.kind == "leave_one_out":
        return title
    moved = f"document {study.about['document']}" if study.about["document"] else "gold"
    names = ", ".join(title_of(name) for name in plan.methods)
    positions = study.about["positions"]
    where = ", ".join(map(str, positions)) if len(positions) <= 6 else f"{len(positions)} positions"
    return f"{title}: {moved} at {where}; {names}"


def _estimate(context: Context, plan_of: Any, base: RunResult) -> Estimate:
    try:
        plan: _Plan = plan_of()
        _check(context, plan)
    except MdqaError as problem:
        return Estimate(0, 0, 0.0, str(problem))
    left = len(plan.asked)
    for study in context.store.studies.of_run(base.id):
        if (study.kind, study.about) == (plan.kind, dict(plan.about)):
            left -= len(_there(plan, context.store.studies.members(study.id)))
    return Estimate(len(plan.asked), left, base.cost.seconds)


def _there(plan: _Plan, members: Sequence[StudyRun]) -> set[str]:
    """The keys whose run came to an answer."""
    return {member.key for member in members if member.status == "ok"} & set(plan.asked)


def _configs(plan: _Plan) -> dict[str, MethodConfig]:
    raw = plan.about.get("methods", {plan.base.method: plan.base.config})
    return {name: method_class(name).Config.parse(dict(raw[name])) for name in plan.methods}


def _check(context: Context, plan: _Plan) -> dict[str, MethodConfig]:
    """The checked configurations; MdqaError if something of the base run is not there any more."""
    base = plan.base
    model = context.asked_as(base.model)
    if context.card(model) is None:
        raise ConfigError(f"the model {base.model!r} of the run is not offered here")
    configs = _configs(plan)
    blocked = obstacles(context, plan.methods, model, configs)
    if blocked:
        raise CapabilityError(" ".join(blocked))
    known = {(found.method, found.name) for found in context.profiles(base.model)}
    if base.profile and base.method in plan.methods and (base.method, base.profile) not in known:
        raise ConfigError(f"the profile {base.profile!r} of the run is not there any more")
    return configs


def _start(context: Context, plan: _Plan, who: str) -> str:
    configs = _check(context, plan)
    variants = plan.variants()
    for variant in variants:
        check_question(variant.question)
    base = plan.base
    study = context.store.studies.begin(plan.kind, base.id, who, plan.about)
    there = _there(plan, context.store.studies.members(study.id))
    orders = tuple(
        Order(
            new_run_id(),
            variant.method,
            title_of(variant.method),
            configs[variant.method],
            variant.question,
            context.asked_as(base.model),
            base.profile if variant.method == base.method else "",
            base.seed,
            base.overflow,
            study=study.id,
            key=variant.key,
            words=plan.words(variant),
        )
        for variant in variants
        if variant.key not in there and variant.key not in plan.given
    )
    if orders:
        title, total = _title(study, plan), len(plan.asked)
        context.engine.study(StudyOrder(study.id, title, base.id, orders, total, len(there), base.cost.seconds))
    return study.id


def _state(context: Context, study: Study, plan: _Plan, members: Sequence[StudyRun]) -> StudyState:
    live = context.engine.study_state(study.id)
    if live is not None and not live.finished:
        return live
    asked = set(plan.asked)
    done = sum(member.status in ("ok", "failed") for member in members if member.key in asked)
    return StudyState(
        id=study.id,
        base=study.base,
        title=_title(study, plan),
        status="ok" if done == len(asked) else _ended(live),
        total=len(asked),
        done=done,
        failed=sum(member.status == "failed" for member in members if member.key in asked),
        error=live.error if live is not None else "",
    )


def _ended(live: StudyState | None) -> RunStatus:
    """Why runs are missing: as the engine knows it; one that came to its end lost them later."""
    return "interrupted" if live is None or live.status == "ok" else live.status
