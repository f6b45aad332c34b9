"""Masking probes (the paper's section 3.2 and Table 2): which attention does the answer rest on?

Every question is answered several times by the plain model, each time with one stretch of attention taken out: that of
the question to the evidence, of one piece of evidence to another, of the question to documents without evidence. The
documents are computed once; a mask of the question's rows leaves their keys and values as they are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import Field

from mdqa.backends.base import GenerationRequest, SteeredRows, Steering
from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.answers import short_answer
from mdqa.methods.base import MethodConfig, Tools
from mdqa.methods.cafe.attending import prompt
from mdqa.records import Cost, Question
from mdqa.scoring.answers import best_subspan_em

NO_MASK = "none"

MODES: Mapping[str, str] = MappingProxyType(
    {
        NO_MASK: "no mask",
        "evidence2_to_evidence1": "evidence 2 -> evidence 1",
        "question_to_evidence1": "question -> evidence 1",
        "question_to_evidence2": "question -> evidence 2",
        "question_to_all_evidence": "question -> all evidence",
        "question_to_one_irrelevant": "question -> one irrelevant document",
        "question_to_two_irrelevant": "question -> two irrelevant documents",
    }
)
"""The modes of Table 2 in its order, with words for people. Evidence is counted in the order of the prompt."""


class MaskingConfig(MethodConfig):
    """Options of the probes."""

    rows: SteeredRows = Field(
        "question_to_end_and_generated",
        description="Rows that count as the question's: its own (question), all up to the end of the prompt, or those "
        "of the reply too. Where fewer are masked, the others still read the masked documents",
    )
    max_new_tokens: int = Field(32, ge=1, le=1024, description="Longest answer in tokens")


@dataclass(frozen=True)
class Mask:
    """One mode for one question: ``documents`` are hidden from the question, or from the rows of ``row_documents``."""

    mode: str
    documents: tuple[str, ...] = ()
    row_documents: tuple[str, ...] = ()


@dataclass(frozen=True)
class MaskedAnswer:
    """The answer under one mask with its SubEM (1 or 0)."""

    mask: Mask
    answer: str
    sub_em: float
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """JSON form, without the mode's name."""
        return {
            "answer": self.answer,
            "sub_em": self.sub_em,
            "masked": list(self.mask.documents),
            "masked_for": (list(self.mask.row_documents) or ["question"]) if self.mask.documents else [],
            "cost": self.cost.model_dump(mode="json"),
        }


@dataclass(frozen=True)
class Probed:
    """All answers to one question, in the order of :data:`MODES`; ``documents_cost`` is the pass that they share."""

    answers: tuple[MaskedAnswer, ...]
    documents_cost: Cost

    @property
    def cost(self) -> Cost:
        """Everything together."""
        return sum((answer.cost for answer in self.answers), self.documents_cost)


def usable_questions(questions: Sequence[Question]) -> tuple[list[Question], str]:
    """The questions with evidence marks and an answer to compare with, and in words how many were left out ("": none).

    InputError if none is left.
    """
    unmarked = [item.id for item in questions if not item.gold_ids]
    unanswered = [item.id for item in questions if not any(answer.strip() for answer in item.answers)]
    useless = {*unmarked, *unanswered}
    words = (
        f"of {len(questions)} questions {len(unmarked)} have no document marked as evidence (gold) and "
        f"{len(unanswered)} have no answer, for example {(unmarked + unanswered)[:3]}; the probes say nothing about "
        "such questions"
    )
    usable = [item for item in questions if item.id not in useless]
    if not usable:
        raise InputError(f"{words}, and none is left")
    return usable, f"{words}, and they are left out" if useless else ""


def masks_for(item: Question, seed: int) -> tuple[Mask, ...]:
    """The modes that the question's documents allow, in the order of :data:`MODES`.

    Modes with a second piece of evidence need two documents marked as evidence, the others as many documents without
    the mark as they hide; those are drawn by the seed and the question's id, the one being among the two.
    """
    gold = item.gold_ids
    others = [document.id for document in item.documents if not document.gold]
    drawn = tuple(random.Random(f"{seed}:{item.id}").sample(others, min(2, len(others))))
    masks = [Mask(NO_MASK)]
    if len(gold) > 1:
        masks.append(Mask("evidence2_to_evidence1", gold[:1], gold[1:2]))
    masks.append(Mask("question_to_evidence1", gold[:1]))
    if len(gold) > 1:
        masks += [Mask("question_to_evidence2", gold[1:2]), Mask("question_to_all_evidence", gold)]
    if drawn:
        masks.append(Mask("question_to_one_irrelevant", drawn[:1]))
    if len(drawn) > 1:
        masks.append(Mask("question_to_two_irrelevant", drawn))
    return tuple(masks)


def probe_question(
    item: Question, tools: Tools, config: MaskingConfig, *, seed: int = 0, cancel: CancelToken | None = None
) -> Probed:
    """Answer one question under every mask that it allows. Raises PromptTooLong, CapabilityError and Cancelled."""
    tools.require("generate", "attention", "steering")
    cancel = cancel or CancelToken()
    filled = prompt(item, item.document_ids)
    shared = tools.inspectable.attend(filled, stage="masking", title="Masking", cancel=cancel, keep_prefix=True)
    answers = []
    for mask in masks_for(item, seed):
        steering = Steering(mask.documents, -math.inf, config.rows, row_documents=mask.row_documents)
        [reply] = tools.backend.generate(
            [GenerationRequest(filled, config.max_new_tokens, seed=seed)],
            cancel=cancel,
            prefix=shared.prefix,
            steering=steering if mask.documents else None,
        )
        answer = short_answer(reply.text)
        answers.append(MaskedAnswer(mask, answer, best_subspan_em(answer, item.answers), reply.cost))
    return Probed(tuple(answers), shared.cost)
