"""Whether a name and a password belong together: what Gradio's sign-in page asks.

Wrong guesses for one name are answered ever more slowly, one after the other, whoever makes them and however many at
once. An unknown name takes as long as a known one.
"""

from __future__ import annotations

import asyncio
import hmac
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from mdqa.errors import ConfigError, InputError
from mdqa.settings import Settings
from mdqa.users import MAX_PASSWORD, clean_name, hashed, matches, read_users
from ui.logs import log

FREE = 3
"""Wrong passwords before the answers slow down."""
LONGEST = 60.0
"""Seconds between two answers for a name, at most."""
PATIENCE = 20.0
"""Seconds that an answer is held back; who would have to wait longer is refused at once."""
REMEMBERED = 1_000
"""Names whose failures are known; the one that was tried longest ago is forgotten first."""
AT_ONCE = 4
"""Passwords that are hashed at the same time: each takes 16 MB."""


class SignIn:
    """The people of the settings and of the users file, and who has failed lately. ``check`` goes to ``launch(auth=)``.

    The file is read again when it changes, so that somebody who is added or removed need not wait for a restart.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._clock, self._sleep = clock, sleep
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._hashing = asyncio.Semaphore(AT_ONCE)
        self._nobody = hashed("a password that nobody has")

    async def check(self, name: str, password: str) -> bool:
        """Whether to let this person in. Says no more than that, whatever the reason."""
        try:
            name = clean_name(name)
        except InputError:
            return False
        if len(password) > MAX_PASSWORD or not await self._turn(name):
            return False
        async with self._hashing:
            right = await asyncio.to_thread(self._right, name, password)
        if right:
            self._failures.pop(name, None)
        else:
            log.warning("a wrong name or password for %a", name)
        return right

    async def _turn(self, name: str) -> bool:
        """Wait until it is this attempt's turn; False where that would be too long. Counts it as failed for now."""
        now = self._clock()
        failed, free_at = self._failures.pop(name, (0, now))
        turn = max(now, free_at)
        if turn - now > PATIENCE:
            self._failures[name] = failed, free_at
            return False
        pause = min(2.0 ** (failed - FREE), LONGEST) if failed >= FREE else 0.0
        self._failures[name] = min(failed + 1, 30), turn + pause
        while len(self._failures) > REMEMBERED:
            self._failures.popitem(last=False)
        if turn > now:
            await self._sleep(turn - now)
        return True

    def _right(self, name: str, password: str) -> bool:
        settings = self._settings
        if settings.user and name == clean_name(settings.user):
            matches(self._nobody, password)  # as long as for everybody else
            return hmac.compare_digest(_bytes(settings.password), _bytes(password))
        try:
            user = read_users(settings.users).get(name) if settings.users else None
        except ConfigError as problem:
            log.error("nobody of the users file can sign in: %s", problem)
            user = None
        found = matches(user.password if user else self._nobody, password)
        return found and user is not None


def _bytes(text: str) -> bytes:
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
