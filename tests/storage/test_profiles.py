"""Profiles: saved, found by name, never overwritten unasked."""

import math

import pytest

from mdqa.errors import StorageError
from mdqa.records import Profile
from storage.store import Store


def profile(name: str = "mine", method: str = "cafe", model: str = "m", **values: object) -> Profile:
    return Profile(
        name=name,
        method=method,
        model=model,
        data="nq20",
        n=30,
        seed=1,
        created="2026-11-30T10:00:00+00:00",
        versions={"mdqa": "0.1"},
        values=values or {"heads": [[18, 7]], "rho": 1 / 3},
    )


def test_round_trip(store: Store) -> None:
    store.profiles.save(profile())
    assert store.profiles.get("mine") == profile()
    assert store.profiles.list() == [profile()]


def test_existing_profile_is_not_overwritten_unasked(store: Store) -> None:
    store.profiles.save(profile())
    store.profiles.save(profile())
    other = profile(heads=[[1, 1]])
    with pytest.raises(StorageError, match="there already is a profile 'mine' of cafe for m"):
        store.profiles.save(other)
    assert store.profiles.get("mine") == profile()
    store.profiles.save(other, replace=True)
    assert store.profiles.list() == [other]


def test_equal_names_of_two_methods(store: Store) -> None:
    store.profiles.save(profile())
    store.profiles.save(profile(method="madara"))
    with pytest.raises(StorageError, match=r"2 profiles are named 'mine' .*say which method and model"):
        store.profiles.get("mine")
    assert store.profiles.get("mine", method="madara").method == "madara"
    assert [p.method for p in store.profiles.list(method="cafe")] == ["cafe"]
    assert store.profiles.list(model="other") == []


def test_unknown_profile(store: Store) -> None:
    store.profiles.save(profile())
    with pytest.raises(StorageError, match=r"there is no profile 'yours' .*stored profiles: mine"):
        store.profiles.get("yours")


def test_delete(store: Store) -> None:
    store.profiles.save(profile())
    store.profiles.delete(profile())
    store.profiles.delete(profile())
    assert store.profiles.list() == []


def test_values_that_json_does_not_have(store: Store) -> None:
    with pytest.raises(StorageError, match="profile 'mine', values, rho cannot be stored: the number is nan"):
        store.profiles.save(profile(rho=math.nan))
    assert store.profiles.list() == []
