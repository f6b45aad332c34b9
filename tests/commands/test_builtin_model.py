"""The command line on the built-in model with real questions: complete lines, resumption after a kill, memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FIELDS = {
    "id",
    "method",
    "answer",
    "status",
    "stages",
    "routing",
    "attention_summary",
    "cost",
    "config",
    "seed",
    "model",
}
COST = {
    "llm_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "prefill_tokens_computed",
    "seconds",
    "remembered_calls",
}
MEMORY_LIMIT = 2.5e9  # bytes, for twenty documents


def command(method: str, data: Path, output: Path, limit: int) -> list[str]:
    options = ["--input", str(data), "--limit", str(limit), "--output", str(output), "--model", "builtin", "--quiet"]
    return [sys.executable, "-m", "mdqa", "answer", "--method", method, *options]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def check(line: dict[str, Any]) -> None:
    assert set(line) >= FIELDS
    assert set(line["cost"]) == COST
    assert line["status"] == "ok"
    assert line["answer"]
    scored = {d for stage in line["stages"] for signal in stage["scores"].values() for d in signal}
    assert scored == set(line["stages"][0]["documents"])
    for stage in line["stages"]:
        for values in stage["scores"].values():
            assert all(isinstance(v, int | float) or v["status"] != "ok" for v in values.values())


def test_cafe_on_twenty_documents_goes_on_after_a_kill_and_stays_small(shared_data, tmp_path):
    output = tmp_path / "cafe.jsonl"
    arguments = command("cafe", shared_data / "nq20.jsonl.gz", output, 2)
    first = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (output.exists() and output.read_bytes().count(b"\n") == 1):
        assert first.poll() is None, "ended before the first line was written"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = output.read_bytes()
    second = subprocess.Popen(arguments, cwd=ROOT, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(second.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) < MEMORY_LIMIT
    assert output.read_bytes().startswith(kept)  # nothing is repeated
    assert len({line["id"] for line in lines(output)}) == 2
    for line in lines(output):
        check(line)
        assert len(line["stages"][0]["documents"]) == 20
        assert line["attention_summary"][0]["retrieval_heads"]


@pytest.mark.parametrize("method", ["duquad", "madara"])
def test_agents_on_conflicting_documents(method, shared_data, tmp_path):
    output = tmp_path / f"{method}.jsonl"
    subprocess.run(command(method, shared_data / "ramdocs.jsonl.gz", output, 1), cwd=ROOT, check=True)
    [line] = lines(output)
    check(line)
    if method == "madara":
        assert line["routing"]["treatment"] in {"pde", "sda", "cot", "atf"}
        assert line["profile"] == "madara-builtin"
    else:
        assert [o["role"] for o in line["opinions"]][-1] == "judge"
