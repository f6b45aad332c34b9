"""Embeddings of a server that speaks OpenAI's protocol: OpenAI itself, vLLM, llama.cpp, text-embeddings-inference.

One request: ``POST {url}/embeddings`` with ``{"model": ..., "input": [texts], "encoding_format": "float"}``; the reply
has ``{"data": [{"index": 0, "embedding": [numbers]}, ...]}``. The texts of the documents leave this machine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np

from mdqa.backends.addresses import check_address, check_key, key_problem, said, way_to
from mdqa.errors import ConfigError, ModelError
from mdqa.retrieval.dense import DenseRanker

BATCH = 64
"""Texts per request."""

LONGEST_WAIT = 30.0
"""Seconds; a server that asks for more patience is given up."""


class OpenAIEmbeddings:
    """An encoder behind a URL.

    Args:
        url: where the server's API begins, for example https://api.openai.com/v1 or http://127.0.0.1:8000/v1.
        model: the model's name there.
        key: sent as a bearer token if it is not empty. It is kept in this object only.
        timeout: seconds to wait for each step of a request (connection, reply).
        attempts: how often a request is sent if the server is busy (429) or fails (500 and above).
        wait: seconds before the second attempt, doubled before each further one; ``Retry-After`` goes first.

    Raises:
        ConfigError: a URL that is none, or that holds a name, a password, or anything after a question mark; a key
            with characters that cannot be sent.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        key: str = "",
        batch: int = BATCH,
        timeout: float = 60.0,
        attempts: int = 4,
        wait: float = 1.0,
    ) -> None:
        check_address(url, "the embeddings server")
        check_key(key)
        if not model:
            raise ConfigError(f"the embeddings of {url} need the name of a model")
        self.name = f"{model} at {url}"
        self._url, self._model, self._key = f"{url.rstrip('/')}/embeddings", model, key
        self._batch, self._timeout, self._attempts, self._wait = batch, timeout, attempts, wait

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors (texts, dimensions), float32; ModelError says what went wrong with the server or its reply."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        parts = [texts[start : start + self._batch] for start in range(0, len(texts), self._batch)]
        with httpx.Client(timeout=self._timeout, headers=headers, **way_to(self._url)) as client:
            vectors = [vector for part in parts for vector in self._vectors(self._post(client, part), len(part))]
        if len({len(vector) for vector in vectors}) != 1:
            raise self._problem("sent vectors of different lengths")
        array = np.array(vectors, dtype=np.float64)
        norms = np.linalg.norm(array, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not (norms > 0).all():
            raise self._problem("sent a vector without a direction (zeros, or numbers that are not finite)")
        unit: np.ndarray = (array / norms).astype(np.float32)
        return unit

    def _post(self, client: httpx.Client, texts: Sequence[str]) -> httpx.Response:
        """The reply to one batch; a server that is busy or fails is asked again."""
        body = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        for attempt in range(1, self._attempts + 1):
            try:
                reply = client.post(self._url, json=body)
            except httpx.TimeoutException:
                raise self._problem(f"did not reply within {self._timeout:g} seconds") from None
            except (httpx.RequestError, httpx.InvalidURL) as error:
                raise self._problem(
                    f"cannot be reached ({type(error).__name__}: {said(str(error), self._key)})"
                ) from None
            busy = reply.status_code == 429 or reply.status_code >= 500
            pause = self._pause(reply, attempt)
            if not busy or attempt == self._attempts or pause > LONGEST_WAIT:
                break
            time.sleep(pause)
        if reply.status_code in (401, 403):
            raise self._problem(f"{key_problem(self._key)} ({reply.status_code})")
        if not reply.is_success:
            tried = f" after {attempt} attempts" if attempt > 1 else ""
            raise self._problem(f"replies {reply.status_code}{tried}: {said(reply.text, self._key)}")
        return reply

    def _pause(self, reply: httpx.Response, attempt: int) -> float:
        try:
            return max(0.0, float(reply.headers.get("Retry-After", "")))
        except ValueError:  # absent, or a date
            return self._wait * 2.0 ** (attempt - 1)

    def _vectors(self, reply: httpx.Response, count: int) -> list[list[float]]:
        """The vectors of a reply in the order of the texts."""
        try:
            data: Any = reply.json()
        except ValueError:
            raise self._problem(f"sends no JSON: {said(reply.text, self._key)}") from None
        entries = data.get("data") if isinstance(data, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise self._problem(f"sends no list of embeddings under 'data': {said(reply.text, self._key)}")
        numbers = [entry.get("index", place) for place, entry in enumerate(entries)]
        if any(type(number) is not int for number in numbers) or sorted(numbers) != list(range(count)):
            raise self._problem(f"sends {len(entries)} embeddings for {count} texts, or numbers them wrongly")
        try:
            by_index = {
                number: _numbers(entry.get("embedding")) for number, entry in zip(numbers, entries, strict=True)
            }
        except (TypeError, OverflowError):
            raise self._problem("sends an embedding that is no list of numbers") from None
        return [by_index[index] for index in range(count)]

    def _problem(self, what: str) -> ModelError:
        return ModelError(f"the embeddings server {self._url} (model {self._model!r}) {what}")


def _numbers(value: Any) -> list[float]:
    """The vector as it came; TypeError or OverflowError if it is none."""
    if not isinstance(value, list) or not value or not all(type(number) in (int, float) for number in value):
        raise TypeError("no list of numbers")
    return [float(number) for number in value]


class OpenAIRanker(DenseRanker):
    """Ranks by the cosine of a server's embeddings."""

    name = "openai"
