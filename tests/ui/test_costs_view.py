"""Costs in words, and what memory took off them."""

from __future__ import annotations

from mdqa.records import Cost
from tests.reports.builders import question, run
from ui.inputs import page_within
from ui.views.charts import wrapped
from ui.views.compare import Side, side_by_side
from ui.views.costs import amount, from_memory, times
from ui.views.summary import cost_line

PLAIN = Cost(llm_calls=1, prompt_tokens=1000, prefill_tokens_computed=1000, completion_tokens=5, seconds=2.0)
OWN = Cost(llm_calls=4, prompt_tokens=2500, prefill_tokens_computed=1500, seconds=75.0)
SHORT = OWN.model_copy(update={"prefill_tokens_computed": 20, "seconds": 0.1, "remembered_calls": 3})


def test_amounts_and_ratios() -> None:
    assert (amount(OWN, "prompt_tokens"), amount(OWN, "seconds")) == ("2,500", "1 min 15 s")
    assert [times(OWN, PLAIN, name) for name in ("llm_calls", "seconds", "prompt_tokens")] == ["4.0×", "38×", "2.5×"]
    assert times(OWN, PLAIN, "completion_tokens") == "0.0×" and times(PLAIN, OWN, "completion_tokens") == ""


def test_no_ratio_of_time_or_computed_tokens_where_memory_shortened_one_of_both() -> None:
    for one, other in ((SHORT, PLAIN), (PLAIN, SHORT)):
        assert times(one, other, "seconds") == times(one, other, "prefill_tokens_computed") == ""
        assert times(one, other, "prompt_tokens")
    assert from_memory(OWN) == ""
    assert from_memory(SHORT).startswith("3 of 4 model calls used what the program remembered")


def test_the_pages_say_what_memory_took_off() -> None:
    assert "remembered" not in cost_line(OWN, PLAIN, "d") and "direct: 2.00 s · 38×" in cost_line(OWN, PLAIN, "d")
    shortened = cost_line(SHORT, PLAIN, "d")
    assert "3 of 4 model calls used" in shortened and "direct: 2.00 s<" in shortened and "2.5×" in shortened
    columns = [
        Side(run(question("q"), "cafe", cost=cost), "CAFE", f"CAFE ({n})", True, "", ("d", PLAIN))
        for n, cost in enumerate((OWN, SHORT), 1)
    ]
    html = side_by_side(columns)
    assert html.count("38×") == 1 and html.count("3 of 4 model calls used") == 1


def test_pages_that_are_not_there_are_the_nearest_ones() -> None:
    assert [page_within(page, 51, 25) for page in (-1, 0, 1, 2, 3, 10**9)] == [0, 0, 1, 2, 2, 2]
    assert page_within(3, 0, 25) == page_within(1, 25, 25) == 0


def test_long_names_are_broken_between_words() -> None:
    assert wrapped("Listwise ranking by a large model", 12) == "Listwise<br>ranking by a<br>large model"
    assert wrapped("") == "" and wrapped("Incomprehensibilities", 5) == "Incomprehensibilities"
