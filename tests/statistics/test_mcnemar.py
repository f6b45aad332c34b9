"""McNemar's exact test by hand, and Table 14 of the MADARA paper worked out again from its own counts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from mdqa.statistics.holm import holm
from mdqa.statistics.mcnemar import McNemar, exact_p, mcnemar, sign_flip_p

COUNTS = st.integers(0, 200)


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),  # heads or tails: both ends count
        (0, 5, 2 / 32),
        (4, 1, 2 * (1 + 5) / 32),
        (3, 3, 1.0),
        (9, 1, 2 * (1 + 10) / 1024),
    ],
)
def test_by_hand(b: int, c: int, p: float) -> None:
    assert exact_p(b, c) == pytest.approx(p)


@given(COUNTS, COUNTS)
def test_which_method_is_named_first_makes_no_difference(b: int, c: int) -> None:
    assert exact_p(b, c) == pytest.approx(exact_p(c, b), rel=1e-9)
    assert 0 < exact_p(b, c) <= 1


@given(COUNTS, st.integers(1, 200))
def test_the_further_apart_the_counts_the_smaller_is_p(low: int, more: int) -> None:
    """Of the same number of discordant pairs."""
    even = low + more
    assert exact_p(low, even + more) < exact_p(even, even) == pytest.approx(1.0)


def test_counts_from_paired_values() -> None:
    first, second = [1, 1, 1, 0, 0, 1.0], [0, 1, 0.0, 1, 0, 0]
    assert mcnemar(first, second) == McNemar(b=3, c=1, p=exact_p(3, 1), n=6)
    assert mcnemar(second, first) == McNemar(b=1, c=3, p=exact_p(1, 3), n=6)
    assert mcnemar(first, first) == McNemar(0, 0, 1.0, 6)
    assert mcnemar([], []) == McNemar(0, 0, 1.0, 0)


def test_values_that_are_no_pairs_of_right_and_wrong() -> None:
    with pytest.raises(ValueError, match="2 and 1"):
        mcnemar([1, 0], [1])
    with pytest.raises(ValueError, match=r"pair 1 is \(0.5, 1\)"):
        mcnemar([1, 0.5], [1, 1])
    with pytest.raises(ValueError, match="pair 0 is"):
        mcnemar([float("nan")], [0])
    with pytest.raises(ValueError, match="b = -1"):
        exact_p(-1, 2)


EXACT, CORRECTED, NEITHER = "exact", "corrected", "neither"

SCORING_ONLY = (
    # b, c, p and stars as printed, where p comes from
    (36, 12, "0.001", "***", EXACT),  # Llama-3.1-8B, CONFLICTS
    (14, 11, "0.689", "", CORRECTED),  # Mistral-7B
    (20, 15, "0.499", "", CORRECTED),  # Qwen3-8B
    (23, 10, "0.037", "", CORRECTED),  # Qwen2.5-7B
    (20, 11, "0.151", "", CORRECTED),  # Gemma-2-9B
    (14, 9, "0.405", "", EXACT),  # Mistral-7B, FEVER
    (14, 12, "0.845", "", EXACT),  # Qwen3-8B
    (30, 11, "0.005", "**", CORRECTED),  # Qwen2.5-7B
    (14, 11, "0.689", "", CORRECTED),  # Gemma-2-9B
)
PDE = (
    (97, 11, "2.4e-18", "***", EXACT),  # Llama-3.1-8B against No-Filter
    (73, 11, "9.3e-12", "***", NEITHER),  # and against 3-Agent
    (69, 9, "1.4e-12", "***", EXACT),  # Mistral-7B against No-Filter
    (64, 7, "7.7e-12", "***", NEITHER),  # and against 3-Agent
)


def as_printed(p: float) -> str:
    return f"{p:.3f}" if p >= 5e-4 else f"{p:.1e}"


def corrected_p(b: int, c: int) -> float:
    """McNemar's chi-square with Edwards' continuity correction."""
    return float(chi2.sf((abs(b - c) - 1) ** 2 / (b + c), 1))


@pytest.mark.parametrize(("b", "c", "printed", "stars", "origin"), SCORING_ONLY + PDE)
def test_every_p_value_of_table_14(b: int, c: int, printed: str, stars: str, origin: str) -> None:
    """The table is headed "exact", but its p-values are of three kinds.

    Five are the exact ones. Six are those of the chi-square approximation with continuity correction and differ from
    the exact ones by at most 0.002. Two, 73/11 and 64/7, follow from their b and c by neither.
    """
    matches = {EXACT: as_printed(exact_p(b, c)) == printed, CORRECTED: as_printed(corrected_p(b, c)) == printed}
    if origin == NEITHER:
        assert not any(matches.values())
        assert exact_p(b, c) == pytest.approx({73: 2.25e-12, 64: 1.26e-12}[b], rel=5e-3)
    else:
        assert matches[origin]
        assert abs(exact_p(b, c) - float(printed)) < 2e-3
    if origin == CORRECTED:
        assert not matches[EXACT]


def stars_of(p: float) -> str:
    return "***" if p < 0.001 else "**" if p < 0.01 else ""


def test_what_of_table_14_stays_significant_after_holm() -> None:
    """The same rows as in the table, each family corrected apart: 2 of 9 scoring-only tests and all 4 of PDE.

    The stars of the scoring-only rows are those of the p-values before the correction, though the caption says after:
    36/12 has 0.0065 after it (two stars, not three) and 30/11 has 0.035 (none).
    """
    rows = SCORING_ONLY + PDE
    raw = [exact_p(b, c) for b, c, *_ in rows]
    adjusted = holm(raw, ["scoring"] * len(SCORING_ONLY) + ["pde"] * len(PDE))
    assert [p <= 0.05 for p in adjusted] == [bool(stars) for *_, stars, _ in rows]
    assert [stars_of(p) for p in raw] == [stars for *_, stars, _ in rows]
    assert adjusted[0] == pytest.approx(9 * raw[0])
    assert adjusted[7] == pytest.approx(8 * raw[7])
    assert (stars_of(adjusted[0]), stars_of(adjusted[7])) == ("**", "")
    assert [f"{p:.2g}" for p in (adjusted[0], adjusted[7])] == ["0.0065", "0.035"]
    assert all(stars_of(p) == "***" for p in adjusted[9:])


def test_joint_correction_changes_nothing_for_pde() -> None:
    """As the text beside the table says (of 14 tests, though it has 13)."""
    adjusted = holm([exact_p(b, c) for b, c, *_ in SCORING_ONLY + PDE])
    assert all(p < 1e-10 for p in adjusted[9:])


def test_single_clusters_are_the_ordinary_test() -> None:
    first, second = [1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0]
    assert mcnemar(first, second, list("abcdef")) == mcnemar(first, second)


def test_versions_of_a_question_are_one_draw() -> None:
    """Three questions, each right in all four versions for the first method only: like three heads, not twelve."""
    clustered = mcnemar([1] * 12, [0] * 12, ["q1", "q2", "q3"] * 4)
    assert (clustered.b, clustered.c, clustered.n) == (12, 0, 12)
    assert clustered.p == pytest.approx(2 / 8)
    assert exact_p(12, 0) < 0.001


@given(st.lists(st.integers(-3, 3), max_size=9))
def test_flipped_signs_by_trying_all_of_them(differences: list[int]) -> None:
    sums = [sum(sign * d for sign, d in zip(signs, differences, strict=True)) for signs in _signs(len(differences))]
    as_far = sum(abs(total) >= abs(sum(differences)) for total in sums)
    assert sign_flip_p(differences) == pytest.approx(as_far / len(sums))


def _signs(count: int) -> list[tuple[int, ...]]:
    return list(itertools.product((1, -1), repeat=count))


def test_clusters_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="2 and 2 and 1 clusters"):
        mcnemar([1, 0], [0, 0], ["a"])
