"""A small question, and a scripted model whose Judge has given log-probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mdqa.backends.base import Backend, GenerationRequest, Likelihood
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.main_rag.method import MainRAGConfig
from mdqa.prompting import Prompt
from mdqa.records import Document, Question
from tests.methods.runs import Run, run_method

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


class Judged(Run):
    """A finished run with what the Judge said."""

    @property
    def log_odds(self) -> dict[str, float | None]:
        return self.values("judging", "log_odds")


def run_main_rag(
    item: Question = QUESTION,
    *,
    answers: Mapping[str, str] = ANSWERS,
    judgements: Mapping[str, tuple[float, float]] = JUDGEMENTS,
    backend: Backend | None = None,
    **options: Any,
) -> Judged:
    """One run."""
    tools = Tools(backend or JudgingBackend(answers, judgements))
    run = run_method("main_rag", MainRAGConfig.parse(options), item, tools)
    return Judged(run.outcome, run.events)
