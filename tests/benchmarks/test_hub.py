"""Data sets of the hub, read from a folder laid out like one: the same code, without the network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mdqa.__main__ import main
from mdqa.benchmarks.base import load, load_bytes, read_questions
from mdqa.errors import InputError, MissingDependency

HOTPOT = {
    "id": "h1",
    "question": "Who?",
    "answer": "Ida",
    "supporting_facts": {"title": ["T"], "sent_id": [0]},
    "context": {"title": ["T", "U"], "sentences": [["Ida did."], ["No."]]},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set with two splits in the columns of HotpotQA on the hub."""
    pytest.importorskip("datasets", reason="reading hf: inputs needs the optional package datasets")
    for split in ("train", "validation"):
        rows = [HOTPOT | {"id": f"{split}{i}"} for i in range(3)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def test_a_folder_is_read_by_its_columns(folder: Path) -> None:
    loaded = load(f"hf:{folder}")
    assert [item.id for item in loaded.questions] == ["validation0", "validation1", "validation2"]
    first = loaded.questions[0]
    assert (first.gold_ids, first.documents[0].text, first.meta["dataset"]) == (("d1",), "Ida did.", "hotpotqa")
    assert [item.id for item in read_questions(f"hf:{folder}:train", limit=1)] == ["train0"]
    assert load(f"hf:{folder}:default:train", limit=1).questions[0].id == "train0"


def test_what_is_not_there_is_said(folder: Path) -> None:
    (problem,) = load(f"hf:{folder}:nope").problems
    assert "has no split 'nope'; there is: train, validation" in problem.message
    (problem,) = load(f"hf:{folder}:nope:train").problems
    assert "has the configs default; name one" in problem.message
    with pytest.raises(InputError, match="cannot be read as a Hugging Face data set"):
        next(read_questions(f"hf:{folder / 'nowhere'}"))


def test_a_row_that_cannot_be_used_has_its_place(folder: Path) -> None:
    path = folder / "validation.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"Who?"', '""', 1), encoding="utf-8")
    loaded = load(f"hf:{folder}")
    assert [problem.place for problem in loaded.errors] == [
        f"hf:{folder}, config default, split validation, row 1, field 'question'"
    ]
    assert len(loaded.questions) == 2


@pytest.mark.parametrize("name", ["hf:", "hf:a/b:c:d:e", "hf:a/b:"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(InputError, match=r"write it as hf:owner/name"):
        next(read_questions(name))


def test_without_the_package_the_install_line_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    if "datasets" in sys.modules or _installed("datasets"):
        pytest.skip("the optional package datasets is installed")
    with pytest.raises(MissingDependency, match="pip install datasets"):
        next(read_questions("hf:owner/name"))
    arguments = ["answer", "--method", "direct", "--model", "scripted", "--input", "hf:owner/name", "--output", "-"]
    assert main(arguments) == 2
    assert "pip install datasets" in capsys.readouterr().err


def test_an_upload_called_like_a_data_set_is_a_file() -> None:
    loaded = load_bytes(json.dumps(HOTPOT).encode(), "hf:owner/name")
    assert [item.id for item in loaded.questions] == ["h1"]


def _installed(name: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 (only this test asks)

    return find_spec(name) is not None
