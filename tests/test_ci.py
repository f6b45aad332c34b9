""".ci/run refuses skips that must not happen there: shown with a real report of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TESTS = """
import pytest

def test_runs(): pass

@pytest.mark.skip(reason="{reason}")
def test_skipped(): pass
"""


def check(folder: Path, reason: str, *, shared: bool) -> subprocess.CompletedProcess[str]:
    """Run a suite with one skipped test, then the check, in a copy of the layout with or without ``../shared``."""
    tree = folder / "project"
    (tree / ".ci").mkdir(parents=True)
    (tree / ".ci" / "skips.py").write_text((ROOT / ".ci" / "skips.py").read_text())
    (tree / "test_it.py").write_text(TESTS.format(reason=reason))
    if shared:
        (folder / "shared").mkdir()
    report = ["-q", "-p", "no:cacheprovider", "--junitxml", "report.xml"]
    subprocess.run([sys.executable, "-m", "pytest", *report], cwd=tree, capture_output=True, timeout=120, check=True)
    return subprocess.run(
        [sys.executable, ".ci/skips.py", "report.xml"], cwd=tree, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("reason", "shared", "status"),
    [
        ("needs ../shared/data/nq20.jsonl.gz", True, 1),
        ("needs ../shared/data/nq20.jsonl.gz", False, 0),
        ("no Chromium: apt-get install chromium", False, 1),
        ("scripted gives no likelihood", True, 0),
    ],
)
def test_forbidden_skips(tmp_path: Path, reason: str, shared: bool, status: int) -> None:
    done = check(tmp_path, reason, shared=shared)
    assert done.returncode == status
    assert ("test_skipped" in done.stderr) == bool(status)


def test_ci_runs_what_the_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    for part in ("requirements.txt", "ruff check", "ruff format --check", "mypy", "slow and not gpu", "skips.py"):
        assert part in script
