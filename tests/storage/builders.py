"""Runs, events and maps for the storage tests, made by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from mdqa.records import (
    AttentionMap,
    Cost,
    Document,
    DocumentScore,
    Opinion,
    Question,
    Routing,
    RunError,
    RunResult,
    Stage,
    TokenHeat,
)
from mdqa.trace import (
    AttentionCaptured,
    BaseEvent,
    ModelCall,
    Notice,
    OpinionGiven,
    Routed,
    RunFinished,
    RunStarted,
    StageFinished,
    StageStarted,
)

REPOSITORY = Path(__file__).parents[2]


def question(name: str = "q1", text: str = "Who found radium?", documents: int = 3) -> Question:
    return Question(
        id=name,
        question=text,
        answers=("Marie Curie", "Curie"),
        documents=tuple(
            Document(id=f"d{i}", title=f"Title {i}", text=f"Text of document {i}.", gold=(None, True, False)[i % 3])
            for i in range(documents)
        ),
        meta={"source": "test", "hop": 2},
    )


def header(run_id: str = "r1", **fields: object) -> RunResult:
    values: dict[str, object] = {
        "id": run_id,
        "question": question(),
        "method": "duquad",
        "model": "scripted",
        "backend": "scripted",
        "status": "running",
        "created": "2026-11-30T10:00:00.000+00:00",
        "seed": 7,
        "config": {"tau": 0.5, "rankers": ["bm25", "dense"]},
        "profile": "default",
    }
    return RunResult.model_validate(values | fields)


def stage(name: str = "prune") -> Stage:
    return Stage(
        name=name,
        title="Pruning",
        documents=("d0", "d1", "d2"),
        kept=("d1", "d0"),
        scores={"docscore": {"d0": DocumentScore(value=0.1), "d1": DocumentScore(value=1 / 3), "d2": unreadable()}},
        reasons={"d2": "no score"},
        calls={"docscore": {"d0": 0}},
        key_sentences={"d1": ("A sentence.",)},
        thresholds={"docscore": 0.05},
        seconds=1.25,
    )


def unreadable() -> DocumentScore:
    return DocumentScore(status="parse_error", detail="no number in 'maybe'")


def cost(calls: int = 1) -> Cost:
    return Cost(
        llm_calls=calls,
        prompt_tokens=100 * calls,
        completion_tokens=10 * calls,
        cached_tokens=5,
        prefill_tokens_computed=95,
        seconds=0.5 * calls,
    )


def attention_map(name: str = "coarse", *, seed: int = 0, heat: bool = True) -> AttentionMap:
    rng = np.random.default_rng(seed)
    tokens = 40
    return AttentionMap(
        stage=name,
        title="Coarse filtering",
        documents=("d0", "d1", "d2"),
        mass=rng.random((4, 3, 3), dtype=np.float32),
        retrieval_heads=((0, 2), (3, 1)),
        model_layers=30,
        pool="mean",
        heat=TokenHeat(
            heads=((0, 2), (3, 1)),
            texts=("Document 1: Text", "Document 2: Text", "Document 3: Ｔext ✓"),
            document=np.sort(rng.integers(0, 3, tokens)),
            spans=np.stack([np.arange(tokens), np.arange(tokens) + 1], axis=1),
            weights=(rng.random((2, tokens)) * 1e-5).astype(np.float32),
        )
        if heat
        else None,
    )


def trace(*, finished: bool = True) -> list[BaseEvent]:
    """One of each stored event."""
    events: list[BaseEvent] = [
        RunStarted(at=0.0, method="duquad", model="scripted", documents=3),
        StageStarted(at=0.1, name="prune", title="Pruning", documents=3),
        call(0, at=0.2),
        AttentionCaptured(at=0.3, stage="coarse", map=attention_map()),
        StageFinished(at=0.4, stage=stage()),
        OpinionGiven(at=0.5, opinion=opinion()),
        Routed(at=0.6, routing=routing()),
        Notice(at=0.7, level="warning", message="BM25 took over", fallback=True),
        call(1, at=0.8, parse="parse_error"),
    ]
    if finished:
        events.append(RunFinished(at=0.9, status="ok", answer="Marie Curie", cost=cost(2)))
    return events


def call(index: int, *, at: float = 0.0, prompt: str = "Prompt\nwith lines", **fields: object) -> ModelCall:
    values: dict[str, object] = {
        "at": at,
        "index": index,
        "stage": "prune",
        "role": "local",
        "purpose": "generate",
        "documents": ("d0",),
        "prompt": prompt,
        "prompt_hash": "abc",
        "output": "0.1",
        "finish_reason": "stop",
        "cost": cost(),
    }
    return ModelCall.model_validate(values | fields)


def opinion() -> Opinion:
    return Opinion(role="local", title="Local Agent", answer="Curie", documents=("d1",), weight=0.25, call=1)


def routing() -> Routing:
    return Routing(
        treatment="no_filter",
        title="No-Filter",
        reason="weak coupling",
        measures={"rho": None, "nf": 0.4},
        margins={"nf": -0.1},
    )


def complete(run_id: str = "r1", **fields: object) -> RunResult:
    values: dict[str, object] = {
        "status": "ok",
        "answer": "Marie Curie",
        "stages": (stage(),),
        "opinions": (opinion(),),
        "routing": routing(),
        "attention_summary": (attention_map().summary(),),
        "notices": ("BM25 took over",),
        "fallbacks": 1,
        "parse_failures": 1,
        "cost": cost(2),
        "error": RunError(type="ModelError", message="nothing really", stage="prune"),
    }
    return header(run_id, **(values | fields))


def assert_equal_maps(one: AttentionMap, other: AttentionMap) -> None:
    """Equal but for the precision of token weights: 0.1% of the head's largest weight."""
    for name in ("stage", "title", "documents", "retrieval_heads", "model_layers", "pool"):
        assert getattr(one, name) == getattr(other, name)
    assert one.mass.dtype == np.float32
    np.testing.assert_array_equal(one.mass, other.mass)
    assert (one.heat is None) == (other.heat is None)
    if one.heat and other.heat:
        assert (one.heat.heads, one.heat.texts) == (other.heat.heads, other.heat.texts)
        np.testing.assert_array_equal(one.heat.document, other.heat.document)
        np.testing.assert_array_equal(one.heat.spans, other.heat.spans)
        np.testing.assert_allclose(one.heat.weights, other.heat.weights, rtol=1e-3, atol=1e-9)


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another Python process in the repository, running ``code``."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
