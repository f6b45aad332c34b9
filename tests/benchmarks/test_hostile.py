"""Whatever a file holds, a loader gives questions and problems, or says in words why it cannot: nothing else."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdqa.benchmarks.base import Loaded, load_bytes
from mdqa.errors import InputError
from mdqa.registry import READERS
from tests.benchmarks.test_formats import HOTPOT, HOTPOT_HUB, MUSIQUE, NQ, SQUAD, TWOWIKI

MDQA = {"id": "q", "question": "Who?", "answers": ["Ada"], "documents": [{"id": "d", "title": "T", "text": "Ada."}]}
SAMPLES: dict[str, dict[str, Any]] = {
    "mdqa": MDQA,
    "lost_in_the_middle": NQ,
    "hotpotqa": HOTPOT,
    "hotpotqa of the hub": HOTPOT_HUB,
    "musique": MUSIQUE,
    "2wikimultihopqa": TWOWIKI,
    "squad": SQUAD,
}
CALM = [HealthCheck.too_slow, HealthCheck.data_too_large]  # a loaded machine is no fault of the code
FEW = settings(max_examples=60, suppress_health_check=CALM)

STRANGE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.sampled_from(["\ud800", "\x00", "<img src=x onerror=alert(1)>", "=1+1", "€" * 3_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where anything stands in a record."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The record with something else at one place."""
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(changed[path[0]], path[1:], new)
    return changed


def read(data: bytes, name: str, format: str = "auto") -> None:
    """Read as the page does, and check that what comes out can be stored and sent."""
    try:
        found: Loaded = load_bytes(data, name, format=format, limit=20, max_documents=50, max_characters=20_000)
    except InputError as problem:
        assert str(problem)
        return
    for item in found.questions:
        item.model_dump_json().encode()
        assert item.question.strip() and len(set(item.document_ids)) == len(item.documents) <= 50
    assert all(problem.message and problem.place for problem in found.problems)


@FEW
@given(st.binary(max_size=300), st.sampled_from(["x.jsonl", "x.json", "x.csv", "x.tsv", "x.jsonl.gz", "x.txt", "x"]))
def test_any_bytes(data: bytes, name: str) -> None:
    read(data, name)


@pytest.mark.parametrize("format", READERS)
@settings(max_examples=15, suppress_health_check=CALM)
@given(record=st.dictionaries(st.sampled_from(sorted({key for s in SAMPLES.values() for key in s})), STRANGE))
def test_any_values_under_the_names_that_formats_use(format: str, record: dict[str, Any]) -> None:
    for chosen in (format, "auto"):
        read(json.dumps(record).encode(), "x.jsonl", chosen)


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=20, suppress_health_check=CALM)
@given(data=st.data())
def test_a_published_record_with_something_else_in_one_place(name: str, data: st.DataObject) -> None:
    sample = SAMPLES[name]
    record = put(sample, data.draw(st.sampled_from(places(sample))), data.draw(STRANGE))
    lines = (json.dumps(record) + "\n" + json.dumps(sample)).encode("utf-8", "surrogatepass")
    read(lines, "x.jsonl")
    cut = data.draw(st.integers(0, len(lines)))
    read(lines[:cut], "x.jsonl")
    read(gzip.compress(lines)[: max(cut, 1)], "x.jsonl.gz")


@FEW
@given(st.lists(st.lists(st.text(max_size=20), max_size=5), max_size=5))
def test_any_table(rows: list[list[str]]) -> None:
    text = "question,answers,documents\n" + "\n".join(",".join(row) for row in rows)
    read(text.encode("utf-8", "surrogatepass"), "x.csv")


def test_a_file_that_grows_when_it_is_unpacked() -> None:
    read(gzip.compress(b"[" * 10_000_000), "x.json.gz")
    read(gzip.compress(b'{"question": "' + b"x" * 10_000_000), "x.jsonl.gz")


@pytest.mark.parametrize("depth", [500, 100_000])
def test_a_file_that_is_deep(depth: int) -> None:
    for opening, closing in (("[", "]"), ('{"documents":', "}")):
        read((opening * depth + closing * depth).encode(), "x.json")
        read((opening * depth + closing * depth).encode(), "x.jsonl")
