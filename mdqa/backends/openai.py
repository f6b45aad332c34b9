"""Any server that speaks OpenAI's protocol: vLLM on one GPU or many, llama.cpp, a hosted service.

Two ways of asking. vLLM whose model's tokenizer is on this machine is sent token ids, the same that
:mod:`mdqa.backends.hf` would run; replies and likelihoods are then those of the same prompts. Every other server is
sent chat turns and puts its own template around them. Either way a control token inside a document is broken first.

All requests of a call are on their way at once: batching them is the server's work.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    PermissionDeniedError,
    UnprocessableEntityError,
)

from mdqa.attention.disarming import Disarmer
from mdqa.attention.layout import Layout, PromptEncoder, Span
from mdqa.backends.addresses import key_problem, said
from mdqa.backends.base import Capability, GenerationRequest, Likelihood, Steering, TextCallback
from mdqa.backends.calls import Broken, Call, Calls, Reply, Screen, Unreadable
from mdqa.backends.served import Refusals, Served
from mdqa.cancellation import CancelToken
from mdqa.errors import CapabilityError, ModelError, PromptTooLong
from mdqa.prompting import Prompt, SegmentKind
from mdqa.records import Cost, Generation

T = TypeVar("T")

BYTES_PER_TOKEN = 4
"""By which the tokens of a text are estimated where no tokenizer is at hand."""

PLAIN = {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
"""Sampling of vLLM as everywhere else here: it would take a model's recommended values where none are given."""


NO_TEXT = (json.JSONDecodeError, UnicodeDecodeError, RecursionError)
"""What the client raises for a stream whose events are none."""

UNREADABLE = "sends what cannot be read as a reply; is this the address of an OpenAI-compatible API?"


class OpenAIBackend:
    """A model behind an address.

    Args:
        served: what is there, by :func:`mdqa.backends.served.look_at`.
        model: as the person wrote it; recorded with every run.
        key: the bearer token, or empty. It is kept in this object only.
        tokenizer: the model's own fast one, for servers that take token ids; None for chat turns.
        limit, timeout, attempts, wait: see :class:`~mdqa.backends.calls.Calls`.
    """

    def __init__(
        self,
        served: Served,
        *,
        model: str,
        key: str = "",
        tokenizer: Any = None,
        name: str = "openai",
        limit: int = 64,
        timeout: float = 600.0,
        attempts: int = 4,
        wait: float = 0.5,
    ) -> None:
        self.name, self.model, self.window, self.served = name, model, served.window, served
        self._encoder = PromptEncoder(tokenizer) if tokenizer is not None and served.vllm else None
        self._disarmer = Disarmer()
        self._key = key
        self._refusals = Refusals()
        self._without_answer = 0
        self._make_calls = partial(Calls, limit=limit, timeout=timeout, attempts=attempts, wait=wait)
        self._calls = self._make_calls(served.url, key)
        able: tuple[Capability, ...] = ("generate", "structured")
        self.capabilities: frozenset[Capability] = frozenset((*able, "likelihood") if self._encoder else able)

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        *,
        cancel: CancelToken,
        on_text: TextCallback | None = None,
        on_done: Callable[[int], None] | None = None,
        prefix: Any = None,
        steering: Steering | None = None,
    ) -> list[Generation]:
        """See :class:`mdqa.backends.base.Backend`. ``prefix`` is left to the server's own cache.

        Raises:
            ModelError: the server fails, refuses, or cannot be reached any more.
        """
        if steering is not None:
            raise CapabilityError(f"the server {self.served.url} cannot steer attention")
        calls = []
        for index, request in enumerate(requests):
            body = self._body(request)
            screen = None if on_text is None else Screen(partial(on_text, index))
            done = None if on_done is None else partial(on_done, index)
            calls.append(partial(self._write, request, body, screen, done))
        return self._send(calls, cancel)

    def log_likelihood(
        self,
        prompts: Sequence[Prompt],
        *,
        target: SegmentKind | Literal["reply"],
        cancel: CancelToken,
        on_done: Callable[[int], None] | None = None,
    ) -> list[Likelihood]:
        """See :class:`mdqa.backends.base.ScoringBackend`; what follows the target is not sent."""
        if self._encoder is None:
            raise CapabilityError(f"the server {self.served.url} gives no likelihoods of prompts")
        calls = []
        for index, prompt in enumerate(prompts):
            layout = self._layout(self._encoder, prompt, reserved=1)
            done = None if on_done is None else partial(on_done, index)
            calls.append(partial(self._read, layout.ids, layout.target(target), done))
        return self._send(calls, cancel)

    def render(self, prompt: Prompt) -> str:
        """The prompt as the model sees it; where the server puts its template around the turns, the turns."""
        if self._encoder is not None:
            return self._encoder.render(prompt)
        return "\n\n".join(f"[{turn['role']}]\n{turn['content']}" for turn in self._messages(prompt))

    def count_tokens(self, text: str) -> int:
        """Tokens of a plain text; without a tokenizer an estimate, a token for every four bytes of UTF-8."""
        if self._encoder is not None:
            return len(self._encoder.tokenizer(self._encoder.disarm(text), add_special_tokens=False)["input_ids"])
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

    def take_notices(self) -> list[str]:
        """What the server was not told because it refuses that, and replies that ended before their answer began."""
        empty, self._without_answer = self._without_answer, 0
        notices = self._refusals.notices(self.served.url)
        if empty:
            notices.append(
                f"{empty} of the replies came to the end of their length without a word of an answer. A model that "
                "thinks first needs more tokens, or a server that switches its thinking off."
            )
        return notices

    def close(self) -> None:
        """Nothing to free: the server is somebody else's."""

    def _move(self, served: Served) -> None:
        """Go on with the same model at another address."""
        self.served, self._calls = served, self._make_calls(served.url, self._key)

    def _layout(self, encoder: PromptEncoder, prompt: Prompt, reserved: int) -> Layout:
        layout = encoder.encode(prompt)
        if len(layout.ids) + reserved > self.window:
            raise PromptTooLong(len(layout.ids), self.window, reserved=reserved, role=prompt.template or "prompt")
        return layout

    def _messages(self, prompt: Prompt) -> list[dict[str, str]]:
        turns = [
            {"role": turn.role, "content": "".join(s.text for s in self._disarmer.segments(turn))}
            for turn in prompt.turns
        ]
        if prompt.reply:
            turns.append({"role": "assistant", "content": self._disarmer.text(prompt.reply)})
        return turns

    def _body(self, request: GenerationRequest) -> dict[str, Any]:
        """What is sent for a reply, in the form of the endpoint that is used."""
        more: dict[str, Any] = dict(PLAIN) if self.served.vllm else {}
        body: dict[str, Any] = {
            "model": self.served.model,
            "max_tokens": request.max_new_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.schema is not None and self.served.vllm:
            # small models fill a reply with line breaks where they may
            more["structured_outputs"] = {"json": dict(request.schema), "disable_any_whitespace": True}
        if request.stop:
            body["stop"] = list(request.stop)
        if self._encoder is not None:
            body["prompt"] = list(self._layout(self._encoder, request.prompt, request.max_new_tokens).ids)
        else:
            body["messages"] = self._messages(request.prompt)
            if request.schema is not None and not self.served.vllm:
                schema = {"name": "reply", "schema": dict(request.schema)}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            if request.prompt.reply and not self.served.vllm:
                raise CapabilityError(
                    f"the server {self.served.url} cannot go on with a begun reply, which this method needs; use vLLM"
                )
            if self.served.vllm:
                more["chat_template_kwargs"] = {"enable_thinking": False}  # as everywhere else here
            if request.prompt.reply:
                more |= {"continue_final_message": True, "add_generation_prompt": False}
        return body | {"extra_body": more}

    async def _write(
        self,
        request: GenerationRequest,
        body: Mapping[str, Any],
        screen: Screen | None,
        on_done: Callable[[], None] | None,
        client: AsyncOpenAI,
    ) -> Generation:
        """One reply as it comes."""
        began, reply, stream = time.perf_counter(), Reply(), await self._open(body, client)
        try:
            async with stream:
                async for piece in stream:
                    reply.take(piece)
                    if screen is not None:
                        screen.show(reply.text)
        except APITimeoutError:
            raise
        except APIConnectionError as problem:
            raise Broken from problem
        except NO_TEXT:
            raise Unreadable from None
        if not reply.finish and "event-stream" not in stream.response.headers.get("content-type", "event-stream"):
            raise Unreadable
        if reply.unfinished:
            raise Broken
        if reply.finish == "content_filter":
            raise ModelError(f"the server {self.served.url} withholds a reply (content filter)")
        if on_done is not None:
            on_done()
        cut = reply.finish == "length"
        self._without_answer += cut and not reply.text.strip()
        cost = self._cost(reply.usage, request.prompt, reply.text, time.perf_counter() - began)
        return Generation(text=reply.text, finish_reason="length" if cut else "stop", cost=cost, seed=request.seed)

    async def _open(self, body: Mapping[str, Any], client: AsyncOpenAI) -> Any:
        """The stream of a reply. What the server refuses to be told is not said again."""
        make: Any = client.completions.create if self._encoder is not None else client.chat.completions.create
        while True:
            fitting = self._refusals.fit(body)
            try:
                return await make(**fitting)
            except (BadRequestError, UnprocessableEntityError) as refusal:
                if not self._refusals.learn(refusal.response.text, fitting):
                    raise

    async def _read(
        self, ids: Sequence[int], span: Span, on_done: Callable[[], None] | None, client: AsyncOpenAI
    ) -> Likelihood:
        """The log-probabilities of the tokens of ``span``, each given all before."""
        began = time.perf_counter()
        try:
            reply = await client.completions.create(
                model=self.served.model,
                prompt=list(ids[: span.last]),
                max_tokens=1,
                temperature=0.0,
                extra_body={**PLAIN, "prompt_logprobs": 0},
            )
            table: Any = (reply.choices[0].model_extra or {}).get("prompt_logprobs")
            values = [float(table[place][str(ids[place])]["logprob"]) for place in range(span.first, span.last)]
        except (AttributeError, KeyError, IndexError, TypeError, ValueError):  # of JSON as well
            values = [math.nan]
        if not all(map(math.isfinite, values)):
            raise ModelError(f"the server {self.served.url} sends no log-probabilities of the prompt")
        if on_done is not None:
            on_done()
        seconds = time.perf_counter() - began
        cost = self._cost(reply.usage, None, "", seconds).model_copy(update={"completion_tokens": 0})
        return Likelihood(sum(values), len(values), cost)

    def _cost(self, usage: Any, prompt: Prompt | None, text: str, seconds: float) -> Cost:
        """What the server counted; where it counts nothing, our own count."""
        sent, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
        if sent is None or written is None:
            sent = self.count_tokens(self.render(prompt)) if prompt is not None else 0
            written = self.count_tokens(text)
        cached = min(_count(getattr(usage, "prompt_tokens_details", None), "cached_tokens") or 0, sent)
        return Cost(
            llm_calls=1,
            prompt_tokens=sent,
            completion_tokens=written,
            cached_tokens=cached,
            prefill_tokens_computed=sent - cached,
            seconds=seconds,
        )

    def _send(self, calls: Sequence[Call[T]], cancel: CancelToken) -> list[T]:
        try:
            return self._calls.run(calls, cancel)
        except Broken:
            raise self._problem("breaks replies off; has it run out of memory, or been stopped?") from None
        except APITimeoutError:
            raise self._problem("did not reply in time; it may be busy with others") from None
        except APIConnectionError as error:
            raise self._problem(
                f"cannot be reached any more: {said(str(error.__cause__ or error), self._key)}"
            ) from None
        except (AuthenticationError, PermissionDeniedError):
            raise self._problem(key_problem(self._key)) from None
        except APIStatusError as error:
            words = _words(error.body) or error.response.text or error.response.headers.get("Location", "nothing more")
            raise self._problem(f"replies {error.status_code}: {said(words, self._key)}") from None
        except APIError as error:  # an error that comes in the middle of a stream
            raise self._problem(f"reports: {said(_words(error.body) or error.message, self._key)}") from None
        except Unreadable:
            raise self._problem(UNREADABLE) from None

    def _problem(self, what: str) -> ModelError:
        return ModelError(f"the server {self.served.url} (model {self.served.model!r}) {what}")


def _words(body: object) -> str:
    """What an error says of itself, as far as it is in the usual form."""
    message = body.get("message") if isinstance(body, dict) else body
    return message if isinstance(message, str) else ""


def _count(holder: Any, name: str) -> int | None:
    """A number of tokens as the server counted it; None where it did not."""
    value = getattr(holder, name, None)
    return value if type(value) is int and value >= 0 else None
