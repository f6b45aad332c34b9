"""Runs built by hand, as the ledger of any method would look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.records import Document, DocumentScore, Opinion, Question, RunResult, Stage

DOCUMENTS = tuple(Document(id=f"d{i}", text=f"Text {i}.", gold=i == 1) for i in range(1, 6))
IDS = tuple(document.id for document in DOCUMENTS)
QUESTION = Question(id="q", question="Where?", answers=("Vienna",), documents=DOCUMENTS)


def stage(name: str, documents: Sequence[str], kept: Sequence[str], **more: Any) -> Stage:
    """A stage; ``scores`` may hold plain numbers and statuses."""
    scores: Mapping[str, Mapping[str, float | str]] = more.pop("scores", {})
    entries = {
        signal: {
            d: DocumentScore(value=s) if not isinstance(s, str) else DocumentScore.model_validate({"status": s})
            for d, s in by_document.items()
        }
        for signal, by_document in scores.items()
    }
    return Stage(name=name, title=name, documents=tuple(documents), kept=tuple(kept), scores=entries, **more)


def voice(role: str, answer: str, documents: Sequence[str] = (), **more: Any) -> Opinion:
    """An opinion."""
    return Opinion(role=role, title=role, answer=answer, documents=tuple(documents), **more)


def run(answer: str = "Graz", *stages: Stage, item: Question = QUESTION, **more: Any) -> RunResult:
    """A finished run with this answer."""
    values: dict[str, Any] = {
        "id": "r",
        "question": item,
        "method": "some",
        "model": "x",
        "backend": "b",
        "status": "ok",
        "created": "now",
        "seed": 0,
        "answer": answer,
        "stages": stages,
        **more,
    }
    return RunResult(**values)


def whole(name: str = "answer", documents: Sequence[str] = IDS) -> Stage:
    """A stage that keeps everything."""
    return stage(name, documents, documents)
