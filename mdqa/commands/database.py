"""The commands' way to the database.

The research core knows no database (``mdqa`` never imports ``storage``): everything in it runs without one. Three
commands offer to use one all the same, so the storage package is looked up here, by name, at the moment it is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from mdqa.errors import MissingDependency
from mdqa.records import Profile


def storage_module(name: str) -> Any:
    """A module of the storage package; MissingDependency where the package is not beside mdqa."""
    try:
        return import_module(f"storage.{name}")
    except ModuleNotFoundError as problem:
        if problem.name in ("storage", f"storage.{name}"):
            raise MissingDependency("the database", "storage (run this from the project's folder)") from None
        raise


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The store at this path, closed afterwards."""
    store = storage_module("store").Store.open(path)
    try:
        yield store
    finally:
        store.close()


def stored_profiles(path: Path) -> tuple[Profile, ...]:
    """The profiles of a database; none where there is no database yet."""
    if not path.exists():
        return ()
    with opened(path) as store:
        return tuple(store.profiles.list())
