"""Tiny models and a tokenizer made on the spot: real architectures of transformers, random weights, no download."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from mdqa.attention.capture import IMPLEMENTATION, register
from mdqa.backends.hf import TransformersBackend

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

_BASE = {
    "vocab_size": 512,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "pad_token_id": 3,
    "initializer_range": 0.35,  # larger than usual, so that attention is not nearly uniform
}

CONFIGS: Mapping[str, Callable[[], Any]] = MappingProxyType(
    {
        "llama": lambda: transformers.LlamaConfig(**_BASE),
        "qwen2": lambda: transformers.Qwen2Config(
            **_BASE, use_sliding_window=True, sliding_window=24, max_window_layers=2
        ),
        "qwen3": lambda: transformers.Qwen3Config(**_BASE, head_dim=16),
        "mistral": lambda: transformers.MistralConfig(**_BASE, sliding_window=32),
        "gemma2": lambda: transformers.Gemma2Config(
            **_BASE, head_dim=16, sliding_window=24, attn_logit_softcapping=3.0, query_pre_attn_scalar=20
        ),
        "gemma3": lambda: transformers.Gemma3TextConfig(
            **_BASE, head_dim=16, sliding_window=24, query_pre_attn_scalar=20, sliding_window_pattern=2
        ),
        "phi3": lambda: transformers.Phi3Config(**_BASE, sliding_window=40),
    }
)


def tiny_tokenizer() -> Any:
    """A byte-level BPE tokenizer of 512 tokens with ChatML turns."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<s>", "<|im_start|>", "<|im_end|>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    corpus = [Path(__file__).read_text(encoding="utf-8"), "Document [1] (Title: Who) What where when? Answer: yes no"]
    tokenizer.train_from_iterator(corpus, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="<|im_end|>",
        pad_token="<pad>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
    )


def tiny_model(architecture: str, attention: str = IMPLEMENTATION) -> Any:
    """A model of one architecture with weights from a fixed seed, float32, ready to run."""
    register()
    config = CONFIGS[architecture]()
    config._attn_implementation = attention
    torch.manual_seed(7)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()


def tiny_backend(architecture: str = "llama") -> TransformersBackend:
    """A backend over a tiny model."""
    return TransformersBackend(tiny_model(architecture), tiny_tokenizer(), model_name=f"tiny-{architecture}")


def plain_tokenizer() -> Any:
    """The tokenizer without chat turns, which encoders have none of: sentence-transformers would make them of texts."""
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    return tokenizer


def tiny_cross_encoder(folder: Path, labels: int = 1) -> Path:
    """A cross-encoder that gives ``labels`` numbers and reads 32 tokens, saved in this folder."""
    tokenizer = plain_tokenizer()
    tokenizer.model_max_length = 32
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id,
        num_labels=labels,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def tiny_sentence_encoder(folder: Path) -> Path:
    """A sentence-transformers model of 32 dimensions that reads 24 tokens, saved in this folder."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 (seconds that other tests need not wait for)

    tokenizer = plain_tokenizer()
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        initializer_range=0.5,
        pad_token_id=tokenizer.pad_token_id,
    )
    parts = folder.with_name(f"{folder.name}-transformer")
    transformers.BertModel(config).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    model = SentenceTransformer(str(parts), device="cpu", local_files_only=True)
    model.max_seq_length = 24
    model.save(str(folder))
    return folder
