"""The top of a result: the answer, whether it is right, what it cost beside answering directly."""

from __future__ import annotations

from collections.abc import Mapping

from mdqa.records import Cost, RunResult
from ui.views.costs import COSTS, amount, from_memory, times
from ui.views.markup import (
    DASH,
    badge,
    details,
    element,
    escape,
    facts,
    message,
    table,
    text,
)

STATUS: Mapping[str, tuple[str, str]] = {
    "running": ("Running", "info"),
    "ok": ("Finished", "good"),
    "failed": ("Failed", "bad"),
    "cancelled": ("Stopped", "warn"),
    "interrupted": ("Interrupted", "warn"),
}


def result_head(
    run: RunResult,
    *,
    method_title: str,
    correct: bool | None,
    vanilla: RunResult | None = None,
    retrieved: tuple[int, int] | None = None,
) -> str:
    """Question, answer, verdict, cost and notices. ``retrieved``: gold documents that reached the answer, of all."""
    word, kind = STATUS[run.status]
    labels = [badge(method_title, "method"), badge(word, kind)]
    if correct is not None:
        labels.append(badge("✓ Correct", "good") if correct else badge("× Not correct", "bad"))
    if retrieved is not None:
        labels.append(badge(f"★ {retrieved[0]} of {retrieved[1]} gold reached the answer", "gold"))
    parts = [
        element("div", "".join(labels), "mdqa-badges"),
        text("p", run.question.question, "mdqa-question", dir="auto"),
        _answer(run),
    ]
    if run.question.answers:
        parts.append(text("p", "Expected: " + " · ".join(run.question.answers), "mdqa-expected", dir="auto"))
    if run.error is not None:
        where = f" (in: {run.error.stage})" if run.error.stage else ""
        parts.append(message(run.error.message + where, "bad"))
    parts.extend(message(notice, "warn") for notice in run.notices)
    parts.append(cost_line(run.cost, vanilla.cost if vanilla else None, vanilla.id if vanilla else ""))
    parts.append(_about(run))
    return element("section", "".join(parts), "mdqa-result", aria_label="Result")


def _answer(run: RunResult) -> str:
    if run.answer.strip():
        return text("p", run.answer, "mdqa-answer", dir="auto", data_testid="answer")
    words = {
        "running": "No answer yet.",
        "ok": "The method gave an empty answer.",
        "cancelled": "Stopped before there was an answer. What was done so far is below.",
        "interrupted": "The program ended before there was an answer. What was done is below; Run again repeats it.",
        "failed": "No answer.",
    }
    return text("p", words[run.status], "mdqa-answer none")


def cost_line(cost: Cost, vanilla: Cost | None = None, vanilla_id: str = "") -> str:
    """Calls, tokens and time as tiles, each with the direct answer's figure and the ratio where there is one."""
    tiles = []
    for name, label in COSTS.items():
        beside = ""
        if vanilla is not None:
            ratio = times(cost, vanilla, name)
            words = f"direct: {amount(vanilla, name)}" + (f" · {ratio}" if ratio else "")
            beside = text("span", words, "mdqa-beside")
        tiles.append(element("div", text("span", label, "mdqa-label") + text("strong", amount(cost, name)) + beside))
    note = text("p", from_memory(cost), "mdqa-note") if not cost.own_work else ""
    if vanilla is not None:
        link = text("a", "a stored run", href=f"?run={vanilla_id}")
        note += f'<p class="mdqa-note">Beside answering directly from all documents ({link} of the same question).</p>'
    return element("div", "".join(tiles), "mdqa-cost") + note


def _about(run: RunResult) -> str:
    about = facts(
        {
            "Run": run.id,
            "Model": run.model,
            "Backend": run.backend or DASH,
            "Profile": run.profile or "none",
            "Seed": run.seed,
            "Begun": run.created.replace("T", " ")[:19] + " UTC",
            "Retries after unreadable replies": run.parse_failures,
            "Fallbacks taken": run.fallbacks,
        }
    )
    options = table(["Option", "Value"], [[escape(k), escape(option_words(v))] for k, v in run.config.items()])
    address = element(
        "p",
        text("a", "Permanent address", href=f"?run={run.id}")
        + text("button", "Copy link", "mdqa-copy", type="button", data_copy=f"?run={run.id}"),
        "mdqa-address",
    )
    return address + details("Model, options and seed of this run", about + options, "mdqa-more")


def option_words(value: object) -> str:
    """An option's value for people."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list | tuple):
        return ", ".join(option_words(part) for part in value)
    return "–" if value is None else str(value)
