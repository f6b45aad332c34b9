"""The same weights with another attention, and the memory that it would take."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from mdqa.attention.capture import IMPLEMENTATION
from mdqa.backends.scripted import ScriptedBackend
from mdqa.errors import CapabilityError
from mdqa.performance.attention import eager_attention, four_heads, plain_ids, plain_prefill
from mdqa.performance.cases import answering_prompt, built_in_cases, prompt_tokens
from mdqa.performance.machine import cpu_model, facts, total_memory_gb, usable_cores
from mdqa.performance.measuring import NoMemory
from mdqa.performance.model import attention_of, eager_bytes, free_memory, lack_of_memory, transformers_backend
from tests.tiny import tiny_backend


def test_other_attention_is_left_again_also_after_an_exception() -> None:
    model = tiny_backend().pretrained
    with attention_of(model, "eager"):
        assert model.config._attn_implementation == "eager"
    assert model.config._attn_implementation == IMPLEMENTATION
    with pytest.raises(ValueError, match="inside"), attention_of(model, "sdpa"):
        raise ValueError("inside")
    assert model.config._attn_implementation == IMPLEMENTATION


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma2"])
def test_all_variants_see_the_same_prompt_and_give_the_same_numbers(architecture: str) -> None:
    backend = tiny_backend(architecture)
    [case] = built_in_cases([600], lambda item: prompt_tokens(backend, item), rounds=1)
    prompt = answering_prompt(case.items[0])
    layout = backend.encoder.encode(prompt)
    assert tuple(plain_ids(backend, prompt)) == layout.ids
    with attention_of(backend.pretrained, "eager"):
        mass = eager_attention(backend, prompt)
        ids = torch.tensor([layout.ids])
        with torch.inference_mode():
            expected = int(backend.pretrained(input_ids=ids).logits[0, -1].argmax())
        assert plain_prefill(backend, prompt) == expected
    assert mass.shape == (backend.layers, backend.heads, len(case.items[0].documents))
    assert (mass > 0).any()
    assert (mass.sum(axis=-1) <= 1 + 1e-4).all()


def test_only_backends_with_weights_can_be_compared() -> None:
    backend = tiny_backend()
    assert transformers_backend(backend) is backend
    with pytest.raises(CapabilityError, match="scripted"):
        transformers_backend(ScriptedBackend())


def test_memory_of_an_eager_pass_by_hand() -> None:
    # 30 layers of 9 heads at 8,000 tokens in float32: 69 GB of matrices, and three more of one layer
    assert eager_bytes(30, 9, 8000, 4) == (30 * 9 + 3 * 9) * 8000 * 8000 * 4
    assert eager_bytes(32, 32, 2800, 2) == 32 * 32 * 2800**2 * 2 + 3 * 32 * 2800**2 * 4


def test_what_does_not_fit_is_said_with_both_numbers() -> None:
    assert lack_of_memory(69_000_000_000, 20_000_000_000) == "would need 69.0 GB, 20.0 GB are free"
    assert lack_of_memory(17_000_000_000, 20_000_000_000) == ""
    assert lack_of_memory(19_000_000_000, 20_000_000_000) != ""  # too near the limit
    assert lack_of_memory(69_000_000_000, None) == ""


def test_a_container_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory.current").write_text("600000\n")
    (tmp_path / "memory.stat").write_text("anon 500000\ninactive_file 100000\n")
    assert free_memory("cpu", tmp_path) == 500_000
    (tmp_path / "memory.max").write_text("max\n")
    whole = free_memory("cpu", tmp_path / "nothing")
    unlimited = free_memory("cpu", tmp_path)
    assert (whole is None) == (unlimited is None)
    assert unlimited is None or unlimited > 1_000_000


def test_four_different_heads() -> None:
    assert four_heads(30, 9) == ((0, 0), (10, 1), (19, 2), (29, 3))
    assert four_heads(1, 1) == ((0, 0),)
    for layers, heads in ((4, 6), (2, 1), (80, 64)):
        assert all(layer < layers and head < heads for layer, head in four_heads(layers, heads))


def test_facts_of_the_machine(tmp_path: Path) -> None:
    about = facts(tiny_backend(), NoMemory("for a test"))
    assert about["model"] == "tiny-llama"
    assert (about["device"], about["dtype"]) == ("cpu", "float32")
    assert about["cpu"]
    assert about["torch"] == torch.__version__.partition("+")[0] or about["torch"] == torch.__version__
    assert about["threads"] == torch.get_num_threads()
    assert usable_cores() >= 1
    assert about["memory_source"] == "unavailable: for a test"
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: A Processor 9000\nmodel name\t: A Processor 9000\n")
    assert cpu_model(info) == "A Processor 9000"
    assert cpu_model(tmp_path / "nothing")
    (tmp_path / "meminfo").write_text("MemTotal:       16000000 kB\nMemFree: 1 kB\n")
    assert total_memory_gb(tmp_path / "meminfo") == 16.4
    assert total_memory_gb(tmp_path / "nothing") is None
