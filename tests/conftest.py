"""Fixtures that several packages share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from mdqa.backends.base import InspectableBackend
from mdqa.backends.loading import load_backend
from mdqa.settings import Settings

settings.register_profile("any machine", deadline=None)  # a loaded machine is no fault of the code
settings.load_profile("any machine")

REPOSITORY = Path(__file__).parents[1]
SHARED_DATA = REPOSITORY.parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of evaluation data beside the repository; the test is skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the evaluation data in ../shared/data, which is not part of the repository")
    return SHARED_DATA


@pytest.fixture(scope="session")
def builtin_backend() -> InspectableBackend:
    """The built-in model, fetched once into the default cache."""
    backend = load_backend("builtin", device="cpu", cache=Settings.from_environment().cache)
    assert isinstance(backend, InspectableBackend)
    return backend
