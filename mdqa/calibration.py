"""Calibration profiles: those that ship with the package, those in files, which one fits, and how one is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import ValidationError, create_model

from mdqa.errors import ProfileError
from mdqa.methods.base import MethodConfig
from mdqa.records import Profile, Question
from mdqa.registry import method_class

GIVEN = ("name", "seed", "cancel", "progress", "passes", "held_out", "before", "verdicts")
"""Keyword arguments of a calibration that whoever calls it gives; the others are its options."""

JUDGED_RUNS: Mapping[str, Mapping[str, str]] = {"madara": {"method": "madara", "treatment": "nf"}}
"""Per calibration that takes people's ``verdicts``: the stored runs whose answers are what it would have measured.

MADARA's No-Filter accuracy is that of its own generator prompt over all documents. Direct answering reads the same
documents but is asked in other words, and small models answer other words differently, so its runs do not count.
"""


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
        model = method_class(method).profiled(model)
        return next((p for p in known if p.method == method and p.model == model), None)
    for profile in known:
        if profile.name == name and profile.method == method:
            return profile
    listed = ", ".join(f"{p.name} ({p.method}, {p.model})" for p in known) or "none"
    raise ProfileError(f"no profile {name!r} for {method}; there is: {listed}")


def calibration_options(calibrate: Callable[..., Profile]) -> type[MethodConfig]:
    """The options of a function of ``registry.CALIBRATIONS`` as a configuration class.

    Its keyword arguments with their types and defaults; where it takes ``**options``, those are the fields of the
    class ``CalibrationConfig`` in its module.
    """
    hints = get_type_hints(calibrate, include_extras=True)
    parameters = signature(calibrate).parameters.values()
    own: dict[str, Any] = {
        parameter.name: (hints[parameter.name], parameter.default)
        for parameter in parameters
        if parameter.kind is Parameter.KEYWORD_ONLY and parameter.name not in GIVEN
    }
    is_open = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
    base: type[MethodConfig] = import_module(calibrate.__module__).CalibrationConfig if is_open else MethodConfig
    return create_model("CalibrationOptions", __base__=base, **own)


def typed_options(calibrate: Callable[..., Profile], given: Mapping[str, Any]) -> dict[str, Any]:
    """Options given as texts (or values) in the types of the calibration; ConfigError names a wrong one."""
    config = calibration_options(calibrate).parse(given)
    return {name: getattr(config, name) for name in given}


def planned(
    calibrate: Callable[..., Profile],
    questions: Sequence[Question],
    *,
    held_out: Sequence[Question] = (),
    seed: int,
    options: Mapping[str, Any],
) -> tuple[int, int]:
    """How many of the questions a calibration would use, and its passes or calls of the model at most.

    Said by the function ``planned`` in its module, without a model; InputError for questions that it cannot use.
    """
    more = {"held_out": held_out} if accepts(calibrate, "held_out") else {}
    chosen = {name: value for name, value in options.items() if name != "data"}
    found: tuple[int, int] = import_module(calibrate.__module__).planned(questions, seed=seed, **more, **chosen)
    return found


def accepts(calibrate: Callable[..., Profile], name: str) -> bool:
    """Whether a calibration takes this keyword argument by name (``passes``, ``held_out``)."""
    return name in signature(calibrate).parameters


def read_profile(path: Path) -> Profile:
    """A profile from its JSON file; ProfileError names the file and what is wrong."""
    try:
        return parse_profile(path.read_bytes(), str(path))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from None


def parse_profile(data: bytes, place: str) -> Profile:
    """A profile from the bytes of its JSON file; ProfileError begins with ``place`` and says what is wrong."""
    try:
        return Profile.model_validate_json(data.decode("utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise ProfileError(f"{place}: not a calibration profile: {str(error).splitlines()[0]}") from None


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile as JSON, whole or not at all."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(profile.model_dump_json(indent=1) + "\n", encoding="utf-8")
    partial.replace(path)
