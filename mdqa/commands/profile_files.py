"""Calibration profiles as JSON files, and the choice among all profiles there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from mdqa.calibration import builtin_profiles, find_profile
from mdqa.errors import ProfileError
from mdqa.records import Profile


def read_profile(path: Path) -> Profile:
    """A profile from its JSON file; ProfileError if it is none."""
    try:
        return Profile.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise ProfileError(f"the profile {path} cannot be read: {problem}") from None
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "file"
        raise ProfileError(f"{path} is no profile: {where}: {first['msg']}") from None


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile as JSON."""
    path.write_text(profile.model_dump_json(indent=2) + "\n", encoding="utf-8")


def choose_profile(method: str, model: str, name: str, stored: Sequence[Profile]) -> Profile | None:
    """The profile with this name or from this JSON file, or without a name the one for the model, if there is one.

    ProfileError if a named profile does not exist or belongs to another method or model.
    """
    if name.endswith(".json"):
        profile: Profile | None = read_profile(Path(name))
    else:
        profile = find_profile(method, model, name, more=stored)
    if name and profile is None:
        names = [p.name for p in (*builtin_profiles(), *stored) if p.method == method and p.model == model]
        known = f"there is: {', '.join(names)}" if names else "there is none; make one with: python -m mdqa calibrate"
        raise ProfileError(f"no profile {name!r} of {method} for the model {model}; {known}")
    if profile is not None and (profile.method, profile.model) != (method, model):
        raise ProfileError(
            f"the profile {profile.name!r} was made for {profile.method} with {profile.model}, not {method} with {model}"
        )
    return profile
