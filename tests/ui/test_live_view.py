"""A run in line and at work as people see it, and the model picker's buttons beside what is loaded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mdqa.records import Cost
from tests.ui.helpers import SCRIPTED, open_scripted
from tests.ui.test_load import until
from ui.layout import build_ui
from ui.views.live import KEPT, Snapshot, live_panel
from ui.views.models import ModelStatus, can_be_freed, can_be_loaded


def test_who_waits_sees_the_place_and_that_the_run_is_kept() -> None:
    waiting = live_panel([Snapshot("a", "Direct", "running", 3.9, place=2), Snapshot("b", "CAFE", "running", 3.9, 3)])
    assert "Waiting, number 2 in line" in waiting and "Waiting, number 3 in line" in waiting
    assert 'data-place="2"' in waiting
    assert waiting.count(">3 s<") == 2 and "3.9" not in waiting
    assert waiting.count(KEPT) == 1
    assert "no model call yet" not in waiting


def test_the_panel_stays_as_it_is_within_a_second() -> None:
    """Every change is sent to everybody who watches."""
    for place in (0, 4):
        early, late, next_ = (Snapshot("a", "Direct", "running", t, place) for t in (61.01, 61.99, 62.0))
        assert live_panel([early]) == live_panel([late]) != live_panel([next_])
        assert "1 min 01 s" in live_panel([early])


def test_who_is_served_sees_the_exact_time_at_the_end() -> None:
    working = live_panel([Snapshot("a", "Direct", "running", 0.27)])
    assert ">0 s<" in working and "no model call yet" in working and 'data-place="0"' in working
    assert KEPT not in working
    done = live_panel([Snapshot("a", "Direct", "ok", 0.27, cost=Cost(llm_calls=1))])
    assert ">0.27 s<" in done and "data-place" not in done


@pytest.mark.parametrize(
    ("status", "load_this", "load_other", "free"),
    [
        (ModelStatus("none", ""), True, True, False),
        (ModelStatus("loading", "this"), False, True, False),
        (ModelStatus("ready", "this"), False, True, True),
        (ModelStatus("failed", "this", "no memory"), True, True, False),
    ],
    ids=lambda value: value.phase if isinstance(value, ModelStatus) else "",
)
def test_buttons_that_would_change_nothing_are_off(
    status: ModelStatus, load_this: bool, load_other: bool, free: bool
) -> None:
    assert (can_be_loaded(status, "this"), can_be_loaded(status, "other")) == (load_this, load_other)
    assert can_be_freed(status) is free


def test_a_model_is_loaded_and_freed_from_the_page(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        page = build_ui(context)
        ids = {getattr(block, "elem_id", None): number for number, block in page.blocks.items()}

        def press(button: str) -> list[Any]:
            [listener] = [fn for fn in page.fns.values() if (ids[button], "click") in fn.targets]
            found: list[Any] = listener.fn(*(getattr(box, "value", None) for box in listener.inputs))  # type: ignore[misc]
            return found

        said, _, load, _ = press("mdqa-load")
        assert SCRIPTED in said and load.interactive is False
        until(lambda: context.engine.loaded() == SCRIPTED)
        *_, free = press("mdqa-unload")
        assert free.interactive is False
        until(lambda: context.engine.model_status.phase == "none")
