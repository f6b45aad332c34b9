"""How the question attends to the documents: pooled over their tokens, and less what a content-free question gets.

CAFE's own score is the sum of attention weights over a document's tokens (eq. 1; methods.md GAP-C1). Both departures
from it are options, since small models' heads are drawn by length and place: ``doc_pool`` mean, and ``calibration``
content_free, which subtracts the attention of a question without content over the same documents. Its pass shares
the documents' keys and values with the question's, so that only the rows from the question on are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from mdqa.attention.contrast import CONTENT_FREE, contrasted
from mdqa.backends.base import Attention
from mdqa.methods.answers import answer_prompt
from mdqa.methods.base import documents_in_order
from mdqa.prompting import Prompt
from mdqa.records import Question, TokenHeat

Pool = Literal["sum", "mean"]
Calibration = Literal["none", "content_free"]


def prompt(item: Question, ids: Sequence[str], question: str = "") -> Prompt:
    """The prompt of an answer from these documents, with the question (or another one) last."""
    return answer_prompt(question or item.question, documents_in_order(item, ids))


@dataclass(frozen=True)
class DocumentAttention:
    """``mass`` (L, H, D) as the heads are scored by; ``attention`` is the question's own pass.

    ``heat``: token weights of the asked heads, treated like the mass; None if no head was asked for.
    """

    mass: np.ndarray
    attention: Attention
    heat: TokenHeat | None = None


def attend_documents(
    attend: Callable[..., Attention],
    item: Question,
    ids: Sequence[str],
    *,
    title: str,
    pool: Pool,
    calibration: Calibration,
    keep_prefix: bool = False,
    **options: Any,
) -> DocumentAttention:
    """One pass with the question and, with ``calibration`` content_free, a short one without its content.

    ``attend``: the backend's or the recorder's method. ``ids``: the question's documents, in the prompt's order.
    ``title`` and ``options``: as in ``InspectableBackend.attend``.
    """
    free = calibration == "content_free"
    ask = partial(prompt, item, ids)
    asked = attend(ask(), title=title, pool=pool, keep_prefix=keep_prefix or free, **options)
    if not free:
        return DocumentAttention(asked.map.mass, asked, asked.map.heat)
    from_habit = attend(
        ask(CONTENT_FREE), title=f"{title}: content-free question", pool=pool, prefix=asked.prefix, **options
    )
    heat = asked.map.heat
    if heat is not None and from_habit.map.heat is not None:
        heat = replace(heat, weights=contrasted(heat.weights, from_habit.map.heat.weights))
    return DocumentAttention(contrasted(asked.map.mass, from_habit.map.mass), asked, heat)
