"""Export: lossless lines, a table no spreadsheet runs, a snapshot that opens."""

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from mdqa.errors import ConfigError, StorageError
from mdqa.records import Question, RunResult
from storage.export import CSV_COLUMNS, cell, export
from storage.runs import RunFilter
from storage.store import Store
from tests.storage.builders import attention_map, complete, header, question


@pytest.fixture
def filled(store: Store) -> Store:
    store.runs.begin(header("r1"))
    store.runs.finish(complete("r1"), [attention_map()], correct=True)
    hostile = complete(
        "r2", method="cafe", answer='=HYPERLINK("http://x")', question=question(text='@SUM(1)\r\n,"x"'), config={}
    )
    store.runs.begin(hostile)
    store.runs.finish(hostile)
    store.runs.begin(header("r3", created="2026-12-01T00:00:00+00:00"))
    return store


def test_json_lines_hold_everything(filled: Store, tmp_path: Path) -> None:
    output = tmp_path / "sub" / "runs.jsonl"
    assert export(filled, output) == 3
    lines = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert [line["run"] for line in lines] == ["r1", "r2", "r3"]
    for line in lines:
        fields = {name: line.pop(name) for name in ("answers", "documents", "meta")}
        item = Question.model_validate({"id": line.pop("id"), "question": line.pop("question"), **fields})
        correct, labels = line.pop("correct"), line.pop("annotations")
        result = RunResult.model_validate({"id": line.pop("run"), **line, "question": item})
        assert result == filled.runs.get(result.id)
        assert correct == (True if result.id == "r1" else None)
        assert labels == []


def test_table(filled: Store, tmp_path: Path) -> None:
    output = tmp_path / "runs.csv"
    assert export(filled, output, format="csv") == 3
    with output.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == CSV_COLUMNS
    assert [row["correct"] for row in rows] == ["1", "", ""]
    assert rows[0]["answer"] == "Marie Curie"
    assert json.loads(rows[0]["kept"]) == ["d1", "d0"]
    assert rows[0]["prompt_tokens"] == "200"
    assert rows[1]["answer"] == '\'=HYPERLINK("http://x")'
    assert rows[1]["question"] == '\'@SUM(1)\r\n,"x"'
    assert rows[2]["status"] == "running"
    assert all(line.startswith('"') for line in output.read_text(encoding="utf-8").split("\r\n")[:2])


@pytest.mark.parametrize(
    "risky",
    ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\rplain", "  =1", "\u00a0=1", "＝1", "＋1", "－1", "＠x", " ＝1"],
)
def test_formulas_are_disarmed(risky: str) -> None:
    assert cell(risky) == f"'{risky}"


@pytest.mark.parametrize("plain", ["", "Marie Curie", "a=b", "1-2", "x@y", "'=1", "ends with tab\t"])
def test_plain_cells_stay(plain: str) -> None:
    assert cell(plain) == plain


def test_empty_export(store: Store, tmp_path: Path) -> None:
    assert export(store, tmp_path / "a.csv", format="csv") == 0
    assert (tmp_path / "a.csv").read_text().startswith('"run","id","created"')
    assert export(store, tmp_path / "a.jsonl") == 0
    assert (tmp_path / "a.jsonl").read_text() == ""


def test_filter_and_stream(filled: Store) -> None:
    stream = io.StringIO()
    assert export(filled, stream, filters=RunFilter(method="cafe")) == 1
    assert json.loads(stream.getvalue())["run"] == "r2"


def test_snapshot_opens_as_a_store(filled: Store, tmp_path: Path) -> None:
    output = tmp_path / "copy.db"
    assert export(filled, output, format="sqlite") == 3
    assert [path.name for path in tmp_path.glob("*copy*")] == ["copy.db"]
    filled.runs.delete("r1")
    with Store.open(output) as copy:
        assert copy.runs.get("r1") == complete("r1")
        assert len(copy.runs.maps("r1")) == 1


def test_snapshot_during_a_write(filled: Store, tmp_path: Path) -> None:
    with filled.write() as db:
        db.execute("delete from runs where id = 'r1'")
        assert export(filled, tmp_path / "copy.db", format="sqlite") == 3  # what was committed
    assert export(filled, tmp_path / "copy.db", format="sqlite") == 2


def test_wrong_arguments(filled: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing called 'cats' to export; there is: runs, annotations"):
        export(filled, tmp_path / "x", what="cats")
    with pytest.raises(ConfigError, match="unknown export format 'xml'; there is: jsonl, csv, sqlite"):
        export(filled, tmp_path / "x", format="xml")
    with pytest.raises(ConfigError, match="needs a file"):
        export(filled, io.StringIO(), format="sqlite")
    with pytest.raises(ConfigError, match="a sqlite snapshot holds everything, annotations too"):
        export(filled, tmp_path / "x", what="annotations", format="sqlite")
    with pytest.raises(ConfigError, match="takes no filter"):
        export(filled, tmp_path / "x", format="sqlite", filters=RunFilter(method="cafe"))
    with pytest.raises(ConfigError, match="is the database itself"):
        export(filled, filled.path)
    with pytest.raises(ConfigError, match="is a folder"):
        export(filled, tmp_path)
    assert filled.runs.count() == 3


def test_output_that_cannot_be_written(filled: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be written"):
        export(filled, tmp_path / "file" / "runs.jsonl")


def test_a_failed_export_leaves_the_old_file(filled: Store, tmp_path: Path) -> None:
    output = tmp_path / "runs.jsonl"
    output.write_text("old")
    with filled.write() as db:
        db.execute("update runs set record = '{}' where id = 'r2'")
    with pytest.raises(StorageError, match="run 'r2' cannot be read by this version"):
        export(filled, output)
    assert output.read_text() == "old"
    assert not list(tmp_path.glob(".*"))


def test_snapshot_is_one_file_without_a_log(filled: Store, tmp_path: Path) -> None:
    export(filled, tmp_path / "copy.db", format="sqlite")
    connection = sqlite3.connect(tmp_path / "copy.db")
    assert connection.execute("pragma journal_mode").fetchone()[0] == "delete"
    assert connection.execute("pragma integrity_check").fetchone()[0] == "ok"
    connection.close()
