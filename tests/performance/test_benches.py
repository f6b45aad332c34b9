"""The benchmarks of the registry on tiny real models: what is compared, not how fast it is."""

from __future__ import annotations

from functools import cache, partial

import pytest

from mdqa.attention.capture import IMPLEMENTATION
from mdqa.backends.base import InspectableBackend
from mdqa.backends.hf import TransformersBackend
from mdqa.backends.scripted import ScriptedBackend
from mdqa.benchmarks.examples import examples
from mdqa.cancellation import CancelToken
from mdqa.commands.bench import WITHOUT_MODEL
from mdqa.errors import Cancelled, CapabilityError, ProfileError
from mdqa.methods.base import Tools
from mdqa.performance import attention, cafe
from mdqa.performance.cases import Case, built_in_cases, prompt_tokens
from mdqa.performance.figures import Figure
from mdqa.performance.measuring import NoMemory, meter_for
from mdqa.performance.plan import Plan
from mdqa.records import Profile
from mdqa.registry import BENCHES, CALIBRATIONS, load
from tests.tiny import tiny_backend


@cache
def backend_and_profile() -> tuple[TransformersBackend, Profile]:
    backend = tiny_backend("llama")
    questions = [one.question for one in examples() if one.question.gold_ids][:2]
    return backend, load(CALIBRATIONS, "cafe", "calibration")(questions, Tools(backend), name="tiny", seed=1)


OF_MODELS = tuple(name for name in BENCHES if name not in WITHOUT_MODEL)
"""Benchmarks of what a model does; the others have tests of their own (test_annotating.py, test_people.py)."""


def early(profile: Profile, layer: int) -> Profile:
    """The same profile with its best coarse heads in one layer."""
    scores = [[1.0 if i == layer else 0.0 for _ in row] for i, row in enumerate(profile.values["coarse"]["scores"])]
    return profile.model_copy(update={"values": {**profile.values, "coarse": {"n": 1, "scores": scores}}})


def plan(backend: TransformersBackend, profile: Profile | None, *lengths: int, rounds: int = 1, **more: object) -> Plan:
    cases = built_in_cases(lengths, partial(prompt_tokens, backend), rounds)
    return Plan(Tools(backend), tuple(cases), meter_for("cpu"), find_profile=lambda method: profile, **more)  # type: ignore[arg-type]


def by_name(figures: list[Figure], documents: int | None = None) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures if documents is None or figure.documents == documents}


@pytest.mark.parametrize("name", OF_MODELS)
def test_benches_refuse_a_backend_without_weights_at_once(name: str) -> None:
    item = examples()[0].question
    given = Plan(Tools(ScriptedBackend()), (Case("one", (item,), 1),), NoMemory("a test"))
    with pytest.raises(CapabilityError, match="scripted"):
        load(BENCHES, name, "benchmark")(given)


@pytest.mark.parametrize("name", OF_MODELS)
def test_benches_leave_the_model_as_it_was_when_stopped(name: str) -> None:
    backend, profile = backend_and_profile()
    cancel = CancelToken()

    def stop(done: int, total: int, text: str) -> None:
        if done == 1:
            cancel.cancel()

    given = plan(backend, profile, 600, cancel=cancel, progress=stop)
    with pytest.raises(Cancelled):
        list(load(BENCHES, name, "benchmark")(given))
    assert backend.pretrained.config._attn_implementation == IMPLEMENTATION


def test_attention_compares_four_ways_and_finds_the_same_map() -> None:
    backend, _ = backend_and_profile()
    figures = list(attention.bench(plan(backend, None, 600, 1000, rounds=2)))
    assert all(figure.n == 2 for figure in figures)
    for documents in (4, 7):
        found = by_name(figures, documents)
        for variant, against in (("captured", "plain"), ("captured_4_heads", "plain"), ("eager", "captured")):
            for quantity in ("time", "processor_time", "peak_memory", "added_memory"):
                figure = found[f"{variant}.{quantity}"]
                assert figure.value is not None, figure.note
                assert figure.against == against
                assert (figure.goal is None) == (quantity == "processor_time")
        assert found["plain.time"].ratio is None
    differences = [figure.value for figure in figures if figure.name == "captured.difference_from_eager"]
    assert len(differences) == 2
    assert all(value is not None and value < 1e-5 for value in differences)
    assert figures[-1].name == "captured.time.growth"
    assert figures[-1].ratio is not None


def test_attention_says_what_does_not_fit_into_the_window() -> None:
    backend, _ = backend_and_profile()
    figures = list(attention.bench(plan(backend, None, 5000)))
    assert [figure.name for figure in figures] == ["captured.time", "captured.time.growth"]
    assert figures[0].value is None
    assert "do not fit into the model's window of 4,096" in figures[0].note
    assert figures[0].tokens is not None
    assert figures[0].tokens > 4900
    assert "fewer than two lengths" in figures[1].note


def test_cafe_is_compared_with_direct_answering() -> None:
    backend, profile = backend_and_profile()
    found = by_name(list(cafe.bench(plan(backend, early(profile, 1), 1000))))
    assert found["cafe.time"].against == "direct"
    assert found["cafe.time"].goal is None  # 7 documents; the goal is about 20
    for part in ("coarse_filtering", "fine_steering", "answer"):
        share = found[f"cafe.{part}.time"].ratio
        whole = found["cafe.time"].ratio
        assert share is not None
        assert whole is not None
        assert 0 < share < whole
    kept, computed = found["cafe.documents_kept"], found["cafe.prompt_tokens_computed"]
    assert kept.baseline == 7
    assert kept.value is not None
    assert 4 <= kept.value <= 7
    assert computed.baseline == found["direct.time"].tokens
    assert computed.value is not None
    rows, stopped = found["steered_prefill.rows"], found["coarse_pass_stopped.time"]
    assert rows.ratio == 1.0  # only rows from the question on were computed
    assert rows.value is not None
    assert rows.tokens is not None
    assert 0 < rows.value < 0.5 * rows.tokens
    assert stopped.note == "runs 2 of 4 layers (0.500)"
    assert stopped.goal is not None
    assert stopped.goal.limit == pytest.approx(0.525)
    assert found["steered_prefill_reusing.time"].against == "steered_prefill_whole"


def test_the_headline_is_held_to_the_goal() -> None:
    backend, profile = backend_and_profile()
    found = by_name(list(cafe.bench(plan(backend, early(profile, 0), 2800))))
    assert found["cafe.time"].documents == 20
    assert found["cafe.time"].to_row()["goal"] == "<= 1.1"


def test_cafe_says_what_does_not_fit_into_the_window() -> None:
    backend, profile = backend_and_profile()
    [figure] = list(cafe.bench(plan(backend, profile, 5000)))
    assert (figure.name, figure.value) == ("cafe.time", None)
    assert "window of 4,096" in figure.note


def test_cafe_needs_a_profile_and_says_so_before_any_work() -> None:
    backend, _ = backend_and_profile()
    with pytest.raises(ProfileError, match="python -m mdqa calibrate --method cafe"):
        cafe.bench(plan(backend, None, 600))


def test_the_watched_backend_changes_nothing() -> None:
    backend, profile = backend_and_profile()
    given = plan(backend, profile, 700)
    given = Plan(Tools(backend, None, profile), given.cases, given.meter)
    item = given.cases[0].items[0]
    watched = cafe.Watched(backend)
    assert isinstance(watched, InspectableBackend)
    alone, seen = (cafe.first_token("cafe", item, given, one) for one in (backend, watched))
    assert [stage.scores for stage in alone.stages] == [stage.scores for stage in seen.stages]
    assert alone.cost.prompt_tokens == seen.cost.prompt_tokens
    assert len(watched.attended) == 2
    [(requests, options)] = watched.generated
    assert requests[0].max_new_tokens == 1
    assert options["prefix"] is not None
    assert set(options["steering"].documents) <= set(item.document_ids)
