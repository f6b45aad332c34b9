"""A small question, and a scripted model whose Judge has given log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mdqa.backends.base import Backend, GenerationRequest, Likelihood
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.main_rag.method import MainRAGConfig
from mdqa.prompting import Prompt
from mdqa.records import Document, Question, RunResult, Stage
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall

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

ANSWERS = {"a": "1932", "b": "steel", "c": "1930", "d": "1932"}

JUDGEMENTS = {"a": (-0.25, -2.25), "b": (-3.0, -0.5), "c": (-0.5, -1.5), "d": (-1.0, -1.5)}
"""log p of Yes and of No: log-odds 2, -2.5, 1 and 0.5, mean 0.25, variance 2.8125."""


class JudgingBackend(ScriptedBackend):
    """Answers by document, judges by document; from several documents it answers with their ids in order."""

    def __init__(self, answers: Mapping[str, str], judgements: Mapping[str, tuple[float, float]]) -> None:
        super().__init__(self._answer)
        self.answers, self.judgements = answers, judgements

    def _answer(self, request: GenerationRequest) -> str:
        ids = request.prompt.document_ids
        return self.answers[ids[0]] if len(ids) == 1 else " ".join(ids)

    def log_likelihood(self, prompts: Sequence[Prompt], **options: Any) -> list[Likelihood]:
        """The given log-probability in place of the word count's."""
        return [
            replace(found, logprob=self.judgements[prompt.document_ids[0]][("Yes", "No").index(prompt.reply)])
            for prompt, found in zip(prompts, super().log_likelihood(prompts, **options), strict=True)
        ]


@dataclass
class Run:
    """A finished run with its events."""

    result: RunResult
    events: list[BaseEvent] = field(default_factory=list)

    def stage(self, name: str) -> Stage:
        [stage] = [stage for stage in self.result.stages if stage.name == name]
        return stage

    def calls(self, role: str) -> list[ModelCall]:
        return [event for event in self.events if isinstance(event, ModelCall) and event.role == role]

    @property
    def log_odds(self) -> dict[str, float | None]:
        return {key: score.value for key, score in self.stage("judging").scores["log_odds"].items()}


def run_main_rag(
    item: Question = QUESTION,
    *,
    answers: Mapping[str, str] = ANSWERS,
    judgements: Mapping[str, tuple[float, float]] = JUDGEMENTS,
    backend: Backend | None = None,
    **options: Any,
) -> Run:
    """One run."""
    tools = Tools(backend or JudgingBackend(answers, judgements))
    events: list[BaseEvent] = []
    result = run_one(begin("main_rag", MainRAGConfig.parse(options), item, tools), tools, sink=events.append).result
    return Run(result, events)
