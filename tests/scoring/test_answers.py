"""Answer metrics: their own rules, and every recorded case of the official scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mdqa.errors import ConfigError, InputError
from mdqa.scoring.answers import (
    METRICS,
    best_subspan_em,
    best_subspan_em_first_line,
    exact_match,
    exact_match_strict,
    f1,
    joint_hotpotqa,
    normalize,
    supporting_facts,
)
from mdqa.scoring.cases import check_cases

CASES = Path(__file__).parents[3] / "shared" / "data" / "metric_cases.jsonl"


def test_all_recorded_cases_agree() -> None:
    if not CASES.exists():
        pytest.skip(f"the recorded cases are not here: {CASES}")
    assert [str(mismatch) for mismatch in check_cases(CASES)] == []


@pytest.mark.parametrize(
    ("text", "normal"),
    [("The  Eiffel Tower!", "eiffel tower"), ("1961-1965", "19611965"), ("“A” b", "“ ” b"), ("theatre", "theatre")],
)
def test_normalize(text: str, normal: str) -> None:
    assert normalize(text) == normal


def test_substring_match_reads_the_first_line_only_where_asked() -> None:
    assert best_subspan_em("I think\nParis", ["Paris"]) == 1.0
    assert best_subspan_em_first_line("I think\nParis", ["Paris"]) == 0.0
    assert best_subspan_em("Paris", []) == 0.0


def test_exact_match_and_its_strict_form() -> None:
    assert exact_match("The Danube.", ["danube", "Donau"]) == 1.0
    assert exact_match_strict("The Danube.", ["danube"]) == 0.0
    assert exact_match_strict("  the\nDanube", ["The Danube"]) == 1.0


def test_f1_counts_repeated_words() -> None:
    assert f1("Paris Paris", ["Paris"]) == pytest.approx(2 / 3)
    assert f1("in New York", ["York", "New York"]) == pytest.approx(0.8)


def test_yes_and_no_need_the_same_word_in_hotpotqa() -> None:
    assert METRICS["hotpot_f1"]("yes they did", ["yes"]) == 0.0
    assert METRICS["squad_v1_f1"]("yes they did", ["yes"]) == pytest.approx(0.5)


FACTS = [["Ida", 0], ["Vienna", 2]]


def test_supporting_facts() -> None:
    assert supporting_facts([["Ida", 0], ["Graz", 1]], FACTS) == (0.0, 0.5, 0.5, 0.5)
    assert supporting_facts(reversed(FACTS), FACTS) == (1.0, 1.0, 1.0, 1.0)
    assert supporting_facts([], FACTS) == (0.0, 0.0, 0.0, 0.0)


def test_joint_measures_multiply_precision_and_recall() -> None:
    both = joint_hotpotqa("Vienna", "vienna", FACTS, FACTS)
    assert (both.em, both.f1, both.precision, both.recall) == (1.0, 1.0, 1.0, 1.0)
    # the answer has precision 1/2 and recall 1; the facts have 1/2 and 1/2: 1/4 and 1/2, harmonic mean 1/3
    part = joint_hotpotqa("old Vienna", "Vienna", [["Ida", 0], ["Graz", 1]], FACTS)
    assert (part.em, part.precision, part.recall) == (0.0, 0.25, 0.5)
    assert part.f1 == pytest.approx(1 / 3)
    none = joint_hotpotqa("yes it is", "yes", FACTS, FACTS)
    assert (none.em, none.f1) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("metric", "prediction", "answers", "value"),
    [
        ("longbench_retrieval", "Paragraph 7", ["Paragraph 7"], 1.0),
        ("longbench_retrieval", "7 or 17, or 7", ["Paragraph 7"], 2 / 3),
        ("longbench_retrieval", "the seventh", ["Paragraph 7"], 0.0),
        ("longbench_retrieval", "7", ["7"], 0.0),
        ("longbench_count", "There are 12, not 13.", ["12"], 0.5),
        ("longbench_count", "twelve", ["12"], 0.0),
        ("longbench_qa_f1_first_line", "\n\nVienna\nbecause", ["Vienna"], 1.0),
        ("longbench_qa_f1", "Vienna\nbecause", ["Vienna"], 2 / 3),
        ("ruler_string_match_part", "it is vienna", ["Vienna", "Graz"], 100.0),
        ("ruler_string_match_all", "it is vienna", ["Vienna", "Graz"], 50.0),
    ],
)
def test_long_context_forms(metric: str, prediction: str, answers: list[str], value: float) -> None:
    assert METRICS[metric](prediction, answers) == pytest.approx(value)


def _cases(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


GOOD = '{"metric": "f1", "prediction": "a b", "answers": ["b"], "expected": 1.0}'


def test_a_mismatch_names_its_line(tmp_path: Path) -> None:
    wrong = '{"metric": "squad_v1_em", "prediction": "x", "answers": ["y"], "expected": 1.0}'
    (mismatch,) = check_cases(_cases(tmp_path, GOOD, "", wrong))
    assert (mismatch.line, mismatch.got, mismatch.expected) == (3, 0.0, 1.0)
    assert "line 3" in str(mismatch)


def test_an_unknown_metric_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 2.*'bleu'.*best_subspan_em"):
        list(check_cases(_cases(tmp_path, GOOD, GOOD.replace('"f1"', '"bleu"'))))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: broken JSON"),
        ("[1]", "line 1: a case must be"),
        ('{"metric": "f1"}', "missing: prediction"),
        (GOOD.replace('["b"]', '"b"'), "field 'answers': must be a list"),
        (GOOD.replace('"a b"', "3"), "cannot be computed"),
    ],
)
def test_bad_cases_are_input_errors(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(check_cases(_cases(tmp_path, line)))


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(check_cases(tmp_path / "none.jsonl"))
