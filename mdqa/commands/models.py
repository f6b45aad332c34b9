"""List the models that were tried, what each needs and what to expect.

Any other Hugging Face id or local folder can be given to --model too.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from mdqa.backends.catalog import MODELS, ModelCard
from mdqa.commands.listing import add_output_argument, show


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the models."""
    return show([_row(card) for card in MODELS], args.output, empty="there is no model")


def _row(card: ModelCard) -> dict[str, Any]:
    fields = asdict(card)
    note = fields.pop("note")
    return {"name": card.name, **fields, "needs": card.needs, "note": note}
