"""Finding heads: every way of scoring, resuming, what is refused, and how good the heads are."""

from __future__ import annotations

import numpy as np
import pytest

from mdqa.attention.contrast import CONTENT_FREE, contrasted
from mdqa.attention.heads import document_shares, head_shares, top_heads
from mdqa.backends.hf import TransformersBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, InputError, ProfileError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.attending import attend_documents, prompt
from mdqa.methods.cafe.calibration import calibrate, shuffled
from mdqa.methods.cafe.measuring import Measuring
from mdqa.methods.cafe.profile import Scoring, read_scoring
from mdqa.methods.cafe.quality import measure_profile, table
from mdqa.methods.cafe.selection import select
from mdqa.passes import Passes
from mdqa.retrieval.dense import MiniLMEncoder
from tests.methods.cafe.helpers import place_question
from tests.tiny import tiny_backend

WAYS = [Scoring("question", pool, calibration) for pool in ("sum", "mean") for calibration in ("none", "content_free")]


@pytest.fixture(scope="module")
def backend() -> TransformersBackend:
    return tiny_backend("llama")


@pytest.fixture(scope="module")
def tools(backend: TransformersBackend) -> Tools:
    return Tools(backend, make_encoder=MiniLMEncoder)


QUESTIONS = [place_question(7, i, f"q{i}") for i in range(4)]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_eta_is_the_mean_share_of_the_evidence(way: Scoring, backend, tools) -> None:
    """Equation 2 once more by hand: beta of the evidence document, head by head, question by question."""
    profile = calibrate(QUESTIONS, tools, name="x", doc_pool=way.pool, calibration=way.calibration)
    expected = []
    for item in QUESTIONS:
        mixed = shuffled(item, 42)
        scored = attend_documents(
            lambda p, **options: backend.attend(p, stage="s", cancel=CancelToken(), **options),
            mixed,
            mixed.document_ids,
            title="T",
            pool=way.pool,
            calibration=way.calibration,
        )
        expected.append(document_shares(scored.mass)[..., mixed.document_ids.index(mixed.gold_ids[0])])
    np.testing.assert_allclose(profile.values["coarse"]["scores"], np.mean(expected, axis=0), atol=2e-5)
    assert read_scoring(profile) == way
    assert str(way) in profile.note


def test_mean_pooling_is_the_backends_own(backend) -> None:
    item = place_question()
    ours = Measuring(backend, Scoring(pool="mean"), CancelToken()).mass(item, item.document_ids)
    theirs = backend.attend(prompt(item, item.document_ids), stage="s", title="T", cancel=CancelToken(), pool="mean")
    np.testing.assert_allclose(ours, theirs.map.mass, rtol=1e-5)


def test_the_content_free_question_has_the_same_documents(backend) -> None:
    item = place_question()
    free = prompt(item, item.document_ids, CONTENT_FREE)
    assert free.document_ids == item.document_ids
    assert item.question not in backend.render(free)
    assert CONTENT_FREE in backend.render(free)


def test_contrast_is_never_negative() -> None:
    found = contrasted(np.array([0.5, 0.1, 0.2]), np.array([0.2, 0.3, 0.2]))
    np.testing.assert_allclose(found, [0.3, 0.0, 0.0])
    np.testing.assert_allclose(document_shares(contrasted(np.ones(4), np.ones(4))), 0.25)  # nothing left: even


def test_a_head_that_is_drawn_by_habit_alone_has_no_preference_left(backend) -> None:
    """Asked nothing twice, the contrast is exactly nothing."""
    item = place_question().model_copy(update={"question": CONTENT_FREE})
    mass = Measuring(backend, Scoring(calibration="content_free"), CancelToken()).mass(item, item.document_ids)
    np.testing.assert_allclose(mass, 0.0, atol=1e-6)


class Counting(TransformersBackend):
    """Counts attention passes, and can be told to stop the work at one of them."""

    passes = 0
    stop_at: int | None = None

    def attend(self, *arguments, cancel: CancelToken, **options):
        if self.stop_at is not None and self.passes >= self.stop_at:
            cancel.cancel()
        cancel.check()
        self.passes += 1
        return super().attend(*arguments, cancel=cancel, **options)


@pytest.mark.parametrize("way", [WAYS[0], WAYS[1]], ids=str)
def test_stopped_work_goes_on_and_repeats_nothing(way: Scoring, tmp_path) -> None:
    plain = tiny_backend("llama")
    counting = Counting(plain._engine.model, plain.encoder.tokenizer, model_name=plain.model)
    options = {"name": "x", "doc_pool": way.pool, "calibration": way.calibration, "k1": 2, "m1": 2}
    whole = calibrate(QUESTIONS, Tools(counting), **options)
    needed, counting.passes = counting.passes, 0
    passes = Passes(tmp_path / "passes")
    done = 0
    for stop_at in (1, 3, 6):  # in the first stage, there again, in the second
        counting.stop_at = stop_at
        with pytest.raises(Cancelled):
            calibrate(QUESTIONS, Tools(counting), passes=passes, cancel=CancelToken(), **options)
        assert passes.count() == counting.passes > done
        done = counting.passes
    counting.stop_at = None
    resumed = calibrate(QUESTIONS, Tools(counting), passes=passes, **options)
    assert counting.passes == needed
    assert resumed.values == whole.values
    again = calibrate(QUESTIONS, Tools(counting), passes=passes, **options)
    assert counting.passes == needed
    assert again.values == whole.values


def test_other_ways_of_scoring_share_their_passes(tmp_path) -> None:
    plain = tiny_backend("llama")
    counting = Counting(plain._engine.model, plain.encoder.tokenizer, model_name=plain.model)
    passes = Passes(tmp_path)
    Measuring(counting, Scoring(calibration="content_free"), CancelToken(), passes).mass(QUESTIONS[0], ("d1", "d2"))
    assert counting.passes == 2
    for way in WAYS:
        Measuring(counting, way, CancelToken(), passes).mass(QUESTIONS[0], ("d1", "d2"))
    assert counting.passes == 2
    Measuring(counting, WAYS[0], CancelToken(), passes).mass(
        QUESTIONS[0], ("d2", "d1")
    )  # another order is another prompt
    assert counting.passes == 3


def test_questions_without_marks_are_left_out_and_counted(tools) -> None:
    bare = place_question(3, 9, "bare")
    profile = calibrate([*QUESTIONS, bare], tools, name="x")
    assert profile.n == 4
    assert "1 questions without evidence marks" in profile.note
    with pytest.raises(InputError, match="none of 1 questions"):
        calibrate([bare], tools, name="x")
    with pytest.raises(InputError, match="none of 0"):
        calibrate([], tools, name="x")


def test_a_question_cannot_be_for_both(tools) -> None:
    with pytest.raises(InputError, match=r"at once, for example \['q1'\]"):
        calibrate(QUESTIONS, tools, name="x", held_out=[QUESTIONS[1]])


def test_quality_by_hand(backend, tools) -> None:
    """Recall of the union, top-1 and MRR of gamma, over two questions; the others get as many documents."""
    held_out = [place_question(7, 5, "h5"), place_question(7, 6, "h6")]
    profile = calibrate(QUESTIONS, tools, name="x", held_out=held_out, k1=2, m1=2)
    quality = profile.values["quality"]
    heads = top_heads(np.array(profile.values["coarse"]["scores"]), 2)
    recall, first, reciprocal, kept = [], [], [], []
    for item in held_out:
        mass = backend.attend(prompt(item, item.document_ids), stage="s", title="T", cancel=CancelToken()).map.mass
        shares = head_shares(mass, heads)
        union = set(np.argsort(-shares, axis=1, kind="stable")[:, :2].ravel().tolist())
        gold = item.document_ids.index(item.gold_ids[0])
        rank = 1 + int((shares.sum(0) > shares.sum(0)[gold]).sum())
        recall.append(gold in union)
        first.append(rank == 1)
        reciprocal.append(1 / rank)
        kept.append(len(union))
    row = quality["rows"][0]
    assert row["name"] == "retrieval heads"
    assert row["recall"]["mean"] == np.mean(recall)
    assert row["top1"]["mean"] == np.mean(first)
    assert row["mrr"]["mean"] == pytest.approx(np.mean(reciprocal))
    assert quality["kept"] == np.mean(kept)
    assert [r["name"] for r in quality["rows"]][1:] == ["all heads", "BM25", "all-MiniLM-L6-v2"]
    bm25 = quality["rows"][2]
    assert bm25["top1"]["mean"] == 1.0  # the number stands in one document only
    again = measure_profile(profile, held_out, tools, k1=2, m1=2)
    assert again["rows"] == quality["rows"]
    text = table(quality)
    assert "BM25" in text
    assert "2 held-out questions" in text


def test_quality_refuses_another_model_and_long_questions(tools) -> None:
    profile = calibrate(QUESTIONS, tools, name="x")
    with pytest.raises(ProfileError, match="other/model"):
        measure_profile(profile.model_copy(update={"model": "other/model"}), QUESTIONS, tools)
    damaged = {**profile.values, "options": {"doc_pool": "median"}}
    with pytest.raises(ProfileError, match="median"):
        measure_profile(profile.model_copy(update={"values": damaged}), QUESTIONS, tools)


def test_all_heads_selected_is_the_union_of_everything(backend) -> None:
    item = place_question(3, 1)
    mass = Measuring(backend, Scoring(), CancelToken()).mass(item, item.document_ids)
    heads = top_heads(mass.sum(-1), 4)
    assert set(select(item.document_ids, head_shares(mass, heads), heads, 3).kept) == set(item.document_ids)
