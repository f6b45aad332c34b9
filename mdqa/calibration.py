"""Calibration profiles: those that ship with the package, those in files, and which one fits."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from mdqa.errors import ProfileError
from mdqa.records import Profile


def builtin_profiles() -> tuple[Profile, ...]:
    """The profiles that come with the package, by name."""
    folder = files("mdqa") / "profiles"
    sources = sorted((s for s in folder.iterdir() if s.name.endswith(".json")), key=lambda s: s.name)
    return tuple(Profile.model_validate_json(source.read_text(encoding="utf-8")) for source in sources)


def find_profile(method: str, model: str, name: str = "", more: Sequence[Profile] = ()) -> Profile | None:
    """A profile by name, or the best one for a method and model: ``more`` (newest first), then the package's.

    With a name that does not exist: ProfileError that lists those that do. Without a name: None if none fits.
    """
    known = [*more, *builtin_profiles()]
    if not name:
        return next((p for p in known if p.method == method and p.model == model), None)
    for profile in known:
        if profile.name == name and profile.method == method:
            return profile
    listed = ", ".join(f"{p.name} ({p.method}, {p.model})" for p in known) or "none"
    raise ProfileError(f"no profile {name!r} for {method}; there is: {listed}")


def read_profile(path: Path) -> Profile:
    """A profile from its JSON file; ProfileError names the file and what is wrong."""
    try:
        return Profile.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValidationError, UnicodeDecodeError) as error:
        raise ProfileError(f"{path}: not a calibration profile: {str(error).splitlines()[0]}") from None


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile as JSON, whole or not at all."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(profile.model_dump_json(indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
