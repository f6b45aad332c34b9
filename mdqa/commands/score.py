"""Check our metrics against recorded cases of the official scripts.

FILE holds JSON lines with metric, prediction, answers and expected. Every mismatch is printed; exit status 1 if there
is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from mdqa.scoring.cases import check_cases


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE", help="metric cases")


def run(args: argparse.Namespace) -> int:
    """Check the cases."""
    count = 0
    for count, mismatch in _numbered(check_cases(args.cases)):
        print(mismatch)
    print(f"{count} mismatches" if count else "all cases agree", file=sys.stderr)
    return 1 if count else 0


def _numbered(items: Iterator[object]) -> Iterator[tuple[int, object]]:
    return enumerate(items, 1)
