"""The one model that is loaded, exchanged when a job wants another one, and what is said of it meanwhile."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Protocol

from mdqa.backends.base import Backend
from mdqa.errors import MdqaError, ModelError
from ui.logs import log
from ui.views.models import ModelStatus


class MakeBackend(Protocol):
    """Loads a model and says how far it is."""

    def __call__(self, model: str, progress: Callable[[str, float | None], None]) -> Backend:
        """The loaded backend; ModelError if it cannot be had."""
        ...


class LoadedModel:
    """Any thread may look; only the worker's loads and unloads. ``use`` is held by whoever asks the model something."""

    def __init__(self, make_backend: MakeBackend) -> None:
        self._make_backend = make_backend
        self._lock = threading.Lock()
        self._backend: Backend | None = None
        self._name = ""
        self._status = ModelStatus("none", "")
        self.use = threading.Lock()

    @property
    def status(self) -> ModelStatus:
        """What is loaded or being loaded."""
        with self._lock:
            return self._status

    @property
    def backend(self) -> Backend | None:
        """What is loaded; None where nothing is."""
        with self._lock:
            return self._backend

    @property
    def name(self) -> str:
        """Name under which the loaded model was asked for; empty where none is."""
        with self._lock:
            return self._name

    def say(self, status: ModelStatus) -> None:
        """What people are told of the model."""
        with self._lock:
            self._status = status

    def ready(self, model: str, preparing: Callable[[str], None] = lambda words: None) -> Backend:
        """The backend of this model, loaded now if need be; ModelError if it cannot be had.

        ``preparing`` is told in words how far it is.
        """
        known, status = self.backend, self.status
        if known is not None and self.name == model:
            self.say(ModelStatus("ready", model, status.text if status.phase == "ready" else ""))
            return known
        self.unload()

        def progress(words: str, fraction: float | None = None) -> None:
            self.say(ModelStatus("loading", model, words, fraction))
            share = f" ({fraction:.0%})" if fraction is not None else ""
            preparing(f"{model}: {words}{share}")

        progress("getting ready", None)
        reference = uuid.uuid4().hex[:8]
        try:
            backend = self._make_backend(model, progress)
        except MdqaError as problem:
            self.say(ModelStatus("failed", model, str(problem)))
            raise
        except Exception as problem:
            log.exception("the model %s could not be loaded (reference %s)", model, reference)
            words = f"The model {model} could not be loaded (reference {reference}); the log says more. Choose another."
            self.say(ModelStatus("failed", model, words))
            raise ModelError(words) from problem
        with self._lock:
            self._backend, self._name = backend, model
            self._status = ModelStatus("ready", model, f"Window: {backend.window:,} tokens.")
        return backend

    def unload(self) -> None:
        """Free the model as soon as nobody uses it."""
        with self._lock:
            backend, self._backend, self._name = self._backend, None, ""
            self._status = ModelStatus("none", "")
        if backend is not None:
            with self.use:
                backend.close()
