"""The model picker's card and the state of the model that is loaded; what a method cannot do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.backends.catalog import ModelCard
from ui.views.markup import badge, count, element, facts, message, text

CAPABILITY_WORDS: Mapping[str, str] = {
    "generate": "writes replies",
    "structured": "replies held to a JSON schema",
    "likelihood": "log-likelihoods",
    "attention": "shows attention",
    "steering": "steers attention",
}


@dataclass(frozen=True)
class ModelStatus:
    """What the engine has loaded. ``phase`` is none, loading, ready or failed; ``fraction`` is 0 to 1 where known."""

    phase: str
    model: str
    text: str = ""
    fraction: float | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing is being loaded now."""
        return self.phase != "loading"


def can_be_loaded(status: ModelStatus, model: str) -> bool:
    """Whether asking for this model would change anything."""
    return status.phase not in ("ready", "loading") or status.model != model


def can_be_freed(status: ModelStatus) -> bool:
    """Whether there is a model whose memory can be freed."""
    return status.phase == "ready"


def model_card(card: ModelCard) -> str:
    """What a model needs, can do, cannot do, and a plain word about it."""
    labels = "".join(
        badge(("✓ " if c in card.capabilities else "× no: ") + words, "good" if c in card.capabilities else "plain")
        for c, words in CAPABILITY_WORDS.items()
        if c != "generate"
    )
    known = {}
    if card.parameters:
        billions, millions = f"{card.parameters / 1e9:.1f} billion", f"{card.parameters / 1e6:.0f} million"
        size = billions if card.parameters >= 1e9 else millions
        known = {"Size": f"{size} parameters", "Window": f"{count(card.window)} tokens", "Needs": card.needs}
    inner = facts(known) + element("div", labels, "mdqa-badges") + text("p", card.note, "mdqa-note")
    return element("div", inner, "mdqa-model-card", aria_label=f"About {card.name}", role="group")


def model_status(status: ModelStatus) -> str:
    """One line: loaded, being loaded with a bar, or why not with the way out."""
    if status.phase == "ready":
        return message(f"{status.model} is loaded. {status.text}".strip(), "good")
    if status.phase == "failed":
        return message(status.text, "bad")
    if status.phase == "loading":
        bar = ""
        if status.fraction is not None:
            width = f"{min(max(status.fraction, 0.0), 1.0) * 100:.0f}"
            bar = element("span", f'<i style="left:0;width:{width}%"></i>', "mdqa-bar wide")
        return message(f"{status.model}: {status.text or 'getting ready'}", "info") + bar
    return message("No model is loaded; the next run loads it.", "info")


def obstacles(lines: Sequence[str]) -> str:
    """What stands in the way of a run, said before it; empty where nothing does."""
    return element("div", "".join(message(line, "warn") for line in lines), "mdqa-obstacles") if lines else ""
