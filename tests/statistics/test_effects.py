"""Cohen's h by hand (Cohen 1988, section 6.2)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mdqa.statistics.effects import cohens_h


def test_by_hand() -> None:
    assert cohens_h(0.5, 0.25) == pytest.approx(math.pi / 2 - math.pi / 3)
    assert cohens_h(1, 0) == pytest.approx(math.pi)
    assert cohens_h(0.25, 0.5) == -cohens_h(0.5, 0.25)
    assert cohens_h(np.array([0.3, 1 + 1e-16]), np.array([0.3, 1.0])).tolist() == [0, 0], (
        "rounding beyond 1 is no error"
    )
