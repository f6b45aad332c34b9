"""Coefficients of agreement against published worked examples, hand calculations and what must hold of all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.statistics.agreement import (
    MISSING,
    Coefficient,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    percent_agreement,
    table_of,
)
from mdqa.statistics.clustered import drawn

ALL = (percent_agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha)
_ = MISSING

FLEISS_1971 = (
    *((0, 0, 0, 6, 0), (0, 3, 0, 0, 3), (0, 1, 4, 0, 1), (0, 0, 0, 0, 6), (0, 3, 0, 3, 0), (2, 0, 4, 0, 0)),
    *((0, 0, 4, 0, 2), (2, 0, 3, 1, 0), (2, 0, 0, 4, 0), (0, 0, 0, 0, 6), (1, 0, 0, 5, 0), (1, 1, 0, 4, 0)),
    *((0, 3, 3, 0, 0), (1, 0, 0, 5, 0), (0, 2, 0, 3, 1), (0, 0, 5, 0, 1), (3, 0, 0, 1, 2), (5, 1, 0, 0, 0)),
    *((0, 2, 0, 4, 0), (1, 0, 2, 0, 3), (0, 0, 0, 0, 6), (0, 1, 0, 5, 0), (0, 2, 0, 1, 3), (2, 0, 0, 4, 0)),
    *((1, 0, 0, 4, 1), (0, 5, 0, 1, 0), (4, 0, 0, 0, 2), (0, 2, 0, 4, 0), (1, 0, 5, 0, 0), (0, 0, 0, 0, 6)),
)
"""Fleiss (1971), table 1: 30 patients, 6 psychiatrists, 5 diagnoses; kappa 0.430."""

FOURTEEN = (
    *((0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1)),
    *((7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7)),
)
"""The worked example of many textbooks: 10 subjects, 14 raters, 5 categories; kappa 0.210."""


def by_counts(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """A table of ratings with these numbers of ratings per category."""
    return np.array([[c for c, number in enumerate(row) for _ in range(number)] for row in rows])


def two(crossed: Sequence[Sequence[int]]) -> np.ndarray:
    """Two raters with this table of counts, the first one's categories down."""
    return np.array([(i, j) for i, row in enumerate(crossed) for j, n in enumerate(row) for _ in range(n)])


def rows(*raters: Sequence[int]) -> np.ndarray:
    """One row per rater, as worked examples print them."""
    return np.array(raters).T


def quick(coefficient: Callable[..., Coefficient], table: np.ndarray) -> float | None:
    return coefficient(table, resamples=1).value


@pytest.mark.parametrize(
    ("crossed", "kappa"),
    [
        pytest.param(((50, 26, 24), (24, 4, 32), (6, 30, 4)), (0.29 - 0.35) / 0.65, id="Cohen 1960, table 1"),
        pytest.param(((20, 5), (10, 15)), 0.4, id="grants"),
        pytest.param(((45, 15), (25, 15)), 0.1304, id="same agreement, even marginals"),
        pytest.param(((25, 35), (5, 35)), 0.2593, id="same agreement, uneven marginals"),
    ],
)
def test_cohen(crossed: Sequence[Sequence[int]], kappa: float) -> None:
    found = cohen_kappa(two(crossed), resamples=200)
    assert found.value == pytest.approx(kappa, abs=5e-5)
    assert found.items == found.pairs == sum(map(sum, crossed))
    assert found.ratings == 2 * found.items
    assert found.low is not None and found.high is not None
    assert found.low < found.value < found.high


@pytest.mark.parametrize(
    ("counts", "kappa"), [pytest.param(FLEISS_1971, 0.430, id="1971"), pytest.param(FOURTEEN, 0.210, id="textbook")]
)
def test_fleiss(counts: Sequence[Sequence[int]], kappa: float) -> None:
    found = fleiss_kappa(by_counts(counts), resamples=200)
    assert found.value == pytest.approx(kappa, abs=5e-4)
    assert (found.items, found.ratings, found.note) == (len(counts), sum(map(sum, counts)), "")


@pytest.mark.parametrize(
    ("table", "alpha", "items", "ratings"),
    [
        pytest.param(
            rows((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0)), 0.095, 10, 20, id="A, binary"
        ),
        pytest.param(
            rows((0, 0, 1, 1, 3, 2, 2, 2, 4, 3, 3, 0), (1, 0, 1, 1, 1, 2, 2, 2, 4, 3, 3, 3)), 0.692, 12, 24, id="B"
        ),
        pytest.param(
            rows(
                (0, 1, 2, 2, 1, 0, 3, 0, 1, _, _, _),
                (0, 1, 2, 2, 1, 1, 3, 0, 1, 4, _, 2),
                (_, 2, 2, 2, 1, 2, 3, 1, 1, 4, 0, _),
                (0, 1, 2, 2, 1, 3, 3, 0, 1, 4, 0, _),
            ),
            *(0.743, 11, 40),
            id="C, four observers with missing data",
        ),
    ],
)
def test_krippendorff_2011(table: np.ndarray, alpha: float, items: int, ratings: int) -> None:
    found = krippendorff_alpha(table, resamples=200)
    assert found.value == pytest.approx(alpha, abs=5e-4)
    assert (found.items, found.ratings) == (items, ratings)


def test_percent_is_of_pairs() -> None:
    """Three of three pairs, one of three, none of one."""
    found = percent_agreement(np.array([[0, 0, 0], [0, 1, 1], [1, 0, _], [1, _, _]]), resamples=50)
    assert found.value == pytest.approx(4 / 7)
    assert (found.items, found.ratings, found.pairs) == (3, 8, 7)


def test_fleiss_takes_the_most_frequent_number_of_ratings() -> None:
    table = np.array([[0, 0, _], [0, 1, _], [1, 1, _], [0, 1, 1]])
    found = fleiss_kappa(table, resamples=50)
    assert found.value == pytest.approx((2 / 3 - 0.5) / 0.5)
    assert (found.items, found.ratings) == (3, 6)
    assert "2 ratings each; 1 item has another number" in found.note
    even = np.array([[0, 0, _], [0, 1, 1]])
    assert "3 ratings each" in fleiss_kappa(even, resamples=50).note


@pytest.mark.parametrize("coefficient", [cohen_kappa, fleiss_kappa, krippendorff_alpha])
def test_one_category_is_undefined_in_words(coefficient: Callable[..., Coefficient]) -> None:
    found = coefficient(np.zeros((5, 2), dtype=int))
    assert (found.value, found.low, found.high, found.status) == (None, None, None, "one_category")
    assert "chance agrees always" in found.note
    assert percent_agreement(np.zeros((5, 2), dtype=int)).value == 1.0


@pytest.mark.parametrize("coefficient", ALL)
@pytest.mark.parametrize(
    ("table", "status"),
    [
        pytest.param(np.full((0, 2), 0), "no_overlap", id="nothing"),
        pytest.param(np.array([[_, _]]), "no_overlap", id="only blanks"),
        pytest.param(np.array([[0, _], [1, _]]), "one_rater", id="one rater"),
        pytest.param(np.array([[0, _], [_, 1]]), "no_overlap", id="never the same item"),
    ],
)
def test_nothing_to_compare(coefficient: Callable[..., Coefficient], table: np.ndarray, status: str) -> None:
    found = coefficient(table)
    assert (found.value, found.items, found.pairs, found.status) == (None, 0, 0, status)
    assert found.note.endswith((".", "yet."))


def test_cohen_is_for_two() -> None:
    assert cohen_kappa(np.zeros((4, 3), dtype=int)).status == "not_two_raters"


def test_draws_without_a_value_are_counted() -> None:
    """With two items, half of the draws have only one of the categories."""
    found = krippendorff_alpha(np.array([[0, 0], [1, 1]]), resamples=4000)
    assert found.value == 1.0
    assert (found.low, found.high) == (1.0, 1.0)
    assert re.fullmatch(
        r"(49|50|51)% of the draws have one category only and are left out of the interval\.", found.note
    )


def test_a_single_draw_without_a_value_is_said_too() -> None:
    """A draw of 20 has none of the five rarer items in 3 of 1,000 cases."""
    few = np.array([[0, 0]] * 15 + [[1, 1]] * 5)
    found = krippendorff_alpha(few, resamples=2000)
    without = sum(
        int((weights[:, :15].sum(axis=1) * weights[:, 15:].sum(axis=1) == 0).sum()) for weights in drawn(20, 2000, 0)
    )
    assert 1 < without < 20
    assert found.note == f"{without} of 2,000 draws have one category only and are left out of the interval."


def test_the_interval_is_that_of_the_mean_where_the_coefficient_is_one() -> None:
    """Percent agreement of two raters is a mean over items: its variance is p (1 - p) / n."""
    agree = np.arange(400) % 5 != 0
    found = percent_agreement(np.stack([np.zeros(400, dtype=int), (~agree).astype(int)], axis=1))
    half = 1.96 * np.sqrt(0.8 * 0.2 / 400)
    assert found.low == pytest.approx(0.8 - half, abs=0.006)
    assert found.high == pytest.approx(0.8 + half, abs=0.006)


def test_table_of_triples() -> None:
    table, items, raters = table_of([("i", "ann", "A"), ("j", "bob", "B"), ("i", "bob", "A"), ("j", "bob", "A")])
    assert (items, raters, table.tolist()) == (["i", "j"], ["ann", "bob"], [[0, 0], [MISSING, 0]])
    assert table_of([])[0].shape == (0, 0)


@pytest.mark.parametrize("bad", [np.array([0, 1]), np.array([[0.5, 1.0]]), np.array([[-2, 1]])], ids=str)
def test_a_table_that_is_none(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected a table"):
        percent_agreement(bad)


TABLES = st.integers(2, 4).flatmap(
    lambda raters: st.lists(st.lists(st.integers(-1, 2), min_size=raters, max_size=raters), min_size=1, max_size=12)
)


@given(TABLES, st.integers(0, 999))
def test_order_and_names_mean_nothing(ratings: list[list[int]], seed: int) -> None:
    table = np.array(ratings)
    generator = np.random.default_rng(seed)
    mixed = table[generator.permutation(len(table))][:, generator.permutation(table.shape[1])]
    names = generator.permutation(3)
    mixed = np.where(mixed == MISSING, MISSING, names[mixed])
    for coefficient in ALL:
        one, other = coefficient(table, resamples=1), coefficient(mixed, resamples=1)
        assert (one.value is None) == (other.value is None)
        assert one.value == pytest.approx(other.value) if one.value is not None else one.status == other.status
        assert (one.items, one.ratings, one.pairs) == (other.items, other.ratings, other.pairs)


@given(st.lists(st.integers(0, 3), min_size=2, max_size=20), st.integers(2, 4))
def test_perfect_agreement_is_one(labels: list[int], raters: int) -> None:
    table = np.repeat(np.array(labels)[:, None], raters, axis=1)
    several = len(set(labels)) > 1
    for coefficient in ALL:
        if coefficient is cohen_kappa and raters != 2:
            continue
        wanted = pytest.approx(1.0) if several or coefficient is percent_agreement else None
        assert quick(coefficient, table) == wanted


@given(TABLES)
def test_no_value_is_above_one_or_no_number(ratings: list[list[int]]) -> None:
    for coefficient in ALL:
        found = coefficient(np.array(ratings), resamples=20)
        assert (found.value is None) == (found.status != "ok")
        if found.value is None:
            assert found.note
            continue
        assert -1.0 - 1e-9 <= found.value <= 1.0
        assert found.low is None or (found.high is not None and found.low <= found.high <= 1.0)


def test_for_two_raters_the_coefficients_are_close_with_many_items() -> None:
    """Scott's pi is Fleiss' kappa of two raters; alpha corrects it for the sample: 1 - (1 - pi) (2n - 1) / 2n."""
    table = two(((30, 5, 2), (4, 25, 3), (1, 6, 24)))
    pi, alpha = quick(fleiss_kappa, table), quick(krippendorff_alpha, table)
    assert pi is not None
    assert alpha == pytest.approx(1 - (1 - pi) * (2 * len(table) - 1) / (2 * len(table)))
    assert quick(cohen_kappa, table) == pytest.approx(pi, abs=0.01)


def by_pairs(table: np.ndarray) -> float | None:
    """Percent agreement, pair by pair."""
    pairs = [a == b for row in ratings_of(table) for a, b in combinations(row, 2)]
    return float(Fraction(sum(pairs), len(pairs))) if pairs else None


def by_cohen(table: np.ndarray) -> float | None:
    """Cohen (1960): p_o and p_e from the two raters' own shares, over the items that both rated."""
    both = [(int(a), int(b)) for a, b in table if MISSING not in (a, b)]
    if not both:
        return None
    n = len(both)
    observed = Fraction(sum(a == b for a, b in both), n)
    chance = sum(
        Fraction(sum(a == c for a, _ in both), n) * Fraction(sum(b == c for _, b in both), n) for c in range(5)
    )
    return None if chance == 1 else float((observed - chance) / (1 - chance))


def by_fleiss(table: np.ndarray) -> float | None:
    """Fleiss (1971): mean of P_i, and P_e of the pooled shares, over items with the most frequent number of ratings."""
    rated = [row for row in ratings_of(table) if len(row) > 1]
    if not rated:
        return None
    sizes = Counter(map(len, rated))
    n = max(sizes, key=lambda size: (sizes[size], size))
    used = [row for row in rated if len(row) == n]
    observed = sum(Fraction(sum(a == b for a, b in permutations(row, 2)), n * (n - 1)) for row in used) / len(used)
    pooled = Counter(label for row in used for label in row)
    chance = sum(Fraction(number, n * len(used)) ** 2 for number in pooled.values())
    return None if chance == 1 else float((observed - chance) / (1 - chance))


def by_krippendorff(table: np.ndarray) -> float | None:
    """Krippendorff (2011): the coincidence matrix of ordered pairs, each weighed by 1 / (m_u - 1); 1 - D_o / D_e."""
    matrix: Counter[tuple[int, int]] = Counter()
    for row in ratings_of(table):
        for pair in permutations(row, 2):
            matrix[pair] += Fraction(1, len(row) - 1)  # type: ignore[assignment]
    of: Counter[int] = Counter()
    for (a, _), weight in matrix.items():
        of[a] += weight
    n = sum(of.values())
    differing = sum(weight for (a, b), weight in matrix.items() if a != b)
    by_chance = sum(of[a] * of[b] for a, b in permutations(of, 2))
    return float(1 - Fraction(n - 1) * differing / by_chance) if by_chance else None


def ratings_of(table: np.ndarray) -> list[list[int]]:
    """The ratings of each item, blanks left out."""
    return [[int(label) for label in row if label != MISSING] for row in table]


BY_DEFINITION = (
    (percent_agreement, by_pairs),
    (cohen_kappa, by_cohen),
    (fleiss_kappa, by_fleiss),
    (krippendorff_alpha, by_krippendorff),
)


@given(TABLES)
def test_every_coefficient_is_what_its_definition_says(ratings: list[list[int]]) -> None:
    table = np.array(ratings)
    for coefficient, definition in BY_DEFINITION:
        if coefficient is cohen_kappa and table.shape[1] != 2:
            continue
        found, wanted = quick(coefficient, table), definition(table)
        assert (found is None) == (wanted is None), (coefficient.__name__, found, wanted)
        assert found is None or found == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(("coefficient", "definition"), BY_DEFINITION, ids=lambda function: function.__name__)
def test_the_bootstrap_draws_items_whole(
    coefficient: Callable[..., Coefficient], definition: Callable[[np.ndarray], float | None]
) -> None:
    """The interval is that of the coefficient by its definition, on tables of items drawn with replacement."""
    table = np.array([(0, 0), (0, 1), (1, 1), (0, 0), (2, 2), (1, 0), (0, 0), (0, _), (_, 1)])
    paired = table[(table != MISSING).all(axis=1)]
    found = coefficient(table, resamples=300, seed=7)
    draws = [
        definition(np.repeat(paired, weights.astype(int), axis=0))
        for block in drawn(len(paired), 300, 7)
        for weights in block
    ]
    known = [value for value in draws if value is not None]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(known, (0.025, 0.975))))
    assert bool(found.note) == (len(known) < len(draws))
