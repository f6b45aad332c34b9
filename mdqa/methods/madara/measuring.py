"""The model calls of MADARA's calibration: No-Filter, grades with reasoning, and the forced ones (sections 3, 5.5).

The calls go out in batches of what a backend runs at once, because a finished batch is what a stopped calibration
keeps: on a processor all levels of one document side by side, which share its question and text, and more on a GPU.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, TypeVar

from pydantic import Field

from mdqa.backends.base import Backend, GenerationRequest
from mdqa.errors import InputError
from mdqa.methods.asking import Reply, ask
from mdqa.methods.base import MethodConfig
from mdqa.methods.madara import agents, probe
from mdqa.methods.madara.agents import Decoding, derived_seed
from mdqa.methods.madara.parsing import Grade, parse_grade
from mdqa.methods.madara.probe import LEVELS, Pair
from mdqa.methods.recorder import Recorder
from mdqa.methods.tasks import Task, answer_text, task_of
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Question
from mdqa.scoring.answers import exact_match, exact_match_strict
from mdqa.trace import BaseEvent
from mdqa.trace import Progress as ProgressEvent

T = TypeVar("T")
Progress = Callable[[int, int, str], None]

NO_REASONING = "- (no reasoning was given)"

BATCH, BATCH_ON_GPU = 8, 64
"""Requests handed to the backend at once: about as many as it runs together; a stop loses no more than these.

Of the forced ones, which share a document, all of one document are handed over, and eight times as many on a GPU.
"""


class CalibrationConfig(MethodConfig):
    """Options of the calibration; the paper's values unless the description says otherwise."""

    max_questions: int = Field(100, ge=2, le=100_000, description="Questions, drawn by the seed where there are more")
    max_documents_per_question: int = Field(
        10, ge=1, le=200, description="Documents per question in the probe, drawn by the seed; No-Filter reads all"
    )
    control: bool = Field(
        True, description="Also re-score with the unperturbed reasoning (level 0, not in the paper, not in rho*)"
    )
    measure_nf: bool = Field(True, description="Measure No-Filter accuracy where gold answers are there")
    measure_relevance: bool = Field(
        True,
        description="Fit what similarity and likelihood say of a document being evidence, where evidence is marked "
        "(for pde_votes calibrated; not in the paper)",
    )
    task: Literal["auto", "factoid", "fever"] = Field("auto", description="Generator prompt of No-Filter")
    document_characters: int = Field(
        2000, ge=100, le=100_000, description="Characters of a document that forced re-scoring is shown"
    )
    temperature: float = Field(0.6, ge=0, le=2, description="Sampling temperature of all calls; 0 is greedy")
    top_p: float = Field(1.0, gt=0, le=1, description="Nucleus sampling; the paper does not state it")
    cot_max_tokens: int = Field(256, ge=32, le=4096, description="Longest reply with reasoning; the paper allows 512")
    forced_max_tokens: int = Field(
        48, ge=16, le=4096, description="Longest forced re-scoring reply (two numbers); the released code allows 256"
    )
    generator_max_tokens: int = Field(64, ge=1, le=4096, description="Longest answer in tokens")
    bootstrap: int = Field(1000, ge=0, le=100_000, description="Resamples of queries for the intervals; 0 for none")

    def decoding(self, agent_tokens: int) -> Decoding:
        """How replies are written; an agent's with at most so many tokens."""
        return Decoding(self.temperature, self.top_p, agent_tokens, self.generator_max_tokens)


@dataclass(frozen=True)
class Probed:
    """A query and document of the probe with its normal grade."""

    item: Question
    document: Document
    grade: Reply[Grade]

    @property
    def chain(self) -> tuple[str, ...]:
        """The reasoning's sentences; empty if there are none or the reply could not be read."""
        return self.grade.value.chain if self.grade.value else ()


class Meter:
    """Turns the recorder's progress events into calls done of all; retries move nothing, so it never runs over."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._done, self._shown, self._text = 0, 0, ""

    def begin(self, text: str) -> None:
        """What the next calls are for."""
        self._text = text
        self._progress(self._done, self._total, text)

    def add(self, calls: int) -> None:
        """So many calls are finished and will not be repeated."""
        self._done += calls
        self._shown = self._done
        self._progress(self._done, self._total, self._text)

    def shrink(self, calls: int) -> None:
        """So many of the announced calls are not needed."""
        self._total -= calls

    def take(self, event: BaseEvent) -> None:
        """An event of the run; its progress within a batch is shown."""
        if isinstance(event, ProgressEvent) and self._done + event.done > self._shown:
            self._shown = self._done + event.done
            self._progress(min(self._shown, self._total), self._total, self._text)


@dataclass(frozen=True)
class Measuring:
    """The calls of one calibration."""

    run: Recorder
    config: CalibrationConfig
    meter: Meter
    batch: int

    def check_lengths(self, answered: Sequence[Question]) -> None:
        """InputError, before any work, if a question with all its documents does not fit into the model's window."""
        backend = self.run.tools.backend
        for item, request, _ in self._generator_requests(answered):
            tokens = backend.count_tokens(backend.render(request.prompt)) + request.max_new_tokens
            if tokens > backend.window:
                raise InputError(
                    f"No-Filter reads all documents at once: {tokens:,} tokens with the reply, but the model's window "
                    f"holds {backend.window:,}; give this question fewer documents, leave it out, or set "
                    "measure_nf=false",
                    place=f"question {item.id!r}",
                )

    def no_filter(self, answered: Sequence[Question]) -> list[tuple[float, float]]:
        """No-Filter on the questions with gold answers: whether each answer matches one of them exactly, 0 or 1.

        First after SQuAD normalisation (the router's measure), as the released code scores; then after lower-casing
        and joining white space only, as section 5.4 words it.
        """
        self.meter.begin("answering from all documents (No-Filter)")
        scores = []
        for batch in _batches(list(self._generator_requests(answered)), self.batch):
            replies = self.run.generate("generator", [request for _, request, _ in batch])
            for (item, _, task), reply in zip(batch, replies, strict=True):
                answer = answer_text(reply.text, task)
                scores.append((exact_match(answer, item.answers), exact_match_strict(answer, item.answers)))
            self.meter.add(len(batch))
        return scores

    def normal_grades(self, chosen: Sequence[Question]) -> list[Probed]:
        """Step 1: the Relevance Agent with reasoning on every query and document."""
        self.meter.begin("grading documents with reasoning")
        run, config = self.run, self.config
        subjects = [(item, document) for item in chosen for document in probed_documents(item, config, run.seed)]
        requests = [
            agents.agent_request(
                run,
                "relevance",
                agents.relevance_prompt(item.question, document, cot=True),
                config.decoding(config.cot_max_tokens),
                derived_seed(run.seed, "probe", item.id, document.id),
                cot=True,
            )
            for item, document in subjects
        ]
        replies: list[Reply[Grade]] = []
        for batch in _batches(requests, self.batch):
            replies += ask(run, "relevance", batch, parse_grade)
            self.meter.add(len(batch))
        return [Probed(item, document, reply) for (item, document), reply in zip(subjects, replies, strict=True)]

    def forced_grades(self, probed: Sequence[Probed]) -> tuple[list[Pair], float]:
        """Steps 2 to 4: every pair graded again by perturbed reasoning; and the share of shuffles that changed nothing.

        Pairs without a normal grade are not asked about again: no correlation can use them.
        """
        self.meter.begin("grading again by perturbed reasoning")
        levels = range(len(LEVELS)) if self.config.control else range(1, len(LEVELS))
        gifts = probe.donors([p.item.id for p in probed], [p.chain for p in probed], self.run.seed)
        asked: list[list[tuple[tuple[int, int], GenerationRequest]]] = []
        unchanged = []
        for index, subject in enumerate(probed):
            if subject.grade.value is None:
                continue
            donor = gifts[index]
            chains = self._chains(subject, None if donor is None else probed[donor].chain)
            unchanged.append(chains[1] == chains[0])
            given = [(level, chain) for level in levels if (chain := chains[level]) is not None]
            asked.append([((index, level), self._forced(subject, level, chain)) for level, chain in given])
        self.meter.shrink(len(probed) * len(levels) - sum(map(len, asked)))
        scores: dict[tuple[int, int], DocumentScore] = {}
        for together in _batches(asked, max(self.batch // BATCH, 1)):
            batch = [pair for document in together for pair in document]
            replies = agents.grades(ask(self.run, "forced", [request for _, request in batch], parse_grade))
            scores.update(zip((place for place, _ in batch), replies, strict=True))
            self.meter.add(len(batch))
        missing = DocumentScore(status="unavailable", detail="not asked for")
        pairs = [
            Pair(
                subject.item.id,
                subject.document.id,
                subject.grade.score(lambda grade: grade.score),
                tuple(scores.get((index, level), missing) for level in range(len(LEVELS))),
            )
            for index, subject in enumerate(probed)
        ]
        return pairs, fmean(unchanged) if unchanged else 0.0

    def _chains(self, subject: Probed, donated: tuple[str, ...] | None) -> list[tuple[str, ...] | None]:
        """The reasoning of every level; None where no other query has any to give."""
        seed = derived_seed(self.run.seed, "shuffle", subject.item.id, subject.document.id)
        chain = subject.chain
        return [chain, probe.shuffle(chain, seed), probe.contradict_chain(chain), donated]

    def _forced(self, subject: Probed, level: int, chain: Sequence[str]) -> GenerationRequest:
        prompt = forced_prompt(subject.item.question, subject.document, chain, self.config.document_characters)
        seed = derived_seed(self.run.seed, LEVELS[level], subject.item.id, subject.document.id)
        decoding = self.config.decoding(self.config.forced_max_tokens)
        return agents.agent_request(self.run, "forced", prompt, decoding, seed)

    def _generator_requests(self, items: Sequence[Question]) -> Iterator[tuple[Question, GenerationRequest, Task]]:
        decoding = self.config.decoding(self.config.generator_max_tokens)
        for item in items:
            task = task_of(item) if self.config.task == "auto" else self.config.task
            seed = derived_seed(self.run.seed, "generator", item.id)
            yield item, agents.generator_request(item, item.documents, task, decoding, seed), task


def batch_size(backend: Backend) -> int:
    """How many requests to hand over at once to a backend (or to the one that it wraps)."""
    device = getattr(getattr(backend, "inner", backend), "device", "cpu")
    return BATCH_ON_GPU if str(device).startswith("cuda") else BATCH


def probed_documents(item: Question, config: CalibrationConfig, seed: int) -> list[Document]:
    """The documents of a question that are probed, in their order; drawn by the seed where there are more."""
    limit = config.max_documents_per_question
    if len(item.documents) <= limit:
        return list(item.documents)
    indices = random.Random(f"{seed}:{item.id}").sample(range(len(item.documents)), limit)
    return [item.documents[index] for index in sorted(indices)]


def forced_prompt(question: str, document: Document, chain: Sequence[str], characters: int) -> Prompt:
    """Forced re-scoring: question and document first (shared by all levels), the steps as bullets last."""
    steps = "\n".join(f"- {step}" for step in chain) if chain else NO_REASONING
    return load_template(agents.PACKAGE, "forced").fill(
        question=question_segment(question),
        document=document_segments([document.model_copy(update={"text": document.text[:characters]})]),
        steps=Segment(steps),
    )


def accuracy(
    matches: Sequence[tuple[float, float]], verdicts: Mapping[str, bool], questions: Sequence[Question]
) -> dict[str, Any] | None:
    """No-Filter accuracy for the profile: ``em_squad`` (the router's), ``em_strict``, ``n``; None without any answer.

    Args:
        matches: of the questions with gold answers, from :meth:`Measuring.no_filter`.
        verdicts: question id -> whether people found the No-Filter answer right. They count for the questions without
            gold answers, the same in both measures, and ``labels`` says how many there are.
        questions: the calibration set.
    """
    judged = [float(verdicts[item.id]) for item in questions if not item.answers and item.id in verdicts]
    squad = [*(pair[0] for pair in matches), *judged]
    if not squad:
        return None
    found = {"em_squad": fmean(squad), "em_strict": fmean([*(pair[1] for pair in matches), *judged]), "n": len(squad)}
    return {**found, "labels": len(judged)} if judged else found


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
