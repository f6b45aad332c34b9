"""Does DuQUAD's judge side with the agent that people find right? Table 10, with people in place of gold answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from mdqa.agreement.judges import judge_label
from mdqa.agreement.learning import answer_is_right
from mdqa.agreement.ratings import CANNOT_TELL, Consensus
from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import INTERVALS
from mdqa.reports.duquad.stored import METHOD, opinion, right
from mdqa.reports.grouping import Group, finished, groups, older

NEEDS = "labelled items about finished DuQUAD runs whose agents disagree"

OUTCOMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Local only": ("first",),
        "Global only": ("second",),
        "Both right": ("both",),
        "Both wrong": ("neither",),
        "Disagreement": ("first", "second"),
    }
)
"""What people say of the two agents, as labels of the canonical candidates."""


def report(runs: Mapping[str, RunResult], labels: Iterable[Consensus]) -> Report:
    """How often people find one, both or neither agent right, and how often the judge's answer is right then.

    ``judge`` goes by people, ``gold`` by the accepted answers of the same runs, where there are any (SubEM): the second
    is what is reported without people, the first what it is with them. ``same``: people and accepted answers say the
    same of the judge's answer.
    """
    by_run = {one.run: one for one in labels if one.label and one.label != CANNOT_TELL}
    mine = finished([runs[run_id] for run_id in by_run if run_id in runs], METHOD)
    usable = [run for run in mine if judge_label(run)]
    made = groups(usable, ignore=("compare_ablations",))
    rows = [row for group in made for row in _rows(group, by_run)]
    unknown = sum(answer_is_right(run, by_run[run.id].label) is None for run in usable)
    return Report(
        name="judge_by_people",
        title="The judge against people, where the agents disagree",
        source="DuQUAD, Table 10, with people's labels as the reference.",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="outcome", title="Right, say people"),
            Column(key="count", title="Questions", digits=0),
            Column(key="share", title="Share", unit="%", digits=1),
            Column(key="judge", title="The judge is right, by people", unit="%", digits=1),
            Column(key="judged", title="of", digits=0),
            Column(key="gold", title="by accepted answers", unit="%", digits=1),
            Column(key="answered", title="of", digits=0),
            Column(key="same", title="Both say the same", unit="%", digits=1),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="outcome", y="judge", series="group", low="judge_low", high="judge_high"),
        n=sum(len(group.runs) for group in made),
        note=joined(
            (
                "People: the adjudicated label, else the majority's; ties and items of which people cannot tell are "
                "left out. By accepted answers: one stands in the judge's answer (SubEM). Disagreement: exactly one "
                "agent is right; its row sums up the two above that say which.",
                f"Of {unknown} runs people's label does not say whether the judge is right: it gave an answer of its "
                "own that nobody labelled."
                if unknown
                else "",
                INTERVALS,
                older(made),
            )
        ),
        needs="" if rows else NEEDS,
    )


def _rows(group: Group, by_run: Mapping[str, Consensus]) -> list[Row]:
    runs = list(group.runs.values())
    rows: list[Row] = []
    for name, wanted in OUTCOMES.items():
        own = [run for run in runs if by_run[run.id].label in wanted]
        judged = [(run, said) for run in own if (said := answer_is_right(run, by_run[run.id].label)) is not None]
        known = [run for run in own if run.question.answers and opinion(run, "judge") is not None]
        both = [(run, said) for run, said in judged if run.question.answers]
        rows.append(
            {
                "group": group.label,
                "outcome": name,
                "count": len(own),
                **mean("share", [float(by_run[run.id].label in wanted) for run in runs]),
                **mean("judge", [float(said) for _, said in judged]),
                "judged": len(judged),
                **mean("gold", _right(known)),
                "answered": len(known),
                **mean("same", [float(right(run.answer, run) == said) for run, said in both]),
            }
        )
    return rows


def _right(runs: Sequence[RunResult]) -> list[float]:
    return [float(right(run.answer, run)) for run in runs]
