"""Runs whose stages are known: four documents through two of them, and many through one."""

from __future__ import annotations

from mdqa.records import Document, DocumentScore, Question, RunResult, Stage


def small_run() -> RunResult:
    docs = tuple(Document(id=f"d{i}", text=f"text {i}", gold=i == 3) for i in range(1, 5))
    scored = {"d1": 0.1, "d2": 0.9, "d3": 0.9, "d4": 0.2}
    first = Stage(
        name="rank",
        title="Ranking",
        documents=("d1", "d2", "d3", "d4"),
        kept=("d3", "d2"),
        scores={"s": {k: DocumentScore(value=v) for k, v in scored.items()}},
        reasons={"d1": "below the bar"},
    )
    second = Stage(name="read", title="Reading", documents=("d3", "d2"), kept=("d2",))
    return RunResult(
        id="r", question=Question(id="q", question="?", documents=docs), method="m", model="m", backend="b",
        status="ok", created="2026-01-01T00:00:00+00:00", seed=0, answer="a", stages=(first, second),
    )  # fmt: skip


def many(n: int) -> RunResult:
    """A run over n documents of which the stage keeps the last five in reverse; the first and the tenth are gold."""
    docs = tuple(Document(id=f"d{i}", title=f"Title {i}", text=f"text {i}", gold=i in (1, 10)) for i in range(1, n + 1))
    ids = tuple(document.id for document in docs)
    scores = {key: DocumentScore(value=float(i)) for i, key in enumerate(ids)}
    stage = Stage(
        name="rank", title="Ranking", documents=ids, kept=ids[: -6 : -1], scores={"s": scores},
        reasons=dict.fromkeys(ids[:-5], "ranked below the bar"),
    )  # fmt: skip
    return small_run().model_copy(
        update={"question": Question(id="q", question="?", documents=docs), "stages": (stage,)}
    )
