"""Aggregation, SDA, ATF and the PDE vote against cases worked out by hand."""

from collections import Counter

import pytest
from scipy import stats

from mdqa.methods.madara.ranks import mid_ranks, ordinal_ranks, spearman
from mdqa.methods.madara.treatments import (
    Ballot,
    adaptive_filter,
    adaptive_threshold,
    aggregate,
    is_abstention,
    normalise,
    random_documents,
    rank_aligned,
    ranking,
    vote,
)
from mdqa.records import DocumentScore

WEIGHTS = {"relevance": 0.4, "consistency": 0.3, "conflict": 0.3}
THIRDS = dict.fromkeys(WEIGHTS, 1 / 3)
LOST = DocumentScore(status="parse_error", detail="no JSON object in the reply")


def agents(relevance, consistency, conflict):
    columns = dict(zip(WEIGHTS, (relevance, consistency, conflict), strict=True))
    return {
        agent: {f"d{i}": v if isinstance(v, DocumentScore) else DocumentScore(value=v) for i, v in enumerate(column, 1)}
        for agent, column in columns.items()
    }


def one(values):
    return agents(values, values, values)["relevance"]


def values(scores):
    return [score.value for score in scores.values()]


def test_aggregate_by_hand():
    scores = aggregate(agents([5, 0, 3], [3, 5, 3], [2.5, 5, 0]), WEIGHTS)
    assert values(scores) == pytest.approx([3.65, 3.0, 2.1])


def test_aggregate_over_the_agents_that_scored():
    scores = aggregate(agents([5, LOST], [LOST, LOST], [2.5, LOST]), WEIGHTS)
    assert scores["d1"].value == pytest.approx((0.4 * 5 + 0.3 * 2.5) / 0.7)
    assert scores["d2"].value is None and scores["d2"].status == "parse_error"
    assert "relevance: parse_error" in scores["d2"].detail


def test_a_lost_score_is_no_zero():
    lost = aggregate(agents([LOST], [4], [4]), WEIGHTS)["d1"].value
    zero = aggregate(agents([0], [4], [4]), WEIGHTS)["d1"].value
    assert lost == pytest.approx(4) and zero == pytest.approx(2.4)


def test_mid_and_ordinal_ranks():
    assert mid_ranks([3, 1, 3, 5]) == [1.5, 0, 1.5, 3]
    assert ordinal_ranks([3, 1, 3, 5]) == [1, 0, 2, 3]
    assert mid_ranks([2, 2, 2]) == [1, 1, 1]
    assert mid_ranks([]) == []


@pytest.mark.parametrize("column", [[1, 2, 3, 4], [5, 5, 0, 0, 1], [2, 2, 2], [0.5, -1, 3, 3, 3, 0.5]])
def test_mid_ranks_are_scipys(column):
    assert mid_ranks(column) == pytest.approx([rank - 1 for rank in stats.rankdata(column)])


def test_sda_by_hand_with_ties():
    # relevance 5 5 0 1 -> ranks 2.5 2.5 0 1, over 3; consistency 4 3 2 1 -> 3 2 1 0; conflict all equal -> 1.5
    scores = rank_aligned(agents([5, 5, 0, 1], [4, 3, 2, 1], [2.5] * 4), THIRDS)
    expected = [5 / 3 * (2.5 + 3 + 1.5) / 3, 5 / 3 * (2.5 + 2 + 1.5) / 3, 5 / 3 * (0 + 1 + 1.5) / 3, 5 / 3 * 2.5 / 3]
    assert values(scores) == pytest.approx(expected)


def test_sda_ordinal_breaks_ties_by_position():
    scores = rank_aligned(one_agent := {"relevance": one([3, 3, 3])}, {"relevance": 1.0}, ties="ordinal")
    assert values(scores) == [0.0, 2.5, 5.0]
    assert values(rank_aligned(one_agent, {"relevance": 1.0})) == [2.5, 2.5, 2.5]


def test_sda_of_one_document_keeps_its_scores():
    assert values(rank_aligned(agents([5], [2], [2]), THIRDS)) == pytest.approx([3.0])


def test_sda_is_invariant_to_monotone_rescaling():
    plain = agents([5, 2, 0, 2], [1, 4, 4, 0], [0, 1.25, 2.5, 5])
    bent = agents([50, 4, 0, 4], [1, 16, 16, 0], [0, 1, 3, 5])
    assert values(rank_aligned(plain, THIRDS)) == pytest.approx(values(rank_aligned(bent, THIRDS)))


def test_sda_with_statuses_ranks_among_what_is_there():
    scores = rank_aligned(agents([5, LOST, 1], [LOST, LOST, 3], [1, LOST, 2]), WEIGHTS)
    # relevance 1, 0 of two; consistency has one score: middle; conflict 0, 1
    assert scores["d1"].value == pytest.approx(5 * (0.4 * 1 + 0.3 * 0) / 0.7)
    assert scores["d3"].value == pytest.approx(5 * (0.4 * 0 + 0.3 * 0.5 + 0.3 * 1))
    assert scores["d2"].status == "parse_error"


def test_ranking_is_stable_and_puts_statuses_last():
    assert ranking(one([2, LOST, 3, 2, LOST])) == ["d3", "d1", "d4", "d2", "d5"]


def test_permuting_documents_permutes_the_scores():
    order = [2, 0, 3, 1]
    relevance, consistency, conflict = [5, 5, 0, 1], [4, 3, 2, 1], [2.5, 0, 5, 2.5]
    plain = agents(relevance, consistency, conflict)
    moved = agents(*([column[i] for i in order] for column in (relevance, consistency, conflict)))
    for score in (lambda a: aggregate(a, WEIGHTS), lambda a: rank_aligned(a, THIRDS)):
        before, after = values(score(plain)), values(score(moved))
        assert after == pytest.approx([before[i] for i in order])


def test_atf_by_hand():
    # mean 2.5, population variance 17 / 4: threshold 2.5 - 0.5 * 2.0616 = 1.4692
    scores = one([5, 4, 1, 0])
    kept, threshold = adaptive_filter(scores, kappa=0.5, keep_min=1, k=5)
    assert threshold == pytest.approx(1.4692, abs=1e-4)
    assert kept == ["d1", "d2"]


def test_atf_keeps_at_least_and_at_most():
    scores = one([5, 0, 0, 0, 0, 0, 0])  # mean 0.714, deviation 1.75: the threshold is below 0
    assert adaptive_filter(scores, kappa=0.5, keep_min=2, k=5)[0] == ["d1", "d2", "d3", "d4", "d5"]
    assert adaptive_filter(scores, kappa=0.0, keep_min=2, k=5)[0] == ["d1", "d2"]
    assert adaptive_filter(scores, kappa=0.0, keep_min=1, k=5)[0] == ["d1"]


@pytest.mark.parametrize("value", [0.0, 0.1, 3.3, 5.0])
def test_atf_of_equal_scores_keeps_all_up_to_k(value):
    kept, threshold = adaptive_filter(one([value] * 7), kappa=0.5, keep_min=2, k=5)
    assert kept == ["d1", "d2", "d3", "d4", "d5"]
    assert threshold == pytest.approx(value)


def test_atf_of_one_document_and_of_none_scored():
    assert adaptive_filter(one([3]), kappa=0.5, keep_min=2, k=5) == (["d1"], 3.0)
    kept, threshold = adaptive_filter(one([LOST, LOST, LOST]), kappa=0.5, keep_min=2, k=5)
    assert (kept, threshold) == (["d1", "d2"], None)


def test_atf_ignores_statuses_in_its_threshold():
    assert adaptive_threshold(one([4, LOST, 2]), 1.0) == pytest.approx(2.0)


def test_normalise_keeps_articles():
    assert normalise(" The  Beatles. ") == "the beatles"
    assert normalise("Beatles") != normalise("The Beatles")
    assert normalise("U.S.A.") == "usa"
    assert normalise("...") == ""


def test_vote_by_hand():
    tally = vote([Ballot("a", "Paris", 4.0), Ballot("b", "Lyon", 3.0), Ballot("c", "lyon.", 2.0)])
    assert [(g.key, g.weight) for g in tally.groups] == [("paris", 4.0), ("lyon", 5.0)]
    assert tally.answer == "lyon."  # worded as in the last ballot of the group
    assert [b.document for b in tally.winning.ballots] == ["b", "c"]


def test_vote_tie_goes_to_the_best_ranked():
    tally = vote([Ballot("a", "Paris", 2.0), Ballot("b", "Lyon", 1.0), Ballot("c", "Lyon", 1.0)])
    assert tally.answer == "Paris"
    assert vote([Ballot("a", "x", 0.1 + 0.2), Ballot("b", "y", 0.3)]).answer == "x"
    assert vote([Ballot("a", "x", 0.3), Ballot("b", "y", 0.1 + 0.2)]).answer == "x"


def test_vote_without_weights_takes_the_best_ranked_answer_as_it_stands():
    tally = vote([Ballot("a", "Paris", 0.0), Ballot("b", "Lyon", 0.0), Ballot("c", "PARIS", 0.0)])
    assert tally.answer == "Paris"


def test_vote_counts_a_document_without_a_score_as_nothing():
    assert vote([Ballot("a", "Paris", None), Ballot("b", "Lyon", 0.5)]).answer == "Lyon"


def test_vote_of_one_and_of_nothing():
    assert vote([Ballot("a", "Paris", 3.0)]).answer == "Paris"
    assert vote([Ballot("a", " ", 3.0), Ballot("b", "?!", 2.0)]).answer == ""
    assert vote([Ballot("a", "", 3.0), Ballot("b", "Lyon", 0.0)]).answer == "Lyon"


def test_abstentions_win_unless_dropped():
    ballots = [Ballot("a", "Unknown", 2.0), Ballot("b", "unknown.", 2.0), Ballot("c", "Paris", 3.0)]
    assert vote(ballots).answer == "unknown."
    assert vote(ballots, drop_abstentions=True).answer == "Paris"
    assert vote(ballots[:2], drop_abstentions=True).answer == "unknown."


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Not mentioned in the document.", True),
        ("The document does not say", True),
        ("N/A", True),
        ("I don't know", True),
        ("None of the above", True),
        ("Nonesuch Records", False),
        ("Notting Hill", False),
        ("Canterbury", False),
        ("1969", False),
    ],
)
def test_abstention(answer, expected):
    assert is_abstention(answer) is expected


def test_random_documents_by_seed():
    ids = [f"d{i}" for i in range(10)]
    assert random_documents(ids, 5, 1) == random_documents(ids, 5, 1)
    assert len(set(random_documents(ids, 5, 1))) == 5
    assert sorted(random_documents(ids[:3], 5, 1)) == ids[:3]
    counts = Counter(d for seed in range(2000) for d in random_documents(ids, 5, seed))
    assert all(900 < counts[d] < 1100 for d in ids)


@pytest.mark.parametrize(
    ("a", "b"),
    [([1, 2, 3, 4], [4, 3, 2, 1]), ([5, 5, 0, 0, 1], [1, 2, 2, 0, 5]), ([0, 1], [3, 3.5]), ([1, 1, 2], [3, 1, 1])],
)
def test_spearman_is_scipys(a, b):
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)


def test_spearman_undefined():
    assert spearman([1, 1, 1], [1, 2, 3]) != spearman([1, 1, 1], [1, 2, 3])  # NaN
    assert spearman([1], [1]) != spearman([1], [1])
    with pytest.raises(ValueError, match="2 and 1"):
        spearman([1, 2], [1])
