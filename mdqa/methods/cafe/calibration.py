"""Finding CAFE's retrieval heads on labelled questions (section 4.2; methods.md GAP-C4).

Stage 1 is scored on the full contexts, stage 2 on the same questions with the documents that stage 1 leaves, filtered
and re-ordered; samples whose evidence was all dropped say nothing about stage 2 and are left out of it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from mdqa.attention.heads import evidence_share, head_shares, top_heads
from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.base import Tools, documents_in_order
from mdqa.methods.cafe.profile import StageHeads
from mdqa.methods.cafe.selection import select
from mdqa.prompting import Prompt, document_segments, load_template, question_segment
from mdqa.records import Profile, Question


def calibrate(
    questions: Sequence[Question],
    tools: Tools,
    *,
    name: str,
    seed: int = 42,
    cancel: CancelToken | None = None,
    progress: Callable[[int, int, str], None] = lambda done, total, text: None,
    data: str = "",
    k1: int = 4,
    m1: int = 4,
    doc_pool: Literal["sum", "mean"] = "sum",
    shuffle: bool = True,
) -> Profile:
    """Head scores eta (eq. 2, as means) for both stages over questions whose evidence is marked.

    ``shuffle`` puts every question's documents in a seeded random order, so that a head that only likes a place in the
    prompt does not look like a retrieval head. InputError before any model work if a question has no evidence marks
    or does not fit into the model's window.
    """
    unmarked = [item.id for item in questions if not item.gold_ids]
    if unmarked or not questions:
        raise InputError(
            f"{len(unmarked)} of {len(questions)} questions have no document marked as evidence (gold), "
            f"for example {unmarked[:3]}; CAFE's heads cannot be found without"
        )
    cancel = cancel or CancelToken()
    backend = tools.inspectable
    template = load_template("mdqa.methods.cafe", "answer")
    items = [_shuffled(item, seed) if shuffle else item for item in questions]
    for item in items:
        tokens = backend.count_tokens(backend.render(_prompt(template, item, item.document_ids)))
        if tokens > backend.window:
            raise InputError(
                f"the prompt has {tokens:,} tokens, but the model's window holds {backend.window:,}; leave this "
                "question out or give it fewer documents",
                place=f"question {item.id!r}",
            )

    def mass(item: Question, ids: Sequence[str]) -> np.ndarray:
        prompt = _prompt(template, item, ids)
        return backend.attend(prompt, stage="calibration", title="Calibration", cancel=cancel, pool=doc_pool).map.mass

    total, coarse = 2 * len(items), []
    for done, item in enumerate(items, 1):
        coarse.append(mass(item, item.document_ids))
        progress(done, total, "coarse filtering: question")
    coarse_eta = np.mean([_eta(m, item, item.document_ids) for m, item in zip(coarse, items, strict=True)], axis=0)
    heads = top_heads(coarse_eta, k1)
    fine, recall = [], []
    for done, (item, m) in enumerate(zip(items, coarse, strict=True), len(items) + 1):
        kept = select(item.document_ids, head_shares(m, heads), heads, m1).kept
        found = [d for d in item.gold_ids if d in kept]
        recall.append(len(found) / len(item.gold_ids))
        if found:
            fine.append(_eta(mass(item, kept), item, kept))
        progress(done, total, "fine steering: question")
    if not fine:
        raise InputError("stage 1 dropped the evidence of every question, so stage 2 has nothing to learn from")
    return Profile(
        name=name,
        method="cafe",
        model=backend.model,
        data=data,
        n=len(items),
        seed=seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={package: version(package) for package in ("torch", "transformers")},
        values={
            "coarse": StageHeads(coarse_eta, len(items)).to_json(),
            "fine": StageHeads(np.mean(fine, axis=0), len(fine)).to_json(),
            "coarse_recall_on_calibration": float(np.mean(recall)),
            "options": {"k1": k1, "m1": m1, "doc_pool": doc_pool, "shuffle": shuffle},
        },
        note="Retrieval heads by CAFE equations 1 to 3; scores are means over the calibration questions.",
    )


def _prompt(template: Any, item: Question, ids: Sequence[str]) -> Prompt:
    filled: Prompt = template.fill(
        documents=document_segments(documents_in_order(item, ids)), question=question_segment(item.question)
    )
    return filled


def _eta(mass: np.ndarray, item: Question, ids: Sequence[str]) -> np.ndarray:
    gold = set(item.gold_ids)
    return evidence_share(mass, [i for i, d in enumerate(ids) if d in gold])


def _shuffled(item: Question, seed: int) -> Question:
    documents = list(item.documents)
    random.Random(f"{seed}:{item.id}").shuffle(documents)
    return item.with_documents(tuple(documents))
