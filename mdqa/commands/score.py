"""Check our metrics against recorded cases of the official scripts.

FILE holds JSON lines with metric, prediction, answers and expected. Every mismatch is printed; exit status 1 if there
is one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdqa.scoring.cases import check_cases


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--cases", type=Path, required=True, metavar="FILE", help="metric cases")


def run(args: argparse.Namespace) -> int:
    """Check the cases."""
    mismatches = 0
    for mismatch in check_cases(args.cases):
        print(mismatch)
        mismatches += 1
    print(f"{mismatches} mismatches" if mismatches else "all cases agree", file=sys.stderr)
    return 1 if mismatches else 0
