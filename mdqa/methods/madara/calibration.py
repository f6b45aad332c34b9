"""Making MADARA's profile: the RSC probe and No-Filter accuracy on one calibration set (sections 3, 4.5, 5.5).

The probe needs no gold answers; No-Filter accuracy does and stays unknown without them. The calls go out in batches:
No-Filter, the normal scores with reasoning, then for every document its forced re-scoring at all levels side by side,
so that a backend can share the question and document between levels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import Any, Literal

from pydantic import Field

from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.asking import Reply, ask
from mdqa.methods.base import MethodConfig, Tools
from mdqa.methods.madara import agents, probe
from mdqa.methods.madara.agents import Decoding, derived_seed
from mdqa.methods.madara.parsing import Grade, answer_text, parse_grade
from mdqa.methods.madara.probe import LEVELS, Pair
from mdqa.methods.recorder import Recorder
from mdqa.prompting import Prompt, Segment, document_segments, load_template, question_segment
from mdqa.records import Document, DocumentScore, Profile, Question
from mdqa.scoring.answers import exact_match, exact_match_strict
from mdqa.trace import BaseEvent
from mdqa.trace import Progress as ProgressEvent

Progress = Callable[[int, int, str], None]

NO_REASONING = "- (no reasoning was given)"
BATCH = 64
"""Requests handed to the backend at once: enough to fill its own batches, and a stop waits for no more."""


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


def calibrate(
    questions: Sequence[Question],
    tools: Tools,
    *,
    name: str,
    seed: int = 42,
    cancel: CancelToken | None = None,
    progress: Progress = lambda done, total, text: None,
    data: str = "",
    **options: Any,
) -> Profile:
    """Run the probe and the No-Filter baseline and put what the router needs into a profile.

    Args:
        questions: the calibration set; its gold answers are used for No-Filter accuracy only.
        tools: the backend to calibrate.
        name: the profile's name.
        seed: for drawing questions and documents, shuffles, donors, sampling and the bootstrap.
        cancel: stops the work; Cancelled is raised.
        progress: called with calls done, calls in all, and what is being done.
        data: what to call the calibration set; by default the questions' ``meta["dataset"]``.
        options: fields of :class:`CalibrationConfig`.

    Raises:
        InputError: fewer than two questions with documents (random reasoning has to come from another question).
    """
    config = CalibrationConfig.parse(options)
    chosen = _draw(questions, config, seed)
    answered = [item for item in chosen if item.answers] if config.measure_nf else []
    meter = _Meter(progress, _calls(chosen, config))
    run = Recorder(tools, sink=meter.take, cancel=cancel or CancelToken(), seed=seed)
    accuracy = _no_filter(answered, run, config, meter) if answered else None  # first: too long a prompt shows early
    probed = _normal_scores(chosen, run, config, meter)
    rescored, unchanged = _forced_scores(probed, run, config, meter)
    values = probe.summarise(rescored, samples=config.bootstrap, seed=seed)
    values.update(
        nf=accuracy,
        pairs=[_row(pair) for pair in rescored],
        unchanged_shuffles=unchanged,
        parse_failures=_failures(rescored, control=config.control),
        options=config.model_dump(mode="json"),
        cost=run.cost.model_copy(update={"seconds": run.elapsed}).model_dump(mode="json"),
    )
    if not config.control:
        values["control"] = None
    return Profile(
        name=name,
        method="madara",
        model=tools.backend.model,
        data=data or ", ".join(sorted({str(q.meta["dataset"]) for q in chosen if q.meta.get("dataset")})) or "unnamed",
        n=len(chosen),
        seed=seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        values=values,
        note=_note(values, len(chosen)),
    )


def planned(questions: Sequence[Question], *, seed: int = 42, **options: Any) -> tuple[int, int]:
    """How many of the questions :func:`calibrate` would use and its model calls at most; InputError if too few."""
    config = CalibrationConfig.parse(options)
    chosen = _draw(questions, config, seed)
    return len(chosen), _calls(chosen, config)


def _calls(chosen: Sequence[Question], config: CalibrationConfig) -> int:
    pairs = sum(min(len(item.documents), config.max_documents_per_question) for item in chosen)
    return pairs * (len(LEVELS) + config.control) + sum(bool(item.answers) for item in chosen if config.measure_nf)


def _draw(questions: Sequence[Question], config: CalibrationConfig, seed: int) -> list[Question]:
    """Up to ``max_questions`` of the questions that have documents, drawn by the seed, in their given order."""
    usable = [item for item in questions if item.documents and item.question.strip()]
    if len(usable) < 2:
        raise InputError(
            "the probe exchanges reasoning between questions, so it needs at least two with documents; "
            f"got {len(usable)}",
            place="calibration set",
        )
    if len(usable) <= config.max_questions:
        return usable
    indices = sorted(random.Random(seed).sample(range(len(usable)), config.max_questions))
    return [usable[index] for index in indices]


def _probed_documents(item: Question, config: CalibrationConfig, seed: int) -> list[Document]:
    limit = config.max_documents_per_question
    if len(item.documents) <= limit:
        return list(item.documents)
    indices = random.Random(f"{seed}:{item.id}").sample(range(len(item.documents)), limit)
    return [item.documents[index] for index in sorted(indices)]


def _normal_scores(chosen: Sequence[Question], run: Recorder, config: CalibrationConfig, meter: _Meter) -> list[Probed]:
    """Step 1: the Relevance Agent with reasoning on every query and document."""
    meter.begin("grading documents with reasoning")
    decoding = Decoding(config.temperature, config.top_p, config.cot_max_tokens, config.generator_max_tokens)
    subjects = [(item, document) for item in chosen for document in _probed_documents(item, config, run.seed)]
    requests = [
        agents.agent_request(
            run,
            "relevance",
            agents.relevance_prompt(item.question, document, cot=True),
            decoding,
            derived_seed(run.seed, "probe", item.id, document.id),
            cot=True,
        )
        for item, document in subjects
    ]
    replies: list[Reply[Grade]] = []
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        replies += ask(run, "relevance", batch, parse_grade)
        meter.add(len(batch))
    return [Probed(item, document, reply) for (item, document), reply in zip(subjects, replies, strict=True)]


def _forced_scores(
    probed: Sequence[Probed], run: Recorder, config: CalibrationConfig, meter: _Meter
) -> tuple[list[Pair], float]:
    """Steps 2 to 4: every pair scored again by perturbed reasoning; and the share of shuffles that changed nothing.

    Pairs without a normal score are not re-scored: no correlation can use them.
    """
    meter.begin("grading again by perturbed reasoning")
    levels = range(len(LEVELS)) if config.control else range(1, len(LEVELS))
    gifts = probe.donors([p.item.id for p in probed], [p.chain for p in probed], run.seed)
    places: list[tuple[int, int]] = []
    requests = []
    unchanged = []
    decoding = Decoding(config.temperature, config.top_p, config.forced_max_tokens, config.generator_max_tokens)
    for index, subject in enumerate(probed):
        if subject.grade.value is None:
            continue
        seed = derived_seed(run.seed, "shuffle", subject.item.id, subject.document.id)
        donor = gifts[index]
        chains = (
            subject.chain,
            probe.shuffle(subject.chain, seed),
            probe.contradict_chain(subject.chain),
            probed[donor].chain if donor is not None else None,
        )
        unchanged.append(chains[1] == chains[0])
        for level in levels:
            chain = chains[level]
            if chain is None:
                continue
            prompt = forced_prompt(subject.item.question, subject.document, chain, config.document_characters)
            request_seed = derived_seed(run.seed, LEVELS[level], subject.item.id, subject.document.id)
            places.append((index, level))
            requests.append(agents.agent_request(run, "forced", prompt, decoding, request_seed))
    meter.shrink(len(probed) * len(levels) - len(requests))
    scores: dict[tuple[int, int], DocumentScore] = {}
    for start in range(0, len(requests), BATCH):
        batch = requests[start : start + BATCH]
        replies = agents.grades(ask(run, "forced", batch, parse_grade))
        scores.update(zip(places[start : start + BATCH], replies, strict=True))
        meter.add(len(batch))
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


def forced_prompt(question: str, document: Document, chain: Sequence[str], characters: int) -> Prompt:
    """Forced re-scoring: question and document first (shared by all levels), the steps as bullets last."""
    steps = "\n".join(f"- {step}" for step in chain) if chain else NO_REASONING
    return load_template(agents.PACKAGE, "forced").fill(
        question=question_segment(question),
        document=document_segments([document.model_copy(update={"text": document.text[:characters]})]),
        steps=Segment(steps),
    )


def _no_filter(answered: Sequence[Question], run: Recorder, config: CalibrationConfig, meter: _Meter) -> dict[str, Any]:
    """No-Filter on the questions with gold answers: shares that match one of them exactly.

    ``em_squad`` (the router's measure) after SQuAD normalisation, as the released code scores; ``em_strict`` after
    lower-casing and joining white space only, as section 5.4 words it.
    """
    meter.begin("answering from all documents (No-Filter)")
    decoding = Decoding(config.temperature, config.top_p, config.generator_max_tokens, config.generator_max_tokens)
    squad, strict = [], []
    for start in range(0, len(answered), BATCH):
        batch = answered[start : start + BATCH]
        tasks = [agents.task_of(item) if config.task == "auto" else config.task for item in batch]
        requests = [
            agents.generator_request(item, item.documents, task, decoding, derived_seed(run.seed, "generator", item.id))
            for item, task in zip(batch, tasks, strict=True)
        ]
        for item, task, reply in zip(batch, tasks, run.generate("generator", requests), strict=True):
            answer = answer_text(reply.text, task)
            squad.append(exact_match(answer, item.answers))
            strict.append(exact_match_strict(answer, item.answers))
        meter.add(len(batch))
    return {"em_squad": fmean(squad), "em_strict": fmean(strict), "n": len(answered)}


def _row(pair: Pair) -> list[Any]:
    """[query, document, normal, control, shuffled, contradicted, random]; None where there is no score."""
    return [pair.query, pair.document, pair.normal.value, *(score.value for score in pair.levels)]


def _failures(pairs: Sequence[Pair], *, control: bool) -> dict[str, float]:
    """Share of replies that could not be read, after the retry: normal over all pairs, levels over those re-scored."""
    rates = {"normal": fmean(pair.normal.value is None for pair in pairs)}
    asked = [pair for pair in pairs if pair.normal.value is not None]
    for level, name in enumerate(LEVELS):
        if level or control:
            rates[name] = fmean(pair.levels[level].value is None for pair in asked) if asked else 0.0
    return rates


def _versions() -> dict[str, str]:
    found = {}
    for package in ("torch", "transformers"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _note(values: dict[str, Any], questions: int) -> str:
    notes = []
    if values["nf"] is None:
        notes.append("No-Filter accuracy unknown: no gold answers.")
    if values["degenerate"]:
        notes.append(
            f"Degenerate scoring: {values['commonest_share']:.0%} of the scores are {values['commonest_score']}."
        )
    if values["parse_failures"]["normal"] > 0.1:
        notes.append(f"{values['parse_failures']['normal']:.0%} of the reasoned grades could not be read.")
    if questions < 100:
        notes.append(f"{questions} questions; the paper uses 100, and fewer make borderline classes unstable.")
    return " ".join(notes)


class _Meter:
    """Turns the recorder's progress events into calls done of all; retries move nothing, so it never runs over."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._done, self._shown, self._text = 0, 0, ""

    def begin(self, text: str) -> None:
        self._text = text
        self._progress(self._done, self._total, text)

    def add(self, calls: int) -> None:
        self._done += calls
        self._shown = self._done
        self._progress(self._done, self._total, self._text)

    def shrink(self, calls: int) -> None:
        """So many of the announced calls are not needed."""
        self._total -= calls

    def take(self, event: BaseEvent) -> None:
        if isinstance(event, ProgressEvent) and self._done + event.done > self._shown:
            self._shown = self._done + event.done
            self._progress(min(self._shown, self._total), self._total, self._text)
