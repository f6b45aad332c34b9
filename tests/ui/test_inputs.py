"""What people type, paste and load: limits, hostile bytes, refusals that name the place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mdqa.benchmarks.names import benchmark_of
from mdqa.errors import InputError
from mdqa.settings import Settings
from tests.ui.helpers import question
from ui.inputs import (
    FOUND,
    Draft,
    LoadedFile,
    clean,
    file_draft,
    finished_item,
    gold_choices,
    limited,
    load_file,
    marked,
    paste_draft,
    search_questions,
)

SETTINGS = Settings(max_documents=5, max_characters=1_000)


def line(**changes: object) -> str:
    base = {"id": "a", "question": "Who?", "answers": ["x"], "documents": [{"id": "d", "title": "T", "text": "words"}]}
    return json.dumps(base | changes)


def test_nul_surrogates_and_line_ends_are_cleaned() -> None:
    assert clean("a\x00b\r\nc\rd\ud800") == "ab\nc\nd?"
    assert clean(None) == ""


def test_pasted_text_is_split() -> None:
    draft = paste_draft("### One\nfirst\n\n### Two\nsecond", SETTINGS)
    assert [(d.title, d.text) for d in draft.item.documents] == [("One", "first"), ("Two", "second")]
    assert paste_draft("first\n\nsecond", SETTINGS).item.documents[1].text == "second"
    assert paste_draft("   \n ", SETTINGS) == Draft()


def test_what_is_beyond_the_limits_is_refused_by_name() -> None:
    draft = paste_draft("\n\n".join(f"text {i}" for i in range(7)), SETTINGS)
    assert len(draft.item.documents) == 5
    assert [refusal.place for refusal in draft.refused] == ["Document 6", "Document 7"]
    huge = paste_draft("x" * 5_000_000, SETTINGS)
    assert not huge.item.documents
    assert "5,000,000" in huge.refused[0].reason and "1,000" in huge.refused[0].reason


def test_documents_together_may_not_be_too_long() -> None:
    small = replace(SETTINGS, max_characters=150)
    draft = limited(question(4), small)
    assert 0 < len(draft.item.documents) < 4
    assert all("150" in refusal.reason for refusal in draft.refused)


def test_files_keep_their_good_lines(tmp_path: Path) -> None:
    file = tmp_path / "<img src=x>.jsonl"
    file.write_text(
        "\n".join(["\ufeff" + line(), "{broken", line(id="b", documents=[]), line(id="c")]), encoding="utf-8"
    )
    loaded = load_file(str(file), SETTINGS)
    assert [item.id for item in loaded.questions] == ["a", "c"]
    assert len(loaded.refused) == 2
    assert all(str(tmp_path) not in refusal.place for refusal in loaded.refused)
    assert "line 2" in loaded.refused[0].place
    assert search_questions(loaded).choices == (("1. Who?", 0), ("2. Who?", 1))
    assert file_draft(loaded, 1, SETTINGS).item.id == "c"
    assert not file_draft(loaded, 9, SETTINGS).item.documents


def test_unreadable_files_say_why(tmp_path: Path) -> None:
    file = tmp_path / "utf16.jsonl"
    file.write_bytes(line().encode("utf-16"))
    loaded = load_file(str(file), SETTINGS)
    assert loaded.questions or loaded.refused
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert load_file(str(empty), SETTINGS).refused


def test_finished_items_take_the_boxes() -> None:
    draft = Draft(question(3))
    item = finished_item(draft, " Why\x00? ", "one\n\n two \n", ["d3", "not there"])
    assert (item.question, item.answers, item.gold_ids) == ("Why?", ("one", "two"), ("d3",))
    assert [d.gold for d in item.documents] == [False, False, True]
    assert [d.gold for d in marked(item.documents, [])] == [None, None, None]
    assert gold_choices(item.documents)[2] == ("3. Title 3", "d3")


@pytest.mark.parametrize(
    ("draft", "words", "answers", "place"),
    [
        (Draft(question(2)), "  ", "", "Question"),
        (Draft(question(2)), "x" * 5_000, "", "Question"),
        (Draft(), "Who?", "", "Documents"),
        (Draft(question(2)), "Who?", "x" * 2_000, "Answers"),
        (Draft(question(2)), "Who?", "\n".join("abcdefghij" * 8), "Answers"),
    ],
)
def test_what_is_missing_is_named(draft: Draft, words: str, answers: str, place: str) -> None:
    with pytest.raises(InputError, match=place):
        finished_item(draft, words, answers, [])


def file_of(n: int) -> LoadedFile:
    """A loaded file of n questions; every tenth one is about bridges."""
    items = [
        question(2).model_copy(
            update={"id": f"q{i}", "question": f"Who built {'the bridge' if i % 10 == 0 else 'it'}, {i}?"}
        )
        for i in range(n)
    ]
    return LoadedFile("nq.jsonl", tuple(items))


def test_a_search_finds_words_of_question_id_answer_and_titles_in_any_order() -> None:
    loaded = file_of(30)
    assert [index for _, index in search_questions(loaded, "BRIDGE built").choices] == [0, 10, 20]
    assert [index for _, index in search_questions(loaded, "q17").choices] == [17]
    assert search_questions(loaded, "title 2").total == search_questions(loaded, "2 km").total == 30
    assert [index for _, index in search_questions(loaded, "#12").choices] == [11]
    assert 11 in [index for _, index in search_questions(loaded, "12").choices]
    assert search_questions(loaded, "nothing of it").total == 0
    assert search_questions(loaded, "x" * 10_000).total == 0


def test_found_questions_come_page_by_page_and_the_chosen_one_stays() -> None:
    loaded = file_of(1234)
    first, last = search_questions(loaded), search_questions(loaded, start=1200)
    assert (len(first.choices), first.total, first.start) == (FOUND, 1234, 0)
    assert (len(last.choices), last.start, last.choices[-1][1]) == (34, 1200, 1233)
    assert search_questions(loaded, start=99_999).start == 1200 and search_questions(loaded, start=-5).start == 0
    kept = search_questions(loaded, "bridge", chosen=7)
    assert kept.choices[0] == ("8. Who built it, 7?", 7) and len(kept.choices) == FOUND + 1
    assert search_questions(loaded, chosen=3).choices == first.choices
    assert search_questions(loaded, "bridge", chosen=5_000).total == 124


def test_a_files_questions_say_which_benchmark_they_are_of(tmp_path: Path) -> None:
    file = tmp_path / "nq20.jsonl"
    file.write_text(line() + "\n" + line(id="b", meta={"dataset": "their own"}), encoding="utf-8")
    assert [benchmark_of(item) for item in load_file(str(file), SETTINGS).questions] == ["nq20", "their own"]
