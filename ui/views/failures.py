"""The Failures tab: the stored runs with what they are found by, every link an address of its own.

One piece of HTML holds all of it, so what is seen always fits together; ``tabs/failures.js`` is its behaviour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mdqa.diagnosis.cases import TITLES, VERDICTS
from mdqa.diagnosis.facets import DISAGREEMENTS
from storage.facets import FacetCounts
from storage.listing import ORDERS, RunRow
from storage.saved_filters import SavedFilter
from ui.filtering import FACETS, Wanted
from ui.views.failures_list import DISAGREEMENT_WORDS, control, page_links, run_table, selection_bar
from ui.views.markup import count, details, element, empty, escape, message, plural, short, text
from ui.views.summary import STATUS

GROUPS: Mapping[str, str] = {
    "correct": "Answer",
    "disagreement": "Disagreement",
    "method": "Method",
    "benchmark": "Benchmark",
    "model": "Model",
    "state": "State",
}
"""The facets of the rail, in their order; those of the diagnosis stand above the list."""

NAMES: Mapping[str, str] = {
    **GROUPS,
    "diagnosis": "Diagnosis",
    "stage": "Stage",
    "text": "Search",
    "margin": "Margin below",
    "since": "Since",
}
"""Words for all parts of a filter that can be taken away."""

CORRECT_WORDS: Mapping[str, str] = {"right": "Right", "wrong": "Wrong", "unknown": "Not known"}

ORDER_WORDS: Mapping[str, str] = {
    "newest": "Newest first",
    "oldest": "Oldest first",
    "slowest": "Slowest first",
    "costliest": "Most model calls first",
    "nearest": "Smallest margin first",
}

SHOWN = 8
"""Values of a facet that are shown before the fold."""

MARGIN_HELP = (
    "How near another outcome was. MADARA: the smallest distance of a measure from the bar that would decide "
    "otherwise. Votes: the winner's share of all weights less the runner-up's."
)


@dataclass(frozen=True)
class FailuresView:
    """A page of runs with the numbers around it.

    ``first``: the first one's place (from 0); ``titles``: of methods; ``queued``: the queues that runs are in, by id;
    ``queues``: names to choose from; ``any_runs``: whether there are any at all.
    """

    wanted: Wanted
    rows: tuple[RunRow, ...]
    counts: FacetCounts
    first: int
    titles: Mapping[str, str]
    queued: Mapping[str, Sequence[str]] = field(default_factory=dict)
    queues: tuple[str, ...] = ()
    saved: tuple[SavedFilter, ...] = ()
    any_runs: bool = True


def failures_page(view: FailuresView) -> str:
    """Everything: the form, the diagnoses, the rail of facets, the runs, what to do with them."""
    if not view.any_runs:
        return element("div", _no_runs(), "mdqa-failures", data_address=view.wanted.address())
    unknown = view.counts.unknown
    note = (
        message(f"{plural(unknown, 'older run')} of these are still being looked at; press Refresh in a while.", "info")
        if unknown
        else ""
    )
    main = _head(view) + note
    if view.rows:
        main += run_table(view.rows, view.titles, view.queued) + page_links(
            view.wanted, view.first, len(view.rows), view.counts.total
        )
        main += selection_bar(view.counts.total, view.queues)
    else:
        main += _none_match(view)
    body = element("div", _rail(view) + element("div", main, "mdqa-failures-main"), "mdqa-failures-body")
    inner = _form(view) + _saved(view) + _diagnoses(view) + body
    return element("div", inner, "mdqa-failures", data_address=view.wanted.at(view.wanted.page))


# --- the form --------------------------------------------------------------------------------------------------------


def _form(view: FailuresView) -> str:
    wanted, said = view.wanted, view.wanted.said
    orders = "".join(
        text("option", ORDER_WORDS[order], value=order, selected="" if order == wanted.order else None)
        for order in ORDERS
    )
    fields = (
        _field("Search in question and answer", "search", "text", said, maxlength=200, placeholder="Words, part of one")
        + _field("Margin below", "number", "margin", said, min="0", step="any", title=MARGIN_HELP, placeholder="any")
        + _field("Since (UTC)", "date", "since", said)
        + element("label", text("span", "Order") + f'<select name="sort" data-at="sort">{orders}</select>')
        + element(
            "label",
            control("checkbox", "studies", value="1", data_at="studies", checked=_on(wanted.filters.studies))
            + text("span", "With runs of studies"),
            "tick",
        )
    )
    again = text("button", "Refresh", type="submit", data_at="refresh")
    return element("form", fields + again, "mdqa-failures-form", role="search", aria_label="Filter the runs")


def _field(label: str, kind: str, name: str, said: Mapping[str, str], **more: object) -> str:
    box = control(kind, name, value=said.get(name, ""), data_at=name, **more)
    return element("label", text("span", label) + box, name)


def _on(yes: bool) -> str | None:
    return "" if yes else None


def _saved(view: FailuresView) -> str:
    """Filters with a name, and the field that gives the present one a name."""
    rows = "".join(_saved_row(one) for one in view.saved)
    listed = element("ul", rows, "mdqa-saved-filters") if rows else text("p", "None yet.", "mdqa-note")
    label = text("span", "Name for the present filter and order")
    name = control("text", "filter_name", maxlength=100, data_keep="filter_name", autocomplete="off")
    keep = element("label", label + name) + text("button", "Save", type="button", data_act="save")
    inner = listed + element("div", keep, "mdqa-save-filter")
    return details(f"Saved filters ({count(len(view.saved))})", inner, "mdqa-more mdqa-fold", anchor="mdqa-saved")


def _saved_row(one: SavedFilter) -> str:
    wanted = Wanted(one.filters, one.order)
    link = _link(wanted.address(), escape(one.name), at=f"saved:{one.name}", fixed=True, title=_in_words(wanted))
    about = text("span", f"by {short(one.made_by, 40)}, {one.created[:10]}", "mdqa-quiet")
    buttons = "".join(
        text("button", label, "mdqa-copy", type="button", data_act=act, data_name=one.name)
        for act, label in (("rename", "Give it the name above"), ("delete", "Delete"))
    )
    return element("li", element("strong", link, dir="auto") + about + buttons)


def _in_words(wanted: Wanted) -> str:
    return ", ".join(f"{NAMES.get(name, name)}: {value}" for name, value in wanted.said.items()) or "all runs"


# --- facets ----------------------------------------------------------------------------------------------------------


def _link(address: str, inner: str, *, at: str, fixed: bool = False, **more: object) -> str:
    """A link inside the tab. ``at`` finds it again after the list was drawn anew; ``fixed``: the form adds nothing."""
    return element("a", inner, href=address, data_go="", data_at=at, data_fixed="" if fixed else None, **more)


def facet_words(name: str, value: str, titles: Mapping[str, str]) -> str:
    """A value of a facet for people."""
    words: Mapping[str, str] = {
        "method": titles.get(value, value),
        "correct": CORRECT_WORDS.get(value, value),
        "state": STATUS[value][0] if value in STATUS else value,
        "diagnosis": TITLES.get(value, value),
        "disagreement": DISAGREEMENT_WORDS.get(value, value),
        "stage": value.replace("_", " "),
    }
    return words.get(name, value)


def _rail(view: FailuresView) -> str:
    groups = "".join(_group(view, name) for name in GROUPS)
    return details("Filters", groups, "mdqa-facets mdqa-fold", opened=True, anchor="mdqa-facets")


def _group(view: FailuresView, name: str) -> str:
    """A facet's values with how many runs each would give; the chosen one takes itself away."""
    chosen = view.wanted.said.get(name, "")
    values = dict(view.counts.values[FACETS[name]])
    if chosen:
        values.setdefault(chosen, 0)
    if not values:
        return ""
    links = [element("li", _value(view, name, value, number, chosen)) for value, number in values.items()]
    first, rest = "".join(links[:SHOWN]), "".join(links[SHOWN:])
    more = (
        details(
            f"{count(len(links) - SHOWN)} more", element("ul", rest), "mdqa-more mdqa-fold", anchor=f"mdqa-more-{name}"
        )
        if rest
        else ""
    )
    return element("section", text("h4", GROUPS[name]) + element("ul", first) + more, "mdqa-facet")


def _value(view: FailuresView, name: str, value: str, number: int, chosen: str) -> str:
    on = value == chosen
    words = facet_words(name, value, view.titles)
    help_ = DISAGREEMENTS.get(value) if name == "disagreement" else None
    inner = text("span", short(words, 60), "what", dir="auto") + text("span", count(number), "mdqa-number")
    return _link(
        view.wanted.address(**{name: None if on else value}),
        inner,
        at=f"{name}:{value}",
        title=help_ or (words if len(words) > 60 else None),
        aria_current="true" if on else None,
    )


def _diagnoses(view: FailuresView) -> str:
    """How often each diagnosis was made under the present filter, as bars that filter themselves."""
    found = view.counts.values["diagnosis"]
    chosen = view.wanted.filters.diagnosis
    if not found and not chosen:
        return ""
    most = max(found.values(), default=1)
    order = sorted({*found, *([chosen] if chosen else [])}, key=lambda verdict: -found.get(verdict, 0))
    bars = "".join(element("li", _bar(view, verdict, found.get(verdict, 0), most)) for verdict in order)
    stages = _stages(view) if chosen else ""
    meaning = "".join(
        element("div", text("dt", TITLES.get(verdict, verdict)) + text("dd", VERDICTS.get(verdict, "")))
        for verdict in order
    )
    fold = details(
        "What these mean", element("dl", meaning, "mdqa-meanings"), "mdqa-more mdqa-fold", anchor="mdqa-mean"
    )
    inner = text("h3", "Where wrong answers were lost") + element("ul", bars, "mdqa-diagnoses") + stages + fold
    return element("section", inner, "mdqa-lost", data_testid="diagnoses")


def _bar(view: FailuresView, verdict: str, number: int, most: int) -> str:
    on = verdict == view.wanted.filters.diagnosis
    inner = (
        text("span", facet_words("diagnosis", verdict, view.titles), "what")
        + element("span", element("i", "", style=f"width:{100 * number / most:.1f}%"), "bar", aria_hidden="true")
        + text("span", count(number), "mdqa-number")
    )
    return _link(
        view.wanted.address(diagnosis=None if on else verdict),
        inner,
        at=f"diagnosis:{verdict}",
        title=VERDICTS.get(verdict),
        aria_current="true" if on else None,
    )


def _stages(view: FailuresView) -> str:
    """The stages of the chosen diagnosis, where there are several of them or one is chosen."""
    chosen = view.wanted.filters.stage
    values = dict(view.counts.values["stage"])
    if len(values) < 2 and not chosen:
        return ""
    links = " ".join(_value(view, "stage", value, number, chosen) for value, number in values.items())
    return element("p", text("span", "At stage", "mdqa-label") + links, "mdqa-stages-of")


# --- what is in front ------------------------------------------------------------------------------------------------


def _head(view: FailuresView) -> str:
    """How many runs there are, and every part of the filter as something that can be taken away."""
    chips = "".join(
        _link(
            view.wanted.address(**{name: None}),
            escape(f"{NAMES[name]}: {short(facet_words(name, value, view.titles), 60)}") + " ×",
            at=f"off:{name}",
            fixed=name in ("text", "margin", "since"),
            title="Take this away",
        )
        for name, value in view.wanted.said.items()
        if name in NAMES
    )
    if chips:
        chips += _link(Wanted(order=view.wanted.order).address(), "Clear all", at="clear", fixed=True)
    number = text("strong", plural(view.counts.total, "run"), data_testid="total")
    return element("p", number + chips, "mdqa-chips")


def _no_runs() -> str:
    return empty(
        "No runs yet",
        "Ask a question on the Ask tab; every run is kept here. Results of the command line come in with: "
        "python -m mdqa store --results FILE --input FILE",
    )


def _none_match(view: FailuresView) -> str:
    """What stands where nothing matches: which part of the filter to take away, and how many runs that gives."""
    links = "".join(element("li", link) for link in _ways_out(view))
    return empty("No run matches", "Take a part of the filter away:") + element("ul", links, "mdqa-ways-out")


def _ways_out(view: FailuresView) -> Iterable[str]:
    for name, value in view.wanted.said.items():
        if name not in NAMES:
            continue
        number = sum(view.counts.values[FACETS[name]].values()) if name in FACETS else None
        if number == 0:
            continue
        words = f"without {NAMES[name]}: {short(facet_words(name, value, view.titles), 60)}"
        words += f" ({plural(number, 'run')})" if number else ""
        yield _link(view.wanted.address(**{name: None}), escape(words), at=f"out:{name}", fixed=True)
    yield _link(Wanted(order=view.wanted.order).address(), "without any filter", at="out:all", fixed=True)
