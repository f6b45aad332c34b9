"""The host of a ZeroGPU Space as the package ``spaces`` sees it: it lends one GPU, waits, refuses, and takes notes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Literal
from urllib.parse import parse_qs, urlsplit

TOKEN = "e30.e30.e30"
"""By which the host knows a visitor: a JSON Web Token that says nothing."""

Mood = Literal["lends", "waits", "refuses"]


class Host(ThreadingHTTPServer):
    """``asked``: what was asked for, in order; ``allowed``: the processes that were given the GPU."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.mood: Mood = "lends"
        self.asked: list[dict[str, str]] = []
        self.allowed: list[int] = []
        self.released: list[dict[str, str]] = []
        self.reported = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def variables(self, package: Path) -> dict[str, str]:
        """The environment of a process on such a Space, where ``package`` holds ``spaces``."""
        return {
            "SPACES_ZERO_GPU": "true",
            "SPACES_ZERO_DEVICE_API_URL": self.url,
            "PYTHONPATH": os.pathsep.join([str(package), str(Path(__file__).parents[2])]),
        }


class Handler(BaseHTTPRequestHandler):
    """Answers as the host's own interface does."""

    server: Host

    def do_POST(self) -> None:
        where = urlsplit(self.path)
        given = {name: values[0] for name, values in parse_qs(where.query).items()}
        host = self.server
        match where.path:
            case "/startup-report":
                host.reported += 1
                self._answer(200)
            case "/schedule":
                host.asked.append(given)
                self._schedule(given)
            case "/allow":
                host.allowed.append(int(given["pid"]))
                self._answer(200)
            case "/release":
                host.released.append(given)
                self._answer(200)
            case "/mood":  # not the host's: what it will do from now on
                host.mood = given["mood"]  # type: ignore[assignment]
                self._answer(200)
            case _:
                self._answer(404)

    def _schedule(self, given: dict[str, str]) -> None:
        match self.server.mood:
            case "lends":
                lent = {"idle": True, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": given["taskId"]}
                self._answer(200, lent)
            case "refuses":
                self._answer(429, {"left": 7, "wait": "PT3H"})
            case "waits":
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                try:
                    while self.server.mood == "waits":
                        self.wfile.write(b"event: ping\n\n")
                        time.sleep(0.2)
                except OSError:
                    pass

    def _answer(self, status: int, body: object = None) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


def without_a_driver() -> None:
    """Leave out the steps of ``spaces`` that talk to a GPU, and let it take PyTorch for one that has CUDA.

    To be called before anything imports ``spaces``, in a process that is for this alone.
    """
    import torch  # noqa: PLC0415

    torch.version.cuda = torch.version.cuda or "13.0"  # these lines: what PyTorch built for processors lacks
    torch._C._cuda_init = getattr(torch._C, "_cuda_init", None)
    torch.cuda._is_in_bad_fork = torch.cuda.is_initialized
    from spaces.zero import torch as driver  # noqa: PLC0415

    driver.init = lambda uuid: None
    driver.move = lambda callback=None: None


@contextmanager
def hosting() -> Iterator[Host]:
    """A host on a free port."""
    host = Host()
    thread = Thread(target=host.serve_forever, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        host.mood = "lends"
        host.shutdown()
        host.server_close()
        thread.join(10)
