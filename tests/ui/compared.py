"""Runs made by the scripted backend over placed questions, stored as the page and the command line store them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.backends.scripted import ScriptedBackend
from mdqa.benchmarks.placing import place
from mdqa.methods.base import Tools
from mdqa.records import Document, Question, RunResult
from mdqa.registry import method_class
from mdqa.run import begin, run_one
from mdqa.scoring.answers import says_an_answer
from storage.store import Store
from tests.ui.helpers import WordEncoder

RIVERS = ("Ostra", "Skerr", "Halm", "Mur")


def river(number: int) -> Question:
    """A question with four documents. Of every fifth one a document without the answer shares more of its words."""
    name = RIVERS[number % len(RIVERS)]
    lure = f"How long is the river {name}? Nobody says how long the river {name} is."
    documents = (
        Document(id="a", title=f"{name} valley", text=f"The river {name} is {40 + number} km long.", gold=True),
        Document(id="b", title="Bread", text="Rye bread keeps for a week.", gold=False),
        Document(id="c", title=f"{name} fair", text=lure if number % 5 == 4 else "A fair is held in May.", gold=False),
        Document(id="d", title="Towns", text="Some town has a market.", gold=False),
    )
    words = f"How long is the river {name}?"
    return Question(id=f"q{number}", question=words, answers=(f"{40 + number} km",), documents=documents)


def placed(count: int = 5, positions: Sequence[int] = (1, 4)) -> list[Question]:
    """Questions with their evidence at every position."""
    return [place(river(number), position) for number in range(count) for position in positions]


def answer(
    store: Store, method: str, item: Question, *, model: str = "scripted", created: str = "", **options: Any
) -> RunResult:
    """Run a method with the scripted backend and store the run with its trace."""
    cls = method_class(method)
    tools = Tools(ScriptedBackend(model=model), make_encoder=WordEncoder)
    header = begin(method, cls.Config.parse(options), item, tools)
    header = header.model_copy(update={"created": created}) if created else header
    store.runs.begin(header)
    outcome = run_one(header, tools, sink=lambda event: store.runs.record(header.id, event))
    correct = says_an_answer(outcome.result.answer, item.answers) if outcome.result.status == "ok" else None
    store.runs.finish(outcome.result, outcome.maps, correct=correct)
    return outcome.result


def answer_all(
    store: Store, items: Sequence[Question], entries: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[str, list[RunResult]]:
    """Every entry (a method with options) over every question; the runs by method and options."""
    return {
        " ".join((method, *(f"{k}={v}" for k, v in options.items()))): [
            answer(store, method, item, **options) for item in items
        ]
        for method, options in entries
    }
