"""Ablations and agreement: who is right."""

from __future__ import annotations

from mdqa.records import ASIDE, RunResult, Stage
from mdqa.reports.duquad import ablations, agreement
from mdqa.statistics.mcnemar import exact_p
from tests.reports.builders import duquad, placed, question, run

READ = ("d1", "d2")


def compared(name: str, whole: str, local: str, overall: str, pruning: str, **fields: object) -> RunResult:
    """A run that carried out its ablations: the answers of DuQUAD and without local, global, pruning."""
    answers = {"duquad": whole, "without_local": local, "without_global": overall, "without_pruning": pruning}
    return duquad(
        question(name, (1,)),
        answer=whole,
        ablations={key: (answer, READ) for key, answer in answers.items()},
        options={"compare_ablations": True},
        **fields,  # type: ignore[arg-type]
    )


def test_ablations_of_runs_that_compared() -> None:
    runs = [
        compared("a", "Danube", "Mur", "Danube", "the Danube river"),
        compared("b", "Danube", "Mur", "Mur", "Mur"),
        compared("c", "Mur", "Mur", "Danube", "Danube"),
    ]
    found = ablations.report(runs)
    whole, local, overall, pruning = found.rows
    assert [row["variant"] for row in found.rows] == [
        "DuQUAD",
        "w/o Local Agent",
        "w/o Global Agent",
        "w/o Quality Pruning",
    ]
    assert [row["sub_em"] for row in found.rows] == [2 / 3, 0.0, 2 / 3, 2 / 3]
    assert [row["em"] for row in found.rows] == [2 / 3, 0.0, 2 / 3, 1 / 3]
    # "the Danube river" is the tokens danube, river: precision 1/2, recall 1
    assert pruning["f1"] == (2 / 3 + 0 + 1) / 3
    assert (whole["sub_em_change"], local["sub_em_change"], overall["sub_em_change"]) == (None, -2 / 3, 0.0)
    assert (local["b"], local["c"], local["p"]) == (0, 2, exact_p(0, 2))
    assert (overall["b"], overall["c"], overall["p"]) == (1, 1, 1.0)
    assert local["p_holm"] == min(1.0, 3 * exact_p(0, 2)), "three tests are corrected together"
    assert (whole["read"], whole["recall"], whole["n"], found.n) == (2.0, 1.0, 3, 3)


def test_ablations_of_runs_of_their_own() -> None:
    def own(name: str, answer: str, **options: object) -> RunResult:
        return duquad(question(name, (1,)), answer=answer, options=options)

    runs = [
        own("a", "Danube"),
        own("b", "Danube"),
        own("a", "Mur", without_local=True),
        own("b", "Danube", without_global=True, without_pruning=True),
        own("a", "Mur", k=3),  # another setting: a group of its own
    ]
    found = ablations.report(runs)
    rows = [(row["group"], row["variant"], row["sub_em"], row["sub_em_change"], row["n"]) for row in found.rows]
    assert rows == [
        ("m, k=6", "DuQUAD", 1.0, None, 2),
        ("m, k=6", "w/o Local Agent", 0.0, -1.0, 1),
        ("m, k=6", "w/o Global Agent, w/o Quality Pruning", 1.0, 0.0, 1),
        ("m, k=3", "DuQUAD", 0.0, None, 1),
    ]


def test_a_run_that_compared_goes_before_one_of_its_own() -> None:
    alone = duquad(question("a", (1,)), answer="Mur", options={"without_local": True}, created="2026-12-24")
    found = ablations.report([alone, compared("a", "Danube", "Danube", "Mur", "Mur")])
    [row] = [row for row in found.rows if row["variant"] == "w/o Local Agent"]
    assert (row["sub_em"], row["n"]) == (1.0, 1)


def test_other_methods_are_set_against_it_on_the_same_questions() -> None:
    stage = Stage(name="input", title="Input", documents=READ, kept=READ)
    aside = stage.model_copy(update={"branch": ASIDE, "kept": ()})
    item = question("a", (1, 3))
    runs = [
        duquad(item, answer="Danube"),
        run(item, "direct", answer="Mur", stages=(stage, aside)),
        run(question("b"), "direct", answer="Danube"),
        run(item, "direct", answer="Danube", model="other"),
    ]
    found = ablations.report(runs)
    _, direct = found.rows
    assert (direct["variant"], direct["sub_em"], direct["sub_em_change"]) == ("direct", 0.5, -1.0)
    assert (direct["common"], direct["n"], direct["b"], direct["c"]) == (1, 2, 0, 1)
    assert (direct["read"], direct["recall"]) == (2.0, 0.5), "stages beside a run's own way do not count"
    assert "no ablation" not in found.note
    assert "no ablation" in ablations.report(runs[:1]).note


def test_positions_are_columns_of_their_own_as_in_table_1() -> None:
    runs = [duquad(item, answer="Danube") for item in placed(question("a", (1,), meta={"dataset": "nq"}), 1, 3)]
    assert [row["group"] for row in ablations.report(runs).rows] == ["m, nq@p1", "m, nq@p3"]


def test_agreement_and_the_judge() -> None:
    cases = {
        "a": ("Danube", "Danube", "Danube"),  # Global, Local, judge
        "b": ("Danube", "Danube", "Mur"),
        "c": ("Danube", "Mur", "Danube"),
        "d": ("Mur", "the Danube", "Mur"),
        "e": ("Mur", "Danube", "Danube"),
        "f": ("Mur", "Inn", "Danube"),
    }
    runs = [
        duquad(question(name), overall=(overall, ("d1",)), local=(local, ("d1",)), answer=judge)
        for name, (overall, local, judge) in cases.items()
    ]
    found = agreement.report([*runs, duquad(question("g"), local=None, options={"without_local": True})])
    rows = {str(row["outcome"]): (row["count"], row["share"], row["judge"]) for row in found.rows}
    assert rows == {
        "Both right": (2, 2 / 6, 0.5),
        "Global only": (1, 1 / 6, 1.0),
        "Local only": (2, 2 / 6, 0.5),
        "Both wrong": (1, 1 / 6, 1.0),
        "Disagreement": (3, 3 / 6, 2 / 3),
    }
    assert found.n == 6
    assert "1 of 7 runs are left out" in found.note
