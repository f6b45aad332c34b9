"""What the views say in words: refused lines, prompts that were not kept, numbers."""

from __future__ import annotations

from ui.views.markup import number, plain, seconds
from ui.views.preview import Refusal, preview, problems
from ui.views.prompts import prompt_list


def test_prompts_that_were_not_kept_are_told_from_none() -> None:
    assert "No model calls" in prompt_list(())
    assert "30 calls came with a result file" in prompt_list((), made=30)


def test_refusals_say_whether_anything_is_left() -> None:
    assert "the others are kept" in problems([Refusal("line 1", "is broken")])
    assert "the others" not in problems([Refusal("line 1", "is broken")], others=False)
    assert "the others" not in preview((), [Refusal("line 1", "is broken")])


def test_numbers_have_one_look() -> None:
    assert number(0.5) == "0.500"
    assert number(-0.25) == "−0.250"
    assert number(1e-7) == "1.0e−07"
    assert number(float("nan")) == number(None) == "–"
    assert seconds(0.123) == "0.12 s"
    assert seconds(185) == "3 min 05 s"
    assert plain("<b>a & b</b>") == "‹b›a ＆ b‹/b›"
