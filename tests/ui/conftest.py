"""What most tests of the page work with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.ui.helpers import open_scripted
from ui.context import Context


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    """A program with the scripted backend, an empty store and its worker."""
    with closing(open_scripted(tmp_path)) as opened:
        yield opened
