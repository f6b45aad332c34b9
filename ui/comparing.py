"""What it would take to carry out the treatments that a run of MADARA did not choose; no Gradio here."""

from __future__ import annotations

from mdqa.errors import MdqaError
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.plans import compared
from mdqa.records import RunResult
from ui.forms import spelled
from ui.views.assessment import STAGE, assessments, reasoned
from ui.views.markup import count, plural
from ui.views.treatments import Offer

SHARED, ALL = "shared", "all"

LABELS = {SHARED: "Try the other treatments", ALL: "Try all, with reasoning too"}
NAMES = {"three_agent": "3-Agent"}


def offers(run: RunResult) -> tuple[Offer, ...]:
    """The ways to carry out more treatments than this run did, the cheaper first; none where there is nothing more."""
    if run.method != "madara" or run.status != "ok" or len(run.question.documents) < 2:
        return ()
    try:
        config = MADARAConfig.parse(run.config)
    except MdqaError:  # a run of another version whose options are not known any more
        return ()
    left = {"none": (SHARED, ALL), SHARED: (ALL,), ALL: ()}[config.compare]
    done = 0 if config.compare == "none" else _calls(run, config, config.compare)
    own = run.routing.treatment if run.routing is not None else ""
    found = []
    for compare in left:
        more = _calls(run, config, compare) - done
        there = {plan.key for plan in compared(config.compare)} | {own}
        names = ", ".join(NAMES.get(plan.key, spelled(plan.key)) for plan in compared(compare) if plan.key not in there)
        words = (
            f"{names}. Up to {plural(more, 'more call', 'more calls')} of the model beside the "
            f"{count(run.cost.llm_calls)} of this run, which is repeated."
        )
        found.append(Offer(LABELS[compare], words, compare))
    return tuple(found)


def _calls(run: RunResult, config: MADARAConfig, compare: str) -> int:
    """Model calls beside the run's own, at most: missing assessments, every document alone, every list together.

    Replies that cannot be read are asked for once more; those calls are not counted.
    """
    n = len(run.question.documents)
    asked = 2 * n + (n if config.conflict_per_doc else 1)
    there = _assessed(run)
    missing = {plan.assessment for plan in compared(compare)} - {"none", there}
    lists = sum(not plan.alone for plan in compared(compare))
    return asked * len(missing) + n + lists


def _assessed(run: RunResult) -> str:
    """How the run's own treatment assessed the documents: base, cot, or not by agents at all (empty)."""
    own = next((stage for stage in assessments(run) if stage.name == STAGE and "relevance" in stage.scores), None)
    return "" if own is None else "cot" if reasoned(own) else "base"
