r"""FlashRAG: questions without documents, and a corpus in which to look for them (github.com/RUC-NLPIR/FlashRAG).

Example of a question, and of a passage of the corpus (both JSON lines)::

    {"id": "test_0", "question": "...", "golden_answers": ["..."], "metadata": {...}}
    {"id": "0", "contents": "\"Title\"\nText of the passage."}

The documents of a question are the passages that BM25 ranks best (:class:`Corpus`). Nobody marked which of them hold
the evidence. A passage may have ``title`` and ``text`` instead of ``contents``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from mdqa.benchmarks.fields import (
    Item,
    Problem,
    Record,
    answers_in,
    clean_value,
    derived_id,
    id_field,
    object_at,
    problem_of,
    rest,
    text_field,
)
from mdqa.benchmarks.files import records
from mdqa.errors import InputError
from mdqa.records import Document, Question
from mdqa.registry import INDEXES, load

CANDIDATES = 20
"""Documents that a question gets from a corpus if nothing else is said."""


def recognises(record: Record) -> bool:
    """Whether the record has golden answers and no documents of its own."""
    return "question" in record and "golden_answers" in record


def read(record: Record, place: str) -> Iterator[Item]:
    """The question of one record, without documents."""
    question = text_field(record, "question", place)
    metadata = object_at(record["metadata"], place, "metadata") if record.get("metadata") is not None else {}
    yield Question(
        id=id_field(record, "id", place, derived_id("flashrag", question)),
        question=question,
        answers=answers_in(record.get("golden_answers"), place, "golden_answers"),
        meta={
            "dataset": "flashrag",
            **rest(record, ("id", "question", "golden_answers", "metadata")),
            **({"metadata": dict(metadata)} if metadata else {}),
        },
    )


class Corpus:
    """A corpus with its BM25 index, held in memory; it gives questions without documents the best passages."""

    def __init__(self, documents: tuple[Document, ...], name: str, candidates: int = CANDIDATES) -> None:
        self.documents, self.name, self.candidates = documents, name, candidates
        self._index = load(INDEXES, "bm25", "index")(documents)

    def fill(self, item: Question) -> Question:
        """The question with its candidates, best first; a question that has documents stays as it is."""
        if item.documents:
            return item
        found = [self.documents[place] for place in self._index.best(item.question, self.candidates)]
        meta = {**item.meta, "corpus": self.name, "retriever": self._index.name, "candidates": len(found)}
        return item.model_copy(update={"documents": tuple(found), "meta": meta})


def read_corpus(
    path: Path,
    *,
    candidates: int = CANDIDATES,
    on_problem: Callable[[Problem], None] = lambda problem: None,
) -> Corpus:
    """The corpus of a file (JSON lines or one JSON array, plain or gzip).

    A passage that cannot be used is left out and told to ``on_problem``; so is one with the id of an earlier one.
    InputError if the file cannot be read or holds no passage.
    """
    documents: dict[str, Document] = {}
    for entry in records(path, str(path)):
        if isinstance(entry, Problem):
            on_problem(entry)
            continue
        place, value = entry
        try:
            document = _passage(value, place, f"p{len(documents) + 1}")
            if document.id in documents:
                raise InputError(f"{document.id!r} is the id of an earlier passage", place=f"{place}, field 'id'")
        except InputError as error:
            on_problem(problem_of(error))
            continue
        documents[document.id] = document
    if not documents:
        raise InputError("there is no passage in it; a line needs contents, or title and text", place=str(path))
    return Corpus(tuple(documents.values()), path.name, candidates)


def _passage(value: object, place: str, default: str) -> Document:
    record = object_at(clean_value(value, place, []), place, "passage")
    name = id_field(record, "id", place, default)
    if "contents" not in record:
        return Document(
            id=name, title=text_field(record, "title", place, default=""), text=text_field(record, "text", place)
        )
    contents = text_field(record, "contents", place).strip()
    title, _, text = contents.partition("\n")
    if not text.strip():
        return Document(id=name, text=contents)
    return Document(id=name, title=title.strip().strip('"').strip(), text=text.strip())
