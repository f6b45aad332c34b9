"""vLLM on this machine, in a process of its own: paged keys and values, continuous batching, a cache of prefixes.

The engine is vLLM's own server on a port of this machine that only this program has the key to, so it may live in an
environment of its own (vLLM and the page want different versions of the same libraries), its memory is free as soon as
its process ends, and a crash of the engine is an error of a run and not the end of the program.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from queue import Queue
from typing import TypeVar

import httpx

from mdqa.backends.calls import Call
from mdqa.backends.openai import OpenAIBackend
from mdqa.backends.served import look_at, tokenizer_of
from mdqa.cancellation import CancelToken
from mdqa.errors import ConfigError, ModelError
from mdqa.ports import free_port

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
    "Address already in use": "another program took its port in the meantime. Start it again.",
    "larger than the available KV cache memory": "the model's window does not fit into memory. Shorten it with "
    "MDQA_VLLM_ARGS='--max-model-len 8192'.",
}
"""What vLLM's log says when it does not start, and what that means for a person."""

_PREFIX = re.compile(r"^(\(\w[^)]*\) )?((ERROR|WARNING|INFO|CRITICAL) [\d-]+ [\d:]+ \[[^\]]+\] ?)?")
"""Who writes a line of the log, how grave it is, when and where."""

_PROBLEM = re.compile(r"[\w.]*(Error|Exception)\b|\S+: error: ")
"""How a line begins that names an exception, or an option that vLLM does not know."""

_ELSEWHERE = re.compile(r"[Ss]ee (the )?(root cause|stack trace)")
"""In the words of a process that only knows that another one has failed."""


class Engine:
    """A process of vLLM. ``python`` is the interpreter that has it, ``arguments`` go to vLLM's server as they are."""

    def __init__(self, source: str, *, dtype: str, device: str, python: str, arguments: str = "") -> None:
        self.key = secrets.token_hex(16)
        self._source, self._dtype, self._device = source, dtype, device
        self._python = python or sys.executable
        try:
            self._arguments = shlex.split(arguments)
        except ValueError as error:
            raise ConfigError(f"MDQA_VLLM_ARGS cannot be read ({error}): {arguments}") from None
        self._log = deque[str](maxlen=400)
        self._logged = threading.Event()  # the log has come to its end
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def well(self) -> bool:
        """Whether the server answers and the engine behind it lives."""
        try:
            # never through a proxy of the environment, for which 127.0.0.1 is another machine
            return httpx.get(self.url.removesuffix("/v1") + "/health", timeout=2.0, trust_env=False).is_success
        except httpx.HTTPError:
            return False

    def dying(self, patience: float = 10.0) -> bool:
        """Whether the process has ended or is about to: the server outlives a broken engine by a moment."""
        if self.alive and not self.well:
            end = time.monotonic() + patience
            while self.alive and time.monotonic() < end:
                time.sleep(0.1)
        return not self.alive

    def start(self, progress: Progress) -> None:
        """Start the process and wait until it answers; ModelError says in words why it does not."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/v1"
        script = Path(__file__).with_name("vllm_process.py")
        command = [self._python, str(script), *self._options(port), *self._arguments]
        environment = _environment(self._cpu) | {"VLLM_API_KEY": self.key, "MDQA_PARENT": str(os.getpid())}
        self.stop()  # what an engine that ended by itself has left, such as a child that holds the memory
        self._log, self._logged = deque(maxlen=400), threading.Event()
        born = Queue[subprocess.Popen[str] | OSError | ValueError]()
        living = (command, environment, born, self._log, self._logged)
        threading.Thread(target=_live, args=living, name="mdqa-vllm", daemon=True).start()
        process = born.get()
        if not isinstance(process, subprocess.Popen):
            reason = getattr(process, "strerror", process)
            raise ModelError(f"the Python {self._python} cannot be started ({reason}). {INSTALL}.") from None
        self._process = process
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
        end = time.monotonic() + 5.0
        with contextlib.suppress(ProcessLookupError, PermissionError):
            while time.monotonic() < end:  # children that outlive it still hold the memory that the next model needs
                os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.05)

    def last_words(self) -> str:
        """Why the process ended, as far as its log says."""
        self._logged.wait(1.0)
        lines = [_PREFIX.sub("", line) for line in list(self._log)]
        text = "\n".join(lines)
        for sign, meaning in REASONS.items():
            if sign in text:
                return meaning
        if self._process is not None and self._process.returncode == -signal.SIGKILL:
            return "it was killed from outside, as the system does when memory runs out."
        problems = [place for place, line in enumerate(lines) if _PROBLEM.match(line) and not _ELSEWHERE.search(line)]
        if problems:
            more = takewhile(lambda line: line.startswith("  "), lines[problems[-1] + 1 :])
            told = [lines[problems[-1]], *(line for line in more if "://" not in line)]
        else:
            told = [line for line in lines if line.strip()][-2:]
        return "its log says: " + " / ".join(line.strip() for line in told)[:400] if told else "it said nothing."

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

    def _wait(self, progress: Progress) -> None:
        began = time.monotonic()
        progress("Starting vLLM", None)
        while time.monotonic() - began < START_SECONDS:
            if not self.alive:
                raise ModelError(f"vLLM does not start with {self._source}: {self.last_words()}")
            if self.well:
                return
            progress(f"Starting vLLM ({time.monotonic() - began:.0f} s)", None)
            time.sleep(0.5)
        raise ModelError(f"vLLM was not ready with {self._source} after {START_SECONDS / 60:.0f} minutes")


class VLLMBackend(OpenAIBackend):
    """A model in an engine of our own. An engine that has ended is started again by the next call."""

    def __init__(self, engine: Engine, *, model: str, progress: Progress) -> None:
        self._engine, self._progress = engine, progress
        self._starting, self._closed = threading.Lock(), False
        engine.start(progress)
        try:
            served = look_at(engine.url, key=engine.key)
            super().__init__(
                served,
                model=model,
                key=engine.key,
                tokenizer=tokenizer_of(served),
                name="vllm",
                attempts=2,  # no network is between, so a second failure is the engine's end
            )
        except BaseException:
            engine.stop()
            raise

    def close(self) -> None:
        """End the engine, which frees its memory; it is not started again."""
        self._closed = True
        self._engine.stop()

    def _send(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        """ModelError says why the engine ended, if it did."""
        with self._starting:  # by one of several threads that find it ended
            self._refuse_if_closed()
            if not self._engine.alive:
                self._restart(cancel)
        try:
            return super()._send(calls, cancel)
        except ModelError as problem:
            self._refuse_if_closed()
            if not self._engine.dying():
                raise
            raise ModelError(
                f"vLLM ended while it worked: {self._engine.last_words()} The next run starts it again."
            ) from problem

    def _restart(self, cancel: CancelToken) -> None:
        def progress(words: str, fraction: float | None) -> None:
            cancel.check()
            self._refuse_if_closed()
            self._progress(words, fraction)

        self._engine.start(progress)
        self._move(look_at(self._engine.url, key=self._engine.key))

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise ModelError(f"the engine of {self.model!r} was closed; load the model again")


def _live(
    command: Sequence[str],
    environment: Mapping[str, str],
    born: Queue[subprocess.Popen[str] | OSError | ValueError],
    log: deque[str],
    logged: threading.Event,
) -> None:
    """Start a process and read its log until it ends, in a thread that lives as long as it does.

    Linux ends the process together with the *thread* that started it (see ``vllm_process.py``), and a thread that asks
    for a model may be gone soon.
    """
    try:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # its own children end with it, and Ctrl+C here is ours to handle
        )
    except (OSError, ValueError) as error:  # a character in an argument that none can hold
        born.put(error)
        return
    born.put(process)
    assert process.stdout is not None
    for line in process.stdout:
        log.append(line.rstrip())
    logged.set()
    process.wait()


def _has_gpu() -> bool:
    """Whether there is an NVIDIA or AMD device, without touching it: that would hinder the engine's own start."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()


def _environment(cpu: bool) -> dict[str, str]:
    """The engine's environment: ours, with what vLLM needs to be told. What a person has set stays."""
    told = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn", "VLLM_NO_USAGE_STATS": "1"}
    if cpu:
        cores = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else range(os.cpu_count() or 1)
        told |= {"VLLM_CPU_KVCACHE_SPACE": "2", "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores))}
    return {**told, **{k: v for k, v in os.environ.items() if k not in ("MDQA_PASSWORD", "MDQA_API_KEY")}}
