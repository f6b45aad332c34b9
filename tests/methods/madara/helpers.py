"""A small question, and scripted models that answer by role."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mdqa.backends.base import Capability, GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.records import Document, Profile, Question, RunResult, Stage
from mdqa.run import Outcome, begin, run_one
from mdqa.trace import BaseEvent, ModelCall

Reply = str | Callable[[GenerationRequest], str]

QUESTION = Question(
    id="q",
    question="When was the bridge opened?",
    answers=("1932",),
    documents=(
        Document(id="a", title="Bridge", text="The bridge was opened in 1932.", gold=True),
        Document(id="b", text="The bridge is made of steel.", gold=False),
        Document(id="c", title="News", text="Some say that the bridge was opened in 1930.", gold=False),
        Document(id="d", text="The tower was opened in 1932.", gold=False),
    ),
)


def grade(score: Any, **more: Any) -> str:
    return json.dumps({"score": score, **more})


def role_of(request: GenerationRequest) -> str:
    """The template's name without package and variant: relevance, consistency, conflict, generator, forced."""
    name = request.prompt.template.rpartition("/")[2]
    return "generator" if name.startswith("generator") else name.removesuffix("_cot")


def document_of(request: GenerationRequest) -> str:
    """Ids of the documents in the prompt, joined."""
    return "".join(request.prompt.document_ids)


def by_document(scores: Mapping[str, Any]) -> Callable[[GenerationRequest], str]:
    """A grade per document; a text stands as it is."""

    def reply(request: GenerationRequest) -> str:
        score = scores[document_of(request)]
        return score if isinstance(score, str) else grade(score)

    return reply


def by_role(replies: Mapping[str, Reply]) -> Callable[[GenerationRequest], str]:
    """A script that gives each role its reply."""

    def reply(request: GenerationRequest) -> str:
        found = replies[role_of(request)]
        return found(request) if callable(found) else found

    return reply


class LimitedBackend(ScriptedBackend):
    """The scripted backend with fewer capabilities."""

    def __init__(self, capabilities: set[Capability], replies: Any = None) -> None:
        super().__init__(replies)
        self.capabilities = frozenset(capabilities)  # type: ignore[misc]


@dataclass
class Run:
    """A finished run with its events."""

    outcome: Outcome
    events: list[BaseEvent] = field(default_factory=list)

    @property
    def result(self) -> RunResult:
        return self.outcome.result

    def stage(self, name: str) -> Stage:
        [stage] = [stage for stage in self.result.stages if stage.name == name]
        return stage

    @property
    def stages(self) -> list[str]:
        return [stage.name for stage in self.result.stages]

    def calls(self, role: str = "") -> list[ModelCall]:
        return [e for e in self.events if isinstance(e, ModelCall) and role in ("", e.role)]

    def values(self, stage: str, signal: str) -> dict[str, float | None]:
        return {key: score.value for key, score in self.stage(stage).scores[signal].items()}


def make_profile(rho: tuple[float, ...] = (0.76, 0.43, 0.08), nf: float | None = 0.139, **more: Any) -> Profile:
    accuracy = None if nf is None else {"em_squad": nf, "em_strict": nf, "n": 100}
    return Profile(
        name="p",
        method="madara",
        model="scripted",
        data="test",
        n=100,
        seed=42,
        created="2026-01-01",
        values={"rho": list(rho), "nf": accuracy, **more},
    )


def run_madara(
    replies: Mapping[str, Reply] | None = None,
    item: Question = QUESTION,
    *,
    profile: Profile | None = None,
    backend: ScriptedBackend | None = None,
    seed: int = 0,
    **options: Any,
) -> Run:
    """One run; without ``replies`` the scripted backend reads its replies off the prompts."""
    backend = backend or ScriptedBackend(by_role(replies) if replies is not None else None)
    tools = Tools(backend, profile=profile)
    config = MADARAConfig.parse(options)
    events: list[BaseEvent] = []
    outcome = run_one(begin("madara", config, item, tools, seed=seed), tools, sink=events.append)
    return Run(outcome, events)
