"""What if: what a person changed under an answer, checked, put into words and run; without Gradio.

Everything here comes from a browser and may be anything: it is read strictly and every refusal says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mdqa.errors import ConfigError, InputError
from mdqa.interventions import Wanted, apply, done_to, plan, words_between
from mdqa.records import Document, Question, RunResult
from mdqa.settings import Settings
from ui.actions import changed_config, methods, run_again
from ui.context import Context
from ui.forms import FormField, spelled
from ui.inputs import clean, limited

DECIMALS = 4
"""Decimals of a number as it is shown; one that nobody touches stays what it was in the run."""

MAX_ROWS = 10_000
MAX_OPTIONS = 200
MAX_ID = 1_000


class Row(BaseModel):
    """A document that is switched on, at its place; ``copied`` for a copy of it. Title and text only where edited."""

    model_config = ConfigDict(extra="forbid", strict=True)

    document: str = Field(max_length=MAX_ID)
    copied: bool = False
    title: str | None = None
    text: str | None = None


class Wishes(BaseModel):
    """What the page sends: the run it is about, the documents that are on in their order, the options as typed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    run: str = Field(max_length=64)
    documents: list[Row] = Field(max_length=MAX_ROWS)
    options: dict[str, str | bool] = Field(default={}, max_length=MAX_OPTIONS)


@dataclass(frozen=True)
class Changed:
    """A run's question with the wishes carried out, the options that get another value, and both in words."""

    question: Question
    options: Mapping[str, Any]
    words: tuple[str, ...]


def fields_of(run: RunResult) -> tuple[tuple[FormField, ...], tuple[FormField, ...]]:
    """The options of the run's method that are worth trying, and all others; none for a method that is gone."""
    info = next((info for info in methods() if info.name == run.method), None)
    if info is None:
        return (), ()
    names = {field.name for field in info.controls}
    return info.controls, tuple(field for field in info.fields if field.name not in names)


def shown(run: RunResult, field: FormField) -> str | bool:
    """An option's value in the run as its box shows it; the default where the run does not have it."""
    value = run.config.get(field.name, field.default)
    if field.kind == "switch":
        return bool(value)
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(str(part) for part in value)
    if isinstance(value, float):
        return f"{round(value, DECIMALS):g}" if math.isfinite(value) else str(value)
    return str(value)


def read_wishes(data: object, run_id: str) -> Wishes:
    """What a page sent, checked; InputError where it is not of the right form or is about another run."""
    try:
        wishes = Wishes.model_validate(data)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"the page sent something unexpected ({first['msg']}); reload it", place=place) from None
    if wishes.run != run_id:
        raise InputError("the page shows another run by now; look again at what is changed")
    return wishes


def carried_out(run: RunResult, wishes: Wishes, settings: Settings, before: RunResult | None = None) -> Changed:
    """The run's question and options with the wishes; MdqaError says what cannot be done and where.

    ``before``: the run that this one repeats; a document that it had and this one lost can be put back.
    """
    question, words = _question(run.question, wishes, before.question if before is not None else run.question)
    refused = limited(question, settings).refused if question is not run.question else ()
    if refused:
        raise InputError(refused[0].reason, place=refused[0].place)
    options = _typed(run, wishes.options)
    changed_config(run, options)
    fields = {field.name: field for group in fields_of(run) for field in group}
    for name in options:
        words.append(f"{fields[name].label} {_said(shown(run, fields[name]))} → {_said(wishes.options[name])}")
    return Changed(question, options, tuple(words))


def start(context: Context, run: RunResult, wishes: Wishes, before: RunResult | None = None) -> str:
    """Put the changed run in line, with the same model, profile, seed and rule for long documents; the new run's id.

    MdqaError for what cannot be done, for what is not there any more, and where nothing differs from a run that came to
    its end; one that did not is simply repeated.
    """
    changed = carried_out(run, wishes, context.settings, before)
    if not changed.words and run.status == "ok":
        raise ConfigError("nothing differs from the run that is shown; change a document or an option first")
    return run_again(context, run.id, changed.options, changed.question)


def gone_since(before: Question | None, now: Question) -> tuple[Document, ...]:
    """The documents of an earlier run that a later one does not have, in their order."""
    return tuple(d for d in before.documents if d.id not in now.document_ids) if before is not None else ()


def _question(now: Question, wishes: Wishes, before: Question) -> tuple[Question, list[str]]:
    """The question with the wanted documents, and what that changes in ``now``, in words."""
    rows = [_wanted(row) for row in wishes.documents]
    if not rows and not now.documents:  # asked without documents on purpose
        return now, []
    back = {document.id for document in gone_since(before, now)}
    if any(row.document in back for row in rows):
        changed = apply(before, plan(before, [_as_of(before, now, row) for row in rows]))
    else:
        changed = apply(now, plan(now, rows))
    return changed, list(words_between(now, changed))


def _wanted(row: Row) -> Wanted:
    title = None if row.title is None else clean(row.title).strip()
    text = None if row.text is None else clean(row.text).strip()
    return Wanted(document=row.document, copied=row.copied, title=title, text=text)


def _as_of(before: Question, now: Question, row: Wanted) -> Wanted:
    """A document that is wanted of the later question, as something to be made of the earlier one."""
    if row.document not in now.document_ids:
        return row
    document = now.document(row.document)
    title = document.title if row.title is None else row.title
    text = document.text if row.text is None else row.text
    origins = {str(entry["copy"]): str(entry["document"]) for entry in done_to(now) if "copy" in entry}
    origin, copied = row.document, row.copied
    while origin not in before.document_ids and origin in origins:
        origin, copied = origins[origin], True
    return Wanted(document=origin, copied=copied, title=title, text=text)


def _typed(run: RunResult, options: Mapping[str, str | bool]) -> dict[str, Any]:
    """The options that are not as the run's boxes show them, as values of their kinds."""
    fields = {field.name: field for group in fields_of(run) for field in group}
    unknown = [name for name in options if name not in fields]
    if unknown:
        raise ConfigError(f"there is no option {unknown[0][:60]!r}; there is: {', '.join(fields)}")
    different = {name: value for name, value in options.items() if value != shown(run, fields[name])}
    return {name: _value(fields[name], value) for name, value in different.items()}


def _value(field: FormField, value: str | bool) -> Any:
    if isinstance(value, bool) != (field.kind == "switch"):
        raise ConfigError(f"option {field.label!r} cannot be {value!r}"[:200])
    if isinstance(value, bool) or field.kind in ("text", "list", "choice"):
        return clean(value) if isinstance(value, str) else value
    if not value.strip():
        return None
    try:
        number = float(value.replace(",", "."))
    except ValueError:
        kind = "a whole number" if field.kind == "whole" else "a number"
        raise ConfigError(f"option {field.label!r} must be {kind}, got {value[:40]!r}") from None
    if not math.isfinite(number):
        raise ConfigError(f"option {field.label!r} must be a number, got {value[:40]!r}")
    return number


def _said(value: str | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return spelled(value.strip()) or "not set"
