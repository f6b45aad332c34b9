"""The load of many annotators, in small: through the real server, which is killed half-way."""

from __future__ import annotations

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.commands.database import opened
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.performance.annotating import Load, bench
from mdqa.performance.measuring import NoMemory
from mdqa.performance.plan import Plan


def plan(**options: object) -> Plan:
    return Plan(Tools(ScriptedBackend()), (), NoMemory("not measured"), options=options, open_store=opened)


def test_a_killed_server_loses_no_acknowledged_label() -> None:
    found = {f.name: f for f in bench(plan(annotators=6, labels=60, think=0.1, kill="yes"))}
    assert set(found) == {f"annotate.killed.{what}" for what in ("save_p95", "safe", "entries", "items_of_a_person")}
    for name, figure in found.items():
        if not name.endswith("save_p95"):  # how fast it is depends on what else this machine does
            assert (figure.value, figure.baseline, figure.ratio) == (60, 60, 1), figure
    assert found["annotate.killed.save_p95"].n == 60
    assert "sent again" in found["annotate.killed.save_p95"].note


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"annotators": "0"}, "between 1 and 200"),
        ({"labels": "many"}, "no whole number"),
        ({"think": "-1"}, "between 0 and 60"),
        ({"kill": "maybe"}, "no, yes or both"),
        ({"people": "3"}, "no option 'people'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_options_out_of_their_limits(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        bench(plan(**options))


def test_options() -> None:
    load = Load.parse({"annotators": "3", "labels": "10", "think": "0.5", "kill": "no"})
    assert (load.annotators, load.labels, load.think, load.kill) == (3, 10, 0.5, "no")
    assert (load.overlap, load.items) == (3, 4)
