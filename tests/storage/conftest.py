from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "mdqa.db") as opened:
        yield opened
