"""How well retrieval heads find the evidence, beside rankings that know nothing of heads.

Every row ranks the documents of each question: by gamma (eq. 5) of the profile's coarse heads, by the attention of
all heads of the model, by BM25 and by sentence embeddings. ``recall`` is that of what stage 1 would pass on: the union
of the heads' top M1 (eq. 4); for the others, as many documents as that union holds. All values are per question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mdqa.attention.heads import document_shares, head_shares
from mdqa.cancellation import CancelToken
from mdqa.methods.base import Tools
from mdqa.methods.cafe.measuring import Measuring
from mdqa.methods.cafe.profile import read_heads, read_scoring
from mdqa.methods.cafe.selection import select
from mdqa.records import Head, Profile, Question
from mdqa.retrieval.base import best_first
from mdqa.retrieval.bm25 import bm25_scores
from mdqa.retrieval.dense import cosine_scores
from mdqa.scoring.evidence import gold_recall
from mdqa.scoring.ranking import first_is_gold, reciprocal_rank
from mdqa.statistics.bootstrap import mean_interval

MEASURES = ("recall", "top1", "mrr")

OWN = "retrieval heads"
"""The row of the heads that are measured."""


def head_quality(
    questions: Sequence[Question],
    heads: Sequence[Head],
    m1: int,
    measuring: Measuring,
    tools: Tools,
    *,
    before: tuple[str, Sequence[Head]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Gold recall, top-1 and mean reciprocal rank over questions with evidence marks.

    ``before``: other heads with their profile's name, measured beside these, on the same passes.
    Returns ``n``, ``kept`` (mean size of the union), ``documents`` (mean number) and ``rows``: per ranking its
    ``name`` and per measure ``{mean, low, high, n}`` with 95% bootstrap intervals over questions.
    """
    rows: dict[str, dict[str, list[float]]] = {}
    kept: list[int] = []
    named = {OWN: heads} | ({f"before: {before[0]}": before[1]} if before else {})
    for done, item in enumerate(questions, 1):
        mass = measuring.mass(item, item.document_ids)
        unions = {name: select(item.document_ids, head_shares(mass, own), own, m1) for name, own in named.items()}
        kept.append(len(unions[OWN].kept))
        rankings = {
            **{name: [union.relevance[d] for d in item.document_ids] for name, union in unions.items()},
            "all heads": document_shares(mass).sum(axis=(0, 1)).tolist(),
            "BM25": bm25_scores(item.question, item.documents),
            tools.encoder.name: cosine_scores(tools.encoder, item.question, item.documents),
        }
        for name, scores in rankings.items():
            ranking = [item.document_ids[i] for i in best_first(scores)]
            chosen = unions[name].kept if name in unions else tuple(ranking[: len(unions[OWN].kept)])
            _add(rows.setdefault(name, {measure: [] for measure in MEASURES}), item, ranking, chosen)
        progress(done, len(questions))
    return {
        "n": len(questions),
        "kept": float(np.mean(kept)),
        "documents": float(np.mean([len(item.documents) for item in questions])),
        "m1": m1,
        "heads": [list(head) for head in heads],
        "rows": [{"name": name, **_intervals(values)} for name, values in rows.items()],
    }


def measure_profile(
    profile: Profile,
    questions: Sequence[Question],
    tools: Tools,
    *,
    k1: int = 4,
    m1: int = 4,
    cancel: CancelToken | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """:func:`head_quality` of a stored profile's ``k1`` best coarse heads, scored as they were found.

    ProfileError if it belongs to another model; InputError, before any model work, for a question that is too long.
    """
    backend = tools.inspectable
    coarse, _ = read_heads(profile, backend.model, backend.layers, backend.heads)
    measuring = Measuring(backend, read_scoring(profile), cancel or CancelToken())
    for item in questions:
        measuring.check_length(item)
    return head_quality(questions, coarse.top(k1), m1, measuring, tools, progress=progress)


def _add(row: Mapping[str, list[float]], item: Question, ranking: Sequence[str], chosen: Sequence[str]) -> None:
    for measure, value in (
        ("recall", gold_recall(chosen, item.gold_ids)),
        ("top1", first_is_gold(ranking, item.gold_ids)),
        ("mrr", reciprocal_rank(ranking, item.gold_ids)),
    ):
        assert value is not None  # every question here has evidence marks
        row[measure].append(float(value))


def _intervals(values: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    found = {measure: mean_interval(numbers) for measure, numbers in values.items()}
    return {m: {"mean": i.mean, "low": i.low, "high": i.high, "n": i.n} for m, i in found.items()}


def table(quality: Mapping[str, Any]) -> str:
    """The rows of :func:`head_quality` as text with aligned columns; values in percent with their intervals."""
    lines = [
        f"{quality['n']} held-out questions; the heads' top {quality['m1']} together keep "
        f"{quality['kept']:.1f} of {quality['documents']:.1f} documents",
        f"{'':18}" + "".join(f"{measure:>20}" for measure in ("gold recall", "top-1", "MRR")),
    ]
    for row in quality["rows"]:
        cells = (f"{100 * v['mean']:.1f} ({100 * v['low']:.1f}-{100 * v['high']:.1f})" for v in map(row.get, MEASURES))
        lines.append(f"{row['name']:18}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)
