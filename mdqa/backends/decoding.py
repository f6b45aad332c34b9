"""Writing replies token by token: batched, streamed, seeded, stoppable between tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from mdqa.attention.capture import Probe, RowBias
from mdqa.backends.base import GenerationRequest, TextCallback
from mdqa.backends.forward import Engine, cost_of
from mdqa.backends.gathering import Part
from mdqa.backends.prefix import Prefix
from mdqa.backends.sampling import GrammarCompiler, Sampler
from mdqa.cancellation import CancelToken
from mdqa.errors import OutOfMemory
from mdqa.records import Generation


@dataclass
class Job:
    """A request on its way to a reply. ``reusable``: at most so many tokens may come from a prefix."""

    index: int
    request: GenerationRequest
    ids: tuple[int, ...]
    steering: RowBias | None = None
    reusable: int | None = None
    tokens: list[int] = field(default_factory=list)
    shown: str = ""
    text: str = ""
    finish: Any = ""

    def afresh(self, index: int) -> Job:
        """The same request at another place, with nothing written; what was shown of it stays shown."""
        return Job(index, self.request, self.ids, self.steering, self.reusable, shown=self.shown)


class Batch(Protocol):
    """Rows that are written together. ``first``: logits (B, V) of their first tokens; ``cached``: see ``Started``."""

    first: Tensor
    cached: dict[int, int]

    @property
    def order(self) -> list[int]:
        """Indices of the jobs, row by row."""
        ...

    def drop(self, gone: Sequence[int]) -> None:
        """Let the rows of finished jobs go; the others may change places."""
        ...

    def decode(self, tokens: Sequence[int]) -> Tensor:
        """Append a token to each row, in their order; logits (B, V) of the next."""
        ...


class SharedBatch:
    """Rows in groups that begin alike (``mdqa.attention.rows``)."""

    def __init__(
        self,
        engine: Engine,
        ids: Sequence[Sequence[int]],
        parts: Sequence[Part],
        beginnings: dict[int, Prefix],
        prefix: Prefix | None,
        cancel: CancelToken,
    ) -> None:
        started = engine.begin(ids, parts, beginnings, prefix=prefix, check=cancel.check)
        self._engine, self._rows, self.cached = engine, started.rows, started.cached
        self.first = torch.stack([started.logits[i] for i in self.order])

    @property
    def order(self) -> list[int]:
        """See :class:`Batch`."""
        return self._rows.order

    def drop(self, gone: Sequence[int]) -> None:
        """See :class:`Batch`."""
        self._rows.drop(gone)

    def decode(self, tokens: Sequence[int]) -> Tensor:
        """See :class:`Batch`."""
        return self._engine.decode(tokens, self._rows)


class PaddedBatch:
    """Rows in a cache with padding: for steering, and for models with layers that nothing can be shared in."""

    def __init__(self, engine: Engine, jobs: Sequence[Job], prefix: Prefix | None) -> None:
        bias = jobs[0].steering
        self._engine, self._probe = engine, None if bias is None else Probe(steering=bias)
        self.order = [job.index for job in jobs]
        self._step = engine.prefill(
            [job.ids for job in jobs], prefix=prefix, reusable=jobs[0].reusable, probe=self._probe
        )
        self.cached = dict(zip(self.order, self._step.cached, strict=True))
        self.first = self._step.logits[:, -1]

    def drop(self, gone: Sequence[int]) -> None:
        """See :class:`Batch`."""
        keep = [place for place, index in enumerate(self.order) if index not in gone]
        self.order = [self.order[place] for place in keep]
        if keep and gone:
            places = torch.tensor(keep, device=self._engine.device)
            self._step.cache.batch_select_indices(places)
            self._step.attention_mask = self._step.attention_mask[places]

    def decode(self, tokens: Sequence[int]) -> Tensor:
        """See :class:`Batch`."""
        return self._engine.decode_padded(tokens, self._step, self._probe)


class Decoder:
    """Turns jobs into generations with one engine and one tokenizer."""

    def __init__(self, engine: Engine, tokenizer: Any) -> None:
        self._engine, self._tokenizer = engine, tokenizer
        self._grammars: GrammarCompiler | None = None
        stops = engine.model.generation_config.eos_token_id
        listed = stops if isinstance(stops, list) else [stops]
        self._end_tokens = {t for t in (*listed, tokenizer.eos_token_id) if t is not None}

    def run(
        self,
        jobs: Sequence[Job],
        *,
        cancel: CancelToken,
        on_text: TextCallback | None,
        on_done: Callable[[int], None] | None,
        prefix: Prefix | None,
    ) -> list[Generation]:
        """All replies in the order of the jobs, whose indices are their places.

        What the memory does not hold at once is written in smaller batches, which the engine then keeps to.
        """
        done: dict[int, Generation] = {}
        while True:
            places = [job.index for job in jobs if job.index not in done]
            left = [jobs[place].afresh(number) for number, place in enumerate(places)]
            text = None if on_text is None else partial(_at, places, on_text)

            def finish(number: int, reply: Generation, places: list[int] = places) -> None:
                done[places[number]] = reply
                if on_done is not None:
                    on_done(places[number])

            try:
                self._run(left, cancel, text, finish, prefix)
                return [done[job.index] for job in jobs]
            except OutOfMemory as problem:
                lacking = OutOfMemory(str(problem))  # the caught one holds what the failed pass held
            for job in left:
                jobs[places[job.index]].shown = job.shown
            if len(left) == 1 or not self._engine.halve():
                raise lacking

    def _run(
        self,
        jobs: Sequence[Job],
        cancel: CancelToken,
        on_text: TextCallback | None,
        finish: Callable[[int, Generation], None],
        prefix: Prefix | None,
    ) -> None:
        """Write batch after batch; ``finish`` is told each reply as it is done."""
        ids = [job.ids for job in jobs]
        plan = list(self._engine.batches(ids, [job.request.max_new_tokens for job in jobs]))
        beginnings: dict[int, Prefix] = {}
        for number, parts in enumerate(plan):
            cancel.check()
            began = time.perf_counter()
            with torch.inference_mode():
                batch: Batch
                if self._engine.windows is None or jobs[0].steering is not None:
                    batch = PaddedBatch(self._engine, [jobs[i] for part in parts for i in part.rows], prefix)
                else:
                    batch = SharedBatch(self._engine, ids, parts, beginnings, prefix, cancel)
                self._write(jobs, batch, began, cancel, on_text, finish)
            needed = {part.group for later in plan[number + 1 :] for part in later}
            beginnings = {group: begun for group, begun in beginnings.items() if group in needed}

    def _write(
        self,
        jobs: Sequence[Job],
        batch: Batch,
        began: float,
        cancel: CancelToken,
        on_text: TextCallback | None,
        finish: Callable[[int, Generation], None],
    ) -> None:
        """Replies of a batch whose prompts are computed, token by token; finished rows leave at once."""
        count = len(batch.order)
        samplers = {i: self._sampler(jobs[i].request) for i in batch.order}
        logits = batch.first
        while True:
            cancel.check()
            logits = logits.float().cpu()
            for place, i in enumerate(batch.order):
                self._advance(jobs[i], samplers[i].next_token(logits[place]), samplers[i], on_text)
                if jobs[i].finish:
                    finish(i, _generation(jobs[i], batch.cached[i], began, count))
            batch.drop([i for i in batch.order if jobs[i].finish])
            if not batch.order:
                return
            logits = batch.decode([jobs[i].tokens[-1] for i in batch.order])

    def _sampler(self, request: GenerationRequest) -> Sampler:
        grammar = None
        if request.schema is not None:
            if self._grammars is None:
                self._grammars = GrammarCompiler(self._tokenizer, self._engine.vocabulary)
            grammar = self._grammars.compile(request.schema)
        return Sampler(temperature=request.temperature, top_p=request.top_p, seed=request.seed, grammar=grammar)

    def _advance(self, job: Job, token: int, sampler: Sampler, on_text: TextCallback | None) -> None:
        """Add a token to an unfinished job; decide whether the reply ends here."""
        if token in self._end_tokens:
            job.finish = "stop"
        else:
            job.tokens.append(token)
            if sampler.grammar is not None and sampler.grammar.complete:
                job.finish = "stop"
            elif len(job.tokens) >= job.request.max_new_tokens:
                job.finish = "length"
        if job.finish or job.request.stop or on_text is not None:
            job.text = self._tokenizer.decode(job.tokens, skip_special_tokens=True)
            cut = min((job.text.find(s) for s in job.request.stop if s in job.text), default=-1)
            if cut >= 0:
                job.text, job.finish = job.text[:cut], "stop"
        # a half-written character or a piece that may yet be cut is shown with the next token
        if on_text is not None and job.text.startswith(job.shown) and (job.finish or not job.text.endswith("\ufffd")):
            if len(job.text) > len(job.shown):
                on_text(job.index, job.text[len(job.shown) :])
            job.shown = job.text


def _at(places: Sequence[int], on_text: TextCallback, number: int, text: str) -> None:
    on_text(places[number], text)


def _generation(job: Job, cached: int, began: float, batch: int) -> Generation:
    """The finished reply; a batch's time is shared out evenly among its rows."""
    seconds = (time.perf_counter() - began) / batch
    cost = cost_of(len(job.ids), cached, seconds, len(job.tokens))
    return Generation(text=job.text, finish_reason=job.finish, cost=cost, seed=job.request.seed)
