"""A small question, an encoder that counts words, and a scripted model that answers by role."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mdqa.backends.base import GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.records import Document, Question
from tests.methods.runs import Run, run_method

Replies = Mapping[str, Sequence[str]]


class WordEncoder:
    """Unit vectors of word counts over a hashed vocabulary: texts that share words are near each other."""

    name = "words"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 256), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                vectors[row, sum(word.encode()) % 256] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def document(number: int, text: str, title: str = "") -> Document:
    return Document(id=f"d{number}", title=title, text=text)


QUESTION = Question(
    id="q",
    question="Which river flows through Vienna?",
    answers=("Danube",),
    documents=(
        document(1, "Graz lies on the Mur. It is old."),
        document(2, "The Danube flows through Vienna. The city is old. It has many parks.", "Vienna"),
        document(3, "Bread is baked from flour."),
        document(4, "The river Danube is long. It flows through ten countries. Ships use it.", "Danube"),
    ),
)


def agent(answer: str, *cited: int, reasoning: str = "because") -> str:
    return json.dumps({"reasoning": reasoning, "answer": answer, "important_documents": cited})


def score(value: float, *sentences: int) -> str:
    return json.dumps({"score": value, "key_sentences": sentences})


def judge(answer: str) -> str:
    return json.dumps({"reasoning": "checked", "answer": answer})


USUAL: Replies = {
    "agent": [agent("the Mur", 1, 2), agent("Danube", 2, 4)],
    "score": [score(0.2, 1), score(0.9, 3, 1), score(0.4, 2)],
    "judge": [judge("The Danube")],
}
"""Replies of a run in which nothing goes wrong: the agents differ, one of three documents is pruned."""


def by_role(replies: Replies) -> Callable[[GenerationRequest], str]:
    """A script that gives each role (the template's name) its own list of replies, in order."""
    used: dict[str, int] = defaultdict(int)

    def reply(request: GenerationRequest) -> str:
        role = request.prompt.template.removeprefix("duquad/")
        used[role] += 1
        return replies[role][used[role] - 1]

    return reply


def run_duquad(
    replies: Replies | None = None,
    item: Question = QUESTION,
    *,
    backend: ScriptedBackend | None = None,
    encoder: bool = True,
    **options: Any,
) -> Run:
    """One run; without ``replies`` the scripted backend reads its replies off the prompts."""
    backend = backend or ScriptedBackend(by_role(replies) if replies is not None else None)
    tools = Tools(backend, make_encoder=WordEncoder if encoder else None)
    config = DuQUADConfig.parse(options)
    return run_method("duquad", config, item, tools)
