"""The Structural Fusion Score against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mdqa.methods.duquad.fusion import (
    arrange,
    document_contrast,
    fuse,
    normalise,
    rank,
    relative_contrast,
    token_masked_contrast,
)
from mdqa.records import AttentionMap, DocumentScore, TokenHeat


def scores(**values: float | str) -> dict[str, DocumentScore]:
    return {
        key: DocumentScore(value=value) if isinstance(value, float) else DocumentScore(status="unavailable", detail="?")
        for key, value in values.items()
    }


def numbers(result: dict[str, DocumentScore]) -> dict[str, float | None]:
    return {key: score.value for key, score in result.items()}


def test_z_score_uses_the_population_deviation() -> None:
    # mean 4, deviations -3 -1 +4, variance (9 + 1 + 16) / 3
    std = math.sqrt(26 / 3)
    assert numbers(normalise(scores(a=1.0, b=3.0, c=8.0))) == pytest.approx(
        {"a": -3 / std, "b": -1 / std, "c": 4 / std}, abs=1e-12
    )


def test_min_max_spans_zero_to_one() -> None:
    assert numbers(normalise(scores(a=-2.0, b=-1.0, c=2.0), "min_max")) == {"a": 0.0, "b": 0.25, "c": 1.0}


@pytest.mark.parametrize("kind", ["z_score", "min_max"])
@pytest.mark.parametrize("value", [0.0, 0.1, -3.2, 1e-9, 1e9])
def test_equal_signals_become_zero(kind: str, value: float) -> None:
    # Three times 0.1 has a standard deviation of about 1e-17 in floating point, which must not be divided by.
    assert set(numbers(normalise(scores(a=value, b=value, c=value), kind)).values()) == {0.0}  # type: ignore[arg-type]


def test_rounding_noise_does_not_become_a_signal_but_a_small_real_difference_does() -> None:
    noise = normalise(scores(a=-3.2000000, b=-3.2000001))
    assert set(numbers(noise).values()) == {0.0}
    assert numbers(normalise(scores(a=-3.2, b=-3.201))) == pytest.approx({"a": 1.0, "b": -1.0})


def test_one_document_becomes_zero() -> None:
    assert numbers(normalise(scores(a=0.7))) == {"a": 0.0}


def test_a_document_without_a_number_keeps_its_status_and_does_not_move_the_others() -> None:
    result = normalise(scores(a=1.0, b="gone", c=3.0))
    assert numbers(result) == {"a": -1.0, "b": None, "c": 1.0}
    assert result["b"].status == "unavailable"


def test_fused_by_hand() -> None:
    signals = {
        "sim": scores(a=1.0, b=0.0, c=-1.0),
        "ppl": scores(a=-1.0, b=2.0, c=0.5),
        "cont": scores(a=0.0, b=1.0, c=2.0),
    }
    fused = fuse(signals, {"sim": 0.5, "ppl": 1.0, "cont": 0.5})
    assert numbers(fused) == {"a": -0.5, "b": 2.5, "c": 1.0}


def test_fused_from_the_signals_that_are_left() -> None:
    signals = {"sim": scores(a=1.0, b=-1.0), "cont": scores(a="gone", b="gone")}
    assert numbers(fuse(signals, {"sim": 0.5, "cont": 0.5})) == {"a": 0.5, "b": -0.5}


def test_no_signal_at_all_is_said() -> None:
    fused = fuse({"sim": scores(a="gone")}, {"sim": 1.0})
    assert (fused["a"].value, fused["a"].status) == (None, "unavailable")


def test_ranking_breaks_ties_by_position_and_puts_the_unscored_last() -> None:
    assert rank(["a", "b", "c", "d"], scores(a="gone", b=1.0, c=2.0, d=1.0)) == ("c", "b", "d", "a")


@pytest.mark.parametrize(
    ("order", "expected"),
    [("original", ("a", "c", "d")), ("descending", ("d", "a", "c")), ("ascending", ("c", "a", "d"))],
)
def test_local_order(order: str, expected: tuple[str, ...]) -> None:
    assert arrange(("d", "a", "c"), ("a", "b", "c", "d"), order) == expected  # type: ignore[arg-type]


def attention_map(mass: list[list[list[float]]]) -> AttentionMap:
    array = np.array(mass, dtype=np.float32)
    return AttentionMap(stage="s", title="t", documents=("a", "b"), mass=array, model_layers=len(mass))


def test_document_contrast_sums_over_layers_and_heads() -> None:
    question = attention_map([[[0.5, 0.25], [0.25, 0.25]], [[0.125, 0.5], [0.0, 0.5]]])
    content_free = attention_map([[[0.25, 0.25], [0.25, 0.5]], [[0.125, 0.25], [0.0, 0.125]]])
    assert document_contrast(question, content_free) == {"a": 0.25, "b": 0.375}


def test_relative_contrast_is_the_logarithm_of_the_ratio_of_masses() -> None:
    question = attention_map([[[0.5, 0.25], [0.25, 0.25]]])
    assert relative_contrast(question, attention_map([[[0.125, 0.25], [0.25, 0.25]]])) == pytest.approx(
        {"a": math.log(2), "b": 0.0}
    )
    nothing = relative_contrast(question, attention_map([[[0.5, 0.0], [0.25, 0.0]]]))
    assert nothing["b"] == math.inf  # becomes a status, not a number


def heat(weights: list[list[float]], document: list[int]) -> TokenHeat:
    return TokenHeat(
        heads=((0, 0), (0, 1)),
        texts=("x", "y", "z"),
        document=np.array(document),
        spans=np.zeros((len(document), 2), dtype=np.int32),
        weights=np.array(weights, dtype=np.float32),
    )


def test_token_mask_drops_the_token_far_below_its_document() -> None:
    # Document 0: nine tokens of contrast 0.5 and one of -4: mean 0.05, deviation 1.35, bar -2.65; the last one goes.
    # Document 1: contrast 1 and 2: both stay. Document 2 has no token.
    document = [0] * 10 + [1, 1]
    question = heat([[0.25] * 9 + [0.0, 1.0, 1.0], [0.5] * 9 + [0.0, 0.5, 1.5]], document)
    content_free = heat([[0.25] * 9 + [2.0, 0.25, 0.25], [0.0] * 9 + [2.0, 0.25, 0.25]], document)
    assert token_masked_contrast(question, content_free, ("a", "b", "c")) == {"a": 4.5, "b": 3.0, "c": 0.0}


def test_without_a_mask_token_sum_equals_document_difference() -> None:
    rng = np.random.default_rng(0)
    document = [0, 0, 0, 1, 1]
    first, second = rng.random((2, 5)).tolist(), rng.random((2, 5)).tolist()
    tokens = token_masked_contrast(heat(first, document), heat(second, document), ("a", "b"), deviations=math.inf)
    maps = [attention_map([[[sum(row[:3]), sum(row[3:])] for row in weights]]) for weights in (first, second)]
    assert tokens == pytest.approx(document_contrast(*maps), abs=1e-6)
