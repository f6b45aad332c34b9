"""The verbs of "One benchmark", without Gradio: read stored runs, keep what was read, list what is behind a number."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from mdqa.comparison.entries import Compared, Counting
from mdqa.comparison.overlap import Overlap
from mdqa.errors import ConfigError, InputError
from storage.runs import RunFilter
from ui.context import Context
from ui.inputs import page_within
from ui.reporting import Reading
from ui.views.benchmark import MOST, Gathered, Wish
from ui.views.listing import PAGE, Listed, ListedQuestion, ListedRun

STEP = 100
"""Runs read between two words on the progress."""

COUNTED = ("ok", "failed")
"""A run that was stopped or is still going says nothing about its method."""

OWN = {
    "all": "answered by {0}",
    "right": "right by {0}",
    "wrong": "not right by {0}",
    "failed": "on which {0} failed",
    "missing": "that {0} was not asked",
}
SIDES = {
    "both": "right by both {0} and {1}",
    "first": "right by {0}, not by {1}",
    "second": "right by {1}, not by {0}",
    "neither": "right by neither {0} nor {1}",
}


def gather(context: Context, wish: Wish) -> Iterator[Reading | Gathered]:
    """Read the runs, saying how far, and at last what they come to; ConfigError for a wish that cannot be."""
    if not 1 <= wish.newest <= MOST:
        raise ConfigError(f"a comparison reads 1 to {MOST:,} runs, not {wish.newest:,}")
    filters = _filters(wish)
    rows = context.store.runs.list(filters, limit=wish.newest)
    ids = [row.id for row in rows if row.status in COUNTED]
    counting = Counting()
    for number, (question, result) in enumerate(context.store.questions.outlines(ids), 1):
        counting.add(question, result)
        if number % STEP == 0:
            yield Reading(number, len(ids))
    yield Reading(len(ids), len(ids))
    yield Gathered(wish, counting.made(), len(rows), context.store.runs.count(filters), len(rows) - len(ids))


def _filters(wish: Wish) -> RunFilter:
    return RunFilter(model=wish.model, benchmark=wish.benchmark)


class Shelf:
    """The last few gatherings of a program, so that a press on a number does not read thousands of runs again."""

    def __init__(self, places: int = 3) -> None:
        self._places = places
        self._kept: OrderedDict[Wish, tuple[tuple[int, str], Gathered]] = OrderedDict()
        self._lock = threading.Lock()

    def gather(self, context: Context, wish: Wish) -> Iterator[Reading | Gathered]:
        """As :func:`gather`; at once if no run was added, deleted or finished since."""
        stamp = _stamp(context, wish)
        with self._lock:
            kept = self._kept.get(wish)
        if kept is not None and kept[0] == stamp:
            yield kept[1]
            return
        for step in gather(context, wish):
            if isinstance(step, Gathered):
                self._put(wish, stamp, step)
            yield step

    def get(self, context: Context, wish: Wish) -> Gathered:
        """What was gathered for this wish, even if there are newer runs by now: the page still shows it."""
        with self._lock:
            kept = self._kept.get(wish)
        if kept is not None:
            return kept[1]
        return [step for step in self.gather(context, wish) if isinstance(step, Gathered)][-1]

    def _put(self, wish: Wish, stamp: tuple[int, str], gathered: Gathered) -> None:
        with self._lock:
            self._kept[wish] = stamp, gathered
            self._kept.move_to_end(wish)
            while len(self._kept) > self._places:
                self._kept.popitem(last=False)


def _stamp(context: Context, wish: Wish) -> tuple[int, str]:
    """What changes when a run is added, deleted or finished."""
    filters = _filters(wish)
    rows = context.store.runs.list(filters, limit=1)
    return context.store.runs.count(filters), f"{rows[0].id} {rows[0].status}" if rows else ""


def cell_questions(compared: Compared, found: Overlap, cell: object) -> tuple[str, list[str]]:
    """What a number stands for in words, and its questions; InputError if there is no such cell.

    ``own:KEY:all|right|wrong|failed|missing``, ``at:KEY:POSITION``, ``pair:KEY:KEY:both|first|second|neither`` and
    ``who:BITS``, a 1 or 0 per entry.
    """
    kind, *parts = str(cell or "").split(":")
    match kind, parts:
        case "own", [key, what] if what in OWN:
            place = compared.place(key)
            return OWN[what].format(compared.entries[place].label), _own(compared, found, place, what)
        case "at", [key, position] if position.isdecimal():
            place, where = compared.place(key), compared.positions
            right = found.rights[place]
            own = sorted((q for q in right if where[q] == int(position)), key=lambda q: right[q])
            return f"with the evidence at {position}, as {compared.entries[place].label} answered them", own
        case "pair", [one, two, what] if what in SIDES and one != two:
            places = compared.place(one), compared.place(two)
            pair = found.pairs[places]
            sides = {"both": pair.both, "first": pair.first_only, "second": pair.second_only, "neither": pair.neither}
            return SIDES[what].format(*(compared.entries[place].label for place in places)), list(sides[what])
        case "who", [bits]:
            for pattern in found.patterns:
                if "".join(str(int(one)) for one in pattern.right) == bits:
                    return _who(compared, pattern.right), list(pattern.questions)
    raise InputError("the comparison has no such number; press Compare again")


def listed(context: Context, compared: Compared, found: Overlap, cell: object, page: int = 0) -> Listed:
    """One page of the questions behind a number, with every entry's answer."""
    title, questions = cell_questions(compared, found, cell)
    first = page_within(page, len(questions), PAGE) * PAGE
    shown = questions[first : first + PAGE]
    said = context.store.questions.said([own[q].run for q in shown for own in compared.everything if q in own])
    rows = []
    for question in shown:
        words, runs = "", list[ListedRun | None]()
        for own, right in zip(compared.everything, found.rights, strict=True):
            one = own.get(question)
            if one is None or one.run not in said:  # not asked, or deleted since the runs were read
                runs.append(None)
                continue
            words = said[one.run].question
            failed = one.observation.error is not None
            runs.append(ListedRun(one.run, said[one.run].answer, right.get(question), failed))
        rows.append(ListedQuestion(words, tuple(runs)))
    labels = tuple(entry.label for entry in compared.entries)
    return Listed(str(cell), title, labels, len(questions), first, tuple(rows))


def _own(compared: Compared, found: Overlap, place: int, what: str) -> list[str]:
    if what in ("right", "wrong"):
        return [question for question, right in found.rights[place].items() if right is (what == "right")]
    if what == "all":
        return [q for q, one in compared.runs[place].items() if one.observation.error is None]
    return compared.failed(place) if what == "failed" else compared.missing(place)


def _who(compared: Compared, right: Sequence[bool]) -> str:
    names = [entry.label for entry, one in zip(compared.entries, right, strict=True) if one]
    if not names:
        return "that nobody got right"
    return "right by all" if all(right) else f"right by {' and '.join(names)} only"
