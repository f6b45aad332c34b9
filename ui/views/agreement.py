"""The Agreement tab: who agrees with whom, everybody by themselves, over time, and the items on which people differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import plotly.graph_objects as go

from mdqa.agreement.people import Person, Stretch
from mdqa.agreement.ratings import CHOICES, Consensus
from mdqa.agreement.table import Line, Table
from mdqa.candidates import candidates_of
from mdqa.statistics.agreement import Coefficient
from mdqa.statistics.bootstrap import Interval
from storage.labels import Rating
from ui.agreement import MOST, Item, Standing
from ui.views.charts import common_look
from ui.views.figures import COLOURS, GRID
from ui.views.markup import (
    DASH,
    badge,
    count,
    element,
    empty,
    escape,
    facts,
    message,
    number,
    plain,
    plural,
    short,
    text,
)

OPEN = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-item]");
  if (button) trigger("select", { item: Number(button.dataset.item) });
});
"""
"""A click on an item of the list tells the server which one is meant."""

NOTHING = empty(
    "Nothing computed yet",
    "Choose a queue and press Compute. Labels come from Annotate; a queue is filled there, or from Failures.",
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "people": "People",
        "person-person": "Person with person",
        "person-judge": "People with the judges of the runs",
        "judges": "Judges",
        "judge-judge": "Judge with judge, on the same questions",
    }
)

PLAIN_WORDS: Mapping[str, str] = MappingProxyType(
    {"both": "Both", "neither": "Neither", "cannot_tell": "Cannot tell", "": "No majority"}
)

COLUMNS = ("percent", "cohen", "fleiss", "krippendorff")
HEADS = ("Items", "Same", "Cohen's κ", "Fleiss' κ", "Krippendorff's α", "Remark")

READ = (
    "Same: the share of pairs of labels of one item that are the same. κ and α are corrected for chance: 1 is perfect, "
    "0 what chance gives. In brackets: 95% bootstrap intervals that draw items. Cohen's κ is for two, Fleiss' κ for "
    "three or more with as many labels per item, Krippendorff's α takes any number. A judge's label is the candidate "
    "that the run's answer sides with; majority: the adjudicated label, else what most people said."
)


def reading(done: int, total: int) -> str:
    """How far the runs have been read."""
    return text("p", f"Read {count(done)} of {plural(total, 'run')} …", "mdqa-note", role="status")


def head(found: Standing) -> str:
    """What a queue has: items with labels, labels, people, decisions."""
    if not found.together:
        hint = "Its items are labelled in Annotate. Agreement can be computed once two people have labelled one item."
        return empty(f"Nobody has labelled anything in “{found.queue}” yet", hint)
    undecided = sum(one.source != "adjudicated" for one in found.contested)
    names = {rating.annotator for rating in found.ratings}
    parts = [
        facts(
            {
                "Items with labels": count(len(found.together)),
                "Labels": count(len(found.ratings)),
                "People": count(len(names)),
                "People differ on": plural(len(found.contested), "item"),
                "Still to decide": count(undecided),
            }
        )
    ]
    if found.missing:
        parts.append(message(f"{plural(found.missing, 'run')} of this queue were deleted and are left out.", "warn"))
    if len(found.runs) >= MOST:
        parts.append(message(f"Only the first {count(MOST)} items of this queue are read.", "warn"))
    return "".join(parts)


def table(found: Table) -> str:
    """Coefficients with their numbers of items, intervals, and words where they are undefined."""
    if not found.lines:
        return ""
    body = []
    kind = ""
    for line in found.lines:
        if line.kind != kind:
            kind = line.kind
            body.append(element("tr", text("th", KINDS[kind], "group", colspan=1 + len(HEADS), scope="colgroup")))
        body.append(_line(line))
    titles = "".join(text("th", title, scope="col") for title in ("Who", *HEADS))
    grid = element("table", f"<thead><tr>{titles}</tr></thead><tbody>{''.join(body)}</tbody>", "mdqa-table agreement")
    left = f" {count(found.left_out)} pairs with fewer items in common are not listed." if found.left_out else ""
    return element("div", grid, "mdqa-scroll framed", tabindex="0") + text("p", READ + left, "mdqa-note")


def _line(line: Line) -> str:
    who = text("td", f"{line.one} · {line.two}" if line.two else line.one, "who", dir="auto")
    cells = [who, text("td", count(line.percent.items), "number")]
    notes: dict[str, None] = {}
    for name in COLUMNS:
        coefficient = line.coefficient(name)
        cells.append(element("td", _coefficient(coefficient, percent=name == "percent"), "number"))
        if coefficient is not None and coefficient.note:
            notes[coefficient.note] = None
    cells.append(text("td", " ".join(notes), "remark"))
    return element("tr", "".join(cells))


def _coefficient(found: Coefficient | None, *, percent: bool = False) -> str:
    """A value with its interval; a dash where it does not apply, a word where it is undefined."""
    if found is None:
        return text("span", DASH, "mdqa-quiet", title="does not apply")
    if found.value is None:
        return text("span", "undefined", "mdqa-quiet")
    return _with_interval(found.value, found.low, found.high, percent=percent)


def _with_interval(value: float, low: float | None, high: float | None, *, percent: bool) -> str:
    def shown(one: float) -> str:
        return f"{100 * one:.1f}%" if percent else number(one, 2)

    ends = f" [{shown(low)}, {shown(high)}]" if low is not None and high is not None else ""
    return escape(shown(value)) + text("span", ends, "mdqa-quiet")


def people(found: Sequence[Person], titles: Sequence[str] = ()) -> str:
    """Everybody by themselves. ``titles``: what the candidates are called, where that is the same for all items."""
    if not found:
        return ""
    heads = ("Who", "Labels", "As the others' majority", "As adjudicated", "Median time", "Chose the one shown first")
    rows = []
    for one in found:
        said = ", ".join(f"{number_} {_label_words(label, titles)}" for label, number_ in one.labels.items())
        rows.append(
            (
                text("span", one.name, dir="auto"),
                count(one.n) + text("div", said, "mdqa-quiet"),
                _share(one.with_others),
                _share(one.with_adjudicated),
                f"{one.seconds:.1f} s" if one.seconds is not None else DASH,
                _share(one.first_shown),
            )
        )
    head = "".join(text("th", title, scope="col") for title in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    grid = f'<table class="mdqa-table people"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    note = (
        "Time is that at work on an item, without idle time. Which candidate comes first is drawn for every person and "
        "item: where no order sways, about half of the choices for one candidate go to the one shown first."
    )
    return element("div", grid, "mdqa-scroll framed", tabindex="0") + text("p", note, "mdqa-note")


def _share(found: Interval | None) -> str:
    if found is None:
        return text("span", "nothing to compare", "mdqa-quiet")
    return _with_interval(found.mean, found.low, found.high, percent=True) + text(
        "span", f" n = {found.n}", "mdqa-quiet"
    )


def over_time(found: Iterable[Stretch], *, by: str) -> go.Figure | None:
    """A line per person: how often the others' majority said the same, over days or tens of labels."""
    by_name: dict[str, list[Stretch]] = {}
    for one in found:
        if one.with_others is not None:
            by_name.setdefault(one.name, []).append(one)
    if not by_name:
        return None
    figure = go.Figure()
    for place, (name, stretches) in enumerate(by_name.items()):
        known = [(one.stretch, one.with_others) for one in stretches if one.with_others is not None]
        figure.add_trace(
            go.Scatter(
                name=plain(name, 40),
                x=[stretch for stretch, _ in known],
                y=[round(100 * share.mean, 2) for _, share in known],
                customdata=[
                    [plain(name, 40), share.n, f"[{100 * share.low:.0f}, {100 * share.high:.0f}]"] for _, share in known
                ],
                mode="lines+markers",
                line={"color": COLOURS[place % len(COLOURS)], "width": 2},
                hovertemplate="%{customdata[0]}, %{x}<br>%{y:.0f}% %{customdata[2]}, n = %{customdata[1]}"
                "<extra></extra>",
            )
        )
    several = len({one.stretch for stretches in by_name.values() for one in stretches}) > 1
    common_look(figure, 320 if several else 200, len(by_name) if len(by_name) > 1 else 0)
    figure.update_layout(scattermode="group", scattergap=0.8)  # equal points stand side by side
    days = sorted({one.stretch for stretches in by_name.values() for one in stretches})
    order = {"categoryorder": "array", "categoryarray": days} if by == "day" else {}
    title = "Day (UTC)" if by == "day" else "Labels of the person"
    figure.update_xaxes(title=title, type="category", showgrid=False, **order)
    figure.update_yaxes(title="As the others' majority (%)", range=[-4, 104], gridcolor=GRID)
    return figure


def contested(found: Standing) -> str:
    """The items on which people differ, each with its votes and a button that opens it."""
    if not found.together:
        return ""
    if not found.contested:
        return empty("People differ on no item", "Where two people label an item differently, it is listed here.")
    return element("ul", "".join(_contested(one, found) for one in found.contested), "mdqa-contested")


def _contested(one: Consensus, found: Standing) -> str:
    run = found.runs.get(one.run)
    titles = [candidate.title for candidate in candidates_of(run)] if run is not None else []
    words = run.question.question if run is not None else "(the run was deleted)"
    state = badge("decided", "good") if one.source == "adjudicated" else badge("to decide", "warn")
    votes = " · ".join(f"{number_} {_label_words(label, titles)}" for label, number_ in one.votes.items())
    button = text("button", "Open", "mdqa-copy", type="button", data_item=one.item, aria_label=f"Open item {one.item}")
    return element(
        "li", text("span", short(words, 140), "what", dir="auto") + text("span", votes, "mdqa-quiet") + state + button
    )


def _label_words(label: str, titles: Sequence[str] = ()) -> str:
    """A label in words, with the candidates' titles where they are known."""
    if label in CHOICES:
        place = CHOICES.index(label)
        if len(titles) == 1 and place == 0:
            return "Right"
        return titles[place] if place < len(titles) else label.capitalize()
    if len(titles) == 1 and label == "neither":
        return "Wrong"
    return PLAIN_WORDS.get(label, label)


def choices(found: Item) -> list[tuple[str, str]]:
    """The labels of the decision with their words; among them one that was decided when it was still offered."""
    kept = [found.decision.label] if found.decision and found.decision.label not in found.labels else []
    return [(_label_words(label, _titles(found)), label) for label in (*found.labels, *kept)]


def _titles(found: Item) -> list[str]:
    return [candidate.title for candidate in found.candidates]


def item(found: Item) -> str:
    """An item to decide on: question, answers, what everybody said, and the run's page."""
    run, candidates, names = found.run, found.candidates, _titles(found)
    titles = {document.id: document.title or document.id for document in run.question.documents}
    answers = "".join(
        element("div", text("dt", c.title) + text("dd", c.answer or "(no answer)", dir="auto")) for c in candidates
    )
    if [c.answer for c in candidates] != [run.answer.strip()]:  # else it stands there already
        answers += element("div", text("dt", "Answer of the run") + text("dd", run.answer or "(no answer)", dir="auto"))
    rows = "".join(_said(rating, names, titles) for rating in found.ratings)
    heads = "".join(text("th", title, scope="col") for title in ("Who", "Label", "Evidence", "Note", "Time"))
    said = f'<table class="mdqa-table said"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    marks = _marks(found.together, titles)
    parts = [
        text("h3", run.question.question, dir="auto"),
        element("p", text("a", "Open the run", href=f"?run={run.id}", target="_blank", rel="noopener"), "mdqa-note"),
        element("dl", answers, "mdqa-facts"),
        element("div", said, "mdqa-scroll framed", tabindex="0"),
        marks,
    ]
    if found.decision is not None:
        who, when = found.decision.annotator, found.decision.created.replace("T", " ")[:16]
        words = f"Decided by {who}, {when} UTC: {_label_words(found.decision.label, names)}."
        parts.append(message(words + (f" “{found.decision.note}”" if found.decision.note else ""), "good"))
    return element("section", "".join(parts), "mdqa-agreement-item", data_testid="contested-item")


def _said(rating: Rating, names: Sequence[str], titles: Mapping[str, str]) -> str:
    evidence = ", ".join(short(titles.get(name, name), 60) for name in rating.evidence) or DASH
    time = f"{rating.seconds:.1f} s"
    cells = (
        text("td", rating.annotator, "who", dir="auto"),
        text("td", _label_words(rating.label, names)),
        text("td", evidence, dir="auto"),
        text("td", rating.note or DASH, "note", dir="auto"),
        text("td", time, "time"),
    )
    return element("tr", "".join(cells))


def _marks(one: Consensus, titles: Mapping[str, str]) -> str:
    if not one.markers:
        return text("p", "Nobody marked evidence.", "mdqa-note")
    words = ", ".join(f"{short(titles.get(name, name), 60)} ({n} of {one.markers})" for name, n in one.marks.items())
    return text("p", f"Evidence: {words}.", "mdqa-note", dir="auto")
