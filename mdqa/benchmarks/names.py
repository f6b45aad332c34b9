"""Which benchmark a question comes from: what its reader wrote down, else the name of the file it was loaded from.

The name stands in ``meta`` and nowhere else: what a method is given, and everything that is compared by content, is
the same with and without it.
"""

from __future__ import annotations

from mdqa.records import Question

EXAMPLES = "examples"
"""The benchmark of the built-in examples."""

SUFFIXES = (".gz", ".jsonl", ".json", ".csv", ".tsv", ".txt")


def benchmark_of(question: Question) -> str:
    """The name of the question's benchmark; empty where nobody wrote one down."""
    for field in ("dataset", "benchmark"):
        if isinstance(found := question.meta.get(field), str) and found.strip():
            return found.strip()
    return ""


def named(question: Question, name: str) -> Question:
    """The question with this name of a benchmark, unless it has one already."""
    if benchmark_of(question) or not name:
        return question
    return question.model_copy(update={"meta": {**question.meta, "benchmark": name}})


def file_stem(name: str) -> str:
    """A file's name without folders and the endings of formats: ``data/nq20.jsonl.gz`` is ``nq20``."""
    stem = name.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    while True:
        ending = next((end for end in SUFFIXES if stem.lower().endswith(end) and len(stem) > len(end)), "")
        if not ending:
            return stem
        stem = stem[: -len(ending)]
