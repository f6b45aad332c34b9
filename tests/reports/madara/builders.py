"""Runs and profiles of MADARA with chosen answers and measures, as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.plans import PLANS
from mdqa.methods.madara.router import Rho, decide
from mdqa.records import Opinion, RunResult
from tests.reports.builders import question, run

RHO: Rho = (0.6, 0.4, 0.2)
"""Quality-ordered and strongly coupled."""


def answer(right: bool) -> str:
    """Danube, or another river."""
    return "Danube" if right else "Rhine"


def compared(
    number: int,
    right: Mapping[str, bool],
    *,
    nf: float | None = 0.1,
    rho: Rho = RHO,
    data: str = "cfl",
    options: Mapping[str, Any] | None = None,
    **fields: Any,
) -> RunResult:
    """A run that compared: ``right`` says which treatments got the question; its own is what the router decides."""
    item = question(f"q{number}", meta={"dataset": data})
    config = MADARAConfig.parse({"compare": "all", **(options or {})})
    routing = decide(rho, nf, config.thresholds)
    opinions = [
        Opinion(
            role="treatment",
            title=PLANS[key].title,
            answer=answer(won),
            documents=("d1", "d2"),
            group=key,
            chosen=key == routing.treatment,
        )
        for key, won in right.items()
    ]
    readings = [
        Opinion(role="reading", title="", answer=answer(document == "d2"), documents=(document,))
        for document in item.document_ids
    ]
    return run(
        item,
        "madara",
        answer=answer(right[routing.treatment]),
        opinions=(*opinions, *readings),
        routing=routing,
        config=config.model_dump(mode="json"),
        **fields,
    )


def alone(number: int, treatment: str, right: bool, **fields: Any) -> RunResult:
    """A run that carried out one treatment, which the user set."""
    config = MADARAConfig.parse({"treatment": treatment})
    routing = decide(RHO, 0.1).model_copy(update={"treatment": treatment})
    item = question(f"q{number}", meta={"dataset": "cfl"})
    values = {"answer": answer(right), "routing": routing, "config": config.model_dump(mode="json")}
    return run(item, "madara", **(values | fields))


def many(pattern: Mapping[str, str], **more: Any) -> list[RunResult]:
    """One run per question; per treatment a digit for each, 1 where it is right."""
    count = len(next(iter(pattern.values())))
    return [compared(i, {key: digits[i] == "1" for key, digits in pattern.items()}, **more) for i in range(count)]


def pairs_of(scores: Sequence[Sequence[float]]) -> list[list[Any]]:
    """A profile's pairs of two queries from rows (normal, control, shuffled, contradicted, random)."""
    half = len(scores) // 2
    return [["q1" if i < half else "q2", f"d{i}", *row] for i, row in enumerate(scores)]
