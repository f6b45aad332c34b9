"""Retrieve and read on the page: what works there, and that nothing can be named that the server would fetch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.records import RunResult
from tests.ui.helpers import SCRIPTED, open_scripted, question
from ui.actions import follow, load_view, start_runs
from ui.context import Context


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    folder: Path = tmp_path_factory.mktemp("page")
    with closing(open_scripted(folder)) as opened:
        yield opened


def run(context: Context, **options: Any) -> RunResult:
    config = RetrieveReadConfig.parse(options)
    (run_id,) = start_runs(context, question(4), {"retrieve_read": config}, model=SCRIPTED)
    list(follow(context, [run_id], every=0.02))
    return load_view(context, run_id).run


@pytest.mark.parametrize("ranker", ["rrf", "listwise", "found_in_the_middle"])
def test_rankers_without_a_model_of_their_own(context: Context, ranker: str) -> None:
    result = run(context, ranker=ranker)
    assert result.status == "ok", result.error
    assert ranker in result.stages[0].scores
    assert sorted(result.stages[0].kept) == ["d1", "d2", "d3", "d4"], "they reorder and do not prune"


@pytest.mark.parametrize(
    "options",
    [
        {"ranker": "dense", "encoder": "someone/model"},
        {"ranker": "cross_encoder", "cross_encoder": "someone/model"},
        {"ranker": "rrf_rerank", "cross_encoder": "someone/model"},
        {"ranker": "openai", "embeddings_url": "http://169.254.169.254/v1", "embeddings_model": "m"},
    ],
)
def test_strangers_cannot_make_the_server_fetch_anything(context: Context, options: dict[str, str]) -> None:
    result = run(context, **options)
    assert result.error is not None
    assert result.error.type == "ConfigError"
    assert "cannot be chosen here" in result.error.message
    assert result.cost.llm_calls == 0
