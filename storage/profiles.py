"""Calibration profiles: saved under method, model and name."""

from __future__ import annotations

import builtins
import json
from typing import TYPE_CHECKING

from mdqa.errors import StorageError
from mdqa.records import Profile
from storage.encoding import clean_text, to_json

if TYPE_CHECKING:
    from storage.store import Store


class ProfileStore:
    """The profiles of a :class:`~storage.store.Store`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def save(self, profile: Profile, *, replace: bool = False) -> None:
        """Keep the profile.

        Raises:
            StorageError: another profile has this method, model and name, and ``replace`` is off.
        """
        text = to_json(profile, f"profile {profile.name!r}")
        key = [clean_text(part) for part in (profile.method, profile.model, profile.name)]
        with self._store.write() as db:
            known = db.execute(
                "select record from profiles where method = ? and model = ? and name = ?", key
            ).fetchone()
            if known and known[0] != text and not replace:
                raise StorageError(
                    f"there already is a profile {profile.name!r} of {profile.method} for {profile.model}; "
                    "choose another name or replace it"
                )
            db.execute(
                "insert into profiles (method, model, name, created, record) values (?, ?, ?, ?, ?) "
                "on conflict (method, model, name) do update set created = excluded.created, record = excluded.record",
                [*key, clean_text(profile.created), text],
            )

    def get(self, name: str, *, method: str = "", model: str = "") -> Profile:
        """The profile of this name; ``method`` and ``model`` tell equal names apart.

        Raises:
            StorageError: there is none, or more than one.
        """
        found = [profile for profile in self.list(method=method, model=model) if profile.name == clean_text(name)]
        if len(found) == 1:
            return found[0]
        if found:
            which = "; ".join(f"{profile.method} for {profile.model}" for profile in found)
            raise StorageError(f"{len(found)} profiles are named {name!r} ({which}); say which method and model")
        names = ", ".join(sorted({profile.name for profile in self.list()})) or "none"
        raise StorageError(f"there is no profile {name!r} in {self._store.path}; stored profiles: {names}")

    def delete(self, profile: Profile) -> None:
        """Forget the profile with this method, model and name; nothing happens if there is none."""
        key = [clean_text(part) for part in (profile.method, profile.model, profile.name)]
        with self._store.write() as db:
            db.execute("delete from profiles where method = ? and model = ? and name = ?", key)

    def list(self, *, method: str = "", model: str = "") -> builtins.list[Profile]:
        """All profiles, or those of a method or model, newest first."""
        with self._store.read() as db:
            rows = db.execute(
                "select record from profiles where (? = '' or method = ?) and (? = '' or model = ?) "
                "order by created desc, id desc",
                [clean_text(method), clean_text(method), clean_text(model), clean_text(model)],
            ).fetchall()
        return [Profile.model_validate(json.loads(record)) for (record,) in rows]
