"""What all methods share that answer from several documents at once: the prompt, and what becomes of the reply.

One prompt for all of them: else a difference between two methods could come from the words of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.prompting import Prompt, document_segments, load_template, question_segment
from mdqa.records import Document


def answer_prompt(question: str, documents: Sequence[Document]) -> Prompt:
    """The documents in this order, numbered from 1, and the question last."""
    return load_template("mdqa.methods", "answer").fill(
        documents=document_segments(documents), question=question_segment(question)
    )


def short_answer(text: str) -> str:
    """The reply without outer white space, up to its first line break. Nothing else is changed.

    Substring metrics reward long replies, so what stands after the first line does not count
    (lost-in-the-middle scores the first line only). The whole reply stays in the trace.
    """
    lines = text.strip().splitlines()
    return lines[0].rstrip() if lines else ""
