"""Runs of DuQUAD and of other methods with chosen scores, answers and costs, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.benchmarks.placing import place
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.fusion import fuse, normalise, rank
from mdqa.records import AttentionSummary, Cost, Document, DocumentScore, Opinion, Question, RunResult, Stage

Numbers = Mapping[str, float | None]
CREATED = "2026-11-30T10:00:00.000+00:00"


def question(name: str = "q1", gold: Sequence[int] = (1,), documents: int = 4, **fields: Any) -> Question:
    """A question with documents d1 ... dn, those in ``gold`` marked; the answer is Danube."""
    values: dict[str, Any] = {
        "id": name,
        "question": f"Which river is meant in {name}?",
        "answers": ("Danube",),
        "documents": tuple(
            Document(id=f"d{i}", title=f"Title {i}", text=f"Text {i} of {name}.", gold=i in gold)
            for i in range(1, documents + 1)
        ),
    }
    return Question(**(values | fields))


def scores(values: Numbers) -> dict[str, DocumentScore]:
    """Numbers as scores; None is a reply that could not be read."""
    return {
        name: DocumentScore(value=value) if value is not None else DocumentScore(status="parse_error")
        for name, value in values.items()
    }


def duquad(
    item: Question,
    *,
    signals: Mapping[str, Sequence[float]] | None = None,
    local: tuple[str, Sequence[str]] | None = ("Danube", ("d1",)),
    overall: tuple[str, Sequence[str]] | None = ("Danube", ("d1",)),
    doc_scores: Numbers | None = None,
    kept: Sequence[str] | None = None,
    answer: str = "Danube",
    ablations: Mapping[str, tuple[str, Sequence[str]]] | None = None,
    attention: Sequence[float] | None = None,
    **fields: Any,
) -> RunResult:
    """A run of DuQUAD. ``signals``: per name one number per document; agents: answer and cited ids, None without one.

    ``doc_scores``: per candidate, None for a run without pruning. ``kept``: by default the candidates.
    """
    ids = item.document_ids
    config = DuQUADConfig.parse(fields.pop("options", {}))
    stages, opinions = [], []
    if signals is not None:
        raw = {name: scores(dict(zip(ids, values, strict=True))) for name, values in signals.items()}
        normalised = {name: normalise(values, config.normalisation) for name, values in raw.items()}
        weights = {name: weight for name, weight in config.weights.items() if name in raw}
        fused = fuse({name: normalised[name] for name in weights}, weights)
        stages.append(
            Stage(
                name="structural_fusion",
                title="Structural Fusion Score",
                documents=ids,
                kept=rank(ids, fused)[: config.k],
                scores={**raw, **{f"{name}_normalised": values for name, values in normalised.items()}, "SFS": fused},
                branch="local",
            )
        )
    for view, said in (("local", local), ("global", overall)):
        if said is not None:
            role = f"{view}_agent"
            opinions.append(Opinion(role=role, title=view, answer=said[0], documents=tuple(said[1]), group=view))
    candidates = tuple(doc_scores) if doc_scores is not None else tuple(kept or ids[:1])
    stages.append(Stage(name="candidates", title="Candidates", documents=ids, kept=candidates))
    kept = tuple(candidates if kept is None else kept)
    if doc_scores is not None:
        stages.append(
            Stage(
                name="doc_score",
                title="DocScore",
                documents=candidates,
                kept=kept,
                scores={"DocScore": scores(doc_scores)},
                thresholds={"DocScore": config.threshold},
            )
        )
    stages.append(Stage(name="judge", title="Judge", documents=kept, kept=kept))
    opinions.append(Opinion(role="judge", title="Judge", answer=answer, documents=kept, chosen=True))
    for key, (said_then, read) in (ablations or {}).items():
        opinions.append(Opinion(role="ablation", title=key, answer=said_then, documents=tuple(read), group=key))
    summary = AttentionSummary(
        stage="structural_fusion",
        layers=2,
        heads=2,
        retrieval_heads=(),
        document_mass=dict(zip(ids, attention or (), strict=False)),
        head_mass={},
    )
    return run(
        item,
        method="duquad",
        answer=answer,
        stages=tuple(stages),
        opinions=tuple(opinions),
        attention_summary=(summary,) if attention is not None else (),
        config=config.model_dump(mode="json"),
        **fields,
    )


def run(item: Question, method: str = "direct", **fields: Any) -> RunResult:
    """A finished run of a method."""
    values: dict[str, Any] = {
        "id": f"{method}-{item.id}-{fields.get('model', 'm')}-{fields.get('created', '')}",
        "question": item,
        "method": method,
        "model": "m",
        "backend": "scripted",
        "status": "ok",
        "created": CREATED,
        "seed": 0,
        "answer": "Danube",
        "cost": Cost(llm_calls=1, prompt_tokens=100, prefill_tokens_computed=100, completion_tokens=5, seconds=1.0),
    }
    return RunResult.model_validate(values | fields)


def placed(item: Question, *positions: int) -> list[Question]:
    """The question with its evidence at each of these positions."""
    return [place(item, position) for position in positions]
