"""Result lines to reports: values by hand, and every line that must be refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from mdqa.commands.results import input_digest
from mdqa.errors import InputError
from mdqa.records import ASIDE, Cost, Document, Question, RunResult, Stage
from mdqa.registry import method_class
from mdqa.reporting import difference, report, reports, table
from mdqa.result_lines import read_lines
from mdqa.scoring.answers import HEADLINE

ITEM = Question(
    id="q1",
    question="Which river flows through Vienna?",
    answers=("Danube", "Donau"),
    documents=(
        Document(id="a", text="The Danube.", gold=True),
        Document(id="b", text="The Mur."),
        Document(id="c", text="Vienna lies on it.", gold=True),
    ),
)


def question(name: str, **changes: Any) -> Question:
    return ITEM.model_copy(update={"id": name, **changes})


def stage(*kept: str, name: str = "filtering", branch: str = "") -> Stage:
    return Stage(name=name, title=name, documents=("a", "b", "c"), kept=kept, branch=branch)


def result(
    item: Question = ITEM, answer: str = "Danube", stages: Sequence[Stage] = (), seconds: float = 1.0, **more: Any
) -> RunResult:
    fixed: dict[str, Any] = {
        "method": "cafe",
        "model": "m",
        "backend": "b",
        "status": "ok",
        "seed": 0,
        "created": "now",
    }
    cost = Cost(seconds=seconds, prompt_tokens=int(100 * seconds), prefill_tokens_computed=int(10 * seconds))
    values = {"id": f"run of {item.id}", "question": item, "answer": answer, "stages": tuple(stages), "cost": cost}
    return RunResult(**{**fixed, **values, **more})


def line(run: RunResult | None = None, **changes: Any) -> bytes:
    run = run or result()
    return json.dumps({**run.to_line(), "input_sha256": input_digest(run.question), **changes}).encode()


def read(*lines: bytes, questions: Sequence[Question] = (ITEM,)) -> list[RunResult]:
    return read_lines(lines, {item.id: item for item in questions}, input_digest, file="f.jsonl")


def test_lines_come_back_as_the_results_that_were_written() -> None:
    runs = [result(stages=[stage("a")]), result(question("q2"), status="failed", answer="")]
    assert read(line(runs[0]), b"  ", line(runs[1]), questions=[question("q2"), ITEM, question("q3")]) == runs
    without_digest = {name: value for name, value in json.loads(line()).items() if name != "input_sha256"}
    assert read(json.dumps(without_digest).encode()) == [result()], "files from before there were digests"


def test_a_report_by_hand() -> None:
    """Answers: right, right as a part (F1 2 * 1/3 * 1 / (1/3 + 1) = 1/2), wrong, failed, and one without answers."""
    runs = [
        result(question("q1"), "The Danube!", [stage("a", "c")], seconds=1),
        result(question("q2"), "the river Donau, surely", [stage("a")], seconds=2),
        result(question("q3"), "Mur", [stage("b")], seconds=9),
        result(question("q4"), "", status="failed", seconds=50),
        result(question("q5", answers=(), documents=ITEM.documents[1:2]), "Danube", [stage("a", "b", "c")], seconds=4),
    ]
    found = report("f", runs)
    assert (found["n"], found["failed"], found["without_answers"], found["without_gold"]) == (4, 1, 1, 1)
    assert {name: (found[name]["mean"], found[name]["n"]) for name in HEADLINE} == {
        "sub_em": (pytest.approx(2 / 3), 3),
        "f1": (pytest.approx((1 + 1 / 2 + 0) / 3), 3),
        "em": (pytest.approx(1 / 3), 3),
    }
    assert 0 <= found["f1"]["low"] < found["f1"]["mean"] < found["f1"]["high"] <= 1
    filtering = found["stages"]["filtering"]
    assert (filtering["n"], filtering["kept"]["mean"], filtering["kept"]["n"]) == (4, (2 + 1 + 1 + 3) / 4, 4)
    assert 1 <= filtering["kept"]["low"] < 7 / 4 < filtering["kept"]["high"] <= 3
    assert (filtering["gold_recall"]["mean"], filtering["gold_recall"]["n"]) == (pytest.approx((1 + 0.5 + 0) / 3), 3)
    assert found["median"] == {"seconds": 3.0, "prompt_tokens": 300, "prefill_tokens_computed": 30}
    assert (found["file"], found["method"], found["model"], found["profile"]) == ("f", "cafe", "m", "")
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_where_nothing_can_be_said_nothing_is_said() -> None:
    failed = report("f", [result(status="failed", answer="")])
    assert (failed["n"], failed["failed"], failed["stages"]) == (0, 1, {})
    assert {failed[name] for name in HEADLINE} == {None}
    assert set(failed["median"].values()) == {None}
    unmarked = question("q1", answers=(), documents=ITEM.documents[1:2])
    found = report("f", [result(unmarked, stages=[stage("b")])])
    assert (found["sub_em"], found["stages"]["filtering"]["gold_recall"]) == (None, None)
    assert found["stages"]["filtering"]["kept"] == {"mean": 1.0, "low": 1.0, "high": 1.0, "n": 1}
    assert "1 questions without marked evidence" in table([found])
    assert " - " in table([failed])


def test_stages_are_told_apart_by_branch_and_place() -> None:
    stages = [stage("a"), stage("b", branch="local"), stage("a", "c"), stage("c", name="answer")]
    found = report("f", [result(stages=stages), result(question("q2"), stages=[stage("c")])])["stages"]
    assert {name: (values["n"], values["kept"]["mean"]) for name, values in found.items()} == {
        "filtering": (2, 1.0),
        "filtering (local)": (1, 1.0),
        "filtering #2": (1, 2.0),
        "answer": (1, 1.0),
    }


def test_what_was_carried_out_beside_the_way_is_no_stage_of_it() -> None:
    stages = [stage("a"), stage("a", "b", name="ablations", branch=ASIDE)]
    assert set(report("f", [result(stages=stages)])["stages"]) == {"filtering"}


def test_only_what_differs_from_the_defaults_is_shown() -> None:
    defaults = method_class("cafe").Config().model_dump(mode="json")
    assert report("f", [result(config=defaults)])["config"] == {}
    changed = {**defaults, "fine_steering": False, "from_another_version": 1}
    found = report("f", [result(config=changed)])
    assert found["config"] == {"fine_steering": False, "from_another_version": 1}
    assert "cafe fine_steering=False from_another_version=1  1 " in table([found])
    assert report("f", [result(method="gone", config={"k": 1})])["config"] == {"k": 1}


def test_the_difference_takes_the_questions_that_both_answered() -> None:
    def run(name: str, answer: str, **more: Any) -> RunResult:
        return result(question(name), answer, **more)

    first = [run("q1", "Mur"), run("q2", "Mur"), run("q3", "Danube"), run("q4", "Danube")]
    other = [
        run("q5", "Mur"),  # only here
        run("q4", "Danube", status="failed"),
        run("q3", "Danube"),
        run("q2", "Danube"),
        run("q1", "Danube"),
    ]
    found = difference(other, first)
    assert (found["sub_em"]["mean"], found["sub_em"]["n"]) == (pytest.approx(2 / 3), 3)
    assert difference(first, other)["sub_em"]["mean"] == pytest.approx(-2 / 3)
    assert difference(first, first)["f1"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 4}
    assert difference(first, [run("q9", "Danube")]) == dict.fromkeys(HEADLINE)
    rows = reports({"one": first, "two": other, "three": [run("q9", "Danube")]})
    assert "difference" not in rows[0]
    assert rows[1]["difference"] == {"to": "one", **found}
    assert rows[2]["difference"]["em"] is None


def answering(right: str, wrong: str = "") -> list[RunResult]:
    """One run over questions of one letter each."""
    return [result(question(q), "Danube" if q in right else "Mur") for q in sorted(right + wrong)]


def test_mcnemar_by_hand_over_three_files() -> None:
    """Five questions only right in the second (2 / 32), six in the third against one (2 * 8 / 128), corrected by Holm.

    The question z, which only one file answered, and l, which both got right, do not count for b and c.
    """
    first = answering("l", "abcdefgh")
    second = answering("labcde", "fghz")
    third = answering("abcdef", "lgh")
    rows = reports({"one": first, "two": second, "three": third})
    assert "mcnemar" not in rows[0]
    shared = {"to": "one", "metric": "em", "n": 9}
    assert rows[1]["mcnemar"] == {**shared, "b": 5, "c": 0, "p": pytest.approx(1 / 16), "p_holm": pytest.approx(1 / 8)}
    assert rows[2]["mcnemar"] == {**shared, "b": 6, "c": 1, "p": pytest.approx(1 / 8), "p_holm": pytest.approx(1 / 8)}
    lines = [line.split() for line in table(rows).split("\n\n")[-2].splitlines()]
    assert lines[1:] == [["two", "9", "5", "0", "0.062", "0.125"], ["three", "9", "6", "1", "0.125", "0.125"]]


def test_mcnemar_with_nothing_in_common_is_no_test() -> None:
    """It is left out of the correction too: the other comparison stays a family of one."""
    rows = reports({"one": answering("", "abcdef"), "two": answering("xyz"), "three": answering("abcdef")})
    assert rows[1]["mcnemar"] is None
    assert rows[2]["mcnemar"]["p"] == rows[2]["mcnemar"]["p_holm"] == pytest.approx(1 / 32)
    assert ["two", "0", "-", "-", "-", "-"] in [line.split() for line in table(rows).splitlines()]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_a_small_p_value_is_not_shown_as_zero() -> None:
    names = "abcdefghijklmnopqrst"
    text = table(reports({"one": answering("", names), "two": answering(names)}))
    assert "1.9e-06" in text


def test_the_table_is_aligned_and_harmless() -> None:
    runs = [result(question(f"q{i}"), a, [stage("a", name="x\x1b[2J\ny")]) for i, a in enumerate(["Danube", "Mur"])]
    text = table(reports({"first.jsonl": runs, "a much longer name.jsonl": runs[::-1]}))
    assert "\x1b" not in text
    assert r"x\x1b[2J\ny" in text
    blocks = [block.splitlines() for block in text.split("\n\n")]
    assert [len(block) for block in blocks] == [3, 3, 2, 2, 1]
    assert all(len({len(row) for row in block}) == 1 for block in blocks), "the last column ends in one line"
    assert "50.0 [0.0, 100.0]" in blocks[0][1]
    assert blocks[2][0].startswith("difference to first.jsonl")
    assert blocks[2][1].split() == ["a", "much", "longer", "name.jsonl", "2", *["+0.0", "[+0.0,", "+0.0]"] * 3]
    assert blocks[3][0].startswith("exact McNemar test on EM against first.jsonl")
    assert blocks[3][1].split() == ["a", "much", "longer", "name.jsonl", "2", "0", "0", "1.000", "1.000"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b'{"id": "q2", "run": "x", "questi', "broken JSON"),
        (b"\xff\xfe", "broken JSON"),
        (b"[" * 100_000, "broken JSON"),
        (line(cost={"seconds": float("nan")}), "broken JSON: NaN is not a finite number"),
        (line().replace(b'"seconds": 1.0', b'"seconds": 1e999'), "broken JSON: 1e999 is not a finite number"),
        (b"[1]", "no result line"),
        (b'{"metric": "f1"}', "no result line"),
        (b'{"id": "q1", "run": 5, "question": "x"}', "no result line"),
        (line(id="q7"), "'q7' is not in the input"),
        (line(question="Why?"), "was 'Why\\?' and is"),
        (line(input_sha256="0" * 64), "documents of question 'q1' are other ones"),
        (line(status="fine"), "field 'status': this is no result line"),
        (line(stages=[{"name": "x"}]), r"field 'stages.0.title'"),
        (line(modes={}), "field 'modes'"),
    ],
)
def test_bad_lines_are_named(bad: bytes, words: str) -> None:
    good = line(result(question("q2")))
    with pytest.raises(InputError, match=f"f.jsonl, line 2.*{words}"):
        read(good, bad, questions=[ITEM, question("q2")])


def test_a_file_is_one_run_over_each_question_once() -> None:
    with pytest.raises(InputError, match="line 3: the question 'q1' was answered in line 1 already"):
        read(line(), b"", line())
    second = question("q2")
    for change in ({"method": "direct"}, {"model": "n"}, {"profile": "p"}, {"seed": 1}, {"config": {"k1": 3}}):
        with pytest.raises(InputError, match=f"line 2: this line was made with another {next(iter(change))} than"):
            read(line(), line(result(second, **change)), questions=[ITEM, second])
    with pytest.raises(InputError, match=r"f\.jsonl: there is no result"):
        read(b"", b" ")
