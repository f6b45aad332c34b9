"""Scoring the results of ``answer``: one report per file, and a table.

A run that failed has no answer, so it is counted and left out of every metric; so are questions without accepted
answers (answer metrics) and without marked evidence (recall). Look at the counts before you compare two files; the
paired difference and McNemar's test take only the questions that both files answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from mdqa.records import RunResult, Stage
from mdqa.registry import METHODS, method_class
from mdqa.scoring.answers import HEADLINE
from mdqa.scoring.evidence import StageEvidence, stage_evidence
from mdqa.scoring.losses import own_stages
from mdqa.statistics.bootstrap import mean_interval, paired_difference
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import mcnemar

Report = dict[str, Any]

COSTS = ("seconds", "prompt_tokens", "prefill_tokens_computed")
SHORTENED = ("seconds", "prefill_tokens_computed")
"""The costs whose medians are reported."""

TESTED = "em"
"""The metric that McNemar's test is about: it knows right and wrong only, as in MADARA, appendix G.3."""

_TITLES = {"sub_em": "SubEM", "f1": "F1", "em": "EM"}
_COST_TITLES = ("seconds", "prompt tokens", "computed")


def report(file: str, results: Sequence[RunResult]) -> Report:
    """What the results of one file (at least one) come to, ready for JSON; None stands where nothing can be said.

    ``config`` holds the options that differ from the method's defaults. ``n`` runs are ok and ``failed`` are not.
    Answer metrics, and of each stage ``gold_recall`` (over the whole question's gold documents) and ``kept`` (number
    of documents, over the ``n`` runs that had the stage), are means with their 95% bootstrap interval and number of
    questions; all but ``kept`` lie in [0, 1]. ``median`` is the cost of the middle run; runs that memory of earlier
    ones shortened count for neither time nor computed tokens.
    """
    first = results[0]
    done = [result for result in results if result.status == "ok"]
    values = answer_values(done)
    return {
        "file": file,
        "method": first.method,
        "config": changed_options(first.method, first.config),
        "model": first.model,
        "profile": first.profile,
        "seed": first.seed,
        "n": len(done),
        "failed": len(results) - len(done),
        "without_answers": sum(not result.question.answers for result in done),
        "without_gold": sum(not result.question.gold_ids for result in done),
        **{name: _interval(list(by_question.values())) for name, by_question in values.items()},
        "stages": _stages(done),
        "median": {name: _median(done, name) for name in COSTS},
    }


def _median(runs: Iterable[RunResult], name: str) -> float | None:
    costs = [run.cost for run in runs if name not in SHORTENED or run.cost.own_work]
    return median(getattr(cost, name) for cost in costs) if costs else None


def changed_options(method: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not the method's defaults; all of them for a method that is not known here."""
    defaults = method_class(method).Config().model_dump(mode="json") if method in METHODS else {}
    return {name: value for name, value in config.items() if name not in defaults or value != defaults[name]}


def answer_values(results: Iterable[RunResult]) -> dict[str, dict[str, float]]:
    """Per metric the value of every question that was answered and has accepted answers, by the question's id."""
    scored = [result for result in results if result.status == "ok" and result.question.answers]
    return {
        name: {result.question.id: metric(result.answer, result.question.answers) for result in scored}
        for name, metric in HEADLINE.items()
    }


def difference(results: Sequence[RunResult], first: Sequence[RunResult]) -> dict[str, Any]:
    """Per metric ``results - first`` over the questions that both answered, with its paired 95% interval."""
    mine, theirs = answer_values(results), answer_values(first)
    found: dict[str, Any] = {}
    for name in HEADLINE:
        common = [question for question in theirs[name] if question in mine[name]]
        pairs = [mine[name][q] for q in common], [theirs[name][q] for q in common]
        found[name] = asdict(paired_difference(*pairs)) if common else None
    return found


def comparisons(others: Sequence[Sequence[RunResult]], first: Sequence[RunResult]) -> list[dict[str, Any] | None]:
    """McNemar's exact test on exact match for each of ``others`` against ``first``.

    ``b`` questions are right in the other file only and ``c`` in the first only, of the ``n`` that both answered; ``p``
    is two-sided and ``p_holm`` corrected over all of these comparisons. None without a common question.
    """
    theirs = answer_values(first)[TESTED]
    tests = []
    for results in others:
        mine = answer_values(results)[TESTED]
        common = [question for question in theirs if question in mine]
        tests.append(mcnemar([mine[q] for q in common], [theirs[q] for q in common]) if common else None)
    adjusted = iter(holm([test.p for test in tests if test is not None]))
    return [None if test is None else {**asdict(test), "p_holm": next(adjusted)} for test in tests]


def reports(files: Mapping[str, Sequence[RunResult]]) -> list[Report]:
    """One report per file, in order; from the second on with ``difference`` and ``mcnemar`` against the first."""
    rows = [report(file, results) for file, results in files.items()]
    first, *others = files.values() if files else ((),)
    for row, results, test in zip(rows[1:], others, comparisons(others, first), strict=True):
        row["difference"] = {"to": rows[0]["file"], **difference(results, first)}
        row["mcnemar"] = None if test is None else {"to": rows[0]["file"], "metric": TESTED, **test}
    return rows


def _interval(values: Sequence[float]) -> dict[str, float | int] | None:
    return asdict(mean_interval(values)) if values else None


def named_stages(result: RunResult) -> Iterator[tuple[str, Stage]]:
    """The stages that led to the answer, with what makes each the same in all runs: name, branch and repetition."""
    seen: dict[str, int] = {}
    for stage in own_stages(result.stages):
        name = f"{stage.name} ({stage.branch})" if stage.branch else stage.name
        seen[name] = seen.get(name, 0) + 1
        yield f"{name} #{seen[name]}" if seen[name] > 1 else name, stage


def _stages(results: Iterable[RunResult]) -> dict[str, Any]:
    """Every stage by its name, in order of appearance."""
    found: dict[str, list[StageEvidence]] = {}
    for result in results:
        for name, stage in named_stages(result):
            found.setdefault(name, []).append(stage_evidence(stage, result.question.gold_ids))
    return {
        name: {
            "gold_recall": _interval([stage.recall for stage in stages if stage.recall is not None]),
            "kept": _interval([float(stage.kept) for stage in stages]),
            "n": len(stages),
        }
        for name, stages in found.items()
    }


def table(rows: Sequence[Report]) -> str:
    """The reports as tables for people: metrics in percent with 95% intervals, stages, comparisons with the first."""
    parts = [_aligned(("file", "method", "n", "failed", *_TITLES.values(), *_COST_TITLES), map(_main_cells, rows))]
    stages = [(row["file"], name, stage) for row in rows for name, stage in row["stages"].items()]
    if stages:
        cells = [(f, name, str(s["n"]), _shown(s["kept"]), _percent(s["gold_recall"])) for f, name, s in stages]
        parts.append(_aligned(("file", "stage", "n", "kept", "gold recall"), cells))
    later = [row for row in rows if "difference" in row]
    if later:
        title = f"difference to {rows[0]['file']}"
        parts.append(_aligned((title, "common", *_TITLES.values()), map(_difference_cells, later)))
        title = f"exact McNemar test on {_TITLES[TESTED]} against {rows[0]['file']}"
        parts.append(_aligned((title, "common", "b", "c", "p", "p (Holm)"), map(_test_cells, later)))
        parts.append("b: right in this file only, c: in the first only; p (Holm): corrected for all tests in the table")
    parts.extend(_left_out(rows))
    return "\n\n".join(parts)


def _main_cells(row: Report) -> tuple[str, ...]:
    metrics = (_percent(row[name]) for name in _TITLES)
    costs = (_number(row["median"][name], 1 if name == "seconds" else 0) for name in COSTS)
    method = " ".join([row["method"], *(f"{name}={value}" for name, value in row["config"].items())])
    return (row["file"], method, str(row["n"]), str(row["failed"]), *metrics, *costs)


def _difference_cells(row: Report) -> tuple[str, ...]:
    change = row["difference"]
    common = change["sub_em"]["n"] if change["sub_em"] else 0
    return (row["file"], str(common), *(_percent(change[name], "+") for name in _TITLES))


def _test_cells(row: Report) -> tuple[str, ...]:
    test = row["mcnemar"]
    if test is None:
        return (row["file"], "0", *"----")
    return (row["file"], str(test["n"]), str(test["b"]), str(test["c"]), p_words(test["p"]), p_words(test["p_holm"]))


def p_words(p: float) -> str:
    """A p value with three decimals; a small one in powers of ten, so that it does not become 0."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _left_out(rows: Iterable[Report]) -> list[str]:
    notes = [
        f"{printable(row['file'])}: {row[count]} questions without {what}, left out of {of}"
        for row in rows
        for count, what, of in (
            ("without_answers", "accepted answers", "the answer metrics"),
            ("without_gold", "marked evidence", "gold recall"),
        )
        if row[count]
    ]
    return ["\n".join(notes)] if notes else []


def _percent(interval: Mapping[str, Any] | None, sign: str = "-") -> str:
    return _shown(interval, sign, scale=100)


def _shown(interval: Mapping[str, Any] | None, sign: str = "-", *, scale: float = 1) -> str:
    if interval is None:
        return "-"
    mean, low, high = (f"{scale * interval[name]:{sign}.1f}" for name in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _aligned(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell: names to the left, from the first that holds numbers on to the right."""
    cells = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    names = next(i for i, title in enumerate(header) if title in ("n", "common"))
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def printable(text: str) -> str:
    """Text from a file as what no terminal takes for a command."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
