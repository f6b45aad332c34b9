"""What a running program consists of: settings, store, engine and the models that may be chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mdqa.backends.base import SEPARATOR, Backend
from mdqa.backends.catalog import MODELS, ModelCard
from mdqa.backends.catalog import card as catalog_card
from mdqa.backends.loading import (
    SCRIPTED,
    capabilities_by_name,
    default_model,
    load_backend,
    recorded_name,
    shown_name,
)
from mdqa.backends.remembering import remembering
from mdqa.calibration import builtin_profiles, find_profile
from mdqa.methods.base import Encoder
from mdqa.records import Profile
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.run import run_one
from mdqa.settings import Settings
from storage.store import Store
from ui.engine import Engine
from ui.lending import CarryOut, lent_gpu
from ui.snapshotting import Snapshotter, snapshotter

SCRIPTED_NOTE = (
    "No model at all: replies are read off the prompt by counting shared words. It serves tests of the page and of the "
    "methods; its answers and numbers mean nothing."
)

PAIR_NOTE = (
    "The first one writes; the second one reads the same prompts, shows its attention and gives likelihoods. What you "
    "see of attention and scores is the second one's view. Where both are the same model, it can be steered as well."
)

SOON, LATER = 5.0, 30.0
"""Seconds that the end of the program waits for the run that is going on."""


@dataclass(frozen=True)
class Context:
    """Passed to every tab. ``model``: the model the program was started with; it heads the list of ``models``."""

    settings: Settings
    store: Store
    engine: Engine
    model: str
    models: tuple[ModelCard, ...]
    snapshots: Snapshotter | None = None

    def card(self, model: str) -> ModelCard | None:
        """The card of an offered model, or of two offered ones as one (``A + B``); None for any other."""
        known = {card.id: card for card in self.models}
        if model in known:
            return known[model]
        writer, _, inspector = model.partition(SEPARATOR)
        pair = writer in known and inspector in known and inspector in {card.id for card in self.inspectors(writer)}
        return _card(model) if pair else None

    def inspectors(self, writer: str) -> list[ModelCard]:
        """The offered models that can stand beside this one to be looked at; none where it can be itself."""
        if SEPARATOR in writer or "attention" in capabilities_by_name(writer):
            return []
        return [card for card in self.models if "attention" in card.capabilities and SEPARATOR not in card.id]

    def asked_as(self, recorded: str) -> str:
        """The offered name by which runs come that know their model by this one; itself where there is none."""
        if self.card(recorded) is not None:
            return recorded
        singles = [card.id for card in self.models]
        pairs = [f"{writer}{SEPARATOR}{card.id}" for writer in singles for card in self.inspectors(writer)]
        return next((name for name in (*singles, *pairs) if recorded_name(name) == recorded), recorded)

    def profiles(self, model: str) -> list[Profile]:
        """Stored profiles of a model, newest first, then those that ship with the package."""
        model = recorded_name(model)
        return [*self.store.profiles.list(model=model), *(p for p in builtin_profiles() if p.model == model)]

    def profile_for(self, method: str, model: str, name: str = "") -> Profile | None:
        """The profile of this name, or without a name the best one for the method and model; None if none fits."""
        return find_profile(method, recorded_name(model), name, self.store.profiles.list())

    def close(self) -> None:
        """Stop the work, store the last snapshot and close the database."""
        # A host that stops a program waits some seconds only. A run that does not end in time is interrupted in the
        # snapshot as well.
        self.engine.close(SOON if self.snapshots is not None else LATER)
        if self.snapshots is not None:
            self.snapshots.close()
        self.store.close()


def open_context(settings: Settings) -> Context:
    """Open the database, brought back first where it is empty, begin to load the model in the background, and return.

    ConfigError or StorageError for settings that cannot be used.
    """
    snapshots = snapshotter(settings)
    if snapshots is not None:
        snapshots.restore()
    store = Store.open(settings.database)
    device, dtype = settings.device, settings.dtype
    carry_out: CarryOut = run_one
    if settings.zero_gpu:
        # Here the model lies in the main memory, in the format that a GPU wants.
        device, dtype = "cpu", "bfloat16" if dtype == "auto" else dtype
        carry_out = lent_gpu(store, settings)

    def make_backend(model: str, progress: Callable[[str, float | None], None]) -> Backend:
        backend = load_backend(
            model,
            device=device,
            dtype=dtype,
            cache=settings.cache,
            api_key=settings.api_key,
            vllm_python=settings.vllm_python,
            vllm_arguments=settings.vllm_args,
            progress=progress,
        )
        return remembering(backend)

    def profile_of(method: str, model: str, name: str) -> Profile | None:
        return find_profile(method, model, name, store.profiles.list())

    def make_encoder() -> Encoder:
        return MiniLMEncoder()

    engine = Engine(store, make_backend, make_encoder, profile_of, queue=settings.queue, carry_out=carry_out)
    model = settings.model or default_model()
    engine.start(model)
    if snapshots is not None:
        snapshots.start()
    return Context(settings, store, engine, model, offered(model, settings.models), snapshots)


def offered(model: str, more: Sequence[str] = ()) -> tuple[ModelCard, ...]:
    """The models of the picker: the one the program was started with, ``more`` of the owner's, then the catalog.

    Pages cannot name any other model: they would make the server fetch what a stranger wants, or call where a stranger
    points.
    """
    own = [_card(name) for name in dict.fromkeys((model, *more))]
    named = {card.id for card in own}
    return (*own, *(card for card in MODELS if card.id not in named))


def _card(model: str) -> ModelCard:
    """The catalog's card, or one of a model that the owner named, or of two as one."""
    note = PAIR_NOTE if SEPARATOR in model else "A model that the owner of this program named."
    return catalog_card(model) or ModelCard(
        name=shown_name(model),
        id=model,
        parameters=0,
        window=0,
        where="cpu",
        note=SCRIPTED_NOTE if model == SCRIPTED else note,
        capabilities=capabilities_by_name(model),
    )
