"""The masking probes: which masks a question gets, and on a tiny real model that they are what they say."""

from __future__ import annotations

import math
import re

import pytest

from mdqa.backends.base import GenerationRequest, Steering
from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, InputError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.attending import prompt
from mdqa.methods.cafe.masking import MODES, Mask, MaskingConfig, masks_for, probe_question, usable_questions
from mdqa.records import Document, Question
from mdqa.scoring.answers import best_subspan_em
from tests.tiny import tiny_backend

SHORT = MaskingConfig(max_new_tokens=8)


def question(gold: str, name: str = "q", marked: bool = True) -> Question:
    """One document per letter: g is evidence, . is not."""
    documents = tuple(
        Document(
            id=f"d{i}", title=f"T{i}", text=f"Place {i} lies in region {7 * i}.", gold=(mark == "g") if marked else None
        )
        for i, mark in enumerate(gold)
    )
    return Question(id=name, question="Which region holds place 1?", answers=("7",), documents=documents)


def modes(item: Question, seed: int = 0) -> dict[str, Mask]:
    return {mask.mode: mask for mask in masks_for(item, seed)}


def test_two_pieces_of_evidence_get_every_mode_of_the_table():
    found = modes(question(".g..g."))
    assert list(found) == list(MODES)
    assert found["none"] == Mask("none")
    assert found["evidence2_to_evidence1"] == Mask("evidence2_to_evidence1", ("d1",), ("d4",))
    assert found["question_to_evidence1"].documents == ("d1",)
    assert found["question_to_evidence2"].documents == ("d4",)
    assert found["question_to_all_evidence"].documents == ("d1", "d4")
    one, two = (found[f"question_to_{count}_irrelevant"].documents for count in ("one", "two"))
    assert len(two) == len({*two}) == 2
    assert one == two[:1]
    assert {*two} <= {"d0", "d2", "d3", "d5"}
    assert all(not mask.row_documents for mode, mask in found.items() if mode != "evidence2_to_evidence1")


@pytest.mark.parametrize(
    ("gold", "missing"),
    [
        ("g..", {"evidence2_to_evidence1", "question_to_evidence2", "question_to_all_evidence"}),
        ("gg.", {"question_to_two_irrelevant"}),
        ("gg", {"question_to_one_irrelevant", "question_to_two_irrelevant"}),
        ("ggg..", set()),
    ],
)
def test_modes_that_make_no_sense_are_left_out(gold, missing):
    found = modes(question(gold))
    assert set(MODES) - set(found) == missing
    if gold == "ggg..":
        assert found["question_to_all_evidence"].documents == ("d0", "d1", "d2")


def test_irrelevant_documents_depend_on_the_seed_and_the_question_only():
    drawn = [
        modes(question("g" + "." * 20, name), seed)["question_to_two_irrelevant"] for seed in (1, 2) for name in "ab"
    ]
    again = [
        modes(question("g" + "." * 20, name), seed)["question_to_two_irrelevant"] for seed in (1, 2) for name in "ab"
    ]
    assert drawn == again
    assert len({mask.documents for mask in drawn}) > 2


def test_questions_without_marks_or_answers_are_left_out_with_counts():
    good, unmarked = question("g."), question("..", "u")
    unanswered = question("g.", "a").model_copy(update={"answers": ("", " ")})
    assert usable_questions([good]) == ([good], "")
    usable, words = usable_questions([unmarked, good, unanswered])
    assert usable == [good]
    assert re.match(r"of 3 questions 1 have no document .* 1 have no answer.*'u', 'a'.*left out$", words)
    with pytest.raises(InputError, match=r"1 have no document.*none is left"):
        usable_questions([question("..", marked=False)])


@pytest.mark.parametrize("rows", ["question", "question_to_end", "question_to_end_and_generated"])
def test_answers_are_those_of_masked_generation_and_the_documents_are_computed_once(rows):
    backend, item = tiny_backend(), question(".g.g.")
    probed = probe_question(item, Tools(backend), MaskingConfig(rows=rows, max_new_tokens=8), seed=3)
    layout = backend.encoder.encode(prompt(item, item.document_ids))
    firsts = {span.document_id: span.first for span in layout.of_kind("document")}
    assert [a.mask for a in probed.answers] == list(masks_for(item, 3))
    for found in probed.answers:
        mask = found.mask
        steering = Steering(mask.documents, -math.inf, rows, row_documents=mask.row_documents)
        [alone] = backend.generate(
            [GenerationRequest(prompt(item, item.document_ids), 8)],
            cancel=CancelToken(),
            steering=steering if mask.documents else None,
        )
        assert found.answer == (alone.text.strip().splitlines() or [""])[0].rstrip()
        assert found.sub_em == best_subspan_em(found.answer, item.answers)
        first = firsts["d3"] if mask.row_documents else layout.question.first
        assert found.cost.cached_tokens == (first if mask.documents else len(layout.ids) - 1)
    assert len({found.answer for found in probed.answers}) > 2  # masks change what this model writes
    assert probed.documents_cost.prefill_tokens_computed == len(layout.ids)
    assert probed.cost.llm_calls == len(MODES) + 1
    assert probed.cost.prefill_tokens_computed < 2 * len(layout.ids) + 7 * 40


def test_one_mode_in_json():
    item = question("gg.")
    probed = probe_question(item, Tools(ScriptedBackend()), SHORT)
    line = {a.mask.mode: a.to_json() for a in probed.answers}
    assert line["none"]["masked"] == line["none"]["masked_for"] == []
    assert line["evidence2_to_evidence1"]["masked"] == ["d0"]
    assert line["evidence2_to_evidence1"]["masked_for"] == ["d1"]
    assert line["question_to_all_evidence"]["masked_for"] == ["question"]
    assert line["none"]["answer"] == "Place 0 lies in region 0."  # the scripted model reads the document it likes best,
    assert line["question_to_evidence1"]["answer"] == "Place 1 lies in region 7."  # or the next if that is hidden
    assert (line["none"]["sub_em"], line["question_to_evidence1"]["sub_em"]) == (0.0, 1.0)
    assert line["none"]["cost"]["llm_calls"] == 1


def test_a_stop_ends_the_probe():
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        probe_question(question("g."), Tools(ScriptedBackend()), SHORT, cancel=cancel)


@pytest.mark.slow
def test_the_built_in_model_needs_to_see_the_evidence(builtin_backend):
    """Two made-up facts that no model knows: with the evidence hidden from question and reply, they are not said."""
    for number, (name, answer) in enumerate((("Velden", "Ostra"), ("Kolmgrad", "Ibrek"))):
        documents = (
            Document(id="x", title="Bread", text="Rye bread keeps for a week in a cool, dry place.", gold=False),
            Document(id="e", title=name, text=f"{name} is a town. The river {answer} flows through {name}.", gold=True),
            Document(id="f", title=answer, text=f"The {answer} is the only river near {name}.", gold=True),
            Document(id="y", title="Tea", text="Green tea is brewed with water below boiling.", gold=False),
        )
        item = Question(
            id=f"q{number}",
            question=f"Which river flows through {name}?",
            answers=(answer,),
            documents=documents,
        )
        probed = probe_question(item, Tools(builtin_backend), MaskingConfig(max_new_tokens=12))
        scores = {a.mask.mode: a.sub_em for a in probed.answers}
        assert list(scores) == list(MODES)
        assert scores["none"] == 1.0, probed.answers
        assert scores["question_to_all_evidence"] == 0.0, probed.answers
