"""A small question, and scripted models that answer by role."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from mdqa.backends.base import GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.madara.config import MADARAConfig
from mdqa.records import Document, Profile, Question
from tests.methods.runs import Run, run_method

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


CONFLICT = json.dumps(
    {
        "has_conflict": True,
        "doc_adjustments": {"1": 2, "3": -2},
        "majority_position": "1932",
        "conflicting_pairs": [{"doc_a": 1, "doc_b": 3, "description": "year"}],
    }
)

ANSWERS = {"a": "1932", "b": "steel", "c": "1930", "d": "1932."}

REPLIES: Mapping[str, Reply] = {
    "relevance": by_document({"a": 5, "b": 1, "c": 4, "d": 2}),
    "consistency": by_document({"a": 4, "b": 3, "c": 1, "d": 3}),
    "conflict": CONFLICT,
    "generator": lambda request: ANSWERS.get(document_of(request), "1932 from " + document_of(request)),
}
"""Replies by which every document gets another score, and the readings disagree."""


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
    return run_method("madara", config, item, tools, seed)
