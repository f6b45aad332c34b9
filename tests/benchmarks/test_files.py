"""Containers and broken files: each gets a message with its place, and what is good is kept."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest

from mdqa.benchmarks.base import SPLITS, Loaded, in_split, load, load_bytes, read_questions
from mdqa.benchmarks.streams import MAX_RECORD
from mdqa.errors import InputError
from mdqa.records import Question


def record(number: int = 1, **more: object) -> dict[str, object]:
    return {"id": f"q{number}", "question": "Who?", "documents": [{"text": f"Ida did it {number} times."}], **more}


def line(number: int = 1, **more: object) -> bytes:
    return json.dumps(record(number, **more)).encode() + b"\n"


def ids(loaded: Loaded) -> list[str]:
    return [question.id for question in loaded.questions]


def messages(loaded: Loaded) -> list[str]:
    return [str(problem) for problem in loaded.problems]


LINES = line(1) + b"\n" + line(2)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", LINES),
        ("a.jsonl.gz", gzip.compress(LINES)),
        ("a", gzip.compress(LINES)),
        ("a.txt", LINES),
        ("a.csv", LINES),
        ("a.jsonl", b"\xef\xbb\xbf" + LINES),
        ("a.jsonl", LINES.replace(b"\n", b"\r\n")),
        ("a.jsonl", LINES.rstrip(b"\n")),
        ("a.json", json.dumps([record(1), record(2)]).encode()),
        ("a.json", json.dumps([record(1), record(2)], indent=2).encode()),
        ("a.json", b"\xef\xbb\xbf \n" + json.dumps([record(1), record(2)]).encode()),
        ("a.jsonl", json.dumps([record(1), record(2)]).encode()),
    ],
)
def test_containers_are_told_by_content(name: str, data: bytes) -> None:
    loaded = load_bytes(data, name)
    assert (ids(loaded), loaded.problems) == (["q1", "q2"], ())


def test_one_object_over_several_lines() -> None:
    assert ids(load_bytes(json.dumps(record(), indent=2).encode(), "a.json")) == ["q1"]


def test_paths_and_bytes_give_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINES)
    assert load(path).questions == load_bytes(LINES, "a.jsonl").questions
    assert load(str(path), limit=1).questions == load(path).questions[:1]
    assert load(path, limit=0).questions == ()


def test_a_broken_line_is_named_and_the_others_are_kept() -> None:
    loaded = load_bytes(line(1) + b'{"id": "q2", \n' + b"nonsense\n" + b"[]\n" + line(5), "a.jsonl")
    assert ids(loaded) == ["q1", "q5"]
    assert messages(loaded)[0].startswith("a.jsonl, line 2: broken JSON at ")
    assert messages(loaded)[1].startswith("a.jsonl, line 3: broken JSON at column 1")
    assert "a.jsonl, line 4: expected a JSON object" in messages(loaded)[2]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"question": None}, "a.jsonl, line 1, field 'question': must be a text, is null"),
        ({"question": "  "}, "a.jsonl, line 1, field 'question': is empty"),
        ({"question": 3}, "a.jsonl, line 1, field 'question': must be a text, is 3"),
        ({"documents": {}}, "a.jsonl, line 1, field 'documents': must be a list, is an object"),
        ({"documents": []}, "a.jsonl, line 1, field 'documents': has no documents"),
        ({"documents": [3]}, "a.jsonl, line 1, field 'documents[0]': must be an object with a text"),
        ({"documents": ["a", " "]}, "a.jsonl, line 1, document 2, field 'text': is empty"),
        ({"documents": ["a", {"title": "t"}]}, "a.jsonl, line 1, document 2, field 'text': is missing"),
        ({"documents": [{"text": "a", "gold": "yes"}]}, "a.jsonl, line 1, document 1, field 'gold': must be true"),
        ({"documents": [{"text": "a", "id": 1.5}]}, "a.jsonl, line 1, document 1, field 'id': must be a text or"),
        ({"documents": [{"id": "x", "text": "a"}, {"id": "x", "text": "b"}]}, "document 2, field 'id': 'x' is the id"),
        ({"answers": [1]}, "a.jsonl, line 1, field 'answers[0]': must be a text, is 1"),
        ({"answers": {}}, "a.jsonl, line 1, field 'answers': must be a text or a list"),
        ({"meta": 3}, "a.jsonl, line 1, field 'meta': must be an object"),
    ],
)
def test_bad_fields_are_named(more: dict[str, object], message: str) -> None:
    loaded = load_bytes(line(1, **more) + line(2), "a.jsonl")
    assert ids(loaded) == ["q2"]
    (problem,) = loaded.errors
    assert message in str(problem)


def test_a_missing_field_is_named_with_what_there_is() -> None:
    loaded = load_bytes(b'{"question": "Who?", "context_docs": []}', "a.jsonl")
    assert messages(loaded) == [
        "a.jsonl, line 1, field 'documents': is missing; the record has the fields question, context_docs"
    ]


def test_an_id_used_twice_names_both_places() -> None:
    loaded = load_bytes(line(1) + line(2) + line(1), "a.jsonl")
    assert ids(loaded) == ["q1", "q2"]
    assert messages(loaded) == [
        "a.jsonl, line 3, field 'id': 'q1' was used before, at a.jsonl, line 1; ids must differ"
    ]


def test_repeated_documents_are_used_and_noticed() -> None:
    loaded = load_bytes(line(1, documents=["same  text", "other", "same text"]), "a.jsonl")
    assert len(loaded.questions[0].documents) == 3
    assert loaded.errors == ()
    assert messages(loaded) == ["a.jsonl, line 1, document 3: is the same as document 1"]
    assert next(iter(read_from(line(1, documents=["a", "a"]))))


def read_from(data: bytes) -> list[str]:
    return ids(load_bytes(data, "a.jsonl"))


def test_surrogates_and_nul_are_replaced_and_said() -> None:
    loaded = load_bytes(b'{"question": "Who\\ud800?", "documents": ["a\\u0000b \\ud83d\\ude00"]}', "a.jsonl")
    (question,) = loaded.questions
    assert question.question == "Who\ufffd?"
    assert question.documents[0].text == "ab \U0001f600"
    assert [problem.severity for problem in loaded.problems] == ["notice", "notice"]
    assert messages(loaded) == [
        "a.jsonl, line 1, field 'question': 1 lone surrogate replaced by U+FFFD",
        "a.jsonl, line 1, field 'documents[0]': 1 NUL character removed",
    ]
    question.model_dump_json().encode()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_refused_with_the_way_out(encoding: str) -> None:
    (message,) = messages(load_bytes(LINES.decode().encode(encoding), "a.jsonl"))
    assert message.startswith("a.jsonl, line 1, byte 0: is encoded in UTF-")
    assert "iconv" in message


def test_latin_1_is_named_by_line_and_byte_and_the_rest_is_read() -> None:
    loaded = load_bytes(line(1) + line(2).replace(b"Ida", b"Id\xe9") + line(3), "a.jsonl")
    assert ids(loaded) == ["q1", "q3"]
    (message,) = messages(loaded)
    assert message.startswith("a.jsonl, line 2: byte ")
    assert "0xe9" in message
    assert "WINDOWS-1252" in message


@pytest.mark.parametrize("indent", [None, 1])
def test_latin_1_in_an_array_is_named_by_line(indent: int | None) -> None:
    data = json.dumps([record(1), record(2)], indent=indent).encode().replace(b"2 times", b"2 tim\xe9s")
    (message,) = messages(load_bytes(data, "a.json"))
    bad = data.index(b"\xe9")
    assert message.startswith(f"a.json, line {data.count(10, 0, bad) + 1}: byte {bad} (0xe9)")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_does_not_have(constant: str) -> None:
    data = b'{"question": "Who?", "documents": ["a"], "meta": {"x": %s}}\n' % constant.encode() + line(2)
    loaded = load_bytes(data, "a.jsonl")
    assert ids(loaded) == ["q2"]
    assert len(loaded.errors) == 1


@pytest.mark.parametrize("depth", [100, 100_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    deep = b'{"question": "Who?", "documents": ["a"], "meta": {"x": ' + b"[" * depth + b"]" * depth + b"}}\n"
    loaded = load_bytes(deep + line(2), "a.jsonl")
    assert ids(loaded) == ["q2"]
    assert "nested" in messages(loaded)[0]
    assert "nested" in messages(load_bytes(b"[" + deep.strip() + b"]", "a.json"))[0]


def test_a_cut_array_keeps_what_came_before() -> None:
    whole = json.dumps([record(i) for i in range(3)], indent=1).encode()
    loaded = load_bytes(whole[:-20], "a.json")
    assert ids(loaded) == ["q0", "q1"]
    assert "the file ends inside this record" in messages(loaded)[0]
    loaded = load_bytes(whole.rstrip(b"]\n"), "a.json")
    assert ids(loaded) == ["q0", "q1", "q2"]
    assert "the file ends before the closing ']'" in messages(loaded)[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[{} {}]", "expected ','"),
        (b"[{},]", "broken JSON"),
        (b"[{}] x", "something follows"),
        (b'[{"a" 1}]', "broken"),
    ],
)
def test_broken_arrays(data: bytes, message: str) -> None:
    assert any(message in text for text in messages(load_bytes(data, "a.json")))


def test_array_records_longer_than_what_is_read_at_once() -> None:
    big = [record(i, documents=["word " * 120_000]) for i in range(3)]
    assert ids(load_bytes(json.dumps(big).encode(), "a.json")) == ["q0", "q1", "q2"]


def test_the_line_of_a_broken_object() -> None:
    (message,) = messages(load_bytes(b'{\n "question": "Who?",\n "documents" ["a"]\n}', "a.json"))
    assert message.startswith("a.json: broken JSON at line 3, column")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.jsonl", b"", "a.jsonl: the file is empty"),
        ("a.jsonl.gz", b"", "a.jsonl.gz: the file is empty"),
        ("a.jsonl.gz", gzip.compress(b"", mtime=0), "a.jsonl.gz: the file holds no questions"),
        ("a.jsonl", b" \n\n", "a.jsonl: the file holds no questions"),
        ("a.json", b"[]", "a.json: the file holds no questions"),
        ("a.jsonl.gz", LINES, "is called .gz but is not a gzip file"),
        ("a.xlsx", b"PK\x03\x04...", "an Office file"),
        ("a.parquet", b"PAR1....", "a Parquet file"),
        ("a.txt", b"hello there\n", "is neither JSON nor a CSV table"),
    ],
)
def test_files_that_are_none(name: str, data: bytes, message: str) -> None:
    loaded = load_bytes(data, name)
    assert loaded.questions == ()
    assert message in messages(loaded)[0]


def test_places_that_are_no_files(tmp_path: Path) -> None:
    assert "there is no such file" in messages(load(tmp_path / "none.jsonl"))[0]
    assert "is a folder" in messages(load(tmp_path))[0]
    assert "cannot be opened" in messages(load("a\x00b"))[0]
    with pytest.raises(InputError, match="there is no such file"):
        next(read_questions(tmp_path / "none.jsonl"))


def test_a_cut_gzip_file_keeps_its_whole_lines() -> None:
    noise = [record(i, documents=[hashlib.sha256(i.to_bytes(2)).hexdigest() * 9]) for i in range(2000)]
    packed = gzip.compress(b"".join(json.dumps(item).encode() + b"\n" for item in noise))
    loaded = load_bytes(packed[: len(packed) * 3 // 4], "a.jsonl.gz")
    assert 0 < len(loaded.questions) < 2000
    assert "the gzip file ends too early" in messages(loaded)[-1]
    assert f"after line {len(loaded.questions)}" in messages(loaded)[-1]


def test_a_damaged_gzip_file() -> None:
    packed = bytearray(gzip.compress(LINES * 50))
    packed[20:40] = bytes(20)
    assert "gzip file" in messages(load_bytes(bytes(packed), "a.jsonl.gz"))[-1]


def test_a_huge_line_is_left_out_and_the_next_is_read() -> None:
    long = line(2, documents=["word " * (MAX_RECORD // 4)])
    loaded = load_bytes(line(1) + long + line(3), "a.jsonl")
    assert ids(loaded) == ["q1", "q3"]
    assert messages(loaded) == [f"a.jsonl, line 2: the line is longer than {MAX_RECORD // 2**20} MB"]


@pytest.mark.parametrize(
    ("filler", "message"),
    [
        (b" ", "times its size"),
        (b"x", "times its size"),
        (b"\n", "more than 100,000 blank lines in a row"),
        (b"x\n", "1,000 records cannot be used; reading stopped here"),
        (b"[\n", "nested too deep"),
    ],
)
def test_a_gzip_bomb_is_stopped(filler: bytes, message: str) -> None:
    bomb = gzip.compress(filler * (200 * 2**20 // len(filler)))
    assert len(bomb) < 500_000
    tracemalloc.start()
    text = messages(load_bytes(bomb, "a.jsonl.gz"))[-1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message in text
    assert peak < 4 * MAX_RECORD


def test_many_notices_about_one_record_are_counted() -> None:
    loaded = load_bytes(line(1, documents=["same"] * 50), "a.jsonl")
    assert len(loaded.notices) == 21
    assert messages(loaded)[-1] == "a.jsonl, line 1: 29 further notices of this kind"


def test_reading_lines_takes_no_more_memory_for_more_lines(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = tmp_path / f"{count}.jsonl"
        with path.open("wb") as out:
            for i in range(count):
                out.write(line(i, documents=["word " * 1000]))
        tracemalloc.start()
        assert sum(1 for _ in read_questions(path)) == count
        result = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return result

    assert peak(300) < peak(50) + 300_000  # 250 further records have more than 1 MB


def test_limits_are_kept() -> None:
    data = line(1, documents=["a", "b", "c"]) + line(2)
    assert ids(load_bytes(data, "a.jsonl", max_documents=2)) == ["q2"]
    assert "has 3 documents; at most 2 are allowed" in messages(load_bytes(data, "a.jsonl", max_documents=2))[0]
    big = line(1, documents=["x" * 5_000_000])
    (message,) = messages(load_bytes(big, "a.jsonl", max_characters=2_000_000))
    assert "has 5,000,004 characters; at most 2,000,000 are allowed" in message


def test_csv_with_one_question_per_row() -> None:
    table = (
        "id,question,answers,documents,topic\n"
        'q1,"Who, then?",Ida|Ada,"[{""text"": ""Ida did."", ""gold"": true}, ""No.""]",x\n'
        'q2,Where?,"[""a|b""]","Here it\nis.\n\nThere.",y\n'
        "q3,Bad?,,[1\n"
        "\n"
        "q4,Short?,,One text.\n"
    )
    loaded = load_bytes(b"\xef\xbb\xbf" + table.encode(), "a.csv")
    assert ids(loaded) == ["q1", "q2", "q4"]
    first, second, _ = loaded.questions
    assert (first.question, first.answers, first.gold_ids) == ("Who, then?", ("Ida", "Ada"), ("d1",))
    assert first.meta == {"topic": "x"}
    assert (second.answers, [d.text for d in second.documents]) == (("a|b",), ["Here it\nis.", "There."])
    (message,) = messages(loaded)
    assert message.startswith("a.csv, line 7, field 'documents': broken JSON")


def test_csv_with_one_document_per_row() -> None:
    table = (
        "question;answers;title;text;gold\n"
        "Who?;Ida;T;Ida did.;true\n"
        "Who?;Ida;;Not she.;false\n"
        "Where?;;;Here.;\n"
        "When?;;;Now.;perhaps\n"
    )
    loaded = load_bytes(table.encode(), "a.csv")
    assert [len(q.documents) for q in loaded.questions] == [2, 1]
    assert [d.gold for d in loaded.questions[0].documents] == [True, False]
    assert loaded.questions[1].documents[0].gold is None
    assert messages(loaded) == ["a.csv, line 5, field 'gold': must be true or false, is 'perhaps'"]


def test_csv_that_is_broken() -> None:
    assert "broken CSV" in messages(load_bytes(b'question,documents\nWho?,"open', "a.csv"))[0]
    assert "line 2: has 3 cells" in messages(load_bytes(b"question,text\na,b,c\n", "a.csv"))[0]
    assert "question and documents" in messages(load_bytes(b"name,age\nIda,3\n", "a.csv"))[0]
    assert ids(load_bytes(b"question,text\nWho?," + b"x" * 200_000, "a.csv"))


def test_nothing_any_bytes_can_do_raises() -> None:
    for seed in range(300):
        base = bytearray(LINES if seed % 2 else json.dumps([record(1), record(2)]).encode())
        for step in range(4):
            base[(seed * 31 + step * 17) % len(base)] = (seed * 7 + step * 101) % 256
        for name in ("a.jsonl", "a.json", "a.csv", "a.jsonl.gz"):
            loaded = load_bytes(bytes(base), name)
            assert loaded.questions or loaded.errors


def test_splits_share_nothing_and_lose_nothing() -> None:
    items = [Question(id=f"q{i}", question="?") for i in range(200)]
    parts = {split: [item.id for item in in_split(items, split)] for split in SPLITS}
    assert parts["all"] == [item.id for item in items]
    assert sorted(parts["calibration"] + parts["held-out"]) == sorted(parts["all"])
    assert 60 < len(parts["calibration"]) < 140
