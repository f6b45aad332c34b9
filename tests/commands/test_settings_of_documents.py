"""``answer`` with the evidence in another place, fewer documents, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.__main__ import main


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    rows = [
        {
            "id": f"q{i}",
            "question": "Which river flows through Vienna?",
            "answers": ["Danube"],
            "documents": [{"id": f"d{n}", "text": f"Text {n}.", "gold": n == 0} for n in range(3 + i)],
        }
        for i in range(2)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def answer(questions: Path, *more: str, method: str = "direct") -> tuple[int, dict[str, list[str]]]:
    """The exit status, and the documents of every question that was answered."""
    output = questions.parent / "out.jsonl"
    fixed = ["answer", "--method", method, "--model", "scripted", "--quiet"]
    status = main([*fixed, "--input", str(questions), "--output", str(output), *more])
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    return status, {row["id"]: row["stages"][0]["documents"] for row in map(json.loads, lines)}


def test_position_and_number(questions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found = answer(questions, "--position", "2", "--documents", "4")
    assert (status, found) == (0, {"q1@p2-n4": ["d1", "d0", "d2", "d3"]})
    said = capsys.readouterr().err
    assert "question 'q0': has 3 documents, too few for 4" in said
    assert "1 of 2 questions cannot be placed and are left out" in said


def test_without_documents_the_model_is_asked_all_the_same(questions: Path) -> None:
    assert answer(questions, "--setting", "closed_book") == (0, {"q0@closed_book": [], "q1@closed_book": []})


@pytest.mark.parametrize(
    ("more", "method", "message"),
    [
        (("--setting", "closed_book"), "retrieve_read", "the method retrieve_read cannot answer without documents"),
        (("--setting", "oracle", "--position", "1"), "direct", "leaves nothing to place"),
        (("--position", "9"), "direct", "no question can be placed (p9): question 'q0': position 9 is behind the last"),
    ],
)
def test_what_cannot_be(
    questions: Path, more: tuple[str, ...], method: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert answer(questions, *more, method=method) == (2, {})
    assert message in capsys.readouterr().err
