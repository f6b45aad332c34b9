"""Two models as one: one behind an address writes, one of transformers is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mdqa.backends.base import Backend, GenerationRequest, Steering
from mdqa.backends.composed import ComposedBackend
from mdqa.backends.loading import capabilities_by_name, kind_of, load_backend
from mdqa.backends.scripted import ScriptedBackend
from mdqa.calibration import find_profile
from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError, ConfigError, ModelError, ProfileError
from mdqa.methods.base import Tools
from mdqa.methods.cafe.method import CAFE, CAFEConfig
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.method import DuQUAD
from mdqa.records import Profile
from mdqa.registry import method_class
from mdqa.run import begin, run_one
from tests.backends.contract import DOCUMENTS, prompt
from tests.methods.cafe.helpers import place_question
from tests.serving import Server, serving
from tests.tiny import tiny_backend, tiny_model, tiny_tokenizer


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("llama").save_pretrained(place)
    tiny_tokenizer().save_pretrained(place)
    return place


def load(model: str, tmp_path: Path) -> Backend:
    return load_backend(model, cache=tmp_path, device="cpu", dtype="float32")


def test_an_address_becomes_a_backend(server: Server, tmp_path: Path) -> None:
    for name in (server.url, f"tiny@{server.url}"):
        backend = load(name, tmp_path)
        assert (backend.name, backend.model) == ("openai", name)
    with pytest.raises(ModelError, match="does not have 'large'"):
        load(f"large@{server.url}", tmp_path)


def test_each_does_its_part(server: Server, folder: Path, tmp_path: Path) -> None:
    backend = load(f"{server.url} + {folder}", tmp_path)
    assert isinstance(backend, ComposedBackend)
    assert backend.model == f"{server.url} + {folder}"
    assert backend.capabilities == {"generate", "structured", "likelihood", "attention"}
    cancel = CancelToken()
    assert backend.generate([GenerationRequest(prompt(*DOCUMENTS))], cancel=cancel)[0].text == "The sky is blue"
    alone = load(str(folder), tmp_path)
    wanted = {"stage": "s", "title": "S", "cancel": cancel}
    shown, own = backend.attend(prompt(*DOCUMENTS), **wanted), alone.attend(prompt(*DOCUMENTS), **wanted)  # type: ignore[attr-defined]
    assert (shown.map.mass == own.map.mass).all()
    with pytest.raises(CapabilityError, match="one model writes and the other is looked at"):
        backend.generate([GenerationRequest(prompt())], cancel=cancel, steering=Steering(("a",), 1.0))


def test_the_same_model_twice_can_steer() -> None:
    tiny = tiny_backend()
    backend = ComposedBackend(ScriptedBackend(["written"], model=tiny.model), tiny)
    assert backend.model == tiny.model
    assert "steering" in backend.capabilities
    request, cancel = GenerationRequest(prompt(*DOCUMENTS), max_new_tokens=4), CancelToken()
    assert backend.generate([request], cancel=cancel)[0].text == "written"
    towards = Steering(("a",), 1.0)
    [steered] = backend.generate([request], cancel=cancel, steering=towards)
    assert steered.text == tiny.generate([request], cancel=cancel, steering=towards)[0].text


def test_the_second_must_be_one_to_look_at(server: Server, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="shows no attention"):
        load(f"{folder} + {server.url}", tmp_path)


def test_a_method_that_looks_and_asks(server: Server, folder: Path, tmp_path: Path) -> None:
    server.pieces = ['{"answer": "pond", ', '"documents": [1]}']
    backend, item = load(f"{server.url} + {folder}", tmp_path), place_question(4)
    config = DuQUADConfig.parse({"weight_sim": 0, "weight_ppl": 0.5, "weight_cont": 0.5})
    tools = Tools(backend)
    outcome = run_one(begin("duquad", config, item, tools, seed=0), tools)
    assert outcome.result.status == "ok", outcome.result.error
    assert set(outcome.result.stages[0].scores) >= {"ppl", "cont"}
    assert len(server.requests) > 2
    assert DuQUAD.name == outcome.result.method


def test_cafe_says_before_the_run_what_it_needs(server: Server, folder: Path, tmp_path: Path) -> None:
    backend = load(f"{server.url} + {folder}", tmp_path)
    profile = Profile(
        name="p",
        method="cafe",
        model=str(folder),
        data="d",
        n=1,
        seed=0,
        created="2026-01-01",
        values={},
    )
    with pytest.raises(CapabilityError, match="steering"):
        CAFE(CAFEConfig(), Tools(backend, profile=profile))
    with pytest.raises(ProfileError, match="calibrat"):
        CAFE(CAFEConfig.parse({"fine_steering": False}), Tools(backend))


def test_a_profile_is_about_one_of_both() -> None:
    def made(method: str, model: str) -> Profile:
        return Profile(name=method, method=method, model=model, data="d", n=1, seed=0, created="2026-01-01")

    known = [made("cafe", "looked"), made("madara", "writes")]
    assert find_profile("cafe", "writes + looked", more=known) == known[0]
    assert find_profile("madara", "writes + looked", more=known) == known[1]
    assert method_class("cafe").profiled("one") == "one"


@pytest.mark.parametrize(
    ("model", "backend", "kind"),
    [
        ("builtin", "auto", "hf"),
        ("builtin", "vllm", "vllm"),
        ("vllm:builtin", "auto", "vllm"),
        ("http://host/v1", "auto", "openai"),
        ("name@https://host:8000/v1", "openai", "openai"),
        ("scripted", "scripted", "scripted"),
    ],
)
def test_the_kind_follows_from_the_name(model: str, backend: str, kind: str) -> None:
    assert kind_of(model, backend) == kind


@pytest.mark.parametrize(
    ("model", "backend"),
    [("builtin", "openai"), ("http://host/v1", "hf"), ("vllm:builtin", "hf"), ("scripted", "vllm")],
)
def test_names_that_do_not_go_with_the_backend(model: str, backend: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not go with backend"):
        load_backend(model, backend=backend, cache=tmp_path)


@pytest.mark.parametrize(
    ("model", "able"),
    [
        ("builtin", "generate structured likelihood attention steering"),
        ("vllm:builtin", "generate structured likelihood"),
        ("http://host/v1", "generate structured"),
        ("http://host/v1 + builtin", "generate structured likelihood attention"),
        ("vllm:builtin + builtin", "generate structured likelihood attention steering"),
    ],
)
def test_what_a_name_promises(model: str, able: str) -> None:
    assert capabilities_by_name(model) == tuple(able.split())


def test_a_plus_in_an_address_is_no_second_model() -> None:
    assert capabilities_by_name("http://host/a+b/v1") == ("generate", "structured")
