"""An engine's process: what is said when it does not start or dies, and that it never stays behind.

With stand-ins for the interpreter that has vLLM, and for vLLM.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mdqa.backends.base import GenerationRequest
from mdqa.backends.embedded import silent
from mdqa.backends.loading import load_backend
from mdqa.backends.vllm import REASONS, Engine, VLLMBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ConfigError, ModelError
from mdqa.prompting import parse_template

SERVER = """
import json, os, subprocess, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        assert self.path == "/health" or self.headers["Authorization"] == "Bearer " + os.environ["VLLM_API_KEY"]
        self.reply({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 64}], "version": "0"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if b"die" in body:
            child = subprocess.Popen(["sleep", "600"])
            print("torch.OutOfMemoryError: CUDA out of memory; left behind:", child.pid, flush=True)
            os._exit(1)
        self.reply('data: {"choices": [{"index": 0, "delta": {"content": "alive"}, "finish_reason": "stop"}]}\\n\\n')

    def reply(self, what):
        self.send_response(200)
        self.end_headers()
        self.wfile.write((what if isinstance(what, str) else json.dumps(what)).encode())

    def log_message(self, *words):
        pass

time.sleep(float(os.environ.get("SLOW", 0)))
port = int(sys.argv[sys.argv.index("--port") + 1])
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
"""What this package needs of vLLM's server. It dies of a prompt with the word "die"."""


@pytest.fixture
def standin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VLLMBackend]:
    """An engine that was started by a thread that is gone, where the environment names a proxy."""
    folder = tmp_path / "vllm" / "entrypoints" / "openai"
    folder.mkdir(parents=True)
    (folder / "api_server.py").write_text(SERVER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    engine = Engine("m", dtype="float32", device="cpu", python=sys.executable)
    made: list[VLLMBackend] = []
    starter = threading.Thread(target=lambda: made.append(VLLMBackend(engine, model="m", progress=silent)))
    starter.start()
    starter.join()
    yield made[0]
    made[0].close()


def ask(backend: VLLMBackend, word: str = "live", cancel: CancelToken | None = None) -> str:
    text = parse_template("t", f"### user\n{word}").fill()
    return backend.generate([GenerationRequest(text)], cancel=cancel or CancelToken())[0].text


def gone(number: int) -> bool:
    """Whether a process ends within seconds."""
    for _ in range(100):
        status = Path(f"/proc/{number}/status")
        try:
            if "zombie" in status.read_text("utf-8"):
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


def interpreter(folder: Path, *lines: str) -> str:
    """A program that is called as an interpreter would be: a shell script with these lines."""
    path = folder / "python"
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def refused(python: str, **more: str) -> str:
    engine = Engine("a/model", dtype="float32", device="cpu", python=python, **more)
    with pytest.raises(ModelError) as caught:
        engine.start(silent)
    assert not engine.alive
    return str(caught.value)


@pytest.mark.parametrize("sign", REASONS)
def test_a_reason_that_is_known(sign: str, tmp_path: Path) -> None:
    said = refused(interpreter(tmp_path, f'echo "ERROR before: {sign} after" >&2', "exit 1"))
    assert said == f"vLLM does not start with a/model: {REASONS[sign]}"


def test_a_reason_that_is_not(tmp_path: Path) -> None:
    said = refused(interpreter(tmp_path, "echo first", "echo 'ValueError: no such thing'", "exit 1"))
    assert said.endswith("its log says: ValueError: no such thing")
    assert refused(interpreter(tmp_path, "exit 1")).endswith("it said nothing.")
    assert refused(interpreter(tmp_path, "kill -9 $$")).endswith("as the system does when memory runs out.")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            "(APIServer pid=7) WARNING 11-30 19:28:31 [utils.py:255] Found ulimit of 20000; errors like `OSError`\n"
            "    raise ValueError(\n"
            "core.ValidationError: 1 validation error for ModelConfig\n"
            "  Value error, max_model_len (100000) is greater than 8192\n"
            "    For further information visit https://errors.pydantic.dev/2.14/v/value_error",
            "core.ValidationError: 1 validation error for ModelConfig / Value error, max_model_len (100000) is greater "
            "than 8192",
        ),
        (
            "(EngineCore pid=8) ERROR 11-30 19:30:35 [core.py:906] TypeError: the cause\n"
            "(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above.",
            "TypeError: the cause",
        ),
        ("  [model_tag]\nx.py: error: unrecognized arguments: --y 3", "x.py: error: unrecognized arguments: --y 3"),
        ("one\ntwo\n\nthree", "two / three"),
    ],
    ids=["options", "another process", "arguments", "no error"],
)
def test_what_a_log_says(log: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(log + "\n", encoding="utf-8")
    text = refused(interpreter(tmp_path, f"cat {tmp_path / 'log'}", "exit 1"))
    assert text == f"vLLM does not start with a/model: its log says: {said}"


def test_an_earlier_end_is_not_the_reason_of_a_later_one(tmp_path: Path) -> None:
    once = tmp_path / "once"
    python = interpreter(tmp_path, f"[ -e {once} ] && exit 1", f"touch {once}", "echo 'CUDA out of memory'", "exit 1")
    engine = Engine("a/model", dtype="float32", device="cpu", python=python)
    with pytest.raises(ModelError, match="too little memory"):
        engine.start(silent)
    with pytest.raises(ModelError, match="it said nothing"):
        engine.start(silent)


def test_an_interpreter_without_vllm() -> None:
    if os.environ.get("MDQA_VLLM_PYTHON") == sys.executable:
        pytest.skip("this interpreter has vLLM")
    assert "pip install -r requirements-vllm.txt" in refused(sys.executable)


def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    assert "cannot be started (No such file or directory). Install it" in refused(str(tmp_path / "python"))
    assert "cannot be started (embedded null byte)" in refused("\0")
    with pytest.raises(ConfigError, match=r"MDQA_VLLM_ARGS cannot be read \(No closing quotation\): --x 'y"):
        refused("python", arguments="--x 'y")


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
    assert gone(number)


def test_an_engine_outlives_who_asked_for_it_and_comes_back_when_it_dies(
    standin: VLLMBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    time.sleep(0.3)
    assert ask(standin) == "alive"
    first = standin.served.url
    with pytest.raises(ModelError, match="vLLM ended while it worked: the device has too little memory"):
        ask(standin, "die")
    left = int(standin._engine._log[-1].rsplit(" ", 1)[1])
    monkeypatch.setenv("SLOW", "60")
    cancel = CancelToken()
    threading.Timer(0.3, cancel.cancel).start()
    with pytest.raises(Cancelled):
        ask(standin, cancel=cancel)
    monkeypatch.delenv("SLOW")
    assert ask(standin) == "alive"
    assert standin.served.url != first
    assert gone(left)
    standin.close()
    standin.close()
    with pytest.raises(ModelError, match="was closed; load the model again"):
        ask(standin)
    assert not standin._engine.alive


def test_an_engine_ends_with_the_program_that_started_it(standin: VLLMBackend) -> None:
    code = """
from mdqa.backends.vllm import Engine
import sys, time
engine = Engine("m", dtype="float32", device="cpu", python=sys.executable)
engine.start(lambda *words: None)
print(engine._process.pid, flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        number = int(program.stdout.readline())
        program.kill()
    assert gone(number)
    assert ask(standin) == "alive"  # another engine is its own


def test_the_name_leads_to_an_engine(tmp_path: Path) -> None:
    python = interpreter(tmp_path, "echo 'Failed to infer device type'", "exit 1")
    (tmp_path / "model").mkdir()
    for name, backend in ((f"vllm:{tmp_path / 'model'}", "auto"), (str(tmp_path / "model"), "vllm")):
        with pytest.raises(ModelError, match="finds no GPU"):
            load_backend(name, backend=backend, cache=tmp_path, vllm_python=python, device="cpu")
