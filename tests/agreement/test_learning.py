"""What labels are used for: right answers, evidence, the judge, DocScore's threshold, No-Filter accuracy."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mdqa.agreement import judge_accuracy, no_filter, threshold
from mdqa.agreement.dataset import ITEMS, files, write_folder
from mdqa.agreement.learning import answer_is_right, content, marked_questions, verdicts
from mdqa.agreement.ratings import Consensus, consensus
from mdqa.benchmarks.base import in_split
from mdqa.records import Question, Routing, RunResult
from tests.agreement.builders import Said, said
from tests.reports.builders import duquad, question, run


def disagreeing(name: str, answer: str = "Danube", **fields: object) -> RunResult:
    """Local says Danube, which is accepted, and Global Rhine."""
    made = duquad(question(name), overall=("Rhine", ("d2",)), answer=answer, **fields)
    return made.model_copy(update={"id": name})


def no_filtering(name: str, answer: str, answers: tuple[str, ...] = ("Danube",), **fields: object) -> RunResult:
    took = Routing(treatment=str(fields.pop("treatment", "nf")), title="", reason="")
    item = question(name, answers=answers)
    return run(item, "madara", id=name, answer=answer, routing=took, **fields)


def together(*labels: Said) -> list[Consensus]:
    return list(consensus(labels, {}).values())


def on(run_id: str, label: str, evidence: tuple[str, ...] = (), item: int = 0, who: str = "ann") -> Said:
    return Said(item or 99, run_id, who, label, evidence)


@pytest.mark.parametrize(
    ("answer", "label", "right"),
    [
        *(
            ("Danube", "first", True),
            ("Danube", "second", False),
            ("Danube", "both", True),
            ("Danube", "neither", False),
        ),
        *(("Rhine", "second", True), ("Danube", "cannot_tell", None), ("Danube", "", None)),
        *(("Elbe", "first", False), ("Elbe", "neither", None), ("Elbe", "both", None)),
    ],
)
def test_whether_the_answer_is_right(answer: str, label: str, right: bool | None) -> None:
    assert answer_is_right(disagreeing("q1", answer), label) is right


def test_of_one_candidate_first_says_that_it_is_right() -> None:
    alone = run(question("q1"))
    assert [answer_is_right(alone, label) for label in ("first", "neither", "second")] == [True, False, None]
    assert answer_is_right(alone.model_copy(update={"status": "failed"}), "first") is None


def test_marked_questions_pool_the_marks_of_their_items() -> None:
    one, other = disagreeing("a"), disagreeing("a", model="big").model_copy(update={"id": "b"})
    labels = together(
        on("a", "first", ("d2",), 1),
        on("a", "first", ("d2", "d3"), 1, "bob"),
        on("b", "first", ("d3",), 2),
        on("c", "first"),
    )
    found = marked_questions({"a": one, "b": other}, labels)
    (item,) = found.questions
    assert item.gold_ids == ("d2", "d3")
    assert [document.gold for document in item.documents] == [False, True, True, False]
    assert item.meta["people"] == {"markers": 3, "marks": {"d2": 2, "d3": 2}}
    split = together(on("a", "first", ("d1",), 1), on("a", "first", ("d2",), 1, "bob"))
    assert marked_questions({"a": one}, split).undecided == 1


def test_the_judge_by_people() -> None:
    runs = {
        r.id: r for r in (disagreeing(f"q{i}", a) for i, a in enumerate(("Danube", "Rhine", "Rhine", "Elbe", "Elbe")))
    }
    labels = together(
        *(on("q0", "first", item=1), on("q1", "first", item=2), on("q2", "second", item=3)),
        *(on("q3", "neither", item=4), on("q4", "cannot_tell", item=5)),
    )
    report = judge_accuracy.report(runs, labels)
    rows = {row["outcome"]: row for row in report.rows}
    assert (rows["Disagreement"]["judge"], rows["Disagreement"]["judged"]) == (pytest.approx(2 / 3), 3)
    assert rows["Disagreement"]["gold"] == pytest.approx(1 / 3)  # q2: people find Global right, the accepted answer not
    assert rows["Disagreement"]["same"] == pytest.approx(2 / 3)
    assert (rows["Both wrong"]["count"], rows["Both wrong"]["judge"]) == (1, None)
    assert "Of 1 runs people's label does not say" in report.note
    assert judge_accuracy.report({}, []).needs == judge_accuracy.NEEDS


def names(split: str, number: int) -> list[str]:
    """Ids of questions that fall into a half."""
    items = [Question(id=f"n{i}", question="?") for i in range(100)]
    return [item.id for item in in_split(items, split)][:number]


def test_the_threshold_is_set_on_one_half_and_measured_on_the_other() -> None:
    """Marked documents have 0.7 and others 0.5 there; here 0.7 and 0.66, so that the new threshold does not help."""
    known = [
        disagreeing(name, doc_scores={"d1": 0.7, "d2": 0.5}, kept=("d1", "d2")) for name in names("calibration", 3)
    ]
    new = [disagreeing(name, doc_scores={"d1": 0.7, "d2": 0.66}, kept=("d1", "d2")) for name in names("held-out", 2)]
    runs = {r.id: r for r in (*known, *new)}
    labels = together(*(on(name, "first", ("d1",), i) for i, name in enumerate(runs, 1)))
    rows = threshold.report(runs, labels).rows
    found = [(row["half"], row["threshold"], row["balanced"], row["marked"], row["others"], row["n"]) for row in rows]
    assert found == [
        ("calibration", 0.4, 0.5, 1.0, 0.0, 3),
        ("calibration", 0.51, 1.0, 1.0, 1.0, 3),
        ("held-out", 0.4, 0.5, 1.0, 0.0, 2),
        ("held-out", 0.51, 0.5, 1.0, 0.0, 2),
    ]
    assert threshold.report({r.id: r for r in known}, labels).needs  # nothing is held out
    assert threshold.report(runs, []).needs


def test_no_filter_accuracy_before_and_after() -> None:
    runs = {
        r.id: r
        for r in (
            *(no_filtering("n1", "Danube"), no_filtering("n2", "the river Danube"), no_filtering("n3", "Elbe", ())),
            *(no_filtering("n4", "Danube", treatment="ps"), no_filtering("n5", "Danube", overflow="drop_last")),
        )
    }
    labels = together(*(on(name, "first", item=i) for i, name in enumerate(runs, 1)))
    row = no_filter.report(runs, labels).rows[-1]
    assert (row["half"], row["gold"], row["answered"], row["people"], row["judged"]) == ("all", 0.5, 2, 1.0, 3)
    assert row["change"] == 0.5
    assert no_filter.report(runs, []).needs == no_filter.NEEDS


def test_verdicts_of_queues() -> None:
    runs = {r.id: r for r in (no_filtering("n1", "Danube"), no_filtering("n4", "x", treatment="ps"))}
    again = no_filtering("n1", "Rhine").model_copy(update={"id": "again"})
    labels = together(on("n1", "first", item=1), on("n4", "first", item=2))
    key = content(runs["n1"].question)
    assert verdicts(runs, labels, method="madara", model="m", treatment="nf") == {key: True}
    assert verdicts(runs, labels, method="madara", model="other") == {}
    tied = together(on("n1", "first", item=1), on("again", "neither", item=3))
    assert verdicts({**runs, "again": again}, tied, method="madara", model="m", treatment="nf") == {}


def test_the_data_set_hides_names_and_says_what_order() -> None:
    ratings = [replace(r, run="q1", item=1, swapped=r.annotator == "zoe") for r in said({"zoe": "1", "Ann": "2"})]
    runs = {"q1": disagreeing("q1")}
    found = files(runs, ratings, {}, queue='A "queue"')
    assert "zoe" not in found[ITEMS] and '"annotator": "annotator_2"' in found[ITEMS]
    assert found[ITEMS].index("annotator_1") < found[ITEMS].index("annotator_2")
    assert '"first_shown": "second"' in found[ITEMS]
    agreed = {"q1": duquad(question("q1"), answer="Danube")}
    assert set(re.findall('"first_shown": "(.*?)"', files(agreed, ratings, {}, queue="")[ITEMS])) == {""}
    assert 'pretty_name: "Labels of A \\"queue\\""' in found["README.md"]
    assert "zoe" in files(runs, ratings, {}, queue="q", names=True)[ITEMS]


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    runs = {"r1": disagreeing("r1")}
    assert write_folder(tmp_path / "set", runs, said({"ann": "1"}), {}, queue="q") == 1
    with pytest.raises(FileExistsError, match="is there already"):
        write_folder(tmp_path / "set", runs, said({"ann": "1"}), {}, queue="q")
