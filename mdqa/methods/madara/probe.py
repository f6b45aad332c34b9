"""The Reasoning-Score Coupling probe (section 3, Appendix F.1): perturbed reasoning and what the scores do. Pure.

The contradiction follows the paper (words swapped both ways, numbers inverted), not the released code, which swaps
one way by plain substring and so breaks words that are negative already ("inconsistent" -> "ininconsistent").
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from mdqa.methods.madara import stability
from mdqa.methods.madara.entropy import summarise_entropy
from mdqa.methods.madara.router import Rho, model_class, trend
from mdqa.records import DocumentScore

LEVELS = ("control", "shuffled", "contradicted", "random")
"""Level 0 gives the unperturbed reasoning back (our control: normal scores come from another prompt, so even this
correlation is below 1); levels 1 to 3 are the paper's."""

DEGENERATE_SHARE = 0.95

OPPOSITES = (
    ("relevant", "irrelevant"),
    ("consistent", "inconsistent"),
    ("supports", "contradicts"),
    ("accurate", "inaccurate"),
    ("reliable", "unreliable"),
    ("agrees", "disagrees"),
    ("coherent", "incoherent"),
    ("aligned", "misaligned"),
    ("confirms", "refutes"),
    ("correct", "incorrect"),
    ("valid", "invalid"),
    ("helpful", "unhelpful"),
    ("useful", "useless"),
)
"""Pairs that change places: the five of Appendix F.1 first, then those of the released code."""

_SWAP = {**dict(OPPOSITES), **{b: a for a, b in OPPOSITES}}
_CONTRADICTION = re.compile(
    r"\b(?P<word>" + "|".join(sorted(_SWAP, key=len, reverse=True)) + r")\b"
    r"|\b(?P<grade>high|low)(?=[\s-]+quality\b)"
    r"|\b(?P<before>(?:score|rating|grade)s?(?:\s+(?:of|is|as|at|was|to))?\s*[:=]?\s*)(?P<after>[0-5])(?![\w.]*\d)\b"
    r"|(?<![\w.])(?P<of>[0-5])(?=\s*(?:/\s*5\b(?!\s*/)|out\s+of\s+(?:5|five)\b))",
    re.IGNORECASE,
)


def contradict(text: str) -> str:
    """The text with positive and negative words swapped both ways and scores inverted (v becomes 5 - v).

    Whole words only, any case (the case is kept); "high quality" and "low quality", "score of 4" and "score of 1",
    "4/5" and "1/5". Applied twice it gives the text back.
    """
    return _CONTRADICTION.sub(_opposite, text)


def _opposite(match: re.Match[str]) -> str:
    if word := match["word"]:
        return _like(word, _SWAP[word.lower()])
    if grade := match["grade"]:
        return _like(grade, "low" if grade.lower() == "high" else "high")
    if match["of"]:
        return str(5 - int(match["of"]))
    return match["before"] + str(5 - int(match["after"]))


def _like(model: str, word: str) -> str:
    if model.isupper():
        return word.upper()
    return word.capitalize() if model[0].isupper() else word


def shuffle(chain: Sequence[str], seed: int | str) -> tuple[str, ...]:
    """The steps in a random order (level 1). It may be the old one; chains of one step always stay."""
    steps = list(chain)
    random.Random(seed).shuffle(steps)
    return tuple(steps)


def contradict_chain(chain: Sequence[str]) -> tuple[str, ...]:
    """Every step contradicted (level 2)."""
    return tuple(contradict(step) for step in chain)


def donors(owners: Sequence[str], chains: Sequence[Sequence[str]], seed: int) -> list[int | None]:
    """For each pair the index of the pair whose chain it is given at level 3: uniformly, of another query.

    Section 3.1 asks for a completely different query-document pair, Appendix F.1 only for a different one; another
    query satisfies both. Empty chains are not given away; None where no other query has a chain.
    """
    rng = random.Random(seed)
    usable = [index for index, chain in enumerate(chains) if chain]
    choices = {owner: [index for index in usable if owners[index] != owner] for owner in set(owners)}
    return [rng.choice(choices[owner]) if choices[owner] else None for owner in owners]


@dataclass(frozen=True)
class Pair:
    """A query and document with the normal score and the one at each level of LEVELS (a status where unreadable)."""

    query: str
    document: str
    normal: DocumentScore
    levels: tuple[DocumentScore, ...]


def table(pairs: Sequence[Pair]) -> np.ndarray:
    """The pairs' scores as (n, 1 + levels) float64: normal first, then LEVELS; NaN where there is only a status."""
    rows = [[np.nan if s.value is None else s.value for s in (pair.normal, *pair.levels)] for pair in pairs]
    return np.array(rows, dtype=float).reshape(len(pairs), 1 + len(LEVELS))


def summarise(pairs: Sequence[Pair], *, samples: int, seed: int) -> dict[str, Any]:
    """Everything a profile says about the probe, JSON-ready: correlations, trend, how stable they are, degeneracy.

    Pooled values decide (``rho``, the note of Table 13); per-query ones are reported beside them.
    """
    scores = table(pairs)
    groups = stability.by_query([pair.query for pair in pairs])
    rhos, counts = stability.correlations(scores)
    rho: Rho = (rhos[1], rhos[2], rhos[3])
    intervals, stable = stability.bootstrap(scores, groups, samples=samples, seed=seed) if samples else ([], None)
    histogram = Counter(f"{pair.normal.value:g}" for pair in pairs if pair.normal.value is not None)
    scored = sum(histogram.values())
    common, share = ("", 0.0) if not scored else (histogram.most_common(1)[0][0], max(histogram.values()) / scored)
    return {
        "rho": list(rho),
        "control": rhos[0],
        "rho_star": trend(rho),
        "rho_bar": fmean(rho),
        "model_class": model_class(rho),
        "intervals": intervals,
        "stability": stable,
        "per_query": stability.per_query(scores, groups, LEVELS),
        "split_half": stability.split_half(scores, groups),
        "subsets": stability.subsets(scores, groups, seed=seed),
        "pairs_used": counts,
        "queries": len(groups),
        "degenerate": share >= DEGENERATE_SHARE,
        "commonest_score": common,
        "commonest_share": share,
        "histogram": dict(sorted(histogram.items())),
        "entropy": summarise_entropy(histogram),
    }
