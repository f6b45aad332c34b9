"""Answers to the same questions, measured and set against each other: the columns that most tables share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mdqa.benchmarks.placing import read_suffix, source_id
from mdqa.records import RunResult
from mdqa.reporting import changed_options
from mdqa.reports.base import Column, Row, change, mean
from mdqa.reports.grouping import Group
from mdqa.scoring.answers import HEADLINE
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import mcnemar

MEASURES = (
    Column(key="sub_em", title="SubEM", unit="%", digits=1),
    Column(key="em", title="EM", unit="%", digits=1),
    Column(key="f1", title="F1", unit="%", digits=1),
)

TITLES: Mapping[str, str] = {column.key: column.title for column in MEASURES}

BESIDE = ("compare", "compare_ablations")
"""Options that make a run do more and answer the same: they tell costs apart, and no answers."""

INTERVALS = "Intervals are 95% bootstrap intervals over questions."


@dataclass(frozen=True)
class Given:
    """One answer to one question. ``scores``: SubEM, EM and F1 in [0, 1]; ``source``: the id of the question itself."""

    run: RunResult
    answer: str

    @cached_property
    def scores(self) -> Mapping[str, float]:
        """The answer's value by metric."""
        return {name: metric(self.answer, self.run.question.answers) for name, metric in HEADLINE.items()}

    @cached_property
    def source(self) -> str:
        """The id of the question that was asked, the same for all places of its evidence."""
        return source_id(self.run.question)


Answers = Mapping[Hashable, Given]
"""Answers by their question."""


def answers_of(group: Group) -> dict[Hashable, Given]:
    """What the runs of a group answered."""
    return {question: Given(run, run.answer) for question, run in group.runs.items()}


def scored(runs: Iterable[RunResult]) -> list[RunResult]:
    """The runs whose answers can be measured: those that ended well and have accepted answers."""
    return [run for run in runs if run.status == "ok" and run.question.answers]


def titled(group: Group) -> str:
    """A group's method with the options that are not its defaults."""
    changed = changed_options(group.method, group.config)
    return " ".join([group.method, *(f"{name}={value}" for name, value in changed.items())])


def place_of(group: Group) -> str:
    """A group's model and data set."""
    return ", ".join(part for part in (group.model, group.data) if part)


def first_of(made: Sequence[Group], method: str = "direct") -> Group:
    """The group that the others are set against: of this method if there is one, else the first."""
    return next((group for group in made if group.method == method), made[0])


def by_place(made: Sequence[Group]) -> list[list[Group]]:
    """The groups of each model and data set, in order of appearance; one data set by the place of its evidence."""
    found: dict[tuple[str, str], list[Group]] = {}
    for group in made:
        found.setdefault((group.model, group.data), []).append(group)
    firsts: dict[tuple[str, str], int] = {}
    for number, (model, data) in enumerate(found):
        firsts.setdefault((model, data.partition("@")[0]), number)
    return sorted(
        found.values(), key=lambda same: (firsts[same[0].model, same[0].data.partition("@")[0]], _placed(same))
    )


def _placed(same: Sequence[Group]) -> tuple[int, int]:
    found = read_suffix(same[0].data)
    return (found[1].documents or 0, found[1].position or 0) if found else (0, 0)


def measured(answers: Answers) -> Row:
    """The mean of every headline metric with its interval, and ``n``, the number of answers."""
    given = list(answers.values())
    names = [one.source for one in given]
    row: Row = {}
    for metric in HEADLINE:
        row |= mean(metric, [one.scores[metric] for one in given], names)
    return row | {"n": len(given)}


def beside(mine: Answers, theirs: Answers | None, metric: str) -> Row:
    """Paired over the questions that both answered: mine minus theirs, and McNemar's exact test on ``metric``.

    ``<metric>_change`` with its interval; ``b`` and ``c`` count what only mine and only theirs got right; ``common``
    counts the questions. All but that are None without a common question, or without anything to compare with. A metric
    that is no 0 or 1, such as F1, counts as right from above 0 on.
    """
    common = [question for question in mine if question in theirs] if theirs is not None else []
    pairs = [(mine[q].scores[metric], theirs[q].scores[metric]) for q in common] if theirs is not None else []
    names = [mine[question].source for question in common]
    row: Row = {**change(f"{metric}_change", [one for one, _ in pairs], [two for _, two in pairs], names)}
    row |= {"b": None, "c": None, "p": None, "p_holm": None, "common": len(common)}
    if pairs:
        test = mcnemar([float(one > 0) for one, _ in pairs], [float(two > 0) for _, two in pairs], names)
        row |= {"b": test.b, "c": test.c, "p": test.p}
    return row


def correct(rows: Sequence[Row], family: Callable[[Row], Hashable] = lambda row: row.get("group")) -> None:
    """Put ``p_holm`` beside every ``p``: Holm's correction over all tests of a family, by default of a group."""
    tested = [(row, float(p)) for row in rows if isinstance(p := row.get("p"), int | float)]
    adjusted = holm([p for _, p in tested], [family(row) for row, _ in tested])
    for (row, _), value in zip(tested, adjusted, strict=True):
        row["p_holm"] = value


def columns_beside(metric: str, other: str) -> tuple[Column, ...]:
    """The columns of :func:`beside`; ``other`` names what is compared with."""
    return (
        Column(key=f"{metric}_change", title=f"{TITLES[metric]} minus {other}", unit="%", digits=1),
        Column(key="b", title="Only it right", digits=0),
        Column(key="c", title="Only the other right", digits=0),
        Column(key="p", title="p"),
        Column(key="p_holm", title="p (Holm)"),
    )
