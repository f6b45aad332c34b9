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
    normalize,
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
