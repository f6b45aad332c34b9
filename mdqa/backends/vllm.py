"""vLLM on this machine, in a process of its own: paged keys and values, continuous batching, a cache of prefixes.

The engine is vLLM's own server on a port of this machine that only this program has the key to, so it may live in an
environment of its own (vLLM and the page want different versions of the same libraries), its memory is free as soon as
its process ends, and a crash of the engine is an error of a run and not the end of the program.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import httpx

from mdqa.backends.calls import Call
from mdqa.backends.openai import OpenAIBackend
from mdqa.backends.served import look_at, tokenizer_of
from mdqa.cancellation import CancelToken
from mdqa.errors import ModelError

T = TypeVar("T")
Progress = Callable[[str, float | None], None]

START_SECONDS = 1800.0
"""How long an engine may take to be ready, with the model fetched first."""

INSTALL = (
    "Install it in an environment of its own (pip install -r requirements-vllm.txt) and name that environment's Python "
    "in MDQA_VLLM_PYTHON"
)

REASONS: Mapping[str, str] = {
    "No module named 'vllm'": f"vLLM is not installed there. {INSTALL}.",
    "Failed to infer device type": "it finds no GPU. On a machine without one use the model through transformers "
    "(leave out --backend vllm), or vLLM's build for the CPU (see requirements-vllm.txt).",
    "No available memory for the cache blocks": "the model leaves no memory for keys and values. Choose a smaller "
    "model, or give the engine more with MDQA_VLLM_ARGS='--gpu-memory-utilization 0.95'.",
    "Free memory on device": "the device's memory is in use by another program. Stop that, or give the engine less "
    "with MDQA_VLLM_ARGS='--gpu-memory-utilization 0.5'.",
    "out of memory": "the device has too little memory for this model. Choose a smaller one.",
    "larger than the available KV cache memory": "the model's window does not fit into memory. Shorten it with "
    "MDQA_VLLM_ARGS='--max-model-len 8192'.",
}
"""What vLLM's log says when it does not start, and what that means for a person."""


class Engine:
    """A process of vLLM. ``python`` is the interpreter that has it, ``arguments`` go to vLLM's server as they are."""

    def __init__(self, source: str, *, dtype: str, device: str, python: str, arguments: str = "") -> None:
        self.key = secrets.token_hex(16)
        self._source, self._dtype, self._device = source, dtype, device
        self._python, self._arguments = python or sys.executable, shlex.split(arguments)
        self._log: deque[str] = deque(maxlen=400)
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, progress: Progress) -> None:
        """Start the process and wait until it answers; ModelError says in words why it does not."""
        port = _free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        script = Path(__file__).with_name("vllm_process.py")
        command = [self._python, str(script), *self._options(port), *self._arguments]
        environment = _environment(self._cpu) | {"VLLM_API_KEY": self.key, "MDQA_PARENT": str(os.getpid())}
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # its own children end with it, and Ctrl+C here is ours to handle
            )
        except OSError as error:
            raise ModelError(f"the Python {self._python} cannot be started ({error.strerror}). {INSTALL}.") from None
        threading.Thread(target=self._listen, args=(self._process,), name="mdqa-vllm-log", daemon=True).start()
        try:
            self._wait(progress)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process and its children, politely first."""
        process, self._process = self._process, None
        if process is None:
            return
        for way, patience in ((signal.SIGTERM, 15.0), (signal.SIGKILL, 5.0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, way)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # a child that outlived it

    def last_words(self) -> str:
        """Why the process ended, as far as its log says."""
        text = "\n".join(self._log)
        for sign, meaning in REASONS.items():
            if sign in text:
                return meaning
        errors = [line for line in self._log if "Error" in line] or list(self._log)
        return "its log ends: " + " / ".join(errors[-2:])[:400] if errors else "it said nothing."

    @property
    def _cpu(self) -> bool:
        return self._device == "cpu" or (self._device == "auto" and not _has_gpu())

    def _options(self, port: int) -> list[str]:
        dtype = [] if self._dtype == "auto" and not self._cpu else ["--dtype", self._number()]
        # compiling for a processor takes minutes and wins little with the small models that fit there
        eager = ["--enforce-eager"] if self._cpu else []
        options = ["--model", self._source, "--served-model-name", self._source, "--host", "127.0.0.1"]
        counted = ["--port", str(port), "--seed", "0", "--enable-prompt-tokens-details"]
        return [*options, *counted, *dtype, *eager]

    def _number(self) -> str:
        """The number format; on a processor the one that it computes in."""
        if self._dtype != "auto":
            return self._dtype
        from mdqa.backends.precision import choose_dtype  # noqa: PLC0415 (brings PyTorch)

        return str(choose_dtype("auto", "cpu")[0]).removeprefix("torch.")

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._log.append(line.rstrip())

    def _wait(self, progress: Progress) -> None:
        began = time.monotonic()
        progress("Starting vLLM", None)
        address = self.url.removesuffix("/v1") + "/health"
        while time.monotonic() - began < START_SECONDS:
            if not self.alive:
                time.sleep(0.2)  # the last lines of the log
                raise ModelError(f"vLLM does not start with {self._source}: {self.last_words()}")
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(address, timeout=2.0).is_success:
                    return
            progress(f"Starting vLLM ({time.monotonic() - began:.0f} s)", None)
            time.sleep(0.5)
        raise ModelError(f"vLLM was not ready with {self._source} after {START_SECONDS / 60:.0f} minutes")


class VLLMBackend(OpenAIBackend):
    """A model in an engine of our own. An engine that has ended is started again by the next call."""

    def __init__(self, engine: Engine, *, model: str, progress: Progress) -> None:
        self._engine, self._progress = engine, progress
        engine.start(progress)
        try:
            served = look_at(engine.url, key=engine.key)
            super().__init__(served, model=model, key=engine.key, tokenizer=tokenizer_of(served), name="vllm")
        except BaseException:
            engine.stop()
            raise

    def close(self) -> None:
        """End the engine, which frees its memory."""
        self._engine.stop()

    def _send(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        """ModelError says why the engine ended, if it did."""
        if not self._engine.alive:
            self._engine.start(self._progress)
            self._move(look_at(self._engine.url, key=self._engine.key))
        try:
            return super()._send(calls, cancel)
        except ModelError as problem:
            if self._engine.alive:
                raise
            raise ModelError(
                f"vLLM ended while it worked: {self._engine.last_words()} The next run starts it again."
            ) from problem


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _has_gpu() -> bool:
    """Whether there is an NVIDIA or AMD device, without touching it: that would hinder the engine's own start."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def _environment(cpu: bool) -> dict[str, str]:
    """The engine's environment: ours, with what vLLM needs to be told. What a person has set stays."""
    told = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn", "VLLM_NO_USAGE_STATS": "1"}
    if cpu:
        told |= {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}"}
    return {**told, **{k: v for k, v in os.environ.items() if k not in ("MDQA_PASSWORD", "MDQA_API_KEY")}}
