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

@pytest.mark.skip(reason="needs ../shared/data/nq20.jsonl.gz")
def test_of_data(): pass

@pytest.mark.skip(reason="no Chromium: apt-get install chromium")
def test_of_page(): pass

@pytest.mark.skip(reason="scripted gives no likelihood")
def test_of_backend(): pass
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the check and a report of a suite with three skipped tests."""
    tree = tmp_path_factory.mktemp("ci") / "project"
    (tree / ".ci").mkdir(parents=True)
    (tree / ".ci" / "skips.py").write_text((ROOT / ".ci" / "skips.py").read_text())
    (tree / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", "report.xml"]
    subprocess.run(command, cwd=tree, capture_output=True, timeout=120, check=True)
    return tree


def refused(project: Path) -> set[str]:
    """Names of the skipped tests that the check refuses."""
    done = subprocess.run(
        [sys.executable, ".ci/skips.py", "report.xml"], cwd=project, capture_output=True, text=True, timeout=120
    )
    found = {name for name in ("test_of_data", "test_of_page", "test_of_backend", "test_runs") if name in done.stderr}
    assert done.returncode == bool(found), done.stderr
    return found


def test_skips_of_the_browser_are_always_refused_those_of_the_data_where_it_is(project: Path) -> None:
    assert refused(project) == {"test_of_page"}
    (project.parent / "shared").mkdir()
    assert refused(project) == {"test_of_page", "test_of_data"}


def test_ci_runs_what_the_readme_says() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    for part in ("requirements.txt", "ruff check", "ruff format --check", "mypy", "slow and not gpu", "skips.py"):
        assert part in script
