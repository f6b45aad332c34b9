"""Reading result lines of ``answer`` and ``evaluate``: each a run with its whole question, or refused by its place."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mdqa.errors import InputError
from mdqa.records import Question, RunResult

ONE_RUN = ("method", "model", "profile", "seed", "config")
"""What all lines of a file, or of an entry and model of an evaluation, have in common."""

_NOT_PART_OF_A_RUN = ("id", "run", "question", "input_sha256", "entry")

Digest = Callable[[Question], str]


@dataclass(frozen=True)
class Group:
    """Whose a line is: an entry of an evaluation and a model. A file of ``answer`` is one group without an entry."""

    entry: str | None
    model: str

    @property
    def label(self) -> str:
        """The group in words; empty for a file of ``answer``."""
        return "" if self.entry is None else f"{self.entry} ({self.model})"


def results_in(
    lines: Iterable[bytes], questions: Mapping[str, Question], digest: Digest, *, file: str
) -> Iterator[tuple[Group, RunResult]]:
    """The results that the lines of a file hold, each with its group and its whole question, one at a time.

    Args:
        lines: one JSON object each; blank ones are passed over.
        questions: by id; they may be more than the file answers. Where an evaluation placed the evidence, a
            ``benchmarks.placing.Placeable``.
        digest: what a line's ``input_sha256`` was made with.
        file: the file's name, for messages.

    InputError names the file and the line: what is no result line, belongs to none of the questions or to another
    version of one, answers a question twice in its group, or was made with other settings than the group's first.
    """
    firsts: dict[Group, RunResult] = {}
    places: dict[tuple[Group, str], int] = {}
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        place = f"{file}, line {number}"
        line = _parse(raw, place)
        item = _question(line, questions, digest, place)
        result = _result(line, item, place)
        group = Group(line.get("entry"), result.model if line.get("entry") is not None else "")
        if (group, item.id) in places:
            earlier = places[group, item.id]
            raise InputError(f"the question {item.id!r} was answered in line {earlier} already", place=place)
        places[group, item.id] = number
        first = firsts.setdefault(group, result)
        if others := [name for name in ONE_RUN if getattr(result, name) != getattr(first, name)]:
            raise InputError(
                f"this line was made with another {' and '.join(others)} than the first; give each run its own file",
                place=place,
            )
        yield group, result
    if not firsts:
        raise InputError("there is no result in it", place=file)


def read_groups(
    lines: Iterable[bytes], questions: Mapping[str, Question], digest: Digest, *, file: str
) -> dict[Group, list[RunResult]]:
    """The results of a file by group, in order of appearance; arguments and errors as :func:`results_in`."""
    groups: dict[Group, list[RunResult]] = {}
    for group, result in results_in(lines, questions, digest, file=file):
        groups.setdefault(group, []).append(result)
    return groups


def read_lines(
    lines: Iterable[bytes], questions: Mapping[str, Question], digest: Digest, *, file: str
) -> list[RunResult]:
    """The results of a file of one group; arguments and errors as :func:`results_in`, InputError for several groups."""
    groups = read_groups(lines, questions, digest, file=file)
    if len(groups) > 1:
        raise InputError(
            f"this file holds the runs of several entries ({', '.join(group.label for group in groups)}), and one is "
            "wanted here",
            place=file,
        )
    return next(iter(groups.values()))


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, one at a time; InputError if it cannot be read."""
    try:
        with path.open("rb") as stream:
            yield from stream
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=str(path)) from None


def is_evaluation(path: Path) -> bool:
    """Whether a file's first line is one of ``evaluate``; InputError if the file cannot be read."""
    first = next((raw for raw in lines_of(path) if raw.strip()), b"{}")
    try:
        line = json.loads(first)
    except (ValueError, RecursionError):  # said where it is read in earnest
        return False
    return isinstance(line, dict) and isinstance(line.get("entry"), str)


def _parse(raw: bytes, place: str) -> dict[str, Any]:
    try:
        line = json.loads(raw, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:  # ValueError: also UnicodeDecodeError
        raise InputError(f"broken JSON: {error}", place=place) from None
    if not isinstance(line, dict) or not all(isinstance(line.get(name), str) for name in ("id", "run", "question")):
        raise InputError("this is no result line of python -m mdqa answer", place=place)
    if not isinstance(line.get("entry"), str | None):
        raise InputError(f"an entry is called by a text, not by {line['entry']!r}", place=f"{place}, field 'entry'")
    return line


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number")
    return value


def _question(
    line: Mapping[str, Any], questions: Mapping[str, Question], digest: Callable[[Question], str], place: str
) -> Question:
    item = questions.get(line["id"])
    if item is None:
        raise InputError(
            f"the question {line['id']!r} is not in the input; give the file it was read from", place=place
        )
    if line["question"] != item.question:
        raise InputError(
            f"the question {item.id!r} was {line['question']!r} and is {item.question!r} in the input", place=place
        )
    if line.get("input_sha256") not in (None, digest(item)):
        raise InputError(f"the documents of question {item.id!r} are other ones in the input", place=place)
    return item


def _result(line: Mapping[str, Any], item: Question, place: str) -> RunResult:
    values = {name: value for name, value in line.items() if name not in _NOT_PART_OF_A_RUN}
    try:
        return RunResult.model_validate({"id": line["run"], "question": item, **values})
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"this is no result line of python -m mdqa answer: {first['msg']}", place=f"{place}, field {field!r}"
        ) from None
