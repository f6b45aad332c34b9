"""Refuse skipped tests that must run here: those of ../shared where it exists, those of what .ci/run brings always.

``python .ci/skips.py REPORT.xml`` reads pytest's JUnit report and exits with 1 if such a test was skipped.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

BROWSER = re.compile(r"chromium|browser|playwright", re.IGNORECASE)
MADE = re.compile(r"MDQA_VLLM_PYTHON|MDQA_SPACES")
SHARED = re.compile(r"shared|benchmark file", re.IGNORECASE)


def forbidden(report: Path, *, shared: bool) -> list[str]:
    """Name and reason of every skipped test that should have run."""
    found = []
    for case in ElementTree.parse(report).iter("testcase"):
        skip = case.find("skipped")
        if skip is None or skip.get("type") == "pytest.xfail":
            continue
        name, reason = f"{case.get('classname')}.{case.get('name')}", f"{skip.get('message')} {skip.text or ''}"
        if BROWSER.search(f"{name} {reason}") or MADE.search(reason) or (shared and SHARED.search(reason)):
            found.append(f"{name}: {skip.get('message')}")
    return found


def main(arguments: list[str]) -> int:
    """Print what was found; 1 if there is something."""
    root = Path(__file__).resolve().parents[1]
    found = [line for report in arguments for line in forbidden(Path(report), shared=(root.parent / "shared").is_dir())]
    for line in found:
        print(f"skipped, but must run here: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
