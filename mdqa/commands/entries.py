"""The entries of an evaluation from the command line and from plan files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mdqa.commands.options import parse_set
from mdqa.errors import ConfigError, InputError
from mdqa.evaluation.plan import Entry, check_labels, make_entry

PROFILE = "profile"
"""The option that names an entry's calibration profile; it is the entry's, not the method's."""

_FIELDS = ("label", "method", "set", PROFILE)
_OPENING, _CLOSING = "[{", "]}"


def parse_entries(texts: Sequence[str]) -> tuple[Entry, ...]:
    """Entries from ``[LABEL=]METHOD[:KEY=VALUE ...]``, commas between them; commas and colons in brackets do not count.

    ``hybrid=retrieve_read:ranker=rrf:top_k=5`` is one, ``cafe:profile=mine`` another. ConfigError says what is wrong.
    """
    return check_labels([_entry(part) for text in texts for part in _split(text, ",")])


def read_plan(path: Path) -> tuple[Entry, ...]:
    """Entries from a JSON file: a list of objects with ``method`` and, if wanted, ``label``, ``set`` and ``profile``.

    InputError names the file and the entry.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", place=str(path)) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"broken JSON: {error}", place=str(path)) from None
    if not isinstance(found, list):
        raise InputError(f"a plan is a list of entries, not {type(found).__name__}", place=str(path))
    try:
        return check_labels([_from_json(value, number) for number, value in enumerate(found, 1)])
    except ConfigError as problem:
        raise InputError(str(problem), place=str(path)) from None


def _entry(text: str) -> Entry:
    name, *pairs = _split(text, ":")
    label, equals, method = name.partition("=")
    if not equals:
        label, method = "", name
    elif not label.strip():
        raise ConfigError(f"{text!r}: there is no label before the equals sign")
    options = parse_set(pairs)
    profile = str(options.pop(PROFILE, ""))
    return make_entry(method.strip(), options, label=label.strip(), profile=profile)


def _from_json(value: Any, number: int) -> Entry:
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        raise ConfigError(f"entry {number}: give an object with a method")
    if unknown := [name for name in value if name not in _FIELDS]:
        raise ConfigError(f"entry {number}: unknown field {unknown[0]!r}; there is: {', '.join(_FIELDS)}")
    if not isinstance(options := value.get("set", {}), dict):
        raise ConfigError(f"entry {number}: 'set' is an object with the method's options, not {options!r}")
    for name in ("label", PROFILE):
        if not isinstance(value.get(name, ""), str):
            raise ConfigError(f"entry {number}: {name!r} is a text, not {value[name]!r}")
    return make_entry(value["method"], options, label=value.get("label", ""), profile=value.get(PROFILE, ""))


def _split(text: str, mark: str) -> Iterator[str]:
    """The parts between the marks that stand outside brackets."""
    depth, part = 0, ""
    for c in text:
        depth += (c in _OPENING) - (c in _CLOSING)
        if c == mark and depth <= 0:
            yield part.strip()
            part = ""
        else:
            part += c
    yield part.strip()
