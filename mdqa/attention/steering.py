"""From "steer towards these documents" to rows and a bias per key (CAFE eq. 8 and 9)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import torch

from mdqa.attention.capture import RowBias
from mdqa.attention.layout import Layout, Span


def row_bias(
    layout: Layout,
    documents: Sequence[str],
    delta: float,
    *,
    rows: Literal["question", "question_to_end", "question_to_end_and_generated"] = "question",
    before_scale: bool = False,
    parts: Sequence[tuple[str, int, int]] = (),
    row_documents: Sequence[str] = (),
    device: str | torch.device = "cpu",
) -> RowBias | None:
    """The steering of one prompt in tokens; None if it changes nothing (delta 0, no document, no token in a part).

    ``delta`` is added to the logits of every token of ``documents`` (header and text) in the steered rows; minus
    infinity takes the tokens out. ``parts``: (document, start, end) in characters of the document's block; then only
    tokens inside them. ``row_documents``: steer the rows of these documents in place of the question's. ValueError
    for documents that are not in the prompt, parts outside ``documents`` and a delta that is no number below infinity.
    """
    if math.isnan(delta) or delta == math.inf:
        raise ValueError(f"attention cannot be steered by {delta}")
    keys, steering = _spans(layout, documents, "steer to"), _spans(layout, row_documents, "steer the rows of")
    strangers = {document for document, _, _ in parts} - set(documents)
    if strangers:
        raise ValueError(f"parts of documents that are not steered to: {sorted(strangers)}")
    tokens = torch.zeros(len(layout.ids), dtype=torch.bool)
    for span in keys:
        inside = [(start, end) for document, start, end in parts if document == span.document_id]
        tokens[span.first : span.last] = torch.tensor(_tokens_within(layout, span, inside)) if parts else True
    if delta == 0 or not tokens.any():
        return None
    bias = torch.zeros(len(layout.ids), dtype=torch.float32).masked_fill(tokens, delta).to(device)
    if row_documents:
        places = torch.cat([torch.arange(span.first, span.last) for span in steering])
        return None if len(places) == 0 else RowBias(places.to(device), bias, before_scale)
    question = layout.question
    last = question.last if rows == "question" else len(layout.ids)
    steered = torch.arange(question.first, last, device=device)
    return RowBias(steered, bias, before_scale, len(layout.ids) if rows.endswith("generated") else None)


def _spans(layout: Layout, documents: Iterable[str], what: str) -> list[Span]:
    """The documents' places in prompt order."""
    wanted = set(documents)
    spans = [span for span in layout.of_kind("document") if span.document_id in wanted]
    unknown = wanted - {span.document_id for span in spans}
    if unknown:
        raise ValueError(f"cannot {what} documents that are not in the prompt: {sorted(unknown)}")
    return spans


def _tokens_within(layout: Layout, span: Span, parts: Sequence[tuple[int, int]]) -> list[bool]:
    """For every token of a document whether it belongs to one of its parts. A token without text goes with the last."""
    found: list[bool] = []
    for index in range(span.first, span.last):
        place = layout.anchor(index) - span.start
        without_text = layout.offsets[index][0] == layout.offsets[index][1]
        inside = any(start <= place < end for start, end in parts)
        found.append(found[-1] if without_text and found else inside)
    return found
