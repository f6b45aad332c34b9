"""Scores of a probe that never ran, and a scripted model whose scores follow the reasoning it is given."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence

from mdqa.backends.base import GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.madara.calibration import calibrate
from mdqa.methods.madara.probe import Pair
from mdqa.records import Document, DocumentScore, Profile, Question

QUESTIONS = [
    Question(
        id=f"q{q}",
        question=f"What is the number of item {q}?",
        answers=(f"{q}{q}",),
        documents=tuple(
            Document(id=f"d{d}", text=f"Worth {(q * 7 + d * 3) % 6}. Item {q}, text {d}.") for d in range(6)
        ),
        meta={"dataset": "made-up"},
    )
    for q in range(8)
]


def pairs_of(columns: Sequence[Sequence[float]], queries: int = 5) -> list[Pair]:
    """Pairs from columns normal, control, shuffled, contradicted, random; queries in turn."""
    return [
        Pair(
            f"q{i % queries}",
            f"d{i}",
            DocumentScore(value=row[0]),
            tuple(DocumentScore(value=v) for v in row[1:]),
        )
        for i, row in enumerate(zip(*columns, strict=True))
    ]


def random_columns(n: int = 60, seed: int = 3) -> list[list[float]]:
    """Grades with ever more noise from level to level."""
    rng = random.Random(seed)
    normal = [float(rng.randint(0, 5)) for _ in range(n)]
    noise = (0.5, 1.0, 2.0, 50.0)
    return [normal, *([float(min(max(round(v + rng.gauss(0, s)), 0), 5)) for v in normal] for s in noise)]


def worth(text: str) -> int:
    """The grade that a document asks for."""
    found = re.search(r"Worth (\d)", text)
    assert found
    return int(found[1])


class Coupled:
    """A model whose scores follow the analysis it is given: its own says the document's worth in words."""

    def __init__(self) -> None:
        self.requests: list[GenerationRequest] = []

    def __call__(self, request: GenerationRequest) -> str:
        self.requests.append(request)
        template, text = request.prompt.template, request.prompt.turns[-1].text
        if template == "madara/relevance_cot":
            steps = [f"It is relevant to {worth(text)}.", "It is consistent.", f"So a score of {worth(text)}."]
            return json.dumps({"reasoning_steps": steps, "score": worth(text), "evidence": "", "confidence": 5})
        if template == "madara/forced":
            analysis = text.split("BEGIN ANALYSIS")[1]
            grade = re.search(r"score of (\d)", analysis)
            assert grade
            return json.dumps({"score": int(grade[1]), "confidence": 3})
        number = re.search(r"item (\d)", text)
        assert number
        return f"{number[1]}{number[1]}" if int(number[1]) < 2 else "unknown"


def run(model: object = None, questions: Sequence[Question] = QUESTIONS, **options: object) -> Profile:
    """A calibration of a scripted model."""
    backend = ScriptedBackend(model or Coupled())  # type: ignore[arg-type]
    return calibrate(questions, Tools(backend), name="p", **{"bootstrap": 50, **options})  # type: ignore[arg-type]
