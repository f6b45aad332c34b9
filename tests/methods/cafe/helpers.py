"""Small questions about numbered places, and the scripted model whose heads look at words in common."""

from __future__ import annotations

from mdqa.records import Document, Question


def place_question(count: int = 7, gold: int = 2, name: str = "q") -> Question:
    """``count`` documents about places; the one at ``gold`` is marked and answers the question."""
    documents = tuple(
        Document(id=f"d{i}", title=f"Title {i}", text=f"Place number {i} lies in region {i * 7}.", gold=i == gold)
        for i in range(count)
    )
    return Question(
        id=name, question=f"Which region holds place number {gold}?", answers=(str(gold * 7),), documents=documents
    )
