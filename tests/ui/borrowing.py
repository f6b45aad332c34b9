"""What tests/ui/test_lending.py lets happen in a process that borrows a GPU; it prints facts to check.

The package ``spaces`` is the real one, with its fork, its queues and its questions to the host. What it does with the
driver of a GPU, which is not here, is left out; models go to the "cpu".
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from mdqa.backends.base import Backend
from mdqa.backends.remembering import remembering
from mdqa.cancellation import CancelToken
from mdqa.methods.base import Tools
from mdqa.records import RunResult
from mdqa.registry import method_class
from mdqa.run import Outcome, begin, run_one
from mdqa.settings import Settings
from mdqa.trace import BaseEvent, ModelCall
from tests.tiny import tiny_backend, tiny_model, tiny_tokenizer
from tests.ui.helpers import WordEncoder, question, scripted_profiles
from tests.ui.serving import defaults, queued, served
from tests.ui.zero_gpu import TOKEN, without_a_driver
from ui.context import open_context
from ui.lending import LentGPU

Facts = dict[str, Any]
Reaction = Callable[[BaseEvent, CancelToken], None]


def tools(architecture: str) -> Tools:
    """A tiny model (4 layers of 6 heads) that remembers, and a profile of CAFE for it."""
    backend: Backend = remembering(tiny_backend(architecture))
    cafe, _ = scripted_profiles()
    table = {"n": 8, "scores": np.linspace(0.0, 0.5, 24).reshape(4, 6).tolist()}
    profile = cafe.model_copy(update={"model": backend.model, "values": {"coarse": table, "fine": table}})
    return Tools(backend, WordEncoder, profile)


def ask(lent: LentGPU, given: Tools, method: str = "direct", react: Reaction | None = None) -> Facts:
    """Borrow for one run, and tell of it; it is the same run that this process carries out itself."""
    cls = method_class(method)
    given = given if cls.uses_profile else replace(given, profile=None)
    begun = begin(method, cls.Config(), question(), given, seed=3)
    events: list[BaseEvent] = []
    token = CancelToken()

    def sink(event: BaseEvent) -> None:
        events.append(event)
        if react is not None:
            react(event, token)

    began = time.perf_counter()
    outcome = lent(begun, given, sink=sink, cancel=token)
    error = outcome.result.error
    facts: Facts = {
        "status": outcome.result.status,
        "answer": outcome.result.answer,
        "error": error.message if error is not None else "",
        "kinds": [event.kind for event in events],  # type: ignore[attr-defined]
        "calls": outcome.result.cost.llm_calls,
        "maps": len(outcome.maps),
        "seconds": time.perf_counter() - began,
        "children": children(),
    }
    if react is None and outcome.result.status == "ok":
        facts["same"] = timeless(outcome) == timeless(run_one(begun, given))
    return facts


def timeless(outcome: Outcome) -> Any:
    """What does not depend on the clock, or on what a process remembers."""
    result: RunResult = outcome.result
    data = result.model_dump(mode="json", exclude={"cost"})
    for stage in data["stages"]:
        stage["seconds"] = 0
    sent = result.cost.llm_calls, result.cost.prompt_tokens, result.cost.completion_tokens
    return data, sent, [(m.stage, m.documents, m.mass.round(4).tolist()) for m in outcome.maps]


def children() -> list[int]:
    """The processes forked off this one that live."""
    return [child.pid for child in multiprocessing.active_children() if child.pid is not None]


def at_first(kind: type[BaseEvent], act: Callable[[CancelToken], None]) -> Reaction:
    """Do this once, when the first event of this kind comes."""
    done: list[bool] = []

    def react(event: BaseEvent, token: CancelToken) -> None:
        if isinstance(event, kind) and not done:
            done.append(True)
            act(token)

    return react


def kill(_: CancelToken) -> None:
    """As the host ends what takes too long."""
    for pid in children():
        os.kill(pid, signal.SIGKILL)


def mood(name: str) -> None:
    """What the host will do from now on."""
    httpx.post(os.environ["SPACES_ZERO_DEVICE_API_URL"] + "/mood", params={"mood": name}).raise_for_status()


def stop_soon(lent: LentGPU, given: Tools) -> Facts:
    """A person who stops while the host lets them wait."""
    from threading import Timer  # noqa: PLC0415

    cls = method_class("direct")
    given = replace(given, profile=None)
    token = CancelToken()
    Timer(0.5, token.cancel).start()
    began = time.perf_counter()
    outcome = lent(begin("direct", cls.Config(), question(), given), given, sink=lambda event: None, cancel=token)
    return {"status": outcome.result.status, "seconds": time.perf_counter() - began}


def through_the_page(folder: Path) -> Facts:
    """A visitor, known to the host by a token, asks on the page of a Space."""
    tiny_model("llama").save_pretrained(folder / "model")
    tiny_tokenizer().save_pretrained(folder / "model")
    environment = {"SYSTEM": "spaces", "SPACES_ZERO_GPU": "true", "MDQA_MODEL": str(folder / "model")}
    settings = Settings.from_environment(environment | {"MDQA_DEVICE": "cpu", "MDQA_DTYPE": "float32"})
    context = open_context(replace(settings, database=folder / "runs.db", cache=folder / "cache"))
    try:
        with served(context) as (page, url), httpx.Client(base_url=url, timeout=60) as visitor:
            visitor.headers["x-ip-token"] = TOKEN
            asking = next(number for number, listener in page.fns.items() if listener.name == "start")
            told = queued(visitor, asking, defaults(page, asking))
        [row] = context.store.runs.list()
        return {"status": row.status, "answer": row.answer, "calls": row.llm_calls, "told": told[-400:]}
    finally:
        context.close()


def main(folder: Path) -> Facts:
    """Everything one after the other, in one process."""
    llama, qwen = tools("llama"), tools("qwen2")
    lent = LentGPU(lambda run: 11 if run.method == "direct" else 22, device="cpu")
    facts: Facts = {
        "pid": os.getpid(),
        "first": ask(lent, llama),
        "maps": ask(lent, llama, "cafe"),
        "stopped": ask(lent, llama, "main_rag", react=at_first(ModelCall, CancelToken.cancel)),
        "killed": ask(lent, llama, "duquad", react=at_first(ModelCall, kill)),
        "after": ask(lent, llama),
        "exchanged": ask(lent, qwen),
    }
    mood("refuses")
    facts["refused"] = ask(lent, qwen)
    mood("waits")
    facts["waiting"] = stop_soon(lent, qwen)
    mood("lends")
    facts["again"] = ask(lent, qwen)
    facts["page"] = through_the_page(folder)
    return facts


if __name__ == "__main__":
    without_a_driver()
    print(json.dumps(main(Path(sys.argv[1]))), flush=True)
