"""Runs of the methods themselves: what the diagnosis says of them is what their ledgers say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.benchmarks.base import load
from mdqa.diagnosis.cases import VERDICTS
from mdqa.diagnosis.diagnosing import diagnose_all
from mdqa.methods.base import Tools
from mdqa.records import ASIDE, Question, RunResult
from mdqa.registry import method_class
from mdqa.run import begin, run_one
from mdqa.scoring.losses import deciding_signal, fate, own_stages
from tests.methods.cafe.helpers import place_question

METHODS: list[tuple[str, dict[str, str]]] = [
    ("direct", {}),
    ("retrieve_read", {"top_k": "2"}),
    ("in_context", {"top_k": "2"}),
    ("duquad", {"k": "2"}),
    ("duquad", {"k": "2", "without_global": "true"}),
    ("madara", {"treatment": "three_agent", "k": "2"}),
    ("madara", {"treatment": "pde", "k": "3", "compare": "shared"}),
]


def runs(method: str, options: dict[str, str], items: Sequence[Question]) -> list[RunResult]:
    tools = Tools(ScriptedBackend())
    config = method_class(method).Config.parse(options)
    results = [run_one(begin(method, config, item, tools), tools).result for item in items]
    assert {result.status for result in results} == {"ok"}, [result.error for result in results]
    return results


def check(results: Sequence[RunResult]) -> None:
    """Every wrong answer has one verdict, and what is said to be lost at a stage came in there and did not go on."""
    found = diagnose_all(results)
    by_run = {result.id: result for result in results}
    assert found.right + found.without_answers + len(found.items) == len(results)
    for item in found.items:
        result, finding = by_run[item.run], item.finding
        assert finding.verdict in VERDICTS
        for lost in finding.detail.get("lost", ()):
            (stage,) = [stage for stage in own_stages(result.stages) if stage.name == lost["stage"]]
            assert lost["document"] in stage.documents
            assert lost["document"] not in stage.kept
            assert lost["signal"] == deciding_signal(stage)
            assert set(lost["instead"]) <= set(stage.kept)
    for result in results:
        last = own_stages(result.stages)[-1]
        for document in result.question.document_ids:
            if document in last.kept:
                assert fate(result, document).fate == "reached"
            if document not in {name for stage in own_stages(result.stages)[-2:] for name in stage.documents}:
                assert fate(result, document).fate != "reached"


@pytest.mark.parametrize(("method", "options"), METHODS, ids=str)
def test_the_ledger_of_every_method(method: str, options: dict[str, str]) -> None:
    items = [place_question(6, i, f"q{i}").model_copy(update={"answers": ("nobody says this",)}) for i in range(3)]
    results = runs(method, options, items)
    check(results)
    assert all(stage.branch != ASIDE for result in results for stage in own_stages(result.stages))


@pytest.mark.parametrize(("method", "options"), METHODS[1:4], ids=str)
def test_questions_of_real_files(method: str, options: dict[str, str], shared_data: Path) -> None:
    for name in ("nq20", "hotpotqa", "ramdocs"):
        check(runs(method, options, load(shared_data / f"{name}.jsonl.gz", limit=3).questions))
