"""Scoring the result lines of ``answer``: from lines and their questions to one report per file, and a table.

A run that failed has no answer, so it is counted and left out of every metric; so are questions without accepted
answers (answer metrics) and without marked evidence (recall). Look at the counts before you compare two files; the
paired difference and McNemar's test take only the questions that both files answered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from mdqa.errors import InputError
from mdqa.records import Question, RunResult
from mdqa.registry import METHODS, method_class
from mdqa.scoring.answers import AnswerMetric, best_subspan_em, exact_match, f1
from mdqa.scoring.evidence import StageEvidence, evidence_by_stage
from mdqa.statistics.bootstrap import mean_interval, paired_difference
from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import mcnemar

Report = dict[str, Any]

METRICS: Mapping[str, AnswerMetric] = MappingProxyType({"sub_em": best_subspan_em, "f1": f1, "em": exact_match})
"""Answer metrics by their name in a report; SubEM and F1 are those of CAFE, section 5.1. All lie in [0, 1]."""

COSTS = ("seconds", "prompt_tokens", "prefill_tokens_computed")
"""The costs whose medians are reported."""

ONE_RUN = ("method", "model", "profile", "seed", "config")
"""What all lines of a file have in common."""

TESTED = "em"
"""The metric that McNemar's test is about: it knows right and wrong only, as in MADARA, appendix G.3."""

_TITLES = {"sub_em": "SubEM", "f1": "F1", "em": "EM"}
_COST_TITLES = ("seconds", "prompt tokens", "computed")
_NOT_PART_OF_A_RUN = ("id", "run", "question", "input_sha256")


def read_lines(
    lines: Iterable[bytes], questions: Mapping[str, Question], digest: Callable[[Question], str], *, file: str
) -> list[RunResult]:
    """The results that the lines of a file hold, each with its whole question.

    Args:
        lines: one JSON object each; blank ones are passed over.
        questions: by id; they may be more than the file answers.
        digest: what a line's ``input_sha256`` was made with.
        file: the file's name, for messages.

    InputError names the file and the line: what is no result line, belongs to none of the questions or to another
    version of one, answers a question twice, or was made with other settings than the lines before it.
    """
    results: list[RunResult] = []
    places: dict[str, int] = {}
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        place = f"{file}, line {number}"
        line = _parse(raw, place)
        item = _question(line, questions, digest, place)
        if item.id in places:
            raise InputError(f"the question {item.id!r} was answered in line {places[item.id]} already", place=place)
        places[item.id] = number
        result = _result(line, item, place)
        if results and (others := [name for name in ONE_RUN if getattr(result, name) != getattr(results[0], name)]):
            raise InputError(
                f"this line was made with another {' and '.join(others)} than the first; give each run its own file",
                place=place,
            )
        results.append(result)
    if not results:
        raise InputError("there is no result in it", place=file)
    return results


def _parse(raw: bytes, place: str) -> dict[str, Any]:
    try:
        line = json.loads(raw, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:  # ValueError: also UnicodeDecodeError
        raise InputError(f"broken JSON: {error}", place=place) from None
    if not isinstance(line, dict) or not all(isinstance(line.get(name), str) for name in ("id", "run", "question")):
        raise InputError("this is no result line of python -m mdqa answer", place=place)
    return line


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _question(
    line: Mapping[str, Any], questions: Mapping[str, Question], digest: Callable[[Question], str], place: str
) -> Question:
    item = questions.get(line["id"])
    if item is None:
        raise InputError(
            f"the question {line['id']!r} is not in the input; give the file it was read from", place=place
        )
    if line["question"] != item.question:
        raise InputError(
            f"the question {item.id!r} was {line['question']!r} and is {item.question!r} in the input", place=place
        )
    if line.get("input_sha256") not in (None, digest(item)):
        raise InputError(f"the documents of question {item.id!r} are other ones in the input", place=place)
    return item


def _result(line: Mapping[str, Any], item: Question, place: str) -> RunResult:
    values = {name: value for name, value in line.items() if name not in _NOT_PART_OF_A_RUN}
    try:
        return RunResult.model_validate({"id": line["run"], "question": item, **values})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"this is no result line of python -m mdqa answer: {first['msg']}", place=f"{place}, field {field!r}"
        ) from None


def report(file: str, results: Sequence[RunResult]) -> Report:
    """What the results of one file (at least one) come to, ready for JSON; None stands where nothing can be said.

    ``config`` holds the options that differ from the method's defaults. ``n`` runs are ok and ``failed`` are not.
    Answer metrics, and of each stage ``gold_recall`` (over the whole question's gold documents) and ``kept`` (number
    of documents, over the ``n`` runs that had the stage), are means with their 95% bootstrap interval and number of
    questions; all but ``kept`` lie in [0, 1]. ``median`` is the cost of the middle run.
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
        "median": {name: median(getattr(r.cost, name) for r in done) if done else None for name in COSTS},
    }


def changed_options(method: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are not the method's defaults; all of them for a method that is not known here."""
    defaults = method_class(method).Config().model_dump(mode="json") if method in METHODS else {}
    return {name: value for name, value in config.items() if name not in defaults or value != defaults[name]}


def answer_values(results: Iterable[RunResult]) -> dict[str, dict[str, float]]:
    """Per metric the value of every question that was answered and has accepted answers, by the question's id."""
    scored = [result for result in results if result.status == "ok" and result.question.answers]
    return {
        name: {result.question.id: metric(result.answer, result.question.answers) for result in scored}
        for name, metric in METRICS.items()
    }


def difference(results: Sequence[RunResult], first: Sequence[RunResult]) -> dict[str, Any]:
    """Per metric ``results - first`` over the questions that both answered, with its paired 95% interval."""
    mine, theirs = answer_values(results), answer_values(first)
    found: dict[str, Any] = {}
    for name in METRICS:
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


def _stages(results: Iterable[RunResult]) -> dict[str, Any]:
    """Every stage by its name (and branch, and place where a run has it several times), in order of appearance."""
    found: dict[str, list[StageEvidence]] = {}
    for result in results:
        seen: dict[str, int] = {}
        for stage in evidence_by_stage(result):
            name = f"{stage.name} ({stage.branch})" if stage.branch else stage.name
            seen[name] = seen.get(name, 0) + 1
            found.setdefault(f"{name} #{seen[name]}" if seen[name] > 1 else name, []).append(stage)
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
    return (row["file"], str(test["n"]), str(test["b"]), str(test["c"]), _p_value(test["p"]), _p_value(test["p_holm"]))


def _p_value(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


def _left_out(rows: Iterable[Report]) -> list[str]:
    notes = [
        f"{_printable(row['file'])}: {row[count]} questions without {what}, left out of {of}"
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
    cells = [[_printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    names = next(i for i, title in enumerate(header) if title in ("n", "common"))
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < names else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _printable(text: str) -> str:
    """Text from a file as what no terminal takes for a command."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
