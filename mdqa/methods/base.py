"""What a method is and what it may use.

A method reads like its paper's algorithm: it asks the recorder for model calls, opens stages, scores and keeps
documents. The recorder turns all of that into events, counts the cost and checks for a stop; it is the only thing
a method talks to besides the backend's description and the encoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mdqa.backends.base import (
    SEPARATOR,
    Backend,
    Capability,
    InspectableBackend,
    ScoringBackend,
)
from mdqa.errors import CapabilityError, ConfigError, ProfileError
from mdqa.methods.recorder import Recorder
from mdqa.records import (
    Profile,
    Question,
)
from mdqa.retrieval.base import PairScorer
from mdqa.retrieval.dense import PACKAGED_MODEL


class MethodConfig(BaseModel):
    """Options of a method. Every field has a description and limits; the UI's form is built from them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def reply_tokens(self) -> int:
        """Longest reply in tokens: the largest option named ``max_new_tokens`` or ``..._max_tokens``; 0 without one."""
        names = [n for n in type(self).model_fields if n == "max_new_tokens" or n.endswith("max_tokens")]
        return max((int(getattr(self, name)) for name in names), default=0)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """Options from names and values (strings are read as the field's type); ConfigError names the field."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"]) or "options"
            known = ", ".join(cls.model_fields)
            hint = f" Known options: {known}." if first["type"] == "extra_forbidden" else ""
            raise ConfigError(f"option {name!r}: {first['msg']}, got {first['input']!r}.{hint}") from None


class Encoder(Protocol):
    """A sentence encoder. ``encode`` gives unit vectors (texts, dimensions) float32."""

    name: str

    def encode(self, texts: Sequence[str]) -> Any:
        """Unit-length embeddings, one row per text."""
        ...


@dataclass
class Tools:
    """What a method may use: a backend, models of retrieval made when first asked for, and a calibration profile.

    ``make_encoder`` gives the usual encoder. ``load_encoder`` and ``load_cross_encoder`` give one that a person names,
    a folder or a Hugging Face id, and ``open_embeddings`` one behind a URL with the model's name there. Without them
    none can be named, as on a page, where it would make the server fetch what a stranger wants, or call where a
    stranger points.
    """

    backend: Backend
    make_encoder: Callable[[], Encoder] | None = None
    profile: Profile | None = None
    load_encoder: Callable[[str], Encoder] | None = None
    load_cross_encoder: Callable[[str], PairScorer] | None = None
    open_embeddings: Callable[[str, str], Encoder] | None = None
    _encoders: dict[str, Encoder] = field(default_factory=dict, repr=False)
    _scorers: dict[str, PairScorer] = field(default_factory=dict, repr=False)
    _served: dict[tuple[str, str], Encoder] = field(default_factory=dict, repr=False)

    @property
    def encoder(self) -> Encoder:
        """The usual sentence encoder; CapabilityError if none was given."""
        if "" not in self._encoders:
            if self.make_encoder is None:
                raise CapabilityError("this method needs a sentence encoder and none was given")
            self._encoders[""] = self.make_encoder()
        return self._encoders[""]

    def named_encoder(self, name: str) -> Encoder:
        """The sentence encoder of this name, loaded once: the packaged one, or what ``load_encoder`` gives.

        ConfigError for another than the packaged one where none can be named; ModelError if it cannot be loaded.
        """
        if name == PACKAGED_MODEL:
            return self.encoder
        if name not in self._encoders:
            if self.load_encoder is None:
                raise ConfigError(
                    f"the sentence encoder {name!r} cannot be chosen here, only the one that is part of the program; "
                    "others can be named on the command line: python -m mdqa answer --set encoder=FOLDER_OR_ID"
                )
            self._encoders[name] = self.load_encoder(name)
        return self._encoders[name]

    def named_cross_encoder(self, name: str) -> PairScorer:
        """The cross-encoder of this name, loaded once. ConfigError where none can be named; ModelError as it loads."""
        if name not in self._scorers:
            if self.load_cross_encoder is None:
                raise ConfigError(
                    f"the cross-encoder {name!r} cannot be chosen here; it can be named on the command line: "
                    "python -m mdqa answer --method retrieve_read --set cross_encoder=FOLDER_OR_ID"
                )
            self._scorers[name] = self.load_cross_encoder(name)
        return self._scorers[name]

    def served_encoder(self, url: str, model: str) -> Encoder:
        """The encoder of this name behind a URL. ConfigError where none can be named, or for a URL that is none."""
        if (url, model) not in self._served:
            if self.open_embeddings is None:
                raise ConfigError(
                    "an embeddings server cannot be chosen here; it can be named on the command line: "
                    "python -m mdqa answer --method retrieve_read --set embeddings_url=URL --set embeddings_model=NAME"
                )
            self._served[url, model] = self.open_embeddings(url, model)
        return self._served[url, model]

    @property
    def scoring(self) -> ScoringBackend:
        """The backend as one that gives likelihoods; CapabilityError otherwise."""
        self.require("likelihood")
        assert isinstance(self.backend, ScoringBackend)
        return self.backend

    @property
    def inspectable(self) -> InspectableBackend:
        """The backend as one that shows attention; CapabilityError otherwise."""
        self.require("attention")
        assert isinstance(self.backend, InspectableBackend)
        return self.backend

    def require(self, *capabilities: Capability) -> None:
        """CapabilityError unless the backend can do all of these."""
        missing = [c for c in capabilities if c not in self.backend.capabilities]
        if missing:
            raise CapabilityError(
                f"the backend {self.backend.name!r} cannot give {' and '.join(missing)}; "
                "choose a model that runs through transformers (a name, a Hugging Face id or a folder), or put one "
                "beside this one: 'NAME + builtin'"
            )


class Method(ABC):
    """One way to answer a question from documents. Subclasses name themselves and implement :meth:`answer`."""

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    Config: ClassVar[type[MethodConfig]]
    uses_profile: ClassVar[bool] = False
    requires_profile: ClassVar[bool] = False
    profile_of_inspected: ClassVar[bool] = False  # the profile is about attention, see profiled()
    closed_book: ClassVar[bool] = False  # whether it can answer without any document
    without_profile: ClassVar[str] = ""  # what a person can do instead of calibrating, as the end of a sentence
    controls: ClassVar[tuple[str, ...]] = ()  # options worth trying out on a result, see the page's "What if"

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        self.config = config
        self.tools = tools
        tools.require(*self.needs(config))
        if tools.profile is None and self.profile_needed(config):
            raise ProfileError(self.profile_advice(tools.backend.model))
        if tools.profile is not None and tools.profile.method != self.name:
            raise ProfileError(f"profile {tools.profile.name!r} belongs to {tools.profile.method}, not to {self.name}")

    @classmethod
    def needs(cls, config: MethodConfig) -> tuple[Capability, ...]:
        """Backend capabilities needed with these options."""
        return ("generate",)

    @classmethod
    def profiled(cls, model: str) -> str:
        """The model that this method's profile is about: of two as one, the one that writes or that is looked at."""
        writer, plus, inspector = model.partition(SEPARATOR)
        return model if not plus else inspector if cls.profile_of_inspected else writer

    @classmethod
    def profile_advice(cls, model: str) -> str:
        """What to do where a profile is needed and there is none for this model."""
        return (
            f"{cls.title} needs a calibration profile for the model {model!r}. Make one with: python -m mdqa calibrate "
            f"--method {cls.name} --model {model} --input FILE --name NAME{cls.without_profile}"
        )

    @classmethod
    def profile_needed(cls, config: MethodConfig) -> bool:
        """Whether the method cannot run without a profile with these options."""
        return cls.requires_profile

    @abstractmethod
    def answer(self, item: Question, run: Recorder) -> str:
        """Answer the question and record every stage on the way; the text returned is the final answer."""


def documents_in_order(item: Question, ids: Iterable[str]) -> tuple[Any, ...]:
    """The question's documents with these ids, in this order."""
    by_id = {document.id: document for document in item.documents}
    return tuple(by_id[document_id] for document_id in ids)
