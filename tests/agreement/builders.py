"""Ratings by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

NAMES = {"1": "first", "2": "second", "b": "both", "n": "neither", "?": "cannot_tell"}


@dataclass(frozen=True)
class Said:
    """What an entry of the log of labels says."""

    item: int
    run: str
    annotator: str
    label: str
    evidence: tuple[str, ...] = ()
    note: str = ""
    seconds: float = 10.0
    swapped: bool = False
    token: str = ""
    created: str = "2026-11-30T10:00:00.000+00:00"


def said(columns: Mapping[str, str], **fields: object) -> list[Said]:
    """Per annotator one letter per item (1, 2, b, n, ?; a blank is no label); item i is about run ``r<i>``."""
    found = []
    for name, letters in columns.items():
        for item, letter in enumerate(letters, 1):
            if letter != " ":
                values = {"item": item, "run": f"r{item}", "annotator": name, "label": NAMES[letter], **fields}
                values.setdefault("created", f"2026-11-30T10:00:{item:02d}.000+00:00")
                found.append(Said(**values))  # type: ignore[arg-type]
    return found


def decided(item: int, letter: str, who: str = "chief", evidence: Sequence[str] = ()) -> dict[int, Said]:
    """A decision on an item."""
    return {item: Said(item, f"r{item}", who, NAMES[letter], tuple(evidence))}
