"""Hostile and broken replies: each is read for what it surely says, or has a status."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdqa.methods.asking import Unreadable
from mdqa.methods.madara.parsing import (
    Findings,
    members,
    parse_conflict,
    parse_conflict_document,
    parse_grade,
    schema,
    split_sentences,
)


def status_of(parse, *arguments):
    with pytest.raises(Unreadable) as caught:
        parse(*arguments)
    return caught.value.status


def test_grade():
    grade = parse_grade('{"score": 4, "evidence": "in Paris", "reasoning": "It says so. Clearly."}')
    assert (grade.score, grade.evidence, grade.chain) == (4.0, "in Paris", ("It says so.", "Clearly."))


def test_cot_grade_prefers_its_steps():
    reply = json.dumps({"reasoning_steps": ["A. B", "C", 7, " "], "score": 2, "confidence": 3, "reasoning": "no"})
    grade = parse_grade(reply)
    assert grade.steps == ("A. B", "C")
    assert grade.chain == ("A.", "B", "C")
    assert grade.confidence == 3


@pytest.mark.parametrize("confidence", ['"high"', "9", "true", "null", "[]"])
def test_confidence_is_never_fatal(confidence):
    assert parse_grade(f'{{"score": 2, "confidence": {confidence}}}').confidence is None


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('Sure! {"score": 3}', 3),
        ('```json\n{"score": 3}\n```', 3),
        ('{"score": 3} {"score": 5}', 3),
        ('{"score": 3, "evidence": "it never ends', 3),
        ('{"score": 3, "evidence": "a, b", "reasoning": "it never', 3),
        ('{"score": 3, then nonsense', 3),
        ('{"score": {"score": 3}', 3),
        ('{"score":{"score": 3, "reasoning": "cut', 3),
        ('{"evidence": "{braces}", "score": 0}', 0),
    ],
)
def test_scores_that_are_there(reply, score):
    assert parse_grade(reply).score == score


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("", "parse_error"),
        ("The score is 4.", "parse_error"),
        ("4", "parse_error"),
        ("[4]", "parse_error"),
        ('{"score": "4"}', "parse_error"),
        ('{"score": "8/10"}', "parse_error"),
        ('{"score": true}', "parse_error"),
        ('{"score": null}', "parse_error"),
        ('{"score": [4]}', "parse_error"),
        ('{"score": 3', "parse_error"),  # may go on as 3.7 or 35
        ('{"score": 0.', "parse_error"),
        ('{"grade": 4}', "parse_error"),
        ('{"score": 6}', "out_of_range"),
        ('{"score": -1}', "out_of_range"),
        ('{"score": 1e400}', "out_of_range"),
        ('{"score": NaN}', "out_of_range"),
        ('{"score": ' + "9" * 5000 + "}", "parse_error"),
        ("{" * 5000, "parse_error"),
        ('{"a":' * 5000, "parse_error"),
    ],
)
def test_scores_that_are_not(reply, status):
    assert status_of(parse_grade, reply) == status


@given(st.text())
def test_any_text_is_read_or_refused(text):
    for parse in (parse_grade, lambda reply: parse_conflict(reply, 3), parse_conflict_document):
        for reply in (text, '{"score":' + text, '{"has_conflict": true, "doc_adjustments": {' + text):
            try:
                parse(reply)
            except Unreadable as problem:
                assert problem.status in ("parse_error", "out_of_range")


def test_conflict():
    reply = json.dumps(
        {
            "has_conflict": True,
            "doc_adjustments": {"1": 2, "[2]": -1, "Document 3": -2, "doc 9": 1, "majority": 2},
            "majority_position": "1969",
            "conflicting_pairs": [
                {"doc_a": 1, "doc_b": 3, "description": "year"},
                {"doc_a": 0, "doc_b": 2},
                {"doc_a": 2, "doc_b": 2},
                "no",
            ],
        }
    )
    findings = parse_conflict(reply, 4)
    assert findings.adjustments == {1: 2, 2: -1, 3: -2}
    assert findings.pairs == ((1, 3, "year"),)
    assert [findings.score(n, "centred") for n in (1, 2, 3, 4)] == [5.0, 1.25, 0.0, 2.5]
    assert [findings.score(n, "shifted") for n in (1, 2, 3, 4)] == [5.0, 2.0, 1.0, 3.0]


def test_conflict_adjustments_are_clipped_and_counted():
    findings = parse_conflict('{"has_conflict": true, "doc_adjustments": {"1": 7, "2": -3, "3": 1}}', 3)
    assert findings.adjustments == {1: 2, 2: -2, 3: 1} and findings.clipped == 2


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ('{"has_conflict": "yes", "doc_adjustments": {}}', "parse_error"),
        ('{"doc_adjustments": {"1": 1}}', "parse_error"),
        ('{"has_conflict": true}', "parse_error"),
        ('{"has_conflict": true, "doc_adjustments": [1, 2]}', "parse_error"),
        ('{"has_conflict": true, "doc_adjustments": {"1": "-2"}}', "parse_error"),
        ('{"has_conflict": true, "doc_adjustments": {"1": true}}', "parse_error"),
        ('{"has_conflict": true, "doc_adjustments": {"1": 1e400}}', "out_of_range"),
        ('{"has_conflict": true, "doc_adjustments": {"1": NaN}}', "out_of_range"),
        ("no conflict", "parse_error"),
    ],
)
def test_conflict_refused(reply, status):
    assert status_of(parse_conflict, reply, 3) == status


def test_no_conflict_needs_no_adjustments():
    findings = parse_conflict('{"has_conflict": false}', 3)
    assert findings.score(1, "centred") == 2.5


def test_conflict_cut_off_keeps_what_was_complete():
    reply = '{"has_conflict": true, "doc_adjustments": {"1": -2, "2": 1}, "majority_position": "nineteen sixty'
    assert parse_conflict(reply, 2).adjustments == {1: -2, 2: 1}


def test_conflict_of_one_document():
    assert parse_conflict_document('{"has_conflict": true, "adjustment": -2}').score(1, "centred") == 0.0
    assert status_of(parse_conflict_document, '{"has_conflict": true, "adjustment": 3}') == "out_of_range"


def test_members_prefers_the_whole_object():
    assert members('{"a": 1, "b": 2}') == {"a": 1, "b": 2}
    assert members('{"a": 1, "b": {"c": 3, "d": 4}, "e": "x') == {"a": 1, "b": {"c": 3, "d": 4}}


def test_split_sentences():
    assert split_sentences("One. Two!  Three?\nFour\n\n v1.5 stays") == ("One.", "Two!", "Three?", "Four", "v1.5 stays")


@pytest.mark.parametrize("role", ["relevance", "consistency", "conflict", "conflict_document", "forced"])
@pytest.mark.parametrize("cot", [False, True])
def test_schema_is_closed_and_requires_everything(role, cot):
    found = schema(role, cot=cot, documents=3)
    assert found["additionalProperties"] is False
    assert found["required"] == list(found["properties"])
    assert (next(iter(found["properties"])) == "reasoning_steps") is cot
    json.dumps(found)


def test_findings_default_to_no_adjustment():
    assert Findings(False, {}).score(17, "centred") == 2.5
