"""The verbs of stored profiles, without Gradio: list, look at one, import, delete, and which names are free."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from mdqa.calibration import builtin_profiles, parse_profile
from mdqa.errors import ConfigError, InputError, MdqaError, ProfileError, StorageError
from mdqa.methods.cafe.profile import read_heads, read_scoring
from mdqa.methods.madara.deciding import route_profile
from mdqa.methods.madara.router import Thresholds
from mdqa.passes import Passes
from mdqa.records import Profile, Routing
from mdqa.registry import CALIBRATIONS, method_class
from storage.encoding import clean_text, to_json
from ui.actions import title_of
from ui.context import Context
from ui.views.markup import short
from ui.views.profiles import STAGES, ListedProfile, head_scores

MAX_NAME = 100
MAX_PROFILE_BYTES = 8 * 2**20


def listed(context: Context) -> list[ListedProfile]:
    """Stored profiles, newest first, then those that ship with the program."""
    found = [(profile, False) for profile in context.store.profiles.list()]
    found += [(profile, True) for profile in builtin_profiles()]
    return [
        ListedProfile(
            _key(profile, builtin), profile, title_of(profile.method), builtin, context.card(profile.model) is not None
        )
        for profile, builtin in found
    ]


def _key(profile: Profile, builtin: bool) -> str:
    digest = Passes.key(profile.method, profile.model, profile.name)[:24]
    return f"{'built-in' if builtin else 'stored'}-{digest}"


def find(context: Context, key: object) -> ListedProfile:
    """The listed profile with this key; ProfileError if it is not there any more."""
    for entry in listed(context):
        if entry.key == key:
            return entry
    raise ProfileError("this profile is not there any more; choose another one")


def delete(context: Context, key: object) -> Profile:
    """Forget a stored profile and return it; ProfileError for one that ships with the program."""
    entry = find(context, key)
    if entry.builtin:
        raise ProfileError(f"{entry.profile.name} ships with the program and cannot be deleted")
    context.store.profiles.delete(entry.profile)
    return entry.profile


def import_profile(context: Context, path: str | None) -> ListedProfile:
    """Store the profile of an uploaded JSON file; MdqaError says why it cannot be used. Nothing is overwritten."""
    if not path:
        raise InputError("choose a JSON file first", place="Import")
    file = Path(path)
    place = clean_text(file.name)
    if file.stat().st_size > MAX_PROFILE_BYTES:
        raise ProfileError(f"{place}: has more than {MAX_PROFILE_BYTES // 2**20} MB; that is no calibration profile")
    profile = _checked(parse_profile(file.read_bytes(), place), place)
    for entry in listed(context):
        known = entry.profile
        if (known.method, known.model, known.name) == (profile.method, profile.model, profile.name):
            if known == profile:
                return entry
            raise ProfileError(
                f"{place}: there already is another profile {profile.name!r} of {entry.title} for {profile.model}; "
                "delete that one first or change the name in the file"
            )
    context.store.profiles.save(profile)
    return find(context, _key(profile, builtin=False))


def _checked(profile: Profile, place: str) -> Profile:
    """The profile with clean texts; ProfileError if its method could not use it or the store not keep it."""
    try:
        profile = Profile.model_validate(json.loads(to_json(profile, "the profile")))
        if profile.method not in CALIBRATIONS:
            raise ProfileError(f"is for the method {profile.method!r}; there is: {', '.join(CALIBRATIONS)}")
        if not profile.name.strip() or not profile.model.strip():
            raise ProfileError("has no name or no model; a profile needs both")
        _check_text(profile.name)
        _check_date(profile.created)
        if profile.method in READABLE:
            READABLE[profile.method](profile)
    except (MdqaError, StorageError) as problem:
        raise ProfileError(f"{place}: {problem}") from None
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        raise ProfileError(f"{place}: its values are not those of a profile of {profile.method}") from None
    return profile


def _check_date(text: str) -> None:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ProfileError(f"created is {text[:40]!r}, not a date like 2026-01-31T12:00:00+00:00") from None


def check_name(context: Context, method: str, model: str, name: str, *, replace: bool = False) -> None:
    """ConfigError if a finished profile could not be kept under this name."""
    if not name:
        raise ConfigError("give the profile a name")
    _check_text(name)
    if any(p.name == name and p.method == method for p in builtin_profiles()):
        raise ConfigError(f"{name!r} is the name of a profile that ships with the program; choose another one")
    taken = context.store.profiles.list(method=method, model=model)
    if not replace and any(profile.name == name for profile in taken):
        raise ConfigError(
            f"there already is a profile {name!r} of {title_of(method)} for {model}; choose another name or tick "
            "“Replace a profile of this name”"
        )


def _check_text(name: str) -> None:
    if len(name) > MAX_NAME:
        raise ConfigError(f"the name has {len(name)} characters; at most {MAX_NAME} are taken")
    if name != clean_text(name) or any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in name):
        raise ConfigError("the name has characters that cannot be seen; type it again")


def ringed_heads(profile: Profile) -> dict[str, int]:
    """How many of the best heads of each stage a run uses: as the profile says, or by default."""
    options = profile.values.get("options")
    given = options if isinstance(options, Mapping) else {}
    fields = method_class("cafe").Config.model_fields
    found = {stage: given.get(name, fields[name].default) for stage, name in zip(STAGES, ("k1", "k2"), strict=True)}
    return {stage: value if isinstance(value, int) and value > 0 else 0 for stage, value in found.items()}


def comparable(context: Context, entry: ListedProfile) -> list[tuple[str, str]]:
    """Words and keys of the other profiles that this one can be set against: those of its own method."""
    method = entry.profile.method
    if method not in READABLE:
        return []
    others = (other for other in listed(context) if other.profile.method == method and other.key != entry.key)
    return [(f"{o.profile.name} · {short(o.profile.model, 50)} · {o.profile.created[:10]}", o.key) for o in others]


def implied_routing(profile: Profile) -> tuple[Routing | None, str]:
    """What MADARA's router makes of a profile with its default thresholds, or why it cannot."""
    try:
        return route_profile(profile, Thresholds()), ""
    except MdqaError as problem:
        return None, str(problem)


def _readable_heads(profile: Profile) -> None:
    read_scoring(profile)
    scores = head_scores(profile, "coarse")
    if scores is None:
        raise ProfileError("has no table of numbers with the head scores of coarse filtering")
    read_heads(profile, profile.model, *scores.shape)


def _readable_probe(profile: Profile) -> None:
    route_profile(profile, Thresholds())


READABLE: Mapping[str, Callable[[Profile], None]] = {"cafe": _readable_heads, "madara": _readable_probe}
"""Per method a check of a profile's values without the model: MdqaError if the method could not work with them."""
