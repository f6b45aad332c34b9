"""What all methods do with the text of a final reply."""

from __future__ import annotations


def short_answer(text: str) -> str:
    """The reply without outer white space, up to its first line break. Nothing else is changed.

    Substring metrics reward long replies, so what stands after the first line does not count
    (lost-in-the-middle scores the first line only). The whole reply stays in the trace.
    """
    lines = text.strip().splitlines()
    return lines[0].rstrip() if lines else ""
