"""Reading the ledger: in which order documents ended, where each was dropped and why, how it ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.records import ASIDE, Document, DocumentScore, Question, RunResult, Stage
from mdqa.scoring.answers import says_an_answer
from mdqa.scoring.losses import own_stages

STEERED = "steered"
"""The signal that is 1 for documents that attention was steered towards."""


@dataclass(frozen=True)
class Fate:
    """What became of a document. ``last_kept`` and ``dropped`` are indices into the run's stages."""

    document: Document
    number: int
    last_kept: int | None
    dropped: int | None
    reason: str
    reached: bool


def final_stage(stages: Sequence[Stage]) -> Stage | None:
    """The stage whose kept documents reached the answer: the last one on the way that worked on documents."""
    with_documents = [stage for stage in own_stages(stages) if stage.documents]
    return with_documents[-1] if with_documents else None


def steered(run: RunResult) -> set[str]:
    """Ids of the documents that attention was steered towards; empty for methods that do not steer."""
    tables = [stage.scores[STEERED] for stage in run.stages if STEERED in stage.scores]
    return {document_id for table in tables for document_id, score in table.items() if score.value}


def fates(run: RunResult) -> list[Fate]:
    """The documents in the method's final order: those that got furthest first, in the order they were passed on."""
    last = final_stage(run.stages)
    found = [_fate(run, document, number, last) for number, document in enumerate(run.question.documents, 1)]

    def order(fate: Fate) -> tuple[int, int, int]:
        if fate.last_kept is None:
            return (1, 0, fate.number)
        return (0, -fate.last_kept, run.stages[fate.last_kept].kept.index(fate.document.id))

    return sorted(found, key=order)


def _fate(run: RunResult, document: Document, number: int, last: Stage | None) -> Fate:
    last_kept = dropped = None
    for index, stage in enumerate(run.stages):
        if stage.branch == ASIDE:
            continue
        if document.id in stage.kept:
            last_kept = index
            dropped = dropped if dropped is not None and run.stages[dropped].branch != stage.branch else None
        elif document.id in stage.documents:
            dropped = index
    reached = last is not None and document.id in last.kept
    if reached:
        dropped = None
    elif dropped is None and last is not None and last_kept is not None:
        reason = f"not passed on after {run.stages[last_kept].title}"
        return Fate(document, number, last_kept, None, reason, False)
    reason = run.stages[dropped].reasons.get(document.id, "") if dropped is not None else ""
    return Fate(document, number, last_kept, dropped, reason, reached)


def rank_of(scores: Mapping[str, DocumentScore], document_id: str) -> int | None:
    """Rank from 1 by descending value; equal values share the better rank; None without a number."""
    own = scores[document_id].value
    if own is None:
        return None
    return 1 + sum(other.value > own for other in scores.values() if other.value is not None)


def right(answer: str, question: Question) -> bool | None:
    """Whether an answer contains an expected one, as the page judges a run's; None where none is known."""
    return says_an_answer(answer, question.answers)


def duplicates(documents: Sequence[Document]) -> dict[str, int]:
    """Id of each document that repeats an earlier one (same text, white space aside), with that one's number."""
    first: dict[str, int] = {}
    repeated: dict[str, int] = {}
    for number, document in enumerate(documents, 1):
        key = " ".join(document.text.split()).casefold()
        if key in first:
            repeated[document.id] = first[key]
        else:
            first[key] = number
    return repeated


SIGNAL_WORDS: Mapping[str, str] = {
    "sim": "semantic relevance (sim)",
    "ppl": "structural inference (ppl)",
    "cont": "attention contrast (cont)",
    "sim_normalised": "sim, normalised",
    "ppl_normalised": "ppl, normalised",
    "cont_normalised": "cont, normalised",
    "SFS": "fused score (SFS)",
    "citations": "agents that cite it",
    "DocScore_written": "DocScore, as written",
    "without_local": "read without the Local Agent",
    "without_global": "read without the Global Agent",
    "without_pruning": "read without pruning",
    "aggregate": "weighted score",
    "rank_aligned": "rank-aligned score",
    "similarity": "similarity to the question",
    "likelihood": "question likelihood",
    "gamma": "sum over the heads (γ)",
    "steered": "steered towards",
    "bm25": "BM25",
    "rrf": "fused ranks (RRF)",
    "listwise": "place in the model's order",
    "dummy_attention": "attention to a dummy in its place",
    "found_in_the_middle": "calibrated attention",
    "openai": "embeddings of a server",
}
"""Words for signals whose name is short or a symbol; others are shown by their own name."""


def signal_words(name: str) -> str:
    """A signal's name for people."""
    return SIGNAL_WORDS.get(name, name.replace("_", " "))


STATUS_WORDS: Mapping[str, str] = {
    "ok": "ok",
    "parse_error": "reply could not be read",
    "out_of_range": "number outside its range",
    "truncated": "reply was cut off",
    "timeout": "took too long",
    "unavailable": "not available",
}
