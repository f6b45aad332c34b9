"""Making MADARA's profile: the RSC probe and No-Filter accuracy on one calibration set (sections 3, 4.5, 5.5).

The probe needs no gold answers; No-Filter accuracy does, or people's verdicts on No-Filter answers, and stays unknown
without either. The calls are in ``measuring.py``; finished ones are kept in ``passes``, so that a stopped or killed
calibration goes on where it was and ends with the same profile.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean
from typing import Any

from mdqa.cancellation import CancelToken
from mdqa.errors import InputError
from mdqa.methods.base import Tools
from mdqa.methods.madara import probe, relevance
from mdqa.methods.madara.keeping import KeepingBackend
from mdqa.methods.madara.measuring import (
    CalibrationConfig,
    Measuring,
    Meter,
    Progress,
    accuracy,
    batch_size,
)
from mdqa.methods.madara.probe import LEVELS, Pair
from mdqa.methods.recorder import Recorder
from mdqa.passes import Passes
from mdqa.records import Profile, Question

__all__ = ["CalibrationConfig", "calibrate", "planned"]

MANY_FAILURES = 0.1
"""Share of unreadable grades from which the profile's note speaks of them."""


def calibrate(
    questions: Sequence[Question],
    tools: Tools,
    *,
    name: str,
    seed: int = 42,
    cancel: CancelToken | None = None,
    progress: Progress = lambda done, total, text: None,
    passes: Passes | None = None,
    verdicts: Mapping[str, bool] | None = None,
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
        passes: keeps every finished batch of calls; with the same settings they are not made again.
        verdicts: question id -> whether people found this model's No-Filter answer right. They stand in for gold
            answers where a question has none, drawn for the probe or not: they cost no calls.
        data: what to call the calibration set; by default the questions' ``meta["dataset"]``.
        options: fields of :class:`CalibrationConfig`.

    Raises:
        InputError: fewer than two questions with documents (random reasoning has to come from another question), or a
            question whose documents do not fit into the model's window together; before any work.
    """
    config = CalibrationConfig.parse(options)
    chosen = _draw(questions, config, seed)
    answered = [item for item in chosen if item.answers] if config.measure_nf else []
    backend = tools.backend
    meter = Meter(progress, _calls(chosen, config, likelihood="likelihood" in backend.capabilities))
    kept = tools if passes is None else replace(tools, backend=KeepingBackend(backend, passes))
    run = Recorder(kept, sink=meter.take, cancel=cancel or CancelToken(), seed=seed)
    measuring = Measuring(run, config, meter, batch_size(backend))
    measuring.check_lengths(answered)
    nf = accuracy(measuring.no_filter(answered) if answered else [], verdicts or {}, questions)
    pairs, unchanged = measuring.forced_grades(measuring.normal_grades(chosen))
    values = probe.summarise(pairs, samples=config.bootstrap, seed=seed)
    values.update(
        nf=nf,
        nf_source=None if nf is None else "labels" if nf.get("labels") else "gold",
        pairs=[_row(pair) for pair in pairs],
        unchanged_shuffles=unchanged,
        parse_failures=_failures(pairs, control=config.control),
        options=config.model_dump(mode="json"),
    )
    if config.measure_relevance and any(item.gold_ids for item in chosen):
        meter.begin("grading documents by similarity and likelihood")
        values["relevance"] = relevance.calibrated(chosen, run, meter.add)
    if not config.control:
        values["control"] = None
    values["cost"] = run.cost.model_dump(mode="json")
    return Profile(
        name=name,
        method="madara",
        model=backend.model,
        data=data or ", ".join(sorted({str(q.meta["dataset"]) for q in chosen if q.meta.get("dataset")})) or "unnamed",
        n=len(chosen),
        seed=seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        values=values,
        note=_note(values, len(chosen)),
    )


def planned(questions: Sequence[Question], *, seed: int = 42, **options: Any) -> tuple[int, int]:
    """How many of the questions :func:`calibrate` would use and its model calls at most; InputError if too few.

    Replies that cannot be read are asked for once more, which is not counted; kept ones of an earlier attempt are
    counted, and cost nothing.
    """
    config = CalibrationConfig.parse(options)
    chosen = _draw(questions, config, seed)
    return len(chosen), _calls(chosen, config, likelihood=True)


def _calls(chosen: Sequence[Question], config: CalibrationConfig, *, likelihood: bool) -> int:
    pairs = sum(min(len(item.documents), config.max_documents_per_question) for item in chosen)
    no_filter = sum(bool(item.answers) for item in chosen) if config.measure_nf else 0
    fitted = sum(len(item.documents) for item in chosen if item.gold_ids)
    return pairs * (len(LEVELS) + config.control) + no_filter + fitted * (likelihood and config.measure_relevance)


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


def _row(pair: Pair) -> list[Any]:
    """[query, document, normal, control, shuffled, contradicted, random]; None where there is no score."""
    return [pair.query, pair.document, pair.normal.value, *(score.value for score in pair.levels)]


def _failures(pairs: Sequence[Pair], *, control: bool) -> dict[str, float]:
    """Share of replies that could not be read, after the retry: normal over all pairs, levels over those re-scored.

    Grades that were never asked for (no other query has reasoning to give) are no failures.
    """
    rates = {"normal": fmean(pair.normal.value is None for pair in pairs)}
    for level, name in enumerate(LEVELS):
        asked = [score for pair in pairs if (score := pair.levels[level]).status != "unavailable"]
        if level or control:
            rates[name] = fmean(score.value is None for score in asked) if asked else 0.0
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
    nf, failures = values["nf"], values["parse_failures"]
    if nf is None:
        notes.append("No-Filter accuracy unknown: neither gold answers nor people's verdicts.")
    elif "labels" in nf:
        notes.append(f"No-Filter accuracy from {nf['n']} questions, {nf['labels']} of them judged by people.")
    if values["degenerate"]:
        notes.append(
            f"Degenerate scoring: {values['commonest_share']:.0%} of the scores are {values['commonest_score']}."
        )
    many = [f"{share:.0%} {name}" for name, share in failures.items() if share > MANY_FAILURES]
    if many:
        notes.append(f"Grades that could not be read: {', '.join(many)}.")
    if questions < 100:
        notes.append(f"{questions} questions; the paper uses 100, and fewer make borderline classes unstable.")
    return " ".join(notes)
