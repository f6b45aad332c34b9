"""FlashRAG: questions without documents, a corpus beside them, and what is broken in either."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.base import load, load_bytes
from mdqa.benchmarks.flashrag import read_corpus
from mdqa.errors import InputError

PASSAGES = [
    {"id": "0", "contents": '"Danube"\nThe Danube flows through Vienna.'},
    {"id": 1, "contents": "Bread is baked."},
    {"id": "2", "title": "Rhine", "text": "The Rhine flows through Basel."},
]
QUESTION = {
    "id": "test_0",
    "question": "Which river flows through Vienna?",
    "golden_answers": ["Danube"],
    "metadata": {"level": "easy"},
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES), encoding="utf-8")
    return path


def test_questions_get_the_best_passages(tmp_path: Path, corpus: Path) -> None:
    loaded = load_bytes(json.dumps(QUESTION).encode(), "nq.jsonl")
    assert [str(problem) for problem in loaded.problems] == [
        "nq.jsonl, line 1, field 'documents': has no documents; a question needs at least one, its own or, with "
        "--corpus FILE, those of a corpus"
    ]
    path = tmp_path / "nq.jsonl"
    path.write_text(json.dumps(QUESTION), encoding="utf-8")
    (item,) = load(path, corpus=read_corpus(corpus, candidates=2)).questions
    assert (item.id, item.answers, item.meta["metadata"]) == ("test_0", ("Danube",), {"level": "easy"})
    assert [(d.id, d.title, d.text, d.gold) for d in item.documents] == [
        ("0", "Danube", "The Danube flows through Vienna.", None),
        ("2", "Rhine", "The Rhine flows through Basel.", None),
    ]
    assert {name: item.meta[name] for name in ("dataset", "corpus", "retriever", "candidates")} == {
        "dataset": "flashrag",
        "corpus": "corpus.jsonl",
        "retriever": "bm25",
        "candidates": 2,
    }


def test_questions_with_documents_keep_them(tmp_path: Path, corpus: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps({"question": "Who?", "documents": ["Ida."]}), encoding="utf-8")
    (item,) = load(path, corpus=read_corpus(corpus)).questions
    assert [document.text for document in item.documents] == ["Ida."]


def test_a_broken_passage_takes_no_other_along(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl.gz"
    rows = [
        '{"id": 1',
        json.dumps(PASSAGES[0]),
        '{"id": "0", "contents": "again"}',
        '{"id": 4}',
        '{"contents": ""}',
        "[]",
    ]
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    problems: list[str] = []
    found = read_corpus(path, on_problem=lambda problem: problems.append(str(problem).removeprefix(f"{path}, ")))
    assert [document.id for document in found.documents] == ["0"]
    assert [problem.split(":")[0] for problem in problems] == [
        "line 1",
        "line 3, field 'id'",
        "line 4, field 'text'",
        "line 5, field 'contents'",
        "line 6, field 'passage'",
    ]


def test_a_corpus_without_passages(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"id": 1}\n', encoding="utf-8")
    with pytest.raises(InputError, match="there is no passage in it; a line needs contents, or title and text"):
        read_corpus(path)


def test_answering_from_a_corpus(tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = tmp_path / "nq.jsonl", tmp_path / "out.jsonl"
    path.write_text(json.dumps(QUESTION), encoding="utf-8")
    with corpus.open("a", encoding="utf-8") as stream:
        stream.write("broken\n")
    fixed = ["answer", "--method", "direct", "--model", "scripted", "--quiet", "--output", str(output)]
    assert main([*fixed, "--input", str(path), "--corpus", str(corpus), "--candidates", "1"]) == 0
    assert f"{corpus}: 1 passages cannot be used and are left out" in capsys.readouterr().err
    line = json.loads(output.read_text(encoding="utf-8"))
    assert line["stages"][0]["documents"] == ["0"]
    assert "Danube" in line["answer"]
