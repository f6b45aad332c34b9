"""Many people at once, in small: through the real page, with a backend that takes its time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.commands.database import opened
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.performance.asked import Asked, Kept, Memory, growth, promises, stops, times
from mdqa.performance.figures import Figure
from mdqa.performance.measuring import NoMemory
from mdqa.performance.people import Crowd, bench, visit
from mdqa.performance.plan import Plan
from tests.ui.helpers import open_scripted
from tests.ui.serving import served


def plan(**options: object) -> Plan:
    return Plan(Tools(ScriptedBackend()), (), NoMemory("not measured"), options=options, open_store=opened)


def by_name(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.name.removeprefix("people."): figure for figure in figures}


def test_a_few_people_are_served_in_their_order(tmp_path: Path) -> None:
    crowd = Crowd(people=4, runs=12, stops=0.75, method="direct")
    sizes = iter((100, 110, 120))
    with closing(open_scripted(tmp_path, delay=0.1)) as context, served(context) as (_, url):
        found = by_name(list(visit(plan(), crowd, url, context.settings.database, lambda: next(sizes) * 1_000_000)))
    assert (found["stored"].value, found["stored"].baseline, found["rows"].value) == (12, 12, 12)
    ended = found["out_of_order"].n
    assert found["out_of_order"].value == 0
    assert ended >= 6  # at most three of four are stopped in the two waves after the first
    for moment in ("p50", "p95"):
        first, begun, drawn = (found[f"{name}_{moment}"] for name in ("first_sign", "in_line", "result"))
        assert first.n == begun.n == drawn.n == ended - 4
        assert first.value and begun.value and drawn.value
        assert 0 < first.value < drawn.value and 0 < begun.value < drawn.value
    assert found["stop_in_line_p95"].n >= 1  # two of three press there, and one of these is not the first in line
    assert (found["memory_end"].value, found["memory_end"].ratio) == (120, 1.2)
    assert found["growth"].value == 10_000 / 4


RUNS = [
    Kept("a", "ok", 1.0, 2.0),
    Kept("b", "cancelled", 2.0, 2.5),
    Kept("c", "cancelled", None, 1.5),
    Kept("d", "ok", 2.6, 3.0),
    Kept("e", "ok", 3.0, 4.0),
]
SEEN = [
    Asked("a", pressed=0.5, seen=0.75, drawn=2.25),
    Asked("b", pressed=0.5, seen=1.0, drawn=3.0, stopped=2.25),
    Asked("c", pressed=0.5, seen=1.0, drawn=2.0, stopped=1.25),
    Asked("d", pressed=0.5, seen=1.0, drawn=3.5),
    Asked("e", pressed=0.5, seen=1.5, drawn=5.0, stopped=4.5),
]


def test_order_and_what_is_stored() -> None:
    found = by_name(list(promises(SEEN, RUNS)))
    assert (found["out_of_order"].value, found["stored"].value, found["rows"].value) == (0, 5, 5)
    assert all(figure.to_row()["met"] for figure in found.values())

    overtaken = [*RUNS[:3], Kept("d", "ok", 3.5, 4.5), RUNS[4]]
    assert by_name(list(promises(SEEN, overtaken)))["out_of_order"].to_row()["met"] is False

    found = by_name(list(promises(SEEN, [*RUNS[:4], Kept("e", "running", 3.0, 4.0), Kept("f", "ok", 4.0, 5.0)])))
    assert (found["stored"].value, found["rows"].value) == (4, 6)
    assert not any(found[name].to_row()["met"] for name in ("stored", "rows"))


def test_times_are_those_of_runs_that_nobody_stopped() -> None:
    found = by_name(list(times(SEEN, RUNS, 5)))
    assert {name: figure.value for name, figure in found.items()} == {
        "first_sign_p50": 0.5,
        "first_sign_p95": 1.0,
        "in_line_p50": 2.1,
        "in_line_p95": 2.5,
        "result_p50": 3.0,
        "result_p95": 4.5,
    }
    assert found["in_line_p50"].n == 3


def test_stop_frees_a_place_or_lets_the_next_one_begin() -> None:
    found = by_name(list(stops(SEEN, RUNS)))
    assert found["stop_in_line_p95"].value == 0.25  # c: pressed at 1.25, gone at 1.5
    assert found["stop_at_work_p95"].value == pytest.approx(0.35)  # b: pressed at 2.25, d began at 2.6
    assert found["stop_at_work_p95"].note.startswith("1 more presses")  # e was done
    found = by_name(list(stops(SEEN[:1], RUNS)))
    assert found["stop_in_line_p95"].note == "skipped: no run was stopped in line"


def test_growth() -> None:
    found = by_name(list(growth([Memory(30, 100_000_000), Memory(210, 104_000_000), Memory(1000, 106_000_000)])))
    assert (found["memory_middle"].ratio, found["memory_end"].ratio) == (1.04, 1.06)
    assert [found[name].to_row()["met"] for name in ("memory_middle", "memory_end")] == [True, False]
    assert found["growth"].value == pytest.approx(2_000 / 790)
    more = [Memory(30, 100_000_000), Memory(210, 104_000_000), Memory(700, 105_000_000), Memory(1000, 105_300_000)]
    found = by_name(list(growth(more)))
    assert found["memory_late"].ratio == 1.05 and found["growth"].value == 1, "over the last part alone"
    [none] = growth([])
    assert none.value is None and none.note.startswith("skipped")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"people": "0"}, "between 1 and 32"),
        ({"people": "10", "runs": "29"}, "10 people ask three times at least"),
        ({"stops": "1.5"}, "between 0 and 1"),
        ({"method": "guess"}, "method='guess' is none of "),
        ({"labels": "3"}, "no option 'labels'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_options_out_of_their_limits(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bench(plan(**options))


def test_waves() -> None:
    assert Crowd.parse({"people": "4", "runs": "14"}).waves() == [4, 4, 4, 2]
    assert Crowd.parse({"people": "4", "runs": "12", "stops": "0"}).waves() == [4, 4, 4]
