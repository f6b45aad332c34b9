"""Which task a question is, the prompt of each, and what is read off a reply."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.methods.tasks import Task, answer_text, generator_prompt, task_of
from mdqa.records import Document, Question


@pytest.mark.parametrize(
    ("reply", "task", "expected"),
    [
        ("Paris", "factoid", "Paris"),
        ("\n\n Answer: Paris \nBecause it is.", "factoid", "Paris"),
        ('"Paris"', "factoid", "Paris"),
        ('"A" and "B"', "factoid", '"A" and "B"'),
        ("U.S.", "factoid", "U.S."),
        ("", "factoid", ""),
        ("SUPPORTS", "fever", "SUPPORTS"),
        ("The evidence refutes the claim.", "fever", "REFUTES"),
        ("Supported.", "fever", "SUPPORTS"),
        ("SUPPORTS or REFUTES", "fever", "SUPPORTS or REFUTES"),
        ("I cannot say", "fever", "I cannot say"),
    ],
)
def test_answer_text(reply: str, task: Task, expected: str) -> None:
    assert answer_text(reply, task) == expected


@pytest.mark.parametrize(
    ("meta", "answers", "task"),
    [
        ({"dataset": "fever_symmetric"}, (), "fever"),
        ({}, ("REFUTES",), "fever"),
        ({"dataset": "nq20"}, ("Paris",), "factoid"),
        ({}, ("SUPPORTS", "maybe"), "factoid"),
        ({}, (), "factoid"),
    ],
)
def test_task_of(meta: dict[str, Any], answers: tuple[str, ...], task: Task) -> None:
    assert task_of(Question(id="q", question="Why?", answers=answers, meta=meta)) == task


@pytest.mark.parametrize(("task", "end"), [("factoid", "Question: Why?\nAnswer:"), ("fever", "SUPPORTS or REFUTES:")])
def test_documents_stand_before_the_question(task: Task, end: str) -> None:
    prompt = generator_prompt("Why?", [Document(id="a", text="One."), Document(id="b", text="Two.")], task)
    system, user = prompt.turns
    assert (system.role, user.role) == ("system", "user")
    assert user.text.startswith("Document [1]\nOne.\n\nDocument [2]\nTwo.\n\n")
    assert user.text.endswith(end)
    assert prompt.document_ids == ("a", "b")
