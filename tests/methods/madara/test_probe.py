"""The probe: perturbations that never break a word, and what a profile says of the scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.methods.madara.probe import (
    OPPOSITES,
    contradict,
    contradict_chain,
    donors,
    shuffle,
    summarise,
    table,
)
from mdqa.methods.madara.stability import correlations
from tests.methods.madara.probing import pairs_of, random_columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The document is relevant.", "The document is irrelevant."),
        ("An irrelevant, inconsistent text", "An relevant, consistent text"),
        ("It SUPPORTS the claim; Contradicts nothing.", "It CONTRADICTS the claim; Supports nothing."),
        ("high quality", "low quality"),
        ("low-quality source", "high-quality source"),
        ("score of 4", "score of 1"),
        ("a Score: 0", "a Score: 5"),
        ("I give it 4/5.", "I give it 1/5."),
        ("5 out of 5", "0 out of 5"),
        ("score of 4/5", "score of 1/5"),
        ("a score of 4, then", "a score of 1, then"),
        ("score of 4.", "score of 1."),
    ],
)
def test_contradict(text, expected):
    assert contradict(text) == expected
    assert contradict(expected) == text


@pytest.mark.parametrize(
    "text",
    [
        "irrelevance and relevancy",
        "supported, supporters",
        "validity invalidates",
        "score of 4.5",
        "score of 10",
        "4/5/2019",
        "in 2004 there were 3 of them",
        "high mountains of quality",
        "14/50",
        "highly useful".replace("useful", "used"),
    ],
)
def test_contradict_leaves_other_text_alone(text):
    assert contradict(text) == text


@pytest.mark.parametrize("pair", OPPOSITES)
def test_contradict_never_corrupts_a_word(pair):
    for word, other in (pair, pair[::-1]):
        for form in (str.lower, str.upper, str.capitalize):
            assert contradict(form(word)) == form(other)
        assert contradict(f"x{word} {word}x") == f"x{word} {word}x"


def test_lexicon_is_a_matching():
    words = [word for pair in OPPOSITES for word in pair]
    assert len(words) == len(set(words))


_WORDS = [w for pair in OPPOSITES for w in pair] + ["score of 2", "3/5", "high quality", "Paris", "the", "1969", "."]


@given(st.lists(st.sampled_from(_WORDS), max_size=20))
def test_contradict_is_an_involution(words):
    text = " ".join(words)
    assert contradict(contradict(text)) == text


@given(st.text())
def test_contradict_survives_any_text(text):
    contradict(text)


def test_shuffle_keeps_the_steps():
    chain = tuple(f"step {i}" for i in range(8))
    assert shuffle(chain, 1) == shuffle(chain, 1) != chain
    assert sorted(shuffle(chain, 2)) == sorted(chain)
    assert shuffle(("one",), 3) == ("one",) and shuffle((), 3) == ()


def test_contradict_chain():
    assert contradict_chain(("It is relevant.", "score of 5")) == ("It is irrelevant.", "score of 0")


def test_donors_come_from_another_query():
    owners = ["a"] * 5 + ["b"] * 5 + ["c"]
    chains = [("x",)] * 10 + [()]
    for seed in range(50):
        gifts = donors(owners, chains, seed)
        assert all(owners[gift] != owner for gift, owner in zip(gifts, owners, strict=True))
        assert 10 not in gifts  # an empty chain is not given away
    assert donors(["a", "a"], [("x",), ("y",)], 0) == [None, None]
    assert donors(["a", "b"], [("x",), ()], 0) == [None, 0]


def test_constant_scores_count_as_no_correlation():
    pairs = pairs_of([[0] * 20, [1, 2] * 10, [1, 2] * 10, [1, 2] * 10, [1, 2] * 10])
    assert correlations(table(pairs))[0] == [0.0] * 4
    found = summarise(pairs, samples=0, seed=1)
    assert found["degenerate"] and found["commonest_score"] == "0" and found["model_class"] == "stochastic"


def test_degenerate_from_95_percent():
    flat = [0] * 19 + [5]
    assert summarise(pairs_of([flat] * 5), samples=0, seed=1)["degenerate"]
    assert not summarise(pairs_of([[0] * 18 + [5, 5]] * 5), samples=0, seed=1)["degenerate"]


def test_summary_and_intervals():
    pairs = pairs_of(random_columns(200), queries=20)
    found = summarise(pairs, samples=200, seed=7)
    assert found["rho"] == correlations(table(pairs))[0][1:]
    assert found["rho_bar"] == pytest.approx(np.mean(found["rho"]))
    assert found["queries"] == 20 and sum(found["histogram"].values()) == 200
    for (low, high), rho in zip(found["intervals"], [found["control"], *found["rho"]], strict=True):
        assert low <= rho <= high
    assert 0 <= found["stability"] <= 1
    assert found == summarise(pairs, samples=200, seed=7)
