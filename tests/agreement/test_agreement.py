"""People, majorities, judges and time: every number against a calculation by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdqa.agreement.judges import by_question, judge_label, judge_labels
from mdqa.agreement.people import over_time, people
from mdqa.agreement.ratings import consensus, contested, latest, majority
from mdqa.agreement.table import MAJORITY, MOST_PAIRS, Line, agreement_table
from mdqa.records import Opinion, RunResult
from tests.agreement.builders import Said, decided, said
from tests.reports.builders import duquad, question, run

LETTERS = {"ann": "1122n", "bob": "112bn", "cid": "12 1 "}
"""Items 1 to 5: unanimous; 2 against 1; both; three labels; two who agree."""


def judged(item: int, winner: str, model: str = "m") -> RunResult:
    """A run whose Local Agent says Danube and whose Global Agent says Rhine; ``winner`` is what its judge says."""
    made = duquad(question(f"q{item}"), overall=("Rhine", ("d2",)), answer=winner, model=model)
    return made.model_copy(update={"id": f"r{item}" if model == "m" else f"{model}-{item}"})


RUNS = {
    run.id: run for run in (judged(i, w) for i, w in enumerate(("Danube", "Rhine", "the Rhine", "Elbe", "Danube"), 1))
}


def line(lines: tuple[Line, ...], one: str, two: str) -> Line:
    (found,) = [line for line in lines if (line.one, line.two) == (one, two)]
    return found


def test_majority_needs_more_than_any_other() -> None:
    assert majority(["first", "second", "first"]) == "first"
    assert majority(["first", "second"]) == majority([]) == ""
    assert majority(["first", "second", "both", "second"]) == "second"


def test_consensus() -> None:
    found = consensus(said(LETTERS), decided(4, "b"))
    assert {item: (one.label, one.source, one.n) for item, one in found.items()} == {
        1: ("first", "majority", 3),
        2: ("first", "majority", 3),
        3: ("second", "majority", 2),
        4: ("both", "adjudicated", 3),
        5: ("neither", "majority", 2),
    }
    assert [one.item for one in contested(found)] == [2, 4]  # what was decided stands last
    assert [one.item for one in contested(consensus(said(LETTERS), {}))] == [4, 2]
    assert consensus(said({"ann": "1", "bob": "2"}), {})[1].source == "tie"


def test_evidence_is_what_most_markers_marked() -> None:
    ratings = said({"ann": "1", "bob": "1", "cid": "1"})
    marked = [replace(r, evidence=e) for r, e in zip(ratings, [("d1", "d2"), ("d2", "d3"), ()], strict=True)]
    (one,) = consensus(marked, {}).values()
    assert (one.evidence, one.marks, one.markers, one.n) == (("d2",), {"d1": 1, "d2": 2, "d3": 1}, 2, 3)
    (alone,) = consensus([], decided(1, "1", evidence=("d3",))).values()
    assert (alone.evidence, alone.n, alone.source) == (("d3",), 0, "adjudicated")


def test_of_one_annotator_the_later_rating_counts() -> None:
    one, other = said({"ann": "1"})[0], said({"ann": "2"})[0]
    assert latest([one, other]) == [other]


def test_the_table_of_three_people_and_a_judge() -> None:
    lines = agreement_table(said(LETTERS), {}, RUNS, resamples=50).lines
    everybody = lines[0]
    assert (everybody.kind, everybody.one, everybody.cohen) == ("people", "All 3 people", None)
    # pairs that agree: 3 of 3, 1 of 3, 1 of 1, 0 of 3, 1 of 1
    assert everybody.percent.value == pytest.approx(6 / 11)
    assert (everybody.percent.items, everybody.percent.pairs) == (5, 11)
    # alpha: differing pairs by item 0 + 2 x 2/2 + 0 + 6/2 + 0 = 5 of n = 13 labels (6, 4, 1, 2)
    expected = (13**2 - (6**2 + 4**2 + 1 + 2**2)) / 12
    assert everybody.krippendorff.value == pytest.approx(1 - 5 / expected)
    # Fleiss over the three items with three labels: agreement (1 + 1/3 + 0)/3, labels 6, 2, 1 of 9
    chance = (36 + 4 + 1) / 81
    assert everybody.fleiss is not None
    assert everybody.fleiss.value == pytest.approx((4 / 9 - chance) / (1 - chance))
    assert "2 items have another number" in everybody.fleiss.note
    # ann and bob: 4 of 5; ann 1, 1, 2, 2, n and bob 1, 1, 2, b, n: chance 2/5 2/5 + 2/5 1/5 + 1/5 1/5
    pair = line(lines, "ann", "bob")
    assert pair.cohen is not None
    assert pair.cohen.value == pytest.approx((0.8 - 0.28) / (1 - 0.28))
    assert (pair.kind, pair.fleiss, pair.percent.value) == ("person-person", None, 0.8)
    # the judge: 1, 2, 2, n, 1; ann 1, 1, 2, 2, n; the majority 1, 1, 2, tie, n
    assert line(lines, "ann", "duquad, m").percent.value == pytest.approx(2 / 5)
    assert line(lines, MAJORITY, "duquad, m").percent.items == 4
    assert line(lines, MAJORITY, "duquad, m").percent.value == pytest.approx(2 / 4)
    after = agreement_table(said(LETTERS), decided(4, "n"), RUNS, resamples=50).lines
    assert line(after, MAJORITY, "duquad, m").percent.value == pytest.approx(3 / 5)


def test_people_may_be_called_as_a_judge_is() -> None:
    """The numbers are those of any other names."""
    taken = {"ann": "duquad, m", "bob": "duquad, m (person)", "cid": MAJORITY}
    mixed = agreement_table(said({taken[name]: labels for name, labels in LETTERS.items()}), {}, RUNS, resamples=50)
    for names in (("duquad, m (person) (person)", "duquad, m"), (MAJORITY, "duquad, m")):
        plain = {"duquad, m (person) (person)": "ann"}.get(names[0], names[0])
        expected = line(agreement_table(said(LETTERS), {}, RUNS, resamples=50).lines, plain, "duquad, m")
        assert line(mixed.lines, *names).krippendorff == expected.krippendorff
    assert {found.one for found in mixed.lines} >= {MAJORITY, f"{MAJORITY} (person)", "duquad, m (person)"}


def test_judges_meet_on_questions() -> None:
    others = {run.id: run for run in (judged(i, w, "big") for i, w in enumerate(("Danube", "Danube", "Rhine"), 1))}
    lines = agreement_table([], {}, {**RUNS, **others}, resamples=50).lines
    assert [found.kind for found in lines] == ["people", "judge-judge"]
    pair = line(lines, "duquad, big", "duquad, m")
    assert (pair.percent.items, pair.percent.value) == (3, pytest.approx(2 / 3))
    assert lines[0].percent.status == "no_overlap"
    newest = judged(1, "Rhine", "big").model_copy(update={"id": "later", "created": "2027-01-01T00:00:00.000+00:00"})
    assert [label for _, _, label in by_question({**others, "later": newest})][-1] == "second"


def test_what_a_judge_decided() -> None:
    assert [judge_label(run) for run in RUNS.values()] == ["first", "second", "second", "neither", "first"]
    agreed = duquad(question("q"))
    assert judge_label(agreed) == judge_label(RUNS["r1"].model_copy(update={"status": "failed"})) == ""
    treatments = tuple(
        Opinion(role="treatment", title=key, group=key, answer=answer, chosen=key == "ps")
        for key, answer in (("nf", "Rhine"), ("ps", "Danube"))
    )
    routed = run(question("q"), "madara", opinions=treatments, answer="Danube")
    assert judge_labels({"a": routed, "b": agreed}) == {"a": ("madara, m", "first")}


def test_one_person_has_nobody_to_agree_with() -> None:
    lines = agreement_table(said({"ann": "112"}), {}, RUNS, resamples=50).lines
    assert [found.kind for found in lines] == ["person-judge", "person-judge"]
    (found,) = agreement_table(said({"ann": "1 ", "bob": " 2"}), {}, {}, resamples=50).lines
    assert (found.percent.status, found.percent.note) == (
        "no_overlap",
        "No item was labelled by two of them, so there is nothing to compare.",
    )


def test_many_pairs_are_not_all_listed() -> None:
    crowd = {f"p{n:02d}": "12" if n < 3 else "1" for n in range(14)}
    found = agreement_table(said(crowd), {}, {}, resamples=5)
    assert len(found.lines) == 1 + MOST_PAIRS
    assert found.left_out == 14 * 13 // 2 - MOST_PAIRS
    assert {(one.one, one.two) for one in found.lines[1:] if one.percent.items == 2} == {
        ("p00", "p01"),
        ("p00", "p02"),
        ("p01", "p02"),
    }


def test_every_annotator() -> None:
    ratings = [replace(r, swapped=r.item % 2 == 0, seconds=float(r.item)) for r in said(LETTERS)]
    ann, bob, cid = people(ratings, decided(4, "b"))
    assert (ann.name, ann.n, ann.seconds, cid.seconds) == ("ann", 5, 3.0, 2.0)
    assert ann.labels == {"first": 2, "second": 2, "neither": 1}
    # ann against the others: item 1 yes, 2 tie, 3 yes, 4 tie, 5 yes; cid: 1 yes, 2 no (both say first), 4 tie
    assert ann.with_others is not None and (ann.with_others.mean, ann.with_others.n) == (1.0, 3)
    assert cid.with_others is not None and (cid.with_others.mean, cid.with_others.n) == (0.5, 2)
    assert ann.with_adjudicated is not None and ann.with_adjudicated.mean == 0.0
    assert bob.with_adjudicated is not None and bob.with_adjudicated.mean == 1.0
    # first shown: item 1 first, plain: yes; 2 first, swapped: no; 3 second, plain: no; 4 second, swapped: yes
    assert ann.first_shown is not None and (ann.first_shown.mean, ann.first_shown.n) == (0.5, 4)
    assert people([replace(r, token="import-1") for r in ratings], {})[0].first_shown is None
    with_order = people(ratings, {}, unordered={"r1", "r2", "r3"})[0].first_shown  # r4 alone has two answers
    assert with_order is not None and (with_order.mean, with_order.n) == (1.0, 1)


def test_over_time() -> None:
    letters = {"ann": "1" * 12, "bob": "1" * 10 + "22"}
    tens = over_time(said(letters))
    assert [(s.name, s.stretch, s.n) for s in tens] == [
        *(("ann", "1-10", 10), ("ann", "11-20", 2), ("bob", "1-10", 10), ("bob", "11-20", 2))
    ]
    assert [s.with_others.mean for s in tens if s.with_others] == [1.0, 0.0, 1.0, 0.0]
    days = [replace(r, created=f"2026-11-{30 - r.item // 7}T10:00:00.000+00:00") for r in said(letters)]
    assert [(s.stretch, s.n) for s in over_time(days, by="day")][:2] == [("2026-11-29", 6), ("2026-11-30", 6)]
    (alone,) = over_time(said({"ann": "1"}))
    assert alone.with_others is None


@settings(max_examples=20)
@given(st.permutations(said(LETTERS)))
def test_the_order_of_ratings_means_nothing(mixed: list[Said]) -> None:
    one, other = (agreement_table(r, {}, RUNS, resamples=1).lines for r in (said(LETTERS), mixed))
    assert [(x.kind, x.one, x.two) for x in one] == [(x.kind, x.one, x.two) for x in other]
    for x, y in zip(one, other, strict=True):
        assert x.percent.value == pytest.approx(y.percent.value)
        assert x.krippendorff.value == pytest.approx(y.krippendorff.value)
