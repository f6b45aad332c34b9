"""The tour's steps, who is offered it, and the scripts of the page. What the steps point at: tests/browser."""

from __future__ import annotations

import re
from importlib.resources import files

from ui.layout import script
from ui.views.header import header
from ui.views.tour import STEPS, tour


def test_the_tour_has_three_steps_of_which_the_first_is_open() -> None:
    html = tour()
    assert len(STEPS) == 3
    assert re.findall(r'data-step="(\d)"', html) == ["1", "2", "3"]
    assert len(re.findall(r"<div [^>]*data-step[^>]*hidden", html)) == 2
    assert re.match(r'<aside [^>]*id="mdqa-tour"[^>]*hidden', html)
    assert all(f'data-tour="{name}"' in html for name in ("back", "next", "close"))


def test_who_may_ask_is_offered_the_tour() -> None:
    assert "mdqa-tour-open" in header()
    assert "mdqa-tour-open" in header("password", "Ann", "analyst")
    assert "mdqa-tour-open" not in header("password", "Ann", "annotator")
    assert "mdqa-tour-open" not in header("password")
    assert "mdqa-tour-open" not in header("password", "Ann", "", "You are not known here.")


def test_every_script_is_a_function_that_is_called_once() -> None:
    parts = sorted(path.name for path in (files("ui") / "scripts").iterdir())
    whole = script()
    assert parts and whole.startswith("() => {") and whole.endswith("}")
    assert whole.count("\n})();") == len(parts)
    for name in parts:
        source = (files("ui") / "scripts" / name).read_text(encoding="utf-8").strip()
        assert source.startswith("() => {") and source.endswith("}") and source in whole
