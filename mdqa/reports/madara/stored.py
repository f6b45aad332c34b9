"""What the reports of MADARA read off stored runs and profiles: a model and a task with what every treatment gave."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pydantic import ValidationError

from mdqa.errors import MdqaError, ProfileError
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.deciding import Measured, measured
from mdqa.methods.madara.plans import PLANS, Plan, plan_for
from mdqa.methods.madara.report import Outcomes
from mdqa.methods.madara.router import Rho
from mdqa.methods.madara.sensitivity import Cell
from mdqa.records import Opinion, Profile, RunResult
from mdqa.reports.common.answers import Answers, Given, place_of, scored
from mdqa.reports.grouping import Group, groups, same_question

METHOD = "madara"
HOW = "python -m mdqa answer --method madara"
COMPARED = f"{HOW} --set compare=all"
CALIBRATED = "python -m mdqa calibrate --method madara --input FILE --output profile.json"

ROUTING = (
    "treatment",
    "compare",
    "router",
    "tau_nf",
    "rho1_threshold",
    "entropy_threshold",
    "per_query",
    "sda_cot",
    "pde_votes",
    "pde_ranking",
)
"""Options that say which treatment is a run's own, and not what a treatment does."""

METRIC = "em"
"""The metric of the paper's tables (section 5.4), after SQuAD's normalisation as in the released code."""


@dataclass(frozen=True)
class Pair:
    """A model and a task (a data set): the group of all its runs, and per treatment what it answered.

    ``treatments``: key of :data:`PLANS` (or of a variant) -> answers by question.
    """

    group: Group
    treatments: Mapping[str, Answers]

    @property
    def label(self) -> str:
        """The group in words."""
        return self.group.label or place_of(self.group)

    def accuracy(self, key: str) -> float | None:
        """Mean exact match of a treatment, 0 to 1; None where it was not carried out."""
        answers = self.treatments.get(key)
        return fmean(one.scores[METRIC] for one in answers.values()) if answers else None

    @property
    def em(self) -> dict[str, float]:
        """Mean exact match of every treatment."""
        return {key: value for key in self.treatments if (value := self.accuracy(key)) is not None}

    def cell(self, profiles: Sequence[Profile] = ()) -> Cell:
        """What the router's rule takes of it: correlations from the runs' routing, else from a profile; measured EM."""
        known = self.known(profiles)
        return Cell(self.label, known.rho if known else None, self.em.get("nf"), self.em)

    def known(self, profiles: Sequence[Profile]) -> Measured | None:
        """What a profile measured for this pair: the one that its runs name, else the only one of the model.

        Where there is none of them, what the runs' own routing kept of it; None without either.
        """
        found = self._profile(profiles)
        kept = next((rho for run in self.group.runs.values() if (rho := _rho(run)) is not None), None)
        if found is not None:
            try:
                return measured(found)
            except ProfileError:
                pass
        if kept is None:
            return None
        routing = [run.routing for run in self.group.runs.values() if run.routing is not None]
        accuracies = (r.measures.get("EM_NF") for r in routing)
        return Measured(kept, next((value for value in accuracies if value is not None), None))

    def _profile(self, profiles: Sequence[Profile]) -> Profile | None:
        mine = [profile for profile in profiles if (profile.method, profile.model) == (METHOD, self.group.model)]
        names = {run.profile for run in self.group.runs.values() if run.profile}
        named = [profile for profile in mine if profile.name in names]
        return named[0] if named else mine[0] if len(mine) == 1 else None


def pairs(runs: Sequence[RunResult]) -> list[Pair]:
    """Every model and task of the finished MADARA runs with accepted answers.

    A run that compared tells of all treatments; one that did not, of its own. Of several runs of a question the one
    that compared counts, then the newest.
    """
    usable = [run for run in scored(runs) if run.method == METHOD and own_plan(run) is not None]
    return [Pair(group, _treatments(group)) for group in groups(usable, ignore=ROUTING, prefer=_compared)]


def own_plan(run: RunResult) -> Plan | None:
    """The plan of the run's own treatment; None where the run does not say."""
    if run.routing is None:
        return None
    try:
        return plan_for(run.routing.treatment, MADARAConfig.parse(dict(run.config)))
    except (MdqaError, ValidationError, KeyError):
        return None


def outcomes(pair: Pair) -> list[Outcomes]:
    """The pair's treatments and single readings by question, as the method's own report takes them."""
    found: dict[Hashable, Outcomes] = {}
    for question, run in pair.group.runs.items():
        voices = {
            key: _opinion(key, answers[question]) for key, answers in pair.treatments.items() if question in answers
        }
        readings = {o.documents[0]: o.answer for o in run.opinions if o.role == "reading" and o.documents}
        found[question] = Outcomes(run.question, voices, readings)
    return list(found.values())


def _compared(run: RunResult) -> float:
    return float(sum(opinion.role == "treatment" for opinion in run.opinions))


def _treatments(group: Group) -> dict[str, Answers]:
    found: dict[str, dict[Hashable, Given]] = {}
    ordered = sorted(group.members, key=lambda run: (_compared(run), run.created), reverse=True)
    for run in ordered:
        question = same_question(run.question)
        opinions = [opinion for opinion in run.opinions if opinion.role == "treatment"]
        for opinion in opinions:
            found.setdefault(opinion.group, {}).setdefault(question, Given(run, opinion.answer))
        plan = own_plan(run)
        if not opinions and plan is not None:
            found.setdefault(plan.key, {}).setdefault(question, Given(run, run.answer))
    return {key: found[key] for key in (*(k for k in PLANS if k in found), *sorted(set(found) - set(PLANS)))}


def _opinion(key: str, given: Given) -> Opinion:
    """A treatment's opinion as a run that compared has it, also for a run that carried out only this one."""
    for opinion in given.run.opinions:
        if opinion.role == "treatment" and opinion.group == key:
            return opinion
    plan = own_plan(given.run)
    selection = next((stage for stage in given.run.stages if stage.name in ("selection", "input")), None)
    return Opinion(
        role="treatment",
        title=plan.title if plan else key,
        answer=given.answer,
        documents=selection.kept if selection else (),
        chosen=True,
        group=key,
    )


def _rho(run: RunResult) -> Rho | None:
    values = [run.routing.measures.get(name) if run.routing else None for name in ("rho1", "rho2", "rho3")]
    known = [value for value in values if value is not None]
    return (known[0], known[1], known[2]) if len(known) == 3 else None


def title(key: str) -> str:
    """A treatment's name in the tables."""
    return PLANS[key].title if key in PLANS else key
