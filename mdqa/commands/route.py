"""Say what MADARA's router decides for given measurements. No model is needed."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace

from mdqa.commands.options import parse_set, write_lines
from mdqa.errors import ConfigError
from mdqa.methods.madara.router import Rho, Thresholds, decide


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    names = ", ".join(field.name for field in fields(Thresholds))
    parser.add_argument("--rho", metavar="R1,R2,R3", help="the probe's three correlations, -1 to 1")
    parser.add_argument("--nf", metavar="EM", help="No-Filter exact match, 0 to 1 (default: unknown)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"a threshold: {names}")
    parser.add_argument("--output", default="-", metavar="FILE", help="JSON lines; - is standard output (default)")


def run(args: argparse.Namespace) -> int:
    """Print the decision as one JSON line."""
    nf = None if args.nf is None else _number("--nf", args.nf)
    found = decide(_rho(args.rho), nf, _thresholds(args.set)).model_dump(mode="json")
    found["class"] = found.pop("model_class")
    write_lines([found], args.output)
    return 0


def _rho(text: str | None) -> Rho | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 3:
        raise ConfigError(f"--rho {text!r}: give three numbers with commas between them, such as 0.6,0.4,0.1")
    first, second, third = (_number("--rho", part) for part in parts)
    return first, second, third


def _thresholds(pairs: list[str]) -> Thresholds:
    known = {field.name for field in fields(Thresholds)}
    thresholds = Thresholds()
    for key, value in parse_set(pairs).items():
        key = "rho1" if key == "rho1_threshold" else key  # the method's option has the longer name
        if key not in known:
            raise ConfigError(f"--set {key}: there is no such threshold; there is: {', '.join(sorted(known))}")
        thresholds = replace(thresholds, **{key: _number(f"--set {key}", value)})
    return thresholds


def _number(name: str, text: object) -> float:
    try:
        value = float(str(text))
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is not a number") from None
    if not abs(value) < float("inf"):  # also refuses nan
        raise ConfigError(f"{name}: {text!r} is not a finite number")
    return value
