"""Many people at once, through the real HTTP interface: order, Stop, what is stored, and whether memory grows.

A server of its own is started with the scripted backend over a new database. Everybody has a tab and presses Run on
the page as it is opened; when all have their result, all press Run again. The first such wave loads what the first run
needs; its times are not counted. From then on some press Stop, half of them as soon as their run has a place in line,
the others when it works. At last the database is read: the runs must have ended in the order in which they were put in
line, and every one of them must be there.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from mdqa.errors import ConfigError, ModelError
from mdqa.performance.asked import Asked, Memory, growth, kept_runs, promises, stops, times
from mdqa.performance.figures import Figure
from mdqa.performance.plan import Plan, numbers
from mdqa.performance.site import Site
from mdqa.performance.tab import Layout, Tab, attribute
from mdqa.registry import METHODS

RUN, STOP, CHOSEN = "mdqa-run", "mdqa-stop", "mdqa-methods"

MOST = 32
"""People: as many runs as may wait by default."""

SILENCE = 300.0
"""Seconds after which a run that has not ended ends the benchmark."""

REST = 1.0
"""Seconds between the end of a wave and a look at the memory."""


@dataclass(frozen=True)
class Crowd:
    """How much: ``runs`` by ``people`` who all ask at once, again and again; ``stops`` is the share that is stopped.

    ``method``: what all of them choose; empty: what the page proposes.
    """

    people: int = 30
    runs: int = 1000
    stops: float = 0.2
    method: str = ""

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Crowd:
        """From ``--set``; ConfigError names an option that does not exist or is out of its limits."""
        limits = {"people": (int, 1, MOST), "runs": (int, 3, 100_000), "stops": (float, 0, 1)}
        crowd = cls(**numbers("people", options, limits, others=("method",)), method=str(options.get("method", "")))
        if crowd.method and crowd.method not in METHODS:
            raise ConfigError(f"method={crowd.method!r} is none of {', '.join(METHODS)}")
        if crowd.runs < 3 * crowd.people:
            raise ConfigError(f"runs={crowd.runs} are too few: {crowd.people} people ask three times at least")
        return crowd

    def waves(self) -> list[int]:
        """How many people ask in each wave: all of them, but in the last one those who are needed."""
        full, rest = divmod(self.runs, self.people)
        return [self.people] * full + [rest] * (rest > 0)

    @property
    def given(self) -> dict[str, Any]:
        """What a person fills in before Run is pressed."""
        return {CHOSEN: [self.method]} if self.method else {}


PARTS = (1 / 5, 2 / 3)
"""Parts of the runs after which the memory is looked at. What is kept of the last runs, and within limits for every
thread and page, is full after some hundreds of runs only; from then on nothing may grow."""


def bench(plan: Plan) -> Iterator[Figure]:
    """Figures of one crowd; ``plan.options``: see :class:`Crowd`. At once: ConfigError for one that cannot be used."""
    return _measure(plan, Crowd.parse(plan.options))


def _measure(plan: Plan, crowd: Crowd) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="mdqa-bench-") as name:
        folder = Path(name)
        site = Site(folder, folder / "bench.db")
        try:
            site.start()
            yield from visit(plan, crowd, site.url, folder / "bench.db", site.memory)
        except ModelError:
            site.check()  # that it ended is the cause, and what people saw of it is not
            raise
        finally:
            site.stop()


def visit(plan: Plan, crowd: Crowd, url: str, database: Path, memory: Callable[[], int | None]) -> Iterator[Figure]:
    """Figures of a crowd at the page of this address. ``memory``: resident bytes of its program, None if not known."""
    pool = ThreadPoolExecutor(crowd.people)
    try:
        asked, found = _work(plan, crowd, url, memory, pool)
    finally:
        pool.shutdown(wait=False)  # people who are left over end when the server does
    with plan.open_store(database) as store:
        kept = kept_runs(store)
    yield from times(asked[crowd.people :], kept, crowd.people)
    yield from promises(asked, kept)
    yield from stops(asked, kept)
    yield from growth(found)


def _work(
    plan: Plan, crowd: Crowd, url: str, memory: Callable[[], int | None], pool: ThreadPoolExecutor
) -> tuple[list[Asked], list[Memory]]:
    """Wave after wave, with the memory after the first one, after the :data:`PARTS` of the runs and at the end."""
    layout = Layout.of(url)
    tabs = [Tab(url, layout) for _ in range(crowd.people)]
    waves, draw = crowd.waves(), random.Random(plan.seed)
    asked: list[Asked] = []
    found: list[Memory] = []
    for number, size in enumerate(waves):
        plan.progress(len(asked), crowd.runs, "asking")
        few = draw.sample(range(size), round(crowd.stops * size)) if number else []
        at_work = {who: bool(place % 2) for place, who in enumerate(few)}
        began = [pool.submit(_ask, tabs[who], crowd.given, at_work.get(who)) for who in range(size)]
        asked += _results(plan, began)
        due = 1 <= len(found) <= len(PARTS) and len(asked) >= crowd.runs * PARTS[len(found) - 1]
        if number == 0 or due or number == len(waves) - 1:
            time.sleep(REST)
            if (resident := memory()) is not None:
                found.append(Memory(len(asked), resident))
    plan.progress(len(asked), crowd.runs, "asking")
    for tab in tabs:
        tab.close()
    return asked, found


def _results(plan: Plan, began: Sequence[Future[Asked]]) -> list[Asked]:
    """What everybody saw; Cancelled if the benchmark is stopped meanwhile."""
    going = set(began)
    while going:
        plan.cancel.check()
        _, going = wait(going, timeout=0.1)
    return [one.result() for one in began]


def _ask(tab: Tab, given: Mapping[str, Any], stop_at_work: bool | None) -> Asked:
    """Press Run and watch until the result is drawn. ``stop_at_work``: press Stop in the line, at work, or never."""
    run, seen, stopped = "", 0.0, None
    pressed = time.time()
    try:
        tab.press(RUN, given)
        for shown in tab.follow():
            if time.time() > pressed + SILENCE:
                raise ModelError(f"run {run or '(not seen yet)'} has not ended after {SILENCE:.0f} s")
            address = attribute(shown, "data-address")
            if address and not run:
                run, seen = address.removeprefix("?run="), time.time()
            place = attribute(shown, "data-place")
            wanted = stop_at_work is not None and stopped is None and place is not None
            if wanted and (place == "0") is stop_at_work:
                stopped = time.time()
                tab.press(STOP)
    except httpx.HTTPError as problem:
        raise ModelError(f"the server did not answer: {type(problem).__name__}: {problem}") from problem
    if not run:
        raise ModelError("a press on Run was answered without a run")
    return Asked(run, pressed, seen, time.time(), stopped)
