"""A method's whole run as something to measure: the method as it is, with what its stages and calls took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdqa.backends.base import Backend
from mdqa.methods.base import Tools
from mdqa.methods.recorder import Recorder
from mdqa.performance.plan import Plan
from mdqa.records import Cost, Question, Stage
from mdqa.registry import method_class
from mdqa.run import Collector


@dataclass(frozen=True)
class Ran:
    """A finished run: its stages with their seconds, and what its calls cost."""

    stages: tuple[Stage, ...]
    cost: Cost

    def seconds_of(self, name: str) -> float:
        """Seconds of the stages with this name."""
        return sum(stage.seconds for stage in self.stages if stage.name == name)


def run_method(method: str, options: Mapping[str, Any], item: Question, plan: Plan, backend: Backend) -> Ran:
    """One run of a method with these options over a backend."""
    cls = method_class(method)
    tools = Tools(backend, plan.tools.make_encoder, plan.tools.profile if cls.uses_profile else None)
    collector = Collector()
    run = Recorder(tools, sink=collector.take, cancel=plan.cancel, seed=plan.seed)
    cls(cls.Config.parse(dict(options)), tools).answer(item, run)
    return Ran(tuple(collector.stages), run.cost)
