"""What the tests of all methods share: one run with its events, and a scripted backend that can do less."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mdqa.backends.base import Capability
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import MethodConfig, Tools
from mdqa.records import Question, RunResult, Stage
from mdqa.run import Outcome, begin, run_one
from mdqa.trace import BaseEvent, ModelCall


@dataclass
class Run:
    """A finished run with its events."""

    outcome: Outcome
    events: list[BaseEvent]

    @property
    def result(self) -> RunResult:
        return self.outcome.result

    @property
    def stages(self) -> list[str]:
        return [stage.name for stage in self.result.stages]

    def stage(self, name: str) -> Stage:
        [stage] = [stage for stage in self.result.stages if stage.name == name]
        return stage

    def calls(self, role: str = "") -> list[ModelCall]:
        return [event for event in self.events if isinstance(event, ModelCall) and role in ("", event.role)]

    def values(self, stage: str, signal: str) -> dict[str, float | None]:
        return {key: score.value for key, score in self.stage(stage).scores[signal].items()}


def run_method(method: str, config: MethodConfig, item: Question, tools: Tools, seed: int = 0) -> Run:
    """One run of a method."""
    events: list[BaseEvent] = []
    outcome = run_one(begin(method, config, item, tools, seed=seed), tools, sink=events.append)
    return Run(outcome, events)


class LimitedBackend(ScriptedBackend):
    """The scripted backend with fewer capabilities."""

    def __init__(self, capabilities: set[Capability], replies: Any = None) -> None:
        super().__init__(replies)
        self.capabilities = frozenset(capabilities)  # type: ignore[misc]
