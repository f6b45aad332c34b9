"""Rankings of documents that ask no agent, and what their scores mean as probabilities. Ours, not the paper's.

The paper finds that a weak model's own grades add little to isolation (section 6.1), and a very small model's are
nearly noise. Two signals stand in for them: the similarity of sentence embeddings, and how likely the model finds the
question after reading the document (query likelihood; Sachan et al. 2022, "Improving Passage Retrieval with Zero-Shot
Question Generation"). A logistic fit on documents marked as evidence turns a signal into a probability, so that votes
count what their document is worth: a strong first document is not outvoted by four that are known to be weak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from mdqa.errors import ProfileError
from mdqa.methods.madara.treatments import Scores
from mdqa.methods.recorder import Recorder
from mdqa.prompting import document_segments, load_template, question_segment
from mdqa.records import DocumentScore, Profile, Question
from mdqa.retrieval.dense import DenseRanker

RANKINGS = ("similarity", "likelihood")

RIDGE = 1.0
"""Strength of the pull of the slope towards 0 (on standardised scores), which keeps a separable sample finite."""


def similarities(item: Question, run: Recorder) -> dict[str, float]:
    """Cosine similarity, -1 to 1, of the sentence embeddings of question and document."""
    values = DenseRanker(run.tools.encoder).rank(item.question, item.documents)
    return dict(zip(item.document_ids, map(float, values), strict=True))


def question_likelihoods(item: Question, run: Recorder) -> tuple[dict[str, DocumentScore], dict[str, int]]:
    """Mean log-probability per token of the question after each document alone, and the calls behind them."""
    template = load_template("mdqa.methods.madara", "likelihood")
    prompts = [
        template.fill(document=document_segments([document]), question=question_segment(item.question))
        for document in item.documents
    ]
    results = run.log_likelihood("likelihood", prompts, target="question")
    scores = {d: DocumentScore(value=found.mean) for d, (found, _) in zip(item.document_ids, results, strict=True)}
    return scores, {d: call for d, (_, call) in zip(item.document_ids, results, strict=True)}


def ranked(name: str, item: Question, run: Recorder) -> dict[str, float]:
    """The scores of one of RANKINGS, without the calls behind them."""
    if name == "similarity":
        return similarities(item, run)
    return {d: float(score.value or 0.0) for d, score in question_likelihoods(item, run)[0].items()}


@dataclass(frozen=True)
class Logistic:
    """The probability that a document is evidence: sigmoid(slope * x + intercept).

    x is the document's score less the mean of its question's documents: what one question's scores have in common
    (its length, how usual its words are) says nothing about any of them. ``documents`` and ``evidence`` say how many
    documents it was fitted on and how many of them were marked.
    """

    slope: float
    intercept: float
    documents: int
    evidence: int

    def __call__(self, x: float) -> float:
        """The probability, 0 to 1, for a centred score of any size."""
        x = self.slope * x + self.intercept
        return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))

    def probabilities(self, scores: Scores) -> dict[str, DocumentScore]:
        """The probability of every document of one question; a status stays a status."""
        values = [score.value for score in scores.values() if score.value is not None]
        mean = fmean(values) if values else 0.0
        return {
            document: score if score.value is None else DocumentScore(value=self(score.value - mean))
            for document, score in scores.items()
        }


def fit(scores: Sequence[float], evidence: Sequence[bool]) -> Logistic | None:
    """Platt scaling: maximum likelihood of marks given scores; None unless both kinds of document are there.

    The scores are standardised for the fit, so that any unit works, and the slope is held by a weak ridge.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 (seconds that most of the program need not wait for)

    x, y = np.asarray(scores, dtype=float), np.asarray(evidence, dtype=float)  # (n,) each
    if x.shape != y.shape:
        raise ValueError(f"{len(x)} scores and {len(y)} marks cannot be fitted")
    if not 0 < y.sum() < len(y):
        return None
    centre, width = float(x.mean()), float(x.std()) or 1.0
    z = (x - centre) / width

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slope, intercept = parameters
        margin = slope * z + intercept
        wrong = 1 / (1 + np.exp(-margin)) - y  # (n,)
        value = float(np.logaddexp(0, margin).sum() - (y * margin).sum()) + RIDGE * slope**2 / 2
        return value, np.array([float(wrong @ z) + RIDGE * slope, float(wrong.sum())])

    found = minimize(loss, np.zeros(2), jac=True, method="BFGS").x
    slope = float(found[0]) / width
    return Logistic(slope, float(found[1]) - slope * centre, len(y), int(y.sum()))


def calibrated(
    questions: Sequence[Question], run: Recorder, done: Callable[[int], None] = lambda calls: None
) -> dict[str, dict[str, Any]]:
    """The fits of all rankings over the questions' marked documents, for the profile's ``relevance``; {} without any.

    A ranking is left out where the program cannot give it (no sentence encoder, no likelihoods). ``done`` is told the
    model calls of every question that is finished.
    """
    marked = [item for item in questions if item.gold_ids]
    found: dict[str, dict[str, Any]] = {}
    for name in RANKINGS if marked else ():
        if name == "similarity" and run.tools.make_encoder is None:
            continue
        if name == "likelihood" and "likelihood" not in run.tools.backend.capabilities:
            continue
        scores: list[float] = []
        for item in marked:
            values = list(ranked(name, item, run).values())
            scores += [value - fmean(values) for value in values]
            done(len(values) if name == "likelihood" else 0)
        marks = [bool(document.gold) for item in marked for document in item.documents]
        logistic = fit(scores, marks)
        if logistic is not None:
            found[name] = {**vars(logistic), "questions": len(marked)}
    return found


def probability_from(profile: Profile | None, ranking: str) -> Logistic:
    """The fit of a ranking in a profile; ProfileError says what to do where there is none."""
    fits = profile.values.get("relevance") or {} if profile is not None else {}
    try:
        values = fits[ranking]
        return Logistic(**{name: values[name] for name in ("slope", "intercept", "documents", "evidence")})
    except (TypeError, KeyError):
        where = f"the profile {profile.name!r} has" if profile is not None else "there is no profile that has"
        raise ProfileError(
            f"votes by calibrated relevance need {ranking} fitted to marked documents, and {where} no such fit; "
            "calibrate MADARA on questions whose evidence is marked, or set pde_votes to full or uniform"
        ) from None
