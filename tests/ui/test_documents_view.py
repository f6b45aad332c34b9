"""Document cards: pages of them, places at every stage, marks in the text, bars of scores."""

from __future__ import annotations

import re

from mdqa.records import Document, DocumentScore, Stage
from tests.ui.hostile import EVIL, assert_harmless, hostile_map, hostile_run, parsed
from tests.ui.staged import many, small_run
from ui.views.documents import (
    CARDS,
    MAX_TEXT,
    card_page,
    document_cards,
    marked_text,
    place_change,
    score_bar,
    token_heat,
)


def test_cards_come_page_by_page() -> None:
    run = many(200)
    first, last = document_cards(run, {}), document_cards(run, {}, first=180)
    assert first.count('<details class="mdqa-card') == CARDS == 30
    assert last.count('<details class="mdqa-card') == 20
    assert 'id="mdqa-document-200"' in first and 'title="place 200 in the final order">200<' in last
    assert document_cards(run, {}, first=999).count('<details class="mdqa-card') == 1
    assert [card_page(run, number) for number in (200, 196, 1, 195, 0, None, "1")] == [0, 0, 0, 180, 0, 0, 0]


def test_a_card_says_the_place_at_every_stage_and_how_it_moved() -> None:
    html = document_cards(many(20), {})
    words = parsed(html).text
    assert "given as 20Ranking 20 → 1 ▲4" in words  # the last one of five becomes the first of them
    assert "given as 18Ranking 18 → 3" in words and "18 → 3 ▲" not in words
    assert "given as 16Ranking 16 → 5 ▼4" in words
    assert "given as 3Ranking 3 → ×" in words
    assert "passed on as number 1 of 5; among those passed on it moved up by 4" in html
    moves = [place_change(many(20).stages[0], f"d{i}") for i in (16, 17, 18, 19, 20)]
    assert moves == [-4, -2, 0, 2, 4]


def test_key_sentences_are_marked_once_and_overlaps_do_not_break_the_text() -> None:
    document = Document(id="d", text="One two three. Four five.")
    html = marked_text(document, ("One two three.", "two three.", "absent"))
    assert html.count("<mark") == 1
    assert parsed(html).text == document.text


def test_key_sentences_behind_the_cut_are_shown() -> None:
    document = Document(id="d", text="Begin. " + "x" * MAX_TEXT + " The end holds it. More.")
    html = marked_text(document, ("Begin.", "The end holds it.", "absent"))
    assert html.count("<mark") == 2 and parsed(html).text.endswith("The end holds it. … 14 more characters")


def test_token_heat_keeps_the_text() -> None:
    run = hostile_run()
    for html in token_heat(hostile_map(run), (0, 1)).values():
        assert assert_harmless(html).text == EVIL


def test_a_longer_bar_is_a_better_score() -> None:
    def width(values: list[float], value: float) -> float:
        found = re.search(
            r"left:([\d.]+)%;width:([\d.]+)%", score_bar(value, {str(v): DocumentScore(value=v) for v in values})
        )
        assert found is not None
        return float(found[2])

    assert width([0.2, 0.8], 0.8) == 100 and width([0.2, 0.8], 0.2) == 25
    assert width([-3.0, -2.0, -1.0], -1.0) == 100 and width([-3.0, -2.0, -1.0], -2.0) == 50  # log-likelihoods
    assert width([-1.0, 1.0], -1.0) == 50  # from zero to the left


def test_bars_stand_under_their_stage_and_counts_have_no_decimals() -> None:
    run = small_run()
    cited = Stage(
        name="agent", title="Agent reads", documents=("d1", "d2"), kept=("d2",),
        scores={"cited": {"d1": DocumentScore(value=0.0), "d2": DocumentScore(value=1.0)}},
    )  # fmt: skip
    text = assert_harmless(document_cards(run.model_copy(update={"stages": (*run.stages, cited)}), {})).text
    assert "Ranking" in text and "Agent readscited11 of 2" in text and "0.9001 of 4" in text
