"""MADARA's probe in a profile: correlations, how far they can be trusted, grades given, the routing that follows.

Every value is looked at before it is shown: profiles of earlier versions have fewer, and imported ones may have others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdqa.methods.madara.entropy import summarise_entropy
from mdqa.records import Profile, Routing
from ui.views.markup import DASH, badge, count, element, escape, message, number, plural, short, table, text
from ui.views.routing import MEASURES, routing_panel

LEVELS = ("control", "shuffled", "contradicted", "random")
"""Levels of the probe as a profile calls them; correlations, intervals and pairs are lists in this order."""

LEVEL_WORDS: Mapping[str, str] = {
    "control": "control (reasoning unchanged)",
    "shuffled": MEASURES["rho1"],
    "contradicted": MEASURES["rho2"],
    "random": MEASURES["rho3"],
}

GRADES = range(6)


def probe_view(values: Mapping[str, Any], routing: Routing | None, problem: str = "") -> str:
    """Correlations with intervals, their trust, grades and No-Filter accuracy, and the routing that follows."""
    parts = [
        _coupling(values),
        element("div", element("div", _grades(values) + _no_filter(values)) + _trust(values), "mdqa-probe"),
    ]
    if routing is not None:
        parts.append(text("h3", "The routing that follows") + routing_panel(routing))
    elif problem:
        parts.append(message(problem, "warn"))
    return "".join(parts)


def is_number(value: object) -> bool:
    """A number that can be shown; bool is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def correlations(values: Mapping[str, Any]) -> dict[str, tuple[float, float | None, float | None]]:
    """Level -> correlation with the ends of its interval (None where there is none); unreadable ones are left out."""
    rho, control = values.get("rho"), values.get("control")
    measured = [control, *rho] if isinstance(rho, list) else [control]
    spans = _list(values.get("intervals"))
    found = {}
    for level, value, span in zip(LEVELS, measured, spans, strict=False):
        if is_number(value):
            known = isinstance(span, list) and len(span) == 2 and all(map(is_number, span))
            found[level] = (float(value), *(map(float, span) if known else (None, None)))
    return found


def _list(value: object) -> list[Any]:
    """A list with one entry per level; without a value, of Nones."""
    return value if isinstance(value, list) and len(value) == len(LEVELS) else [None] * len(LEVELS)


def _coupling(values: Mapping[str, Any]) -> str:
    pairs = dict(zip(LEVELS, _list(values.get("pairs_used")), strict=True))
    within, failed = _mapping(values.get("per_query")), _mapping(values.get("parse_failures"))
    headers = ["Correlation", "−1 to 1", "ρ", "95 % interval", "Pairs"]
    headers += ["Within a question"] * bool(within) + ["Unreadable"] * bool(failed)
    rows = []
    for level, (value, low, high) in correlations(values).items():
        own = _mapping(within.get(level))
        span = f"{number(low)} to {number(high)}" if low is not None else "not measured"
        n = pairs[level]
        row = [
            escape(LEVEL_WORDS[level]),
            span_line(value, low, high, own),
            number(value),
            span,
            count(n) if isinstance(n, int) else escape(DASH if n is None else n),
        ]
        row += [_within(own)] * bool(within) + [_share(failed.get(level))] * bool(failed)
        rows.append(row)
    intro = text("h3", "Reasoning-score coupling") + element("div", _marks(values), "mdqa-badges")
    words = (
        "Spearman of the grades before and after the reasoning was changed, pooled over all questions and documents."
    )
    if within:
        words += " The lower bar is the mean and one standard deviation of the correlations within single questions."
    if is_number(failed.get("normal")):
        words += f" {_share(failed['normal'])} of the first grades could not be read."
    grid = table(headers, rows, "correlations")
    return element("section", intro + text("p", words, "mdqa-note") + grid, "mdqa-part", data_testid="correlations")


def _marks(values: Mapping[str, Any]) -> str:
    labels = ""
    if isinstance(values.get("model_class"), str):
        labels += badge(values["model_class"].replace("_", " "), "info")
    if values.get("degenerate") is True:
        share, grade = values.get("commonest_share"), values.get("commonest_score")
        what = f": {_share(share)} of the grades are {grade}" if is_number(share) else ""
        labels += badge(f"degenerate scores{what}", "warn")
    if is_number(values.get("unchanged_shuffles")) and values["unchanged_shuffles"] > 0:
        labels += badge(f"{_share(values['unchanged_shuffles'])} of the shuffles changed nothing")
    return labels


def _share(value: object) -> str:
    """A share as whole percent; below one percent it is not called none."""
    if not is_number(value):
        return DASH
    percent = float(value) * 100  # type: ignore[arg-type]
    return "under 1 %" if 0 < percent < 0.5 else f"{percent:.0f} %"


def _within(own: Mapping[str, Any]) -> str:
    if not is_number(own.get("mean")):
        return text("span", "undefined everywhere" if own.get("n") == 0 else DASH, "mdqa-quiet")
    spread = f" ± {number(own['sd'], 2)}" if is_number(own.get("sd")) else ""
    n = (
        text("span", f" ({own['n']})", "mdqa-quiet", title="questions where it is defined")
        if is_number(own.get("n"))
        else ""
    )
    return escape(number(own["mean"], 2) + spread) + n


def span_line(value: float, low: float | None, high: float | None, within: Mapping[str, Any] | None = None) -> str:
    """A value from -1 to 1 as a point on a line, its interval as a bar; below it mean and spread within questions."""
    bars = _bar("span", low, high)
    mean, sd = (within or {}).get("mean"), (within or {}).get("sd")
    if is_number(mean) and is_number(sd):
        bars += _bar("spread", mean - sd, mean + sd)  # type: ignore[operator]
    inner = f'<i class="zero" style="left:50%"></i>{bars}<i class="point" style="left:{_place(value):.1f}%"></i>'
    return element("span", inner, "mdqa-span", aria_hidden="true")


def _place(value: float) -> float:
    return (min(max(value, -1.0), 1.0) + 1) * 50


def _bar(kind: str, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    return f'<i class="{kind}" style="left:{_place(low):.1f}%;width:{_place(high) - _place(low):.1f}%"></i>'


def _grades(values: Mapping[str, Any]) -> str:
    """How often each grade was given, as bars, and the entropy of that."""
    histogram = _mapping(values.get("histogram"))
    counted = {str(grade): n for grade, n in histogram.items() if is_number(n)}
    if not counted:
        return ""
    names = sorted({*map(str, GRADES), *counted}, key=lambda name: (len(name), name))
    total, top = sum(counted.values()), max(counted.values()) or 1
    rows = "".join(
        text("span", name)
        + element("span", f'<i style="left:0;width:{counted.get(name, 0) / top * 100:.1f}%"></i>', "mdqa-bar wide")
        + text("span", f"{counted.get(name, 0):g}", "mdqa-number")
        for name in names
    )
    words = f"{plural(int(total), 'first grade')}, with reasoning."
    entropy = _mapping(values.get("entropy")) or _entropy(counted)
    if is_number(entropy.get("normalised")) and is_number(entropy.get("bits")):
        words += f" Entropy {number(entropy['normalised'], 2)} of 1 ({number(entropy['bits'], 2)} bits)."
    body = text("h4", "Grades given") + element("div", rows, "mdqa-histogram") + text("p", words, "mdqa-note")
    return element("section", body, data_testid="grades")


def _entropy(histogram: Mapping[str, Any]) -> Mapping[str, float]:
    """Of the grades of a profile that was made before entropy was kept; empty where they are no grades."""
    try:
        return summarise_entropy(histogram) or {}
    except (ValueError, OverflowError, TypeError):
        return {}


def _trust(values: Mapping[str, Any]) -> str:
    """Whether resamples, halves and small subsets of the questions lead to the same class."""
    rows = []
    if is_number(values.get("stability")):
        rows.append(["Resamples of the questions", f"{_share(values['stability'])} of the same class"])
    halves = _mapping(values.get("split_half"))
    for name, words in (("first", "First half"), ("second", "Last half")):
        half = _mapping(halves.get(name))
        rho = half.get("rho")
        if isinstance(rho, list) and all(map(is_number, rho)):
            said = str(half.get("model_class", "")).replace("_", " ")
            falls = " ".join(number(value, 2) for value in rho)
            n = f" ({plural(half['queries'], 'question')})" if isinstance(half.get("queries"), int) else ""
            rows.append([words + n, escape(said) + text("span", f" ρ {falls}", "mdqa-quiet")])
    subsets = _mapping(values.get("subsets"))
    if is_number(subsets.get("quality_ordered")):
        drawn = f"{subsets.get('draws', DASH)} subsets of {subsets.get('size', DASH)}"
        rows.append([escape(drawn), f"{_share(subsets['quality_ordered'])} quality-ordered"])
    elif subsets.get("detail"):
        rows.append(["Random subsets", text("span", subsets["detail"], "mdqa-quiet")])
    if not rows:
        return ""
    classes = {_mapping(halves.get(name)).get("model_class") for name in ("first", "second")} - {None}
    note = (
        message("The two halves disagree on the class: more questions are needed.", "warn") if len(classes) > 1 else ""
    )
    body = text("h4", "How far the class can be trusted") + table(["What", "Outcome"], rows, "trust") + note
    return element("section", body, data_testid="trust")


def _no_filter(values: Mapping[str, Any]) -> str:
    """No-Filter accuracy with how many questions it rests on and who said what is right."""
    found = _mapping(values.get("nf"))
    if not is_number(found.get("em_squad")):
        words = text(
            "p", "Not measured: there was nothing to judge answers by, so the probe alone decides.", "mdqa-note"
        )
        return element("section", text("h4", "No-Filter accuracy") + words, data_testid="no-filter")
    n, labels = found.get("n"), found.get("labels")
    over = f" over {plural(n, 'question')}" if isinstance(n, int) and n else ""
    if isinstance(labels, int) and labels:
        over += f", {count(labels)} of them judged by people"
    elif values.get("nf_source") == "gold":
        over += ", by gold answers"
    strict = f"Strict matching: {number(found['em_strict'])}." if is_number(found.get("em_strict")) else ""
    mark = badge("learned from labels", "info") if values.get("nf_source") == "labels" else ""
    figure = text("strong", number(found["em_squad"]), "figure")
    body = text("h4", "No-Filter accuracy") + element("p", f"{figure}{escape(over)} {mark}")
    body += text("p", strict, "mdqa-note") if strict else ""
    return element("section", body, data_testid="no-filter")


def probes_compared(one: Profile, other: Profile, routings: tuple[Routing | None, Routing | None]) -> str:
    """Two profiles side by side: correlations on one line each, what else was measured, and the routing of both."""
    rows = []
    first, second = correlations(one.values), correlations(other.values)
    for level in LEVELS:
        if level in first or level in second:
            rows.append(
                [
                    escape(LEVEL_WORDS[level]),
                    _both(first.get(level), second.get(level)),
                    *_cells(first.get(level), second.get(level)),
                ]
            )
    rows += [
        [escape(words), "", *cells]
        for words, cells in (
            ("ρ mean", _pair(one, other, "rho_bar")),
            ("class", _texts(one, other, "model_class")),
            ("same class in resamples", [_share(p.values.get("stability")) for p in (one, other)] + [""]),
            ("No-Filter accuracy", _nested(one, other, "nf", "em_squad")),
            ("score entropy (of 1)", _nested(one, other, "entropy", "normalised")),
            ("degenerate", ["yes" if p.values.get("degenerate") is True else "no" for p in (one, other)] + [""]),
            ("questions", [count(p.n) for p in (one, other)] + [""]),
        )
    ]
    treatments = [routing.title if routing is not None else DASH for routing in routings]
    same = treatments[0] == treatments[1]
    rows.append(
        ["treatment", "", *(text("strong", t) for t in treatments), "same" if same else badge("differs", "warn")]
    )
    headers = ["", f"● {one.name}  ○ {other.name}", one.name, other.name, "Difference"]
    about = f"{one.name} was made with {one.model}, {other.name} with {other.model}."
    if one.model == other.model:
        about = f"Both were made with {one.model}; on {short(one.data, 80)} and on {short(other.data, 80)}."
    body = (
        text("h3", "Two profiles side by side") + text("p", about, "mdqa-note") + table(headers, rows, "correlations")
    )
    return element("section", body, "mdqa-part", data_testid="compared")


Span = tuple[float, float | None, float | None]


def _both(first: Span | None, second: Span | None) -> str:
    inner = '<i class="zero" style="left:50%"></i>'
    for span, kind in ((first, ""), (second, " other")):
        if span is not None:
            inner += (
                _bar(f"span{kind}", span[1], span[2])
                + f'<i class="point{kind}" style="left:{_place(span[0]):.1f}%"></i>'
            )
    return element("span", inner, "mdqa-span two", aria_hidden="true")


def _cells(first: Span | None, second: Span | None) -> list[str]:
    """Both values with their intervals, and the difference; marked where the intervals do not touch."""
    cells = []
    for span in (first, second):
        if span is None:
            cells.append(DASH)
            continue
        ends = f"{number(span[1])} to {number(span[2])}" if span[1] is not None else ""
        cells.append(text("span", number(span[0])) + text("span", ends, "mdqa-quiet ends"))
    if first is None or second is None:
        return [*cells, DASH]
    apart = None not in (*first, *second) and (first[1] > second[2] or second[1] > first[2])  # type: ignore[operator]
    return [*cells, _signed(second[0] - first[0]) + (badge("intervals apart", "warn") if apart else "")]


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + number(value)


def _pair(one: Profile, other: Profile, name: str) -> list[str]:
    return _values(one.values.get(name), other.values.get(name))


def _nested(one: Profile, other: Profile, part: str, name: str) -> list[str]:
    return _values(*(_mapping(profile.values.get(part)).get(name) for profile in (one, other)))


def _values(first: object, second: object) -> list[str]:
    cells = [number(float(value)) if is_number(value) else DASH for value in (first, second)]  # type: ignore[arg-type]
    both = is_number(first) and is_number(second)
    return [*cells, _signed(float(second) - float(first)) if both else DASH]  # type: ignore[arg-type]


def _texts(one: Profile, other: Profile, name: str) -> list[str]:
    found = [str(profile.values.get(name) or DASH).replace("_", " ") for profile in (one, other)]
    return [*map(escape, found), "same" if found[0] == found[1] else badge("differs", "warn")]
