"""Attention beyond habit: what the question adds to the attention that a content-free question gets anyway.

Heads like places (the first document, the last one) and long documents whatever is asked. The attention of a question
without content over the same documents shows that habit; the difference is owed to the question (In-Context
Re-ranking and QRHead do the same; CAFE does not, so it is an option there).
"""

from __future__ import annotations

import numpy as np

CONTENT_FREE = "N/A"
"""The question without content."""


def contrasted(question: np.ndarray, content_free: np.ndarray) -> np.ndarray:
    """Attention owed to the question: the difference where it is positive, 0 elsewhere.

    Any shape (for example (L, H, D) mass or (H, T) token weights); non-negative, so shares (CAFE eq. 1) stay defined.
    """
    return np.maximum(np.asarray(question) - np.asarray(content_free), 0.0)
