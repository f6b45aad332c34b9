"""From "steer towards these documents" to rows and a bias per key (CAFE eq. 8 and 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from mdqa.attention.capture import RowBias
from mdqa.attention.layout import Layout


def row_bias(
    layout: Layout,
    documents: Sequence[str],
    delta: float,
    *,
    rows: Literal["question", "question_to_end", "question_to_end_and_generated"] = "question",
    before_scale: bool = False,
    device: str | torch.device = "cpu",
) -> RowBias | None:
    """The steering of one prompt in tokens; None if it changes nothing (delta 0 or no document).

    ``delta`` is added to the logits of every token of ``documents`` (header and text) in the steered rows.
    """
    wanted = set(documents)
    unknown = wanted - {span.document_id for span in layout.of_kind("document")}
    if unknown:
        raise ValueError(f"cannot steer to documents that are not in the prompt: {sorted(unknown)}")
    if delta == 0 or not wanted:
        return None
    bias = torch.zeros(len(layout.ids), dtype=torch.float32, device=device)
    for span in layout.of_kind("document"):
        if span.document_id in wanted:
            bias[span.first : span.last] = delta
    question = layout.question
    last = question.last if rows == "question" else len(layout.ids)
    steered = torch.arange(question.first, last, device=device)
    return RowBias(steered, bias, before_scale, len(layout.ids) if rows.endswith("generated") else None)
