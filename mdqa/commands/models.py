"""List the models that were tried, what each needs and what to expect.

Any other Hugging Face id or local folder can be given to --model too.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from mdqa.backends.catalog import MODELS
from mdqa.commands.listing import add_output_argument, show


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    add_output_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the models."""
    rows = [{key: _plain(value) for key, value in asdict(card).items()} for card in MODELS]
    return show(rows, args.output, empty="there is no model")


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, set | frozenset) else value
