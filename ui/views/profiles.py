"""Calibration profiles: the list, and one of them with its head scores and what was measured with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from mdqa.attention.heads import top_heads
from mdqa.records import Profile
from ui.views.heads import layers_by_heads
from ui.views.markup import (
    DASH,
    badge,
    count,
    details,
    element,
    empty,
    escape,
    facts,
    number,
    plural,
    short,
    table,
    text,
)
from ui.views.probe import is_number

STAGES: Mapping[str, str] = {"coarse": "Coarse filtering", "fine": "Fine steering"}
"""Tables of head scores that a profile may hold, with the stage that uses them."""

RANKED = 10
QUALITY = (("recall", "Gold recall"), ("top1", "Gold first"), ("mrr", "Reciprocal rank"))


@dataclass(frozen=True)
class ListedProfile:
    """A profile as the page lists it. ``key`` names it to the server; ``offered``: its model can be chosen here."""

    key: str
    profile: Profile
    title: str
    builtin: bool
    offered: bool


def profile_list(entries: Sequence[ListedProfile], chosen: str) -> str:
    """All profiles as buttons, one of them pressed; an empty state that says how to get one."""
    if not entries:
        return empty("No profiles yet", "Calibrate a method for a model on the left, or import a profile's JSON file.")
    return element("ul", "".join(_row(entry, entry.key == chosen) for entry in entries), "mdqa-profiles")


def _row(entry: ListedProfile, chosen: bool) -> str:
    profile = entry.profile
    about = f"{short(profile.model, 60)} · {plural(profile.n, 'question')} · {profile.created[:10]}"
    inner = (
        element("span", badge(entry.title, "method") + text("strong", short(profile.name, 80)) + _place(entry), "head")
        + text("span", about, "mdqa-quiet")
        + text("span", short(profile.data, 160), "mdqa-quiet")
    )
    pressed = "true" if chosen else "false"
    button = element("button", inner, "mdqa-profile-row", type="button", data_profile=entry.key, aria_pressed=pressed)
    return element("li", button)


def _place(entry: ListedProfile) -> str:
    return (badge("ships with the program") if entry.builtin else badge("stored")) + (
        "" if entry.offered else badge("its model is not offered here", "warn")
    )


def profile_head(entry: ListedProfile) -> str:
    """Name, note and everything that says where the profile comes from, with its JSON to download."""
    profile = entry.profile
    known = {
        "Model": profile.model,
        "Questions": count(profile.n),
        "Seed": str(profile.seed),
        "Made (UTC)": profile.created.replace("T", " ")[:16],
    }
    long = {
        "Data": profile.data,
        "Options": _pairs(profile.values.get("options")),
        "Versions": _pairs(profile.versions),
    }
    about = facts(known) + element("div", facts({name: words for name, words in long.items() if words}), "long")
    title = element("div", badge(entry.title, "method") + text("h3", profile.name, dir="auto") + _place(entry), "head")
    note = text("p", profile.note, "mdqa-note") if profile.note else ""
    whole = profile.model_dump_json(indent=1)
    save = text("button", "Download JSON", "mdqa-copy", type="button", data_save=_file_name(profile))
    source = element("div", save + details("Show JSON", text("pre", whole), "mdqa-raw"), "mdqa-profile-source")
    return element("section", title + note + about + source, "mdqa-profile")


def _file_name(profile: Profile) -> str:
    """A file name for every system: letters, digits, and hyphens for everything else."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in profile.name).strip("-")
    return f"{profile.method}-{plain[:60] or 'profile'}.json"


def _pairs(values: object) -> str:
    if not isinstance(values, Mapping):
        return ""
    words = {True: "on", False: "off"}
    return " · ".join(
        f"{str(name).replace('_', ' ')} {words[value] if isinstance(value, bool) else value}"
        for name, value in values.items()
    )


def head_scores(profile: Profile, stage: str) -> np.ndarray | None:
    """The stage's head scores eta, (layers, heads); None where the profile holds no such table of numbers."""
    part = profile.values.get(stage)
    try:
        scores = np.asarray(part["scores"], dtype=np.float64)  # type: ignore[index]
    except (TypeError, ValueError, KeyError, IndexError, OverflowError):
        return None
    return scores if scores.ndim == 2 and scores.size and np.isfinite(scores).all() else None


def maps_intro(tables: Mapping[str, np.ndarray], ringed: Mapping[str, int]) -> str:
    """What the head maps show; empty where the profile holds none."""
    if not tables:
        return ""
    rings = " and ".join(f"{ringed[stage]} for {title.lower()}" for stage, title in STAGES.items() if stage in tables)
    words = (
        "Score η: the share of a head's attention to all documents that falls on the gold ones, as the mean over the "
        f"questions. Ringed are the best heads, {rings}: a run uses these unless its options say otherwise."
    )
    return text("h3", "Retrieval heads") + text("p", words, "mdqa-note")


def score_map(scores: np.ndarray, ringed: int, stage: str) -> go.Figure:
    """Layers (rows) by heads (columns), coloured by eta; the best ``ringed`` heads ringed; ranks in the hover."""
    order = top_heads(scores, scores.size)
    ranks = np.zeros(scores.shape, dtype=int)
    for rank, (layer, head) in enumerate(order, 1):
        ranks[layer, head] = rank
    low = float(scores.min())
    figure = layers_by_heads(scores, order[:ringed], low=low, what="score", ranks=ranks)
    return figure.update_layout(title={"text": STAGES[stage], "x": 0, "font": {"size": 13}}, margin_t=38)


def ranked_heads(tables: Mapping[str, np.ndarray], ringed: Mapping[str, int]) -> str:
    """The best heads of every stage with their scores, the ones that a run uses by default marked."""
    parts = [_ranked(stage, scores, ringed.get(stage, 0)) for stage, scores in tables.items()]
    return element("div", "".join(parts), "mdqa-ranked")


def _ranked(stage: str, scores: np.ndarray, used: int) -> str:
    best = top_heads(scores, RANKED)
    top = float(scores.max()) or 1.0
    rows = []
    for rank, (layer, head) in enumerate(best, 1):
        value = float(scores[layer, head])
        bar = element("span", f'<i style="left:0;width:{max(value / top, 0) * 100:.1f}%"></i>', "mdqa-bar wide")
        mark = badge("used", "gold") if rank <= used else ""
        rows.append([str(rank), f"{layer}-{head} {mark}", bar, number(value)])
    caption = f"{STAGES[stage]}: best heads (layer-head)"
    return table(["Rank", "Head", "", "Score"], rows, "ranked", caption)


def quality_table(quality: object) -> str:
    """How well the heads find the evidence beside other rankings, with intervals; empty where it was not measured."""
    if not isinstance(quality, Mapping) or not isinstance(quality.get("rows"), list):
        return ""
    found = [row for row in quality["rows"] if isinstance(row, Mapping)]
    best = {name: max((v for row in found if (v := _mean(row, name)) is not None), default=None) for name, _ in QUALITY}
    rows = [
        [
            escape(row.get("name", DASH)),
            *(_interval(row.get(name), _mean(row, name) == best[name]) for name, _ in QUALITY),
        ]
        for row in found
    ]
    grid = table(["Documents ranked by", *(title for _, title in QUALITY)], rows, "quality")
    words = f"On {quality.get('n', DASH)} questions that the profile was not made with; means with 95 % intervals."
    kept, of, m1 = (quality.get(name) for name in ("kept", "documents", "m1"))
    if is_number(kept) and is_number(of):
        words += (
            f" Recall is that of what coarse filtering passes on: the heads' top {m1} together are {number(kept, 1)} "
            f"of {number(of, 1)} documents; the other rankings may pass on as many."
        )
    return element("section", text("h3", "Finding the evidence") + text("p", words, "mdqa-note") + grid, "mdqa-part")


def quality_cells(quality: object) -> list[str]:
    """The measures of the retrieval heads themselves, in the order of QUALITY; empty where they were not measured."""
    rows = quality.get("rows") if isinstance(quality, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and row.get("name") == "retrieval heads":
            return [_interval(row.get(name), best=False) for name, _ in QUALITY]
    return []


def _mean(row: Mapping[str, Any], name: str) -> float | None:
    cell = row.get(name)
    value = cell.get("mean") if isinstance(cell, Mapping) else None
    return float(value) if is_number(value) else None  # type: ignore[arg-type]


def _interval(cell: object, best: bool) -> str:
    if not isinstance(cell, Mapping) or not is_number(cell.get("mean")):
        return DASH
    mean = text("strong" if best else "span", number(cell["mean"]), "mdqa-number")
    low, high = cell.get("low"), cell.get("high")
    if not (is_number(low) and is_number(high)):
        return mean
    return mean + text("span", f"{number(low)} to {number(high)}", "mdqa-quiet")
