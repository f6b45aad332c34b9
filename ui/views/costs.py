"""What a run took, in words: its costs, how many times those of another run, and what memory took off them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mdqa.records import Cost
from ui.views.markup import count, number, plural, seconds

COSTS: Mapping[str, str] = MappingProxyType(
    {
        "llm_calls": "Model calls",
        "prompt_tokens": "Prompt tokens sent",
        "prefill_tokens_computed": "Of these computed",
        "completion_tokens": "Tokens written",
        "seconds": "Time",
    }
)
"""The costs that a page shows, in their order, with their words."""

SHORTENED = ("prefill_tokens_computed", "seconds")
"""Those that are less than the method's own where the program remembered work of earlier calls."""


def amount(cost: Cost, name: str) -> str:
    """One of :data:`COSTS` as people read it."""
    value = getattr(cost, name)
    return seconds(value) if name == "seconds" else count(value)


def times(cost: Cost, other: Cost, name: str) -> str:
    """How many times the other's, such as ``2.5×``; empty where that cannot be said."""
    value, base = getattr(cost, name), getattr(other, name)
    if not base or (name in SHORTENED and not (cost.own_work and other.own_work)):
        return ""
    return f"{number(value / base, 1 if value < 10 * base else 0)}×"


def from_memory(cost: Cost) -> str:
    """A sentence on what memory took off the costs; empty if nothing."""
    if cost.own_work:
        return ""
    return (
        f"{count(cost.remembered_calls)} of {plural(cost.llm_calls, 'model call')} used what the program remembered of "
        "earlier ones: on its own the method computes more and takes longer."
    )
