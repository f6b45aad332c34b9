"""The top of a result: the answer, whether it is right, what it cost beside answering directly."""

from __future__ import annotations

from collections.abc import Mapping

from mdqa.records import Cost, RunResult
from ui.views.markup import (
    DASH,
    badge,
    count,
    details,
    element,
    escape,
    facts,
    message,
    number,
    seconds,
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
        "interrupted": "The program ended before there was an answer. What was done so far is below.",
        "failed": "No answer.",
    }
    return text("p", words[run.status], "mdqa-answer none")


def cost_line(cost: Cost, vanilla: Cost | None = None, vanilla_id: str = "") -> str:
    """Calls, tokens and time as tiles, each with the direct answer's figure and the ratio where there is one."""
    names = (
        ("Model calls", "llm_calls"),
        ("Prompt tokens sent", "prompt_tokens"),
        ("of these computed", "prefill_tokens_computed"),
        ("Tokens written", "completion_tokens"),
        ("Time", "seconds"),
    )
    tiles = []
    for label, name in names:
        value = getattr(cost, name)
        own = seconds(value) if name == "seconds" else count(value)
        beside = ""
        if vanilla is not None:
            base = getattr(vanilla, name)
            shown = seconds(base) if name == "seconds" else count(base)
            ratio = f" · {number(value / base, 1 if value < 10 * base else 0)}×" if base else ""
            beside = text("span", f"direct: {shown}{ratio}", "mdqa-beside")
        tiles.append(element("div", text("span", label, "mdqa-label") + text("strong", own) + beside))
    note = ""
    if vanilla is not None:
        link = text("a", "a stored run", href=f"?run={vanilla_id}")
        note = f'<p class="mdqa-note">Beside answering directly from all documents ({link} of the same question).</p>'
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
