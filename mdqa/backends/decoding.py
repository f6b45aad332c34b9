"""Writing replies token by token: batched, streamed, seeded, stoppable between tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from mdqa.attention.capture import Probe, RowBias
from mdqa.backends.base import GenerationRequest, TextCallback
from mdqa.backends.forward import Engine, Step
from mdqa.backends.prefix import Prefix
from mdqa.backends.sampling import GrammarCompiler, Sampler
from mdqa.cancellation import CancelToken
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
        """All replies in the order of the jobs."""
        done: dict[int, Generation] = {}
        sizes = [len(job.ids) + job.request.max_new_tokens for job in jobs]
        for batch in self._engine.batches(sizes):
            done.update(self._run_batch([jobs[i] for i in batch], cancel, on_text, on_done, prefix))
        return [done[job.index] for job in jobs]

    def _run_batch(
        self,
        jobs: list[Job],
        cancel: CancelToken,
        on_text: TextCallback | None,
        on_done: Callable[[int], None] | None,
        prefix: Prefix | None,
    ) -> dict[int, Generation]:
        cancel.check()
        began = time.perf_counter()
        samplers = [self._sampler(job.request) for job in jobs]
        probe = None if jobs[0].steering is None else Probe(steering=jobs[0].steering)
        done: dict[int, Generation] = {}
        with torch.inference_mode():
            step = self._engine.prefill([j.ids for j in jobs], prefix=prefix, reusable=jobs[0].reusable, probe=probe)
            logits = step.logits[:, -1]
            rows = list(range(len(jobs)))  # which job each row of the batch belongs to
            while True:
                cancel.check()
                tokens = []
                for place, row in enumerate(rows):
                    token = samplers[row].next_token(logits[place]) if not jobs[row].finish else 0
                    self._advance(jobs[row], token, samplers[row], on_text)
                    tokens.append(token)
                    if jobs[row].finish and jobs[row].index not in done:
                        done[jobs[row].index] = _generation(jobs[row], step, row, began, len(jobs))
                        if on_done is not None:
                            on_done(jobs[row].index)
                active = [place for place, row in enumerate(rows) if not jobs[row].finish]
                if not active:
                    return done
                if len(active) <= len(rows) // 2:  # finished rows are carried along until half of them are
                    keep = torch.tensor(active, device=self._engine.device)
                    step.cache.batch_select_indices(keep)
                    step.attention_mask = step.attention_mask[keep]
                    rows, tokens = [rows[p] for p in active], [tokens[p] for p in active]
                logits = self._engine.decode(torch.tensor(tokens), step, probe)

    def _sampler(self, request: GenerationRequest) -> Sampler:
        grammar = None
        if request.schema is not None:
            if self._grammars is None:
                self._grammars = GrammarCompiler(self._tokenizer, self._engine.vocabulary)
            grammar = self._grammars.compile(request.schema)
        return Sampler(temperature=request.temperature, top_p=request.top_p, seed=request.seed, grammar=grammar)

    def _advance(self, job: Job, token: int, sampler: Sampler, on_text: TextCallback | None) -> None:
        """Add a token to an unfinished job; decide whether the reply ends here."""
        if job.finish:
            return
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


def _generation(job: Job, step: Step, row: int, began: float, batch: int) -> Generation:
    """The finished reply; a batch's time is shared out evenly among its rows."""
    seconds = (time.perf_counter() - began) / batch
    cost = step.cost(row, seconds, completion=len(job.tokens))
    return Generation(text=job.text, finish_reason=job.finish, cost=cost, seed=job.request.seed)
