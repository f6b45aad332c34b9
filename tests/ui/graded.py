"""A real run of MADARA whose agents say what a script tells them: scores of all kinds, retries, unreadable replies."""

from __future__ import annotations

import json

from mdqa.backends.base import GenerationRequest
from mdqa.records import Document, Profile, Question
from tests.methods.madara.helpers import Run, make_profile, role_of, run_madara

BASE = (5, 4, 4, 3, 5, 2, 1, 4, 0, 3, 2, 5)
COT = (5, 1, 0, 2, 2, 1, 0, 3, 0, 1, 1, 4)
UNREADABLE, AGAIN, TOO_HIGH = "d4", "d6", "d9"
"""Documents whose relevance is never readable, is readable at the second attempt, and is a number that is too high."""


def river(n: int = 12) -> Question:
    """A question with n documents, the fifth of them gold."""
    gold = "The Skerr is 148 km long. It rises in the Halm hills and ends in the sea at Brightwater."
    documents = tuple(
        Document(
            id=f"d{i}",
            title=f"River survey of district {i}" if i != 5 else "The river Skerr",
            text=gold if i == 5 else f"The river of district {i} is {20 + 11 * i} km long and joins the Skerr.",
            gold=i == 5,
        )
        for i in range(1, n + 1)
    )
    return Question(id="q", question="How long is the river Skerr?", answers=("148 km",), documents=documents)


def _reply(request: GenerationRequest) -> str:
    role, cot = role_of(request), request.prompt.template.endswith("_cot")
    ids = request.prompt.document_ids
    if role == "conflict":
        return json.dumps(
            {"has_conflict": True, "doc_adjustments": {"5": 2, "2": -1, "3": -2}, "majority_position": "148 km"}
        )
    if role == "conflict_document":
        return json.dumps({"has_conflict": False, "adjustment": 1, "reasoning": ""})
    if role in ("relevance", "consistency"):
        number = int(ids[0][1:])
        if role == "relevance" and not cot:
            if ids[0] == UNREADABLE or (ids[0] == AGAIN and "could not be read" not in _words(request)):
                return "It seems to be about a river, so I would say it helps."
            if ids[0] == TOO_HIGH:
                return json.dumps({"score": 9})
        score = (COT if cot else BASE)[(number - 1) % len(BASE)]
        score = score if role == "relevance" else min(5, (score + number) % 6)
        why = {"reasoning_steps": ["It names the river.", "It gives a length."]} if cot else {}
        return json.dumps({**why, "score": score, "evidence": "", "reasoning": f"District {number}; <b>no markup</b>."})
    lengths = [document for document in ids if document == "d5"]
    return "148 km" if lengths and len(ids) <= 6 else "42 km" if len(ids) > 1 else "unknown"


def _words(request: GenerationRequest) -> str:
    return "".join(segment.text for turn in request.prompt.turns for segment in turn.segments)


def graded_run(n: int = 12, *, profile: Profile | None = None, **options: object) -> Run:
    """A run over :func:`river`; by default routed to ATF with the other treatments carried out too."""
    roles = ("relevance", "consistency", "conflict", "conflict_document", "generator")
    found = profile or make_profile((0.65, 0.49, 0.10), 0.887)
    return run_madara(dict.fromkeys(roles, _reply), river(n), profile=found, **options)
