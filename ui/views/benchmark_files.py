"""A comparison to save: as Markdown, like the report of ``evaluate``, and as JSON with everything unrounded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mdqa.comparison.entries import Compared
from mdqa.comparison.markdown import to_markdown
from mdqa.comparison.overlap import Overlap
from ui.views.benchmark import Gathered
from ui.views.markup import element, escape, short, text


def saved(gathered: Gathered, compared: Compared, report: Mapping[str, Any], found: Overlap) -> str:
    """Buttons that save the comparison as Markdown and JSON; the numbers of the JSON are unrounded."""
    parts = []
    for words, ending, kind, content in (
        ("Save as Markdown", "md", "text/markdown", markdown(gathered, compared, report)),
        ("Save as JSON", "json", "application/json", as_json(gathered, compared, report, found)),
    ):
        parts.append(
            text("button", words, "mdqa-copy", type="button", data_save=f"comparison.{ending}", data_type=kind)
        )
        parts.append(text("pre", content, hidden=""))
    return element("div", "".join(parts), "mdqa-saved")


def markdown(gathered: Gathered, compared: Compared, report: Mapping[str, Any]) -> str:
    """The comparison as ``evaluate`` writes it, and what it was made from."""
    return (
        to_markdown(report) + "\n## Runs\n\n" + "\n".join(f"- {line}" for line in _rests_on(gathered, compared)) + "\n"
    )


def _rests_on(gathered: Gathered, compared: Compared) -> list[str]:
    wish = gathered.wish
    lines = [
        f"benchmark: {short(wish.benchmark) or 'all'}; model: {short(wish.model) or 'all'}",
        f"read {gathered.read} of {gathered.total} stored runs, the newest",
        f"passed over for a newer run or one that did not fail: {gathered.found.older}; "
        f"not finished: {gathered.unfinished}; "
        f"documents changed by hand: {gathered.found.changed}",
        f"questions asked: {len(compared.asked)}; compared: {compared.questions} "
        + ("(those that all entries answered)" if compared.common else "(each entry over its own)"),
    ]
    for place, entry in enumerate(compared.entries):
        label = escape(entry.label).replace("|", "\\|")
        lines.append(f"{label}: failed {len(compared.failed(place))}, not asked {len(compared.missing(place))}")
    return lines


def as_json(gathered: Gathered, compared: Compared, report: Mapping[str, Any], found: Overlap) -> str:
    """Everything that is shown, unrounded."""
    labels = [row["label"] for row in report["entries"]]
    whole = {
        **report,
        "rests_on": {
            "benchmark": gathered.wish.benchmark,
            "model": gathered.wish.model,
            "read": gathered.read,
            "stored": gathered.total,
            "older": gathered.found.older,
            "unfinished": gathered.unfinished,
            "changed_documents": gathered.found.changed,
            "asked": len(compared.asked),
            "compared": compared.questions,
            "common_only": compared.common,
            "failed": {label: len(compared.failed(i)) for i, label in enumerate(labels)},
            "not_asked": {label: len(compared.missing(i)) for i, label in enumerate(labels)},
        },
        "by_position": [
            {"position": at.position, "metric": found.metric, "entries": dict(zip(labels, at.entries, strict=True))}
            for at in found.positions
        ],
        "right_together": [
            {
                "first": labels[one],
                "second": labels[two],
                "both": len(pair.both),
                "first_only": len(pair.first_only),
                "second_only": len(pair.second_only),
                "neither": len(pair.neither),
            }
            for (one, two), pair in found.pairs.items()
            if one < two
        ],
        "patterns": [
            {"right": [label for label, one in zip(labels, p.right, strict=True) if one], "questions": len(p.questions)}
            for p in found.patterns
        ],
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)
