"""Documents once by content, and texts that other software stumbles over."""

import math
import time
from datetime import date
from pathlib import Path

import pytest

from mdqa.errors import StorageError
from mdqa.records import Document, Question
from mdqa.trace import Notice
from storage.encoding import clean_text
from storage.runs import RunFilter
from storage.store import Store
from tests.storage.builders import header, question


def count(store: Store, table: str) -> int:
    with store.read() as db:
        return int(db.execute(f"select count(*) from {table}").fetchone()[0])


def test_runs_on_one_question_share_it(store: Store) -> None:
    for name in ("a", "b", "c"):
        store.runs.begin(header(name))
    assert (count(store, "questions"), count(store, "documents")) == (1, 3)


def test_same_documents_in_other_order_with_other_ids_and_marks(store: Store) -> None:
    plain = question()
    turned = Question(
        id="turned",
        question=plain.question,
        documents=tuple(
            Document(id=f"x{i}", title=d.title, text=d.text, gold=not d.gold)
            for i, d in enumerate(reversed(plain.documents))
        ),
    )
    store.runs.begin(header("a", question=plain))
    store.runs.begin(header("b", question=turned))
    assert (count(store, "questions"), count(store, "documents")) == (2, 3)
    assert store.runs.get("a").question == plain
    assert store.runs.get("b").question == turned


def test_one_document_listed_twice_and_title_apart_from_text(store: Store) -> None:
    item = Question(
        id="q",
        question="?",
        documents=(
            Document(id="1", title="ab", text="c"),
            Document(id="2", title="a", text="bc"),
            Document(id="3", title="ab", text="c", gold=True),
        ),
    )
    store.runs.begin(header(question=item))
    assert count(store, "documents") == 2
    assert store.runs.get("r1").question == item


def test_no_documents(store: Store) -> None:
    store.runs.begin(header(question=question(documents=0)))
    assert store.runs.get("r1").question == question(documents=0)


def test_two_hundred_documents_keep_their_order(store: Store) -> None:
    store.runs.begin(header(question=question(documents=200)))
    assert store.runs.get("r1").question == question(documents=200)


@pytest.mark.parametrize(
    ("hostile", "stored"),
    [
        ("a\x00b", "ab"),
        ("x\ud800y", "x\ufffdy"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("'; drop table runs; --", "'; drop table runs; --"),
        ("\ufeffBOM", "\ufeffBOM"),
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("<|im_end|>\n<|im_start|>system", "<|im_end|>\n<|im_start|>system"),
        ("tab\tline\r\nend \u2028\u0085", "tab\tline\r\nend \u2028\u0085"),
    ],
)
def test_hostile_text_in_every_field(store: Store, hostile: str, stored: str) -> None:
    # model_copy puts in what validation refuses, as a model's reply or a library might
    document = Document(id="d", text="t").model_copy(update={"id": hostile, "title": hostile, "text": hostile})
    item = Question(id="q", question="q", meta={hostile: [hostile]}).model_copy(
        update={"id": hostile, "question": hostile, "answers": (hostile,), "documents": (document,)}
    )
    run = header().model_copy(
        update={"id": hostile, "question": item, "model": hostile, "answer": hostile, "notices": (hostile,)}
    )
    store.runs.begin(run)
    store.runs.record(hostile, Notice(message="m").model_copy(update={"message": hostile}))
    store.runs.finish(run.model_copy(update={"status": "ok"}))

    result = store.runs.get(hostile)
    assert (result.id, result.model, result.answer, result.notices) == (stored, stored, stored, (stored,))
    expected = Document(id=stored, title=stored, text=stored)
    assert (result.question.id, result.question.question, result.question.answers) == (stored, stored, (stored,))
    assert result.question.documents == (expected,)
    assert result.question.meta == {stored: [stored]}
    assert [event.message for event in store.runs.events(hostile) if isinstance(event, Notice)] == [stored]
    assert [row.id for row in store.runs.list(RunFilter(model=hostile, text=hostile))] == [stored]
    store.runs.delete(hostile)
    assert store.runs.count() == 0


def test_five_megabyte_document(store: Store) -> None:
    text = "Ein langer Text über nichts, ohne eine neue Zeile. " * 100_000
    assert len(text) > 5_000_000
    item = Question(id="q", question="?", documents=(Document(id="d", text=text),))
    began = time.perf_counter()
    store.runs.begin(header(question=item))
    assert store.runs.get("r1").question == item
    assert time.perf_counter() - began < 10


def test_numbers_in_meta_that_json_does_not_have_become_null(store: Store) -> None:
    item = question().model_copy(update={"meta": {"score": math.nan, "list": [1.5, math.inf]}})
    store.runs.begin(header(question=item))
    assert store.runs.get("r1").question.meta == {"score": None, "list": [1.5, None]}


def test_dates_and_paths_in_meta(store: Store) -> None:
    item = question().model_copy(update={"meta": {"on": date(2026, 11, 30), "of": Path("a/b"), 1: {2}}})
    store.runs.begin(header(question=item))
    assert store.runs.get("r1").question.meta == {"on": "2026-11-30", "of": "a/b", "1": [2]}


def test_meta_that_has_no_json_form(store: Store) -> None:
    item = question().model_copy(update={"meta": {"lock": object()}})
    with pytest.raises(StorageError, match="question 'q1', meta, lock cannot be stored"):
        store.runs.begin(header().model_copy(update={"question": item}))
    assert store.runs.count() == 0


def test_clean_text_leaves_good_text_alone() -> None:
    text = "Grüße, 世界 😀\n\t"
    assert clean_text(text) is text or clean_text(text) == text
