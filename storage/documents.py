"""Questions and their documents, each stored once by content.

The same hundred documents under three methods and five orders are a hundred rows in ``documents``; a question is an
ordered list of references with the id and the gold mark that each document has in this question.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sqlite_utils import Database

from mdqa.records import Document, Question
from storage.encoding import clean_text, to_json


def store_question(db: Database, question: Question) -> int:
    """The row id of this question, which is written if it is new. Call it inside a write transaction."""
    place = f"question {question.id!r}"
    documents = [
        {"document": _store_document(db, document), "name": clean_text(document.id), "gold": document.gold}
        for document in question.documents
    ]
    row = {
        "name": clean_text(question.id),
        "question": clean_text(question.question),
        "documents": len(documents),
        "answers": to_json(question.answers, f"{place}, answers"),
        "meta": to_json(question.meta, f"{place}, meta", lenient=True),
    }
    row["hash"] = _hash(to_json([row, documents], place))
    known = db.execute("select id from questions where hash = ?", [row["hash"]]).fetchone()
    if known:
        return int(known[0])
    question_id = int(db.table("questions").insert(row).last_rowid or 0)
    db.table("question_documents").insert_all(
        {"question": question_id, "position": position, **document} for position, document in enumerate(documents)
    )
    return question_id


def question_key(question: Question) -> str:
    """The same for equal questions over equal documents in the same order, whatever their ids, marks and answers."""
    return _key(question.question, [_content_hash(document) for document in question.documents])


def stored_key(db: Database, question_id: int) -> str:
    """The :func:`question_key` of a stored question. Call it inside a transaction."""
    (words,) = db.execute("select question from questions where id = ?", [question_id]).fetchone()
    hashes = db.execute(
        "select d.hash from question_documents q join documents d on d.id = q.document where q.question = ? "
        "order by q.position",
        [question_id],
    )
    return _key(words, [digest for (digest,) in hashes])


Known = dict[tuple[int, str, int | None], Document]
"""Documents that were read already, by row, id and gold mark."""


def load_question(db: Database, question_id: int, known: Known | None = None) -> Question:
    """The question with its documents in order. Call it inside a transaction.

    ``known``: for many questions over the same documents, which are then read once; it grows.
    """
    row = next(iter(db.query("select * from questions where id = ?", [question_id])))
    listed = db.execute(
        "select document, name, gold from question_documents where question = ? order by position", [question_id]
    ).fetchall()
    found: Known = {} if known is None else known
    if any(key not in found for key in listed):
        documents = db.query(
            "select q.document, q.name, q.gold, d.title, d.text from question_documents q "
            "join documents d on d.id = q.document where q.question = ?",
            [question_id],
        )
        for one in documents:
            found.setdefault((one["document"], one["name"], one["gold"]), _document(one))
    return Question(
        id=row["name"],
        question=row["question"],
        answers=tuple(json.loads(row["answers"])),
        documents=tuple(found[key] for key in listed),
        meta=json.loads(row["meta"]),
    )


def drop_unused(db: Database, question_id: int) -> None:
    """Delete the question unless a run refers to it, then those of its documents that no other question lists."""
    if db.execute("select 1 from runs where question = ? limit 1", [question_id]).fetchone():
        return
    listed = db.execute("select document from question_documents where question = ?", [question_id]).fetchall()
    db.execute("delete from questions where id = ?", [question_id])
    for document in set(listed):
        db.execute(
            "delete from documents where id = ? "
            "and not exists (select 1 from question_documents q where q.document = documents.id)",
            document,
        )


def _store_document(db: Database, document: Document) -> int:
    digest = _content_hash(document)
    known = db.execute("select id from documents where hash = ?", [digest]).fetchone()
    if known:
        return int(known[0])
    content = [digest, clean_text(document.title), clean_text(document.text)]
    cursor = db.execute("insert into documents (hash, title, text) values (?, ?, ?)", content)
    return int(cursor.lastrowid or 0)


def _document(row: dict[str, Any]) -> Document:
    gold = None if row["gold"] is None else bool(row["gold"])
    return Document(id=row["name"], title=row["title"], text=row["text"], gold=gold)


def _content_hash(document: Document) -> str:
    title, text = clean_text(document.title), clean_text(document.text)
    # The title's length keeps ("ab", "c") and ("a", "bc") apart.
    return _hash(f"{len(title)}:{title}{text}")


def _key(question: str, document_hashes: list[str]) -> str:
    # White space is no content: the page strips what was typed.
    return _hash("\n".join([*document_hashes, " ".join(clean_text(question).split())]))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
