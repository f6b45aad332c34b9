"""How large a difference between two shares is, on a scale that does not depend on where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np


def cohens_h(first: Any, second: Any) -> Any:
    """Cohen's h of two proportions in [0, 1]: the difference of their arcsine transforms (Cohen 1988, chapter 6).

    Above 0 where ``first`` is larger; 0.2 is called small, 0.5 medium, 0.8 large. Takes numbers or arrays of one shape.
    """
    return 2 * np.arcsin(np.sqrt(np.clip(first, 0, 1))) - 2 * np.arcsin(np.sqrt(np.clip(second, 0, 1)))
