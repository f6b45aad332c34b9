"""From a name to a backend, and every way in which that can fail, on real folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest
import torch
import transformers
from httpx import Request, Response
from huggingface_hub.errors import GatedRepoError, LocalEntryNotFoundError, RepositoryNotFoundError
from safetensors.torch import load_file, save_file

from mdqa.backends.base import GenerationRequest, InspectableBackend
from mdqa.backends.loading import load_backend
from mdqa.backends.pretrained import explain, free_bytes, refuse_if_too_large, weight_bytes, with_memory_errors
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError, ModelError
from mdqa.prompting import parse_template
from tests.tiny import CONFIGS, tiny_model, tiny_tokenizer

PROMPT = parse_template("test", "### user\nWhat is the answer?").fill()


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A complete folder of a tiny Llama."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny_model("llama").save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(original, tmp_path):
    """A copy of it, to be damaged."""
    return shutil.copytree(original, tmp_path / "tiny")


def fail(model, cache, **options) -> str:
    with pytest.raises(ModelError) as caught:
        load_backend(str(model), cache=cache, **options)
    return str(caught.value)


def edit_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def test_a_local_folder_becomes_a_backend(original, tmp_path):
    said = []
    backend = load_backend(str(original), cache=tmp_path, device="cpu", progress=lambda *step: said.append(step))
    assert isinstance(backend, InspectableBackend)
    assert (backend.name, backend.model, backend.layers, backend.heads) == ("hf", str(original), 4, 6)
    reply = backend.generate([GenerationRequest(PROMPT, max_new_tokens=5)], cancel=CancelToken())[0]
    assert 1 <= reply.cost.completion_tokens <= 5
    assert "on cpu" in backend.dtype_reason
    assert said[-1][1] == 1.0
    assert not list(tmp_path.iterdir())  # the built-in model was not touched


def test_the_weights_are_those_of_the_files(original, tmp_path):
    backend = load_backend(str(original), cache=tmp_path, dtype="float32", device="cpu")
    again = load_backend(str(original), cache=tmp_path, dtype="float32", device="cpu")
    request = GenerationRequest(PROMPT, max_new_tokens=8)
    first, second = (b.generate([request], cancel=CancelToken())[0].text for b in (backend, again))
    assert first == second


@pytest.mark.parametrize("architecture", list(CONFIGS))
def test_every_supported_architecture_loads_from_files(architecture, tmp_path):
    tiny_model(architecture).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    backend = load_backend(str(tmp_path), cache=tmp_path, device="cpu")
    assert backend.layers == 4


def test_scripted(tmp_path):
    assert load_backend("scripted", cache=tmp_path).name == "scripted"
    assert load_backend("scripted", backend="scripted", cache=tmp_path).name == "scripted"
    for model, backend in (("scripted", "hf"), ("builtin", "scripted")):
        with pytest.raises(ConfigError, match="does not go with"):
            load_backend(model, backend=backend, cache=tmp_path)


def test_unknown_backend(tmp_path):
    with pytest.raises(ConfigError, match="auto, hf, vllm, openai, scripted"):
        load_backend("builtin", backend="tensorflow", cache=tmp_path)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("./not/here", "no folder"),
        ("/not/here", "no folder"),
        ("a/b/c", "no folder"),
        ("my model", "no folder"),
        ("buildin", "Did you mean 'builtin'"),
    ],
)
def test_names_that_cannot_be_a_model(model, says, tmp_path):
    text = fail(model, tmp_path)
    assert says in text
    assert "a Hugging Face id" in text
    assert model in text


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    assert "Give the folder" in fail(tmp_path / "model.gguf", tmp_path)


def test_an_empty_folder(tmp_path):
    assert "no config.json" in fail(tmp_path, tmp_path)


def test_broken_json(folder, tmp_path):
    (folder / "config.json").write_text('{"model_type": "llama",', encoding="utf-8")
    assert "valid JSON" in fail(folder, tmp_path)


def test_no_tokenizer(folder, tmp_path):
    (folder / "tokenizer.json").unlink()
    assert "tokenizer" in fail(folder, tmp_path)


def test_no_weights(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    assert "model.safetensors" in fail(folder, tmp_path)


def test_a_weights_file_cut_short(folder, tmp_path):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    assert "cannot be loaded" in fail(folder, tmp_path)


def test_missing_weights_are_never_left_at_random(folder, tmp_path):
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.2.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    text = fail(folder, tmp_path)
    assert "model.layers.2.mlp.up_proj.weight" in text
    assert "at random" in text


def test_author_code_is_not_run(folder, tmp_path):
    proof = tmp_path / "was_run"
    (folder / "modeling_evil.py").write_text(f"open({str(proof)!r}, 'w')\n", encoding="utf-8")
    auto_map = {"AutoConfig": "modeling_evil.Evil", "AutoModelForCausalLM": "modeling_evil.Evil"}
    edit_config(folder, model_type="evil", architectures=["EvilForCausalLM"], auto_map=auto_map)
    text = fail(folder, tmp_path)
    assert "code of its own" in text
    assert "'evil'" in text
    assert not proof.exists()


def test_a_known_model_with_author_code_runs_without_it(folder, tmp_path):
    edit_config(folder, auto_map={"AutoModelForCausalLM": "modeling_missing.Missing"})
    assert load_backend(str(folder), cache=tmp_path, device="cpu").layers == 4


def test_an_unknown_kind_of_model(folder, tmp_path):
    edit_config(folder, model_type="rwkv99")
    assert "does not know" in fail(folder, tmp_path)


@pytest.mark.parametrize(
    "config",
    [
        transformers.BertConfig(architectures=["BertForMaskedLM"]),
        transformers.T5Config(architectures=["T5ForConditionalGeneration"]),
        transformers.BartConfig(architectures=["BartForConditionalGeneration"]),
        transformers.ViTConfig(architectures=["ViTForImageClassification"]),
    ],
    ids=lambda config: config.model_type,
)
def test_models_that_do_not_continue_a_text(config, tmp_path):
    config.save_pretrained(tmp_path)
    text = fail(tmp_path, tmp_path)
    assert "not a decoder-only" in text
    assert config.architectures[0] in text


def test_a_model_whose_attention_cannot_be_seen(tmp_path):
    config = transformers.BloomConfig(hidden_size=32, n_head=2, n_layer=2, vocab_size=512)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    assert "attention transformers does not let one see" in fail(tmp_path, tmp_path)


def test_a_model_too_large_for_the_memory_is_refused_before_its_weights_are_read(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    edit_config(folder, vocab_size=2_000_000_000)  # 768 GB in float32
    text = fail(folder, tmp_path, device="cpu", dtype="float32")
    assert "768." in text
    assert "GB free" in text


def test_room_is_compared_with_need():
    refuse_if_too_large("m", 10, None, "cpu")
    refuse_if_too_large("m", 10, 10, "cpu")
    with pytest.raises(ModelError, match=r"m needs 20\.0 GB for its weights, but cuda has 16\.0 GB free"):
        refuse_if_too_large("m", 20 * 10**9, 16 * 10**9, "cuda")
    assert free_bytes("cpu") is None or free_bytes("cpu") > 10**7


def test_weight_bytes_leaves_the_configuration_as_it_was():
    config = CONFIGS["llama"]()
    before = config.to_dict()
    model = tiny_model("llama")
    expected = sum(p.numel() for p in model.parameters())
    assert weight_bytes(config, torch.float32) == 4 * expected
    assert weight_bytes(config, torch.bfloat16) == 2 * expected
    assert config.to_dict() == before


def test_running_out_of_memory_is_said_in_words():
    with pytest.raises(ModelError, match="Memory ran out while m was loaded"):
        with_memory_errors("m", lambda: torch.empty(1 << 60, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="shape"):  # any other fault stays what it is
        with_memory_errors("m", lambda: torch.ones(2, 3) @ torch.ones(2, 3))
    assert with_memory_errors("m", lambda: 3) == 3


def test_no_chat_template_still_works(folder, tmp_path):
    (folder / "chat_template.jinja").unlink()
    backend = load_backend(str(folder), cache=tmp_path, device="cpu")
    assert "What is the answer?" in backend.render(PROMPT)
    assert backend.generate([GenerationRequest(PROMPT, max_new_tokens=3)], cancel=CancelToken())[0].text is not None


def hub_error(kind):
    response = Response(403, request=Request("HEAD", "https://huggingface.co/a/b"))
    try:
        try:
            raise kind("as the hub says it", response=response)
        except kind as inner:
            raise OSError("as transformers says it") from inner
    except OSError as outer:
        return outer


def test_what_the_hub_answers_is_explained():
    assert "gated: accept its licence on https://huggingface.co/a/b" in explain("a/b", hub_error(GatedRepoError))
    assert "no model 'a/b' on Hugging Face" in explain("a/b", hub_error(RepositoryNotFoundError))
    try:
        raise OSError("x") from LocalEntryNotFoundError("y")
    except OSError as error:
        assert "Hugging Face cannot be reached" in explain("a/b", error)


def run_with_hub_cache(hub, model, *, offline):
    """Load a Hugging Face id in a process of its own, since the hub's settings are read when it is imported."""
    code = f"""
        from pathlib import Path
        from mdqa.backends.loading import load_backend
        from mdqa.errors import ModelError
        try:
            print("loaded", load_backend({model!r}, cache=Path("unused"), device="cpu").layers)
        except ModelError as error:
            print("refused", error)
    """
    environment = {**os.environ, "HF_HUB_CACHE": str(hub), "HF_ENDPOINT": "http://127.0.0.1:9"}
    environment.update({"HF_HUB_OFFLINE": "1"} if offline else {})
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


def test_a_cached_id_loads_without_asking_the_network(original, tmp_path):
    repository = tmp_path / "models--somebody--tiny"
    shutil.copytree(original, repository / "snapshots" / ("0" * 40))
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40, encoding="utf-8")
    said, noise = run_with_hub_cache(tmp_path, "somebody/tiny", offline=False)
    assert said == "loaded 4\n"
    assert "Retrying" not in noise


@pytest.mark.slow  # a new process imports PyTorch again
def test_an_id_that_is_not_here_and_no_network(tmp_path):
    said, _ = run_with_hub_cache(tmp_path, "somebody/tiny", offline=True)
    assert said.startswith("refused somebody/tiny is not on this machine and Hugging Face cannot be reached")
