"""What the questions look like: documents, gold documents, length of the input (DuQUAD, Table 4)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from statistics import pstdev

from mdqa.records import Question, RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.grouping import data_set, same_question, sources

NEEDS = "finished runs of any method; for input tokens those of direct answering: python -m mdqa answer --method direct"


def report(runs: Sequence[RunResult]) -> Report:
    """Documents, gold documents and prompt tokens per question of every data set and model.

    Tokens are those of the prompt of direct answering over all documents, so they hold its instruction and the chat
    template beside documents and question. The deviation is the population's.
    """
    done = [run for run in runs if run.question.documents]
    found: dict[tuple[str, str], dict[Hashable, Question]] = {}
    tokens: dict[tuple[str, str], dict[Hashable, RunResult]] = {}
    for run in done:
        key = (run.model, data_set(run.question, pool=True))
        found.setdefault(key, {})[same_question(run.question)] = run.question
        if _reads_all(run):
            tokens.setdefault(key, {})[same_question(run.question)] = run
    rows = [_row(*key, list(items.values()), list(tokens.get(key, {}).values())) for key, items in found.items()]
    return Report(
        name="data_sets",
        title="The questions: documents and input length",
        source="DuQUAD, Table 4.",
        columns=(
            Column(key="model", title="Model"),
            Column(key="data", title="Data set"),
            Column(key="n", title="Questions", digits=0),
            Column(key="documents", title="Documents", digits=1),
            Column(key="gold", title="Gold documents"),
            Column(key="tokens", title="Input tokens, mean", digits=0),
            Column(key="tokens_sd", title="Standard deviation", digits=0),
            Column(key="tokens_max", title="Most", digits=0),
            Column(key="counted", title="Counted", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="data", y="tokens", series="model", low="tokens_low", high="tokens_high"),
        n=len(done),
        note=joined(
            (
                "Every question counts once, also where several methods answered it; one with its evidence at several "
                "positions counts at each. Input tokens are the prompt of direct answering in the model's own tokens, "
                "with instruction and chat template.",
                ""
                if not rows or tokens
                else "Nothing here was answered directly, so no input length is known: python -m mdqa answer --method "
                "direct",
            )
        ),
        needs="" if rows else NEEDS,
    )


def _reads_all(run: RunResult) -> bool:
    """Whether the run's one prompt holds all documents once."""
    options = run.config
    plain = options.get("context", "all") == "all" and not options.get("question_twice")
    return run.method == "direct" and run.status == "ok" and plain and run.cost.llm_calls == 1


def _row(model: str, data: str, items: Sequence[Question], counted: Sequence[RunResult]) -> Row:
    gold = sorted({len(item.gold_ids) for item in items})
    lengths = [float(run.cost.prompt_tokens) for run in counted]
    return {
        "model": model,
        "data": data or "unnamed",
        **mean("documents", [float(len(item.documents)) for item in items]),
        "gold": "not marked" if gold == [0] else str(gold[0]) if len(gold) == 1 else f"{gold[0]} to {gold[-1]}",
        **mean("tokens", lengths, sources(counted)),
        "tokens_sd": pstdev(lengths) if lengths else None,
        "tokens_max": max(lengths, default=None),
        "counted": len(lengths),
        "n": len(items),
    }
