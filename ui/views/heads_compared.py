"""Two profiles of retrieval heads side by side: which heads they share, where they differ, how well each finds."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mdqa.attention.heads import top_heads
from mdqa.methods.madara.ranks import spearman
from mdqa.records import Head, Profile
from ui.views.markup import DASH, badge, count, element, escape, message, number, plural, short, table, text
from ui.views.profiles import QUALITY, RANKED, STAGES, head_scores, quality_cells


def heads_compared(one: Profile, other: Profile, used: tuple[Mapping[str, int], Mapping[str, int]]) -> str:
    """Per stage the best heads of both with score and rank; then how well each finds the evidence.

    ``used``: per profile how many of a stage's best heads a run uses. Heads are only set against each other where both
    profiles are of one model.
    """
    parts = [text("h3", "Two profiles side by side"), text("p", _about(one, other), "mdqa-note")]
    if one.model != other.model:
        parts.append(
            message("Heads of different models are not the same heads: only their depth and their scores are compared.")
        )
    for stage, title in STAGES.items():
        tables = head_scores(one, stage), head_scores(other, stage)
        if tables[0] is None and tables[1] is None:
            continue
        parts.append(text("h4", title))
        if tables[0] is None or tables[1] is None:
            missing = one.name if tables[0] is None else other.name
            parts.append(text("p", f"{missing} has no scores of this stage.", "mdqa-note"))
        elif one.model != other.model or tables[0].shape != tables[1].shape:
            parts.append(_depths((one, other), tables, (used[0].get(stage, 0), used[1].get(stage, 0))))
        else:
            parts.append(_stage((one, other), tables, (used[0].get(stage, 0), used[1].get(stage, 0))))
    parts.append(_quality(one, other))
    return element("section", "".join(parts), "mdqa-part", data_testid="compared")


def _about(one: Profile, other: Profile) -> str:
    if one.model == other.model:
        return f"Both are of {one.model}; made on {short(one.data, 80)} and on {short(other.data, 80)}."
    return f"{one.name} is of {one.model}, {other.name} of {other.model}."


def _ranks(scores: np.ndarray) -> dict[Head, int]:
    return {head: rank for rank, head in enumerate(top_heads(scores, scores.size), 1)}


def _stage(profiles: tuple[Profile, Profile], tables: tuple[np.ndarray, np.ndarray], used: tuple[int, int]) -> str:
    """The union of both profiles' best heads, ordered by their better rank."""
    ranks = _ranks(tables[0]), _ranks(tables[1])
    best = sorted(
        {*top_heads(tables[0], RANKED), *top_heads(tables[1], RANKED)},
        key=lambda head: (min(ranks[0][head], ranks[1][head]), ranks[0][head], head),
    )
    shared = set(top_heads(tables[0], used[0])) & set(top_heads(tables[1], used[1]))
    rho = spearman(tables[0].ravel().tolist(), tables[1].ravel().tolist())
    order = "not defined: all scores are equal" if math.isnan(rho) else number(rho)
    words = (
        f"Of the heads that a run uses ({used[0]} and {used[1]}), {plural(len(shared), 'is', 'are')} the same. "
        f"Spearman's correlation of all {count(tables[0].size)} scores: {order}."
    )
    rows = []
    for head in best:
        cells = [_cell(table_, rank[head], head, n) for table_, rank, n in zip(tables, ranks, used, strict=True)]
        change = float(tables[1][head] - tables[0][head])
        rows.append([f"{head[0]}-{head[1]}", *cells, ("+" if change > 0 else "") + number(change)])
    headers = ["Head (layer-head)", profiles[0].name, profiles[1].name, "Difference"]
    return text("p", words, "mdqa-note") + table(headers, rows, "heads-compared")


def _cell(scores: np.ndarray, rank: int, head: Head, used: int) -> str:
    mark = badge("used", "gold") if rank <= used else ""
    figure = text("span", number(float(scores[head])), "mdqa-number")
    return f"{figure} {text('span', f'rank {rank}', 'mdqa-quiet')} {mark}"


def _depths(profiles: tuple[Profile, Profile], tables: tuple[np.ndarray, np.ndarray], used: tuple[int, int]) -> str:
    """For different models: no head of one is a head of the other, but depth and height of the scores compare."""
    rows = []
    for profile, scores, n in zip(profiles, tables, used, strict=True):
        heads = top_heads(scores, max(n, 1))
        depth = float(np.mean([layer for layer, _ in heads])) / max(scores.shape[0] - 1, 1)
        listed = ", ".join(f"{layer}-{head}" for layer, head in heads)
        size = f"{scores.shape[0]} layers of {scores.shape[1]} heads"
        rows.append(
            [escape(profile.name), size, listed, f"{100 * depth:.0f}% of the depth", number(float(scores.max()))]
        )
    return table(["Profile", "Model", "Heads that a run uses", "Mean depth", "Best score"], rows)


def _quality(one: Profile, other: Profile) -> str:
    rows = []
    for profile in (one, other):
        cells = quality_cells(profile.values.get("quality"))
        rows.append([escape(profile.name), *(cells or [DASH] * len(QUALITY))])
    if all(set(row[1:]) == {DASH} for row in rows):
        words = "Neither profile was measured on held-out questions; calibrate with held-out questions to compare that."
        return text("p", words, "mdqa-note")
    note = "The retrieval heads on each profile's own held-out questions; means with 95 % intervals."
    return (
        text("h4", "Finding the evidence")
        + text("p", note, "mdqa-note")
        + table(["Profile", *(title for _, title in QUALITY)], rows, "quality")
    )
