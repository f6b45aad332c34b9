"""What the treatments that were not chosen would have kept and answered, in the same run (``compare``).

The treatments share what they can: one assessment serves all that need it, equal lists of documents are read once, and
a document's reading alone is the same for every vote. Each outcome is an opinion with the role ``treatment``, each
document's own reading one with the role ``reading``. The answers are those that separate runs with the same seed give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.methods.madara.assessing import Assessed, assess
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.plans import Chosen, Plan, choose, compared, reading_order, vote_weights
from mdqa.methods.madara.reading import Reader, Reading
from mdqa.methods.madara.treatments import Scores
from mdqa.methods.recorder import Recorder
from mdqa.records import ASIDE, Opinion, Question


@dataclass(frozen=True)
class Carried:
    """A treatment that was carried out: what it kept (best first) and answered."""

    plan: Plan
    kept: tuple[str, ...]
    answer: str


def compare(
    item: Question, run: Recorder, config: MADARAConfig, reader: Reader, own: Carried, assessed: Mapping[str, Assessed]
) -> None:
    """Carry out the treatments other than the run's ``own`` and record every outcome, its own first.

    ``assessed``: the assessments that were made for it, by kind; those that are missing are made here.
    """
    plans = compared(config.compare)
    have = dict(assessed)
    for kind in dict.fromkeys(plan.assessment for plan in plans):
        if kind not in ("none", *have):
            have[kind] = assess(item, run, config, kind, name=f"assessment_{kind}", branch=ASIDE)
    chosen = {
        plan.key: choose(plan, item.document_ids, _scores(plan, have), config, f"{run.seed}:{item.id}")
        for plan in plans
    }
    with run.stage("comparison", "The treatments that were not chosen", item.document_ids, branch=ASIDE):
        alone, together = _read(item, reader, plans, chosen)
    for document, reading in alone.items():
        run.opinion(
            Opinion(
                role="reading",
                title="Document read alone",
                answer=reading.answer,
                documents=(document,),
                status="ok" if reading.answer else "parse_error",
                call=reading.call,
            )
        )
    outcomes = [own]
    for plan in plans:
        if plan.key != own.plan.key:
            kept = chosen[plan.key].kept
            if plan.alone:
                answer = reader.vote(alone, kept, vote_weights(plan, kept, _scores(plan, have))).answer
            else:
                answer = together[reading_order(kept, item.document_ids, config)].answer
            outcomes.append(Carried(plan, kept, answer))
    for outcome in outcomes:
        run.opinion(_opinion(outcome, own))


def _scores(plan: Plan, assessed: Mapping[str, Assessed]) -> Scores | None:
    return assessed[plan.assessment].signals[plan.signal] if plan.assessed else None


def _read(
    item: Question, reader: Reader, plans: Sequence[Plan], chosen: Mapping[str, Chosen]
) -> tuple[dict[str, Reading], dict[tuple[str, ...], Reading]]:
    """Every document read alone, and every list of kept documents read together, each once."""
    lists = dict.fromkeys(
        reading_order(chosen[plan.key].kept, item.document_ids, reader.config) for plan in plans if not plan.alone
    )
    single = reader.read("extractor", [reader.alone_request(document) for document in item.document_ids])
    joint = reader.read("generator", [reader.together_request(kept) for kept in lists])
    return dict(zip(item.document_ids, single, strict=True)), dict(zip(lists, joint, strict=True))


def _opinion(outcome: Carried, own: Carried) -> Opinion:
    plan = outcome.plan
    how = "each read alone, and the answers vote" if plan.alone else "read together"
    count = f"{len(outcome.kept)} document" + ("" if len(outcome.kept) == 1 else "s")
    return Opinion(
        role="treatment",
        title=plan.title,
        answer=outcome.answer,
        reasoning=f"{count} kept, {how}",
        documents=outcome.kept,
        chosen=outcome is own,
        group=plan.key,
        status="ok" if outcome.answer else "parse_error",
    )
