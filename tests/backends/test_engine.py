"""vLLM itself, with the built-in model: the same prompts as here, two methods, and what happens when it dies.

Needs an environment with vLLM, named by MDQA_VLLM_PYTHON; ``.ci/vllm-cpu`` makes one for processors.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest, InspectableBackend
from mdqa.backends.composed import ComposedBackend
from mdqa.backends.loading import load_backend
from mdqa.backends.openai import OpenAIBackend
from mdqa.backends.served import look_at
from mdqa.backends.vllm import VLLMBackend
from mdqa.benchmarks.examples import examples
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ModelError
from mdqa.methods.base import Tools
from mdqa.records import RunResult
from mdqa.registry import method_class
from mdqa.retrieval.dense import MiniLMEncoder
from mdqa.run import begin, run_one
from mdqa.settings import Settings
from tests.backends.contract import CHECKS, DOCUMENTS, prompt

pytestmark = pytest.mark.slow

SHORT = {"agent_max_tokens": 32, "score_max_tokens": 32, "judge_max_tokens": 32}

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def vllm() -> Iterator[VLLMBackend]:
    settings = Settings.from_environment()
    if not settings.vllm_python:
        pytest.skip("needs MDQA_VLLM_PYTHON, the Python of an environment with vLLM")
    backend = load_backend(
        "vllm:builtin",
        cache=settings.cache,
        device="cpu",
        dtype="float32",
        vllm_python=settings.vllm_python,
        vllm_arguments="--max-model-len 4096",
    )
    assert isinstance(backend, VLLMBackend)
    yield backend
    backend.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_contract(check: Any, vllm: VLLMBackend) -> None:
    check("vllm", vllm)


def test_replies_and_likelihoods_are_those_of_transformers(
    vllm: VLLMBackend, builtin_backend: InspectableBackend
) -> None:
    assert vllm.model == builtin_backend.model == "builtin"
    cancel, requests = CancelToken(), [GenerationRequest(prompt(d), max_new_tokens=12) for d in DOCUMENTS]
    theirs, ours = (b.generate(requests, cancel=cancel) for b in (vllm, builtin_backend))
    assert [reply.text for reply in theirs] == [reply.text for reply in ours]
    prompts = [request.prompt for request in requests]
    found, known = (b.log_likelihood(prompts, target="question", cancel=cancel) for b in (vllm, builtin_backend))
    assert [f.tokens for f in found] == [k.tokens for k in known]
    assert [f.logprob for f in found] == pytest.approx([k.logprob for k in known], abs=2e-2)


def test_a_reply_follows_its_schema(vllm: VLLMBackend) -> None:
    [reply] = vllm.generate([GenerationRequest(prompt(*DOCUMENTS), 24, schema=SCHEMA)], cancel=CancelToken())
    assert reply.finish_reason == "stop"
    assert set(json.loads(reply.text)) == {"score"}


def test_what_begins_alike_is_computed_once(vllm: VLLMBackend) -> None:
    request = GenerationRequest(prompt(*DOCUMENTS, *(d.model_copy(update={"id": f"{d.id}2"}) for d in DOCUMENTS)), 2)
    vllm.generate([request], cancel=CancelToken())
    [again] = vllm.generate([request], cancel=CancelToken())
    assert again.cost.cached_tokens > again.cost.prompt_tokens / 2


def answered(method: str, backend: Any, **options: Any) -> RunResult:
    whole = next(e.question for e in examples() if e.name == "single_hop")
    item = whole.with_documents(tuple(sorted(whole.documents, key=lambda d: not d.gold)[:2]))
    tools = Tools(backend, MiniLMEncoder)
    config = method_class(method).Config.parse(options)
    return run_one(begin(method, config, item, tools, seed=0), tools).result


def test_two_methods_by_the_engine_and_by_an_address(vllm: VLLMBackend) -> None:
    key = vllm._engine.key
    address = OpenAIBackend(look_at(vllm.served.url, key=key), model="address", key=key)  # chat turns, as to any server
    with ThreadPoolExecutor() as pool:  # all at once, as people ask: the engine batches over the runs
        runs = [
            pool.submit(answered, "duquad", backend, k=1, allow_missing_signals=True, **SHORT)
            for backend in (vllm, address)
        ]
        runs += [
            pool.submit(answered, "madara", backend, treatment="pde", agent_max_tokens=24, conflict_max_tokens=24)
            for backend in (vllm, address)
        ]
        *duquad, first, second = (run.result() for run in runs)
    for result in duquad:
        assert result.status == "ok", result.error
        assert {stage.name for stage in result.stages} >= {"structural_fusion", "local_agent", "judge"}
        assert result.cost.completion_tokens > 0
    for result in (first, second):
        assert result.status == "ok", result.error
        assert result.routing is not None
        assert result.cost.llm_calls > 3


def test_beside_a_model_that_is_looked_at(vllm: VLLMBackend, builtin_backend: InspectableBackend) -> None:
    both = ComposedBackend(vllm, builtin_backend)
    found = answered("duquad", both, k=1, **SHORT)
    assert found.status == "ok", found.error
    assert set(found.stages[0].scores) >= {"sim", "ppl", "cont"}
    assert found.attention_summary


def test_stop_frees_the_engine(vllm: VLLMBackend) -> None:
    cancel, long = CancelToken(), GenerationRequest(prompt(*DOCUMENTS), 2000, temperature=1.0)
    threading.Timer(2.0, cancel.cancel).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        vllm.generate([long], cancel=cancel)
    assert time.monotonic() - began < 10
    assert vllm.generate([GenerationRequest(prompt(), 2)], cancel=CancelToken())[0].cost.completion_tokens <= 2


def processes(group: int) -> dict[int, str]:
    """The processes of a group that are not over, with their names."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended just now
            number = int(folder.name)
            if os.getpgid(number) == group and "State:\tZ" not in (folder / "status").read_text("utf-8"):
                found[number] = (folder / "cmdline").read_text("utf-8")
    return found


def test_an_engine_whose_core_is_killed_is_an_error_of_the_run_and_starts_again(vllm: VLLMBackend) -> None:
    """As the system does when memory runs out."""
    short = GenerationRequest(prompt(), 4)
    before = vllm.generate([short], cancel=CancelToken())[0].text
    process = vllm._engine._process
    assert process is not None
    [core] = [number for number, name in processes(process.pid).items() if "EngineCore" in name]
    threading.Timer(1.5, lambda: os.kill(core, signal.SIGKILL)).start()
    with pytest.raises(ModelError, match="vLLM ended while it worked"):
        vllm.generate([GenerationRequest(prompt(*DOCUMENTS), 2000, temperature=1.0)], cancel=CancelToken())
    assert not vllm._engine.alive
    assert vllm.generate([short], cancel=CancelToken())[0].text == before
    again = vllm._engine._process
    assert again is not None and again.pid != process.pid
    vllm.close()
    end = time.monotonic() + 30
    while processes(process.pid) | processes(again.pid) and time.monotonic() < end:
        time.sleep(0.1)  # gigabytes are given back
    assert processes(process.pid) | processes(again.pid) == {}
