"""Signing in: right and wrong, known and unknown, and guesses that are slowed down without taking memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from mdqa.settings import Settings
from mdqa.users import User, hashed, write_users
from ui.signing_in import FREE, PATIENCE, REMEMBERED, SignIn

T = TypeVar("T")


def run(work: Coroutine[None, None, T]) -> T:
    """In a thread of its own: the browser tests leave a running loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, list[float]()

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    write_users(tmp_path / "users.json", [User("ann", "annotator", hashed("correct horse"))])
    return replace(Settings(), user="eve", password="secret", users=tmp_path / "users.json")


def signing(settings: Settings) -> tuple[SignIn, Clock]:
    clock = Clock()
    return SignIn(settings, clock=clock, sleep=clock.sleep), clock


@pytest.mark.parametrize(
    ("name", "password", "let_in"),
    [
        ("ann", "correct horse", True),
        (" ann ", "correct horse", True),
        ("ann", "Correct horse", False),
        ("ann", "", False),
        ("eve", "secret", True),
        ("eve", "correct horse", False),
        ("tom", "correct horse", False),
        ("", "", False),
        ("a\ud800n", "correct horse", False),
        ("ann", "\ud800" * 9, False),
        ("x" * 100_000, "y", False),
        ("ann", "y" * 100_000, False),
    ],
)
def test_name_and_password_belong_together(settings: Settings, name: str, password: str, let_in: bool) -> None:
    checker, _ = signing(settings)
    assert run(checker.check(name, password)) is let_in


def test_somebody_who_is_added_or_removed_need_not_wait_for_a_restart(settings: Settings) -> None:
    checker, _ = signing(settings)
    assert settings.users is not None
    write_users(settings.users, [User("bo", "annotator", hashed("another one"))])
    assert run(checker.check("bo", "another one"))
    assert not run(checker.check("ann", "correct horse"))
    settings.users.unlink()
    assert not run(checker.check("bo", "another one"))
    assert run(checker.check("eve", "secret"))


def test_guesses_for_one_name_are_slowed_those_of_others_are_not(settings: Settings) -> None:
    checker, clock = signing(settings)

    async def guess() -> None:
        for _ in range(FREE + 4):
            assert not await checker.check("ann", "wrong")
        assert await checker.check("eve", "secret")
        assert clock.waits == [1.0, 2.0, 4.0]
        clock.now += 100
        assert await checker.check("ann", "correct horse")
        assert not await checker.check("ann", "wrong")  # and is forgiven
        assert clock.waits == [1.0, 2.0, 4.0]

    run(guess())


def test_many_guesses_at_once_get_no_further(settings: Settings) -> None:
    checker, clock = signing(settings)

    async def storm() -> list[bool]:
        for _ in range(FREE + 5):  # the next answer is due only after PATIENCE
            await checker.check("tom", "wrong")
        return await asyncio.gather(*(checker.check("tom", "wrong") for _ in range(30)))

    assert not any(run(storm()))
    assert sum(clock.waits) <= 3 * PATIENCE and len(clock.waits) <= 8


def test_failures_are_remembered_for_so_many_names(settings: Settings) -> None:
    checker, clock = signing(settings)

    async def storm() -> None:
        for number in range(REMEMBERED + 20):
            await checker._turn(f"name {number}")

    run(storm())
    assert len(checker._failures) == REMEMBERED and not clock.waits
