"""Lists of what there is: readable on the screen, JSON lines with --output."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from typing import Any

from mdqa.commands.options import write_lines


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    """``--output``: JSON lines instead of a readable list."""
    parser.add_argument("--output", default="", metavar="FILE", help="write JSON lines; - is standard output")


def show(rows: Sequence[dict[str, Any]], output: str, *, empty: str) -> int:
    """Print the rows, or write them as JSON lines; always exit status 0. The first field of a row is its name."""
    if output:
        write_lines(rows, output)
        return 0
    if not rows:
        print(empty)
    for row in rows:
        name, *fields = row.items()
        print(name[1])
        for key, value in fields:
            if value not in (None, "", [], {}):
                print(_paragraph(key, value))
    return 0


def _paragraph(key: str, value: Any) -> str:
    if isinstance(value, dict):
        lines = [f"    {name}: {part}" for name, part in value.items()]
        return "\n".join([f"  {key}:", *(_wrap(line, 6) for line in lines)])
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return _wrap(f"  {key}: {text}", 4)


def _wrap(line: str, indent: int) -> str:
    return textwrap.fill(line, width=110, subsequent_indent=" " * indent)
