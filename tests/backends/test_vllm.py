"""What is said when an engine does not start, with a stand-in for the interpreter that has vLLM."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from mdqa.backends.loading import load_backend
from mdqa.backends.vllm import REASONS, Engine
from mdqa.errors import ModelError


def interpreter(folder: Path, *lines: str) -> str:
    """A program that is called as an interpreter would be: a shell script with these lines."""
    path = folder / "python"
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def refused(python: str, **more: str) -> str:
    engine = Engine("a/model", dtype="float32", device="cpu", python=python, **more)
    with pytest.raises(ModelError) as caught:
        engine.start(lambda words, fraction: None)
    assert not engine.alive
    return str(caught.value)


@pytest.mark.parametrize("sign", REASONS)
def test_a_reason_that_is_known(sign: str, tmp_path: Path) -> None:
    said = refused(interpreter(tmp_path, f'echo "ERROR before: {sign} after" >&2', "exit 1"))
    assert said == f"vLLM does not start with a/model: {REASONS[sign]}"


def test_a_reason_that_is_not(tmp_path: Path) -> None:
    said = refused(interpreter(tmp_path, "echo first", "echo 'ValueError: no such thing'", "exit 1"))
    assert said.endswith("its log ends: ValueError: no such thing")
    assert refused(interpreter(tmp_path, "exit 1")).endswith("it said nothing.")


def test_an_interpreter_without_vllm() -> None:
    if os.environ.get("MDQA_VLLM_PYTHON") == sys.executable:
        pytest.skip("this interpreter has vLLM")
    assert "pip install -r requirements-vllm.txt" in refused(sys.executable)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be started (No such file or directory). Install it" in refused(str(tmp_path / "python"))


def test_the_engine_gets_the_owners_options_and_no_secret_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MDQA_PASSWORD", "our secret")
    told = tmp_path / "told"
    python = interpreter(tmp_path, f'echo "$@" > {told}', f"env >> {told}", "exit 1")
    refused(python, arguments="--max-model-len 8192")
    text = told.read_text(encoding="utf-8")
    assert "--model a/model --served-model-name a/model --host 127.0.0.1" in text
    assert "--dtype float32 --enforce-eager --max-model-len 8192" in text
    assert "VLLM_WORKER_MULTIPROC_METHOD=spawn" in text
    assert f"MDQA_PARENT={os.getpid()}" in text
    assert "our secret" not in text


def test_stop_ends_the_process_and_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    python = interpreter(tmp_path, "trap '' TERM", f"sleep 600 & echo $! > {child}", "sleep 0.1", "exit 1")
    refused(python)
    number = int(child.read_text(encoding="utf-8"))
    for _ in range(50):
        if not Path(f"/proc/{number}").exists() or "zombie" in Path(f"/proc/{number}/status").read_text("utf-8"):
            return
        time.sleep(0.1)
    pytest.fail("a child of the engine goes on")


def test_the_name_leads_to_an_engine(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "echo 'Failed to infer device type'", "exit 1")
    (tmp_path / "model").mkdir()
    for name, backend in ((f"vllm:{tmp_path / 'model'}", "auto"), (str(tmp_path / "model"), "vllm")):
        with pytest.raises(ModelError, match="finds no GPU"):
            load_backend(name, backend=backend, cache=tmp_path, vllm_python=python, device="cpu")
