"""Builders shared by the tests of the page: profiles for the scripted backend, records with hostile text, contexts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from mdqa.backends.base import Attention, Backend
from mdqa.backends.scripted import ScriptedBackend
from mdqa.calibration import find_profile
from mdqa.methods.base import Encoder
from mdqa.records import Document, Profile, Question
from mdqa.settings import Settings
from storage.store import Store
from ui.context import Context, offered
from ui.engine import Engine

SCRIPTED = "scripted"
CREATED = "2026-01-01T00:00:00+00:00"


def scripted_profiles() -> tuple[Profile, ...]:
    """Profiles for the scripted backend (4 layers of 4 heads), as ``calibrate`` would store them."""
    table = {"n": 8, "scores": np.linspace(0.0, 0.5, 16).reshape(4, 4).tolist()}
    common = {"model": SCRIPTED, "data": "by hand", "n": 8, "seed": 0, "created": CREATED}
    cafe = Profile(name="hand", method="cafe", values={"coarse": table, "fine": table}, **common)
    madara = Profile(
        name="hand", method="madara", values={"rho": [0.28, 0.09, 0.01], "nf": {"em_squad": 0.907}}, **common
    )
    return cafe, madara


def question(n: int = 6) -> Question:
    """A question with n documents, the second of them gold."""
    documents = tuple(
        Document(
            id=f"d{i}",
            title=f"Title {i}",
            text=f"Document {i} is about towns and rivers. The river Skerr is {i} km long. It ends in the sea.",
            gold=i == 2,
        )
        for i in range(1, n + 1)
    )
    return Question(id="q", question="How long is the river Skerr?", answers=("2 km",), documents=documents)


class WordEncoder:
    """Unit vectors by hashed words: what the methods need of an encoder, without a model."""

    name = "words"

    def encode(self, texts: object) -> np.ndarray:
        """One row per text."""
        rows = np.full((len(list(texts)), 64), 1e-3, dtype=np.float32)  # type: ignore[call-overload]
        for row, text in zip(rows, texts, strict=True):  # type: ignore[call-overload]
            for word in str(text).lower().split():
                row[sum(map(ord, word)) % 64] += 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class SlowBackend(ScriptedBackend):
    """A scripted backend whose passes for attention take a moment too."""

    def __init__(self, model: str, delay: float) -> None:
        super().__init__(model=model, delay_per_token=delay)
        self.passes = 0

    def attend(self, *arguments: Any, **options: Any) -> Attention:
        """As :class:`ScriptedBackend` does, later."""
        time.sleep(self._delay)
        self.passes += 1
        return super().attend(*arguments, **options)


def open_scripted(folder: Path, *, delay: float = 0.0, queue: int = 32, start: bool = True) -> Context:
    """A context like ``ui.context.open_context`` makes, with a scripted backend that may be slowed down."""
    settings = Settings(model=SCRIPTED, database=folder / "runs.db", cache=folder / "cache", queue=queue)
    store = Store.open(settings.database)
    for profile in scripted_profiles():
        store.profiles.save(profile, replace=True)

    def make_backend(model: str, progress: object) -> Backend:
        return SlowBackend(model, delay)

    def encoder() -> Encoder:
        return WordEncoder()

    def profile_of(method: str, model: str, name: str) -> Profile | None:
        return find_profile(method, model, name, store.profiles.list())

    engine = Engine(store, make_backend, encoder, profile_of, queue=queue)
    if start:
        engine.start(SCRIPTED)
    return Context(settings, store, engine, SCRIPTED, offered(SCRIPTED))
