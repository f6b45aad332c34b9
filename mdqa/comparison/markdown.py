"""A comparison as Markdown: the tables of a paper, rounded for reading; report.json has the numbers unrounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mdqa.comparison.numbers import TESTED
from mdqa.reporting import p_words, printable
from mdqa.scoring.answers import HEADLINE

TITLES: Mapping[str, str] = {"em": "EM", "sub_em": "SubEM", "f1": "F1"}
ORDER = ("em", "sub_em", "f1")

COST_TITLES: Mapping[str, str] = {
    "llm_calls": "calls",
    "prompt_tokens": "prompt tokens sent",
    "prefill_tokens_computed": "computed",
    "cached_tokens": "cached",
    "completion_tokens": "written",
    "seconds": "latency (s)",
}

DIGITS: Mapping[str, int] = {"llm_calls": 2, "seconds": 2}

_COST_HEADER = ("entry", *(part for title in COST_TITLES.values() for part in (title, "ratio")), "median (s)")

Row = Mapping[str, Any]


def to_markdown(report: Mapping[str, Any], recompute: str = "") -> str:
    """The report of :func:`mdqa.comparison.numbers.report`; ``recompute`` is the command that makes it again."""
    entries = report["entries"]
    parts = [
        "# Evaluation",
        f"{report['questions']:,} questions, {report['runs']:,} runs. Percent, with 95% intervals in brackets: "
        "percentile bootstrap over questions (10,000 draws); a question asked with its evidence in several places is "
        "drawn whole. Failed runs are counted and left out of every mean.",
        "## Answers",
        _table(("entry", "n", "failed", *(TITLES[name] for name in ORDER)), map(_answers, entries)),
        *_comparison(entries),
        *_evidence(entries),
        *_placements(report["placements"]),
        "## Cost per question",
        "Means over the runs that are ok; the ratio is that of the means over the questions that both answered (the "
        "form of DuQUAD's Table 9). Latency is wall time; a sentence encoder is loaded in the first run that needs it, "
        "which the median does not see.",
        _table(_COST_HEADER, map(_cost, entries)),
        *_settings(entries),
        *_failures(entries),
    ]
    if recompute:
        again = f"Unrounded in report.json. From results.jsonl and the questions:\n\n```bash\n{recompute}\n```"
        parts += ["## The numbers again", again]
    return "\n\n".join(parts) + "\n"


def _answers(row: Row) -> list[str]:
    return [row["label"], str(row["n"]), str(row["failed"]), *(percent(row[name]) for name in ORDER)]


def _comparison(entries: Sequence[Row]) -> Iterable[str]:
    later = [row for row in entries if "difference" in row]
    if not later:
        return
    yield "## Beside the first entry"
    yield (
        "Differences in points over the questions that both answered. b: right here only, c: right in the first only. "
        "p: McNemar's exact test (where a question was asked several times: the exact sign-flip test over questions); "
        "Holm: corrected for all tests of the table on this metric. h: Cohen's h of the two shares."
    )
    yield _table(("entry", "first", "common", *(TITLES[name] for name in ORDER)), map(_difference, later))
    header = ("entry", "metric", "b", "c", "p", "p (Holm)", "h")
    yield _table(header, (_test(row, metric) for metric in TESTED for row in later))


def _difference(row: Row) -> list[str]:
    change = row["difference"]
    common = max((change[name]["n"] for name in HEADLINE if change[name]), default=0)
    return [row["label"], row["first"], str(common), *(percent(change[name], "+") for name in ORDER)]


def _test(row: Row, metric: str) -> list[str]:
    test, effect = row["tests"][metric], row["effect"][metric]
    if test is None:
        return [row["label"], TITLES[metric], *"-----"]
    values = [str(test["b"]), str(test["c"]), p_words(test["p"]), p_words(test["p_holm"]), _shown(effect, 2, sign="+")]
    return [row["label"], TITLES[metric], *values]


def _evidence(entries: Sequence[Row]) -> Iterable[str]:
    cells = [
        [row["label"], stage, _shown(found["kept"], 1), percent(found["gold_recall"])]
        for row in entries
        for stage, found in row["stages"].items()
    ]
    if cells:
        yield "## Evidence after every stage"
        yield _table(("entry", "stage", "documents kept", "gold recall"), cells)


def _placements(placements: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    if not placements:
        return
    yield "## By place of the evidence"
    names = list(dict.fromkeys(row["label"] for part in placements for row in part["entries"]))
    titles = [part["placement"] for part in placements]
    for metric in ORDER:
        cells = []
        for name in names:
            by_name = [{row["label"]: row for row in part["entries"]} for part in placements]
            cells.append([name, *(percent(rows[name][metric]) if name in rows else "-" for rows in by_name)])
        yield _table((TITLES[metric], *titles), cells)


def _cost(row: Row) -> list[str]:
    cells = [row["label"]]
    for name in COST_TITLES:
        ratio = _shown(row["cost_ratio"][name], 2) if "cost_ratio" in row else "1"
        cells += [_shown(row["cost"][name], DIGITS.get(name, 0)), ratio]
    median = row["median_seconds"]
    return [*cells, "-" if median is None else f"{median:,.2f}"]


def _settings(entries: Sequence[Row]) -> Iterable[str]:
    yield "## Entries"
    cells = []
    for row in entries:
        options = ", ".join(f"{name}={value}" for name, value in row["config"].items()) or "defaults"
        cells.append([row["entry"], row["method"], options, row["model"], row["profile"] or "-", str(row["seed"])])
    yield _table(("entry", "method", "options", "model", "profile", "seed"), cells)
    notes = [
        f"- {_escaped(row['label'])}: {row[count]} questions without {what}, left out of {of}"
        for row in entries
        for count, what, of in (
            ("without_answers", "accepted answers", "the answer metrics"),
            ("without_gold", "marked evidence", "gold recall"),
        )
        if row[count]
    ]
    notes += [
        f"- {_escaped(row['label'])}: {row['remembered']} runs were shortened by what the program remembered of "
        "earlier ones, left out of latency, computed and cached tokens"
        for row in entries
        if row["remembered"]
    ]
    if notes:
        yield "\n".join(notes)


def _failures(entries: Sequence[Row]) -> Iterable[str]:
    cells = [
        [row["label"], error["type"], str(error["n"]), "; ".join(error["messages"])]
        for row in entries
        for error in row["errors"]
    ]
    if cells:
        yield "## Failures"
        yield _table(("entry", "error", "runs", "for example"), cells)


def percent(interval: Mapping[str, Any] | None, sign: str = "") -> str:
    """A share with its interval, in percent."""
    return _shown(interval, 1, sign=sign, scale=100)


def _shown(interval: Mapping[str, Any] | None, digits: int, *, sign: str = "", scale: float = 1) -> str:
    if interval is None:
        return "-"
    form = f"{sign},.{digits}f"
    mean = format(scale * interval["mean"], form)
    if interval["low"] is None:
        return mean
    return f"{mean} ({scale * interval['low']:{form}} to {scale * interval['high']:{form}})"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_escaped, line))} |" for line in lines)


def _escaped(text: str) -> str:
    """Text that stays text and in its cell: no line break, control character, bar or HTML."""
    flat = " ".join(text.split())
    return printable(flat).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
