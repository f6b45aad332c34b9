"""Two kinds of task and how they are answered, for the methods that are compared on both: a short answer, or a label.

The prompt, what becomes of the reply, and which task a question is. One wording for all of them: else a difference
between two methods could come from the words of the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from mdqa.prompting import Prompt, document_segments, load_template, question_segment
from mdqa.records import Document, Question

Task = Literal["factoid", "fever"]

LABELS = ("SUPPORTS", "REFUTES")

_LABEL = re.compile(r"\b(support|refute)(?:s|d|ed)?\b", re.IGNORECASE)


def task_of(item: Question) -> Task:
    """``fever`` if the question's data set (``meta["dataset"]``) is called so or its answers are its labels."""
    named = "fever" in str(item.meta.get("dataset", "")).lower()
    labelled = bool(item.answers) and set(item.answers) <= set(LABELS)
    return "fever" if named or labelled else "factoid"


def generator_prompt(question: str, documents: Sequence[Document], task: Task, *, abstain: bool = False) -> Prompt:
    """The answer from these documents, in this order, numbered from 1; documents before question.

    ``abstain``: the reply may also be "unknown".
    """
    return load_template("mdqa.methods", f"generator_{task}" + ("_abstain" if abstain else "")).fill(
        documents=document_segments(documents), question=question_segment(question)
    )


def answer_text(reply: str, task: Task) -> str:
    """The answer in a generator's reply: its first line that is not empty, without ``Answer:`` and outer quotes.

    For FEVER the one label that the reply names (SUPPORTS or REFUTES); the first line if it names none or both.
    """
    if task == "fever":
        named = {match[1].lower() for match in _LABEL.finditer(reply)}
        if len(named) == 1:
            return LABELS[0] if named == {"support"} else LABELS[1]
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    line = re.sub(r"^(?:the )?answer(?: is)?\s*:\s*", "", line, flags=re.IGNORECASE)
    for quote in ('"', "'", "“”", "‘’"):
        if len(line) > 2 and line[0] == quote[0] and line[-1] == quote[-1] and quote[0] not in line[1:-1]:
            line = line[1:-1].strip()
    return line
