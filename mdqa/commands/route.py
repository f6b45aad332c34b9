"""Say what MADARA's router decides for given measurements, and what other thresholds would do. No model is needed.

The measurements are given (--rho, --nf, --entropy), or those of calibration profiles (--profile: names, JSON files), of
a file of cells (--cells: JSON lines with name, rho, nf, entropy and em, the exact match of treatments such as pde or
sda, as far as they are known), or the paper's own (--published). All numbers are fractions: 13.9% is 0.139.

--sweep moves tau_nf and rho1 as Appendix D does and says which decisions change. --threshold-from-profiles takes tau_nf
from the widest gap between the No-Filter accuracies given; to run with it: answer --method madara --set tau_nf=VALUE.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mdqa.calibration import find_profile, read_profile
from mdqa.commands.database import stored_profiles
from mdqa.commands.options import add_database_argument, parse_set, write_lines
from mdqa.commands.route_tables import coupling_table, decision_text, learned_text, sweep_table
from mdqa.errors import ConfigError, InputError
from mdqa.methods.madara.deciding import measured, route_profile
from mdqa.methods.madara.entropy import decide_by_entropy
from mdqa.methods.madara.published import HELD_OUT, MULTI_HOP, ROUTED
from mdqa.methods.madara.router import Rho, Thresholds, check_measures, decide
from mdqa.methods.madara.sensitivity import (
    RHO1_VALUES,
    TAU_NF_VALUES,
    Cell,
    Learned,
    coupling_sweep,
    sweep,
    threshold_from,
)
from mdqa.records import Profile, Routing
from mdqa.settings import Settings

GIVEN = "given"
"""Name of the measurements on the command line."""

PUBLISHED: Mapping[str | None, tuple[Cell, ...]] = {"routed": ROUTED, "all": (*ROUTED, *HELD_OUT, *MULTI_HOP)}

Share = Annotated[float, Field(ge=0, le=1)]
Correlation = Annotated[float, Field(ge=-1, le=1)]


class CellLine(BaseModel):
    """One line of a file of cells."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rho: tuple[Correlation, Correlation, Correlation] | None = None
    nf: Share | None = None
    entropy: Share | None = None
    em: dict[str, Share] = {}


@dataclass(frozen=True)
class Case:
    """Something to decide for: a cell with its entropy, and the profile where it comes from one."""

    cell: Cell
    entropy: float | None = None
    profile: Profile | None = field(default=None, repr=False)

    def by_rsc(self, bars: Thresholds, multi_hop: bool) -> Routing:
        """The router's decision."""
        if self.profile is not None:
            return route_profile(self.profile, bars, multi_hop=multi_hop)
        return decide(self.cell.rho, self.cell.nf, bars, multi_hop=multi_hop)

    def by_entropy(self, bars: Thresholds) -> Routing:
        """The entropy router's decision; ConfigError where there is no entropy."""
        if self.profile is not None:
            return route_profile(self.profile, bars, router="entropy")
        if self.entropy is None:
            raise ConfigError(f"{self.cell.name}: the entropy router needs the entropy of the grades (--entropy)")
        return decide_by_entropy(self.entropy, bars)


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    names = ", ".join(each.name for each in fields(Thresholds))
    measures = parser.add_argument_group("measurements")
    measures.add_argument("--rho", metavar="R1,R2,R3", help="the probe's three correlations, -1 to 1")
    measures.add_argument("--nf", metavar="EM", help="No-Filter exact match, 0 to 1 (default: unknown)")
    measures.add_argument("--entropy", metavar="H", help="normalised entropy of the grades, 0 to 1")
    measures.add_argument(
        "--profile", "--profiles", nargs="+", default=[], metavar="NAME|FILE.json", help="calibration profiles"
    )
    measures.add_argument("--cells", type=Path, metavar="FILE", help="JSON lines of cells")
    measures.add_argument(
        "--published",
        nargs="?",
        const="routed",
        choices=tuple(PUBLISHED),
        help="the paper's own: the ten of its table 2 (routed), or all whose No-Filter accuracy is printed (all)",
    )
    parser.add_argument(
        "--router", choices=("rsc", "entropy", "both"), help="which router (default: those that --rho, --entropy serve)"
    )
    parser.add_argument(
        "--task",
        choices=("auto", "factoid", "fever", "multi-hop"),
        default="auto",
        help="as the method's option: multi-hop has a rule of its own (ours), the others are routed alike",
    )
    parser.add_argument("--sweep", action="store_true", help="report what other thresholds would change (Appendix D)")
    parser.add_argument(
        "--threshold-from-profiles", action="store_true", help="learn tau_nf from the No-Filter accuracies given"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"a threshold: {names}")
    parser.add_argument("--format", choices=("json", "table"), default="json", help="JSON lines, or text for people")
    parser.add_argument("--output", default="-", metavar="FILE", help="JSON lines; - is standard output (default)")
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the decisions or the report."""
    if args.format == "table" and args.output != "-":
        raise ConfigError("--format table goes to standard output; a file takes JSON lines")
    bars, multi_hop = _thresholds(args.set), args.task == "multi-hop"
    cases = list(_cases(args))
    rows: list[dict[str, Any]] = []
    texts: list[str] = []
    if args.threshold_from_profiles:
        if any(pair.partition("=")[0].strip() == "tau_nf" for pair in args.set):
            raise ConfigError("--threshold-from-profiles learns tau_nf; leave out --set tau_nf")
        learned, unknown = _learn(cases)
        bars = replace(bars, tau_nf=learned.threshold)
        rows.append(_learned_row(learned, unknown))
        texts.append(learned_text(learned, unknown))
    if args.sweep:
        more, tables = _report([case.cell for case in cases], bars, multi_hop)
        rows += more
        texts += tables
    else:
        for case, router, routing in _decisions(cases, args, bars, multi_hop):
            rows.append(_decision_row(case, router, routing))
            texts.append(decision_text(case.cell.name, routing))
    if args.format == "table":
        sys.stdout.write("\n".join(texts))
    else:
        write_lines(rows, args.output)
    return 0


def _cases(args: argparse.Namespace) -> Iterator[Case]:
    """Everything to decide for; ConfigError if there is nothing or a name comes twice."""
    cases = [*_given(args), *_of_profiles(args), *_of_file(args.cells)]
    cases += [Case(cell) for cell in PUBLISHED.get(args.published, ())]
    if not cases:
        raise ConfigError("give measurements: --rho and --nf, --entropy, --profile, --cells or --published")
    name, times = Counter(case.cell.name for case in cases).most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{name!r} is given {times} times; every model and task once")
    yield from cases


def _given(args: argparse.Namespace) -> Iterator[Case]:
    rho, nf, entropy = _rho(args.rho), _optional("--nf", args.nf), _optional("--entropy", args.entropy)
    check_measures(rho, nf)
    if rho is not None or nf is not None or entropy is not None:
        yield Case(Cell(GIVEN, rho, nf), entropy)


def _of_profiles(args: argparse.Namespace) -> Iterator[Case]:
    if not args.profile:
        return
    stored = stored_profiles(args.db or Settings.from_environment().database)
    for name in args.profile:
        found = read_profile(Path(name)) if name.endswith(".json") else find_profile("madara", "", name, more=stored)
        assert found is not None  # with a name: one or a ProfileError
        if found.method != "madara":
            raise ConfigError(f"--profile {name}: it is a profile of {found.method}, not of madara")
        values = measured(found)
        cell = Cell(f"{found.name} ({found.model})", values.rho, values.nf)
        yield Case(cell, values.entropy, found)


def _of_file(path: Path | None) -> Iterator[Case]:
    if path is None:
        return
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path)) from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                cell = CellLine.model_validate_json(line)
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise InputError(f"{where or 'cell'}: {first['msg']}", place=f"{path}, line {number}") from None
            yield Case(Cell(cell.name, cell.rho, cell.nf, cell.em), cell.entropy)


def _decisions(
    cases: Sequence[Case], args: argparse.Namespace, bars: Thresholds, multi_hop: bool
) -> Iterator[tuple[Case, str, Routing]]:
    for case in cases:
        measured_here = case.cell.rho is not None or case.cell.nf is not None
        asked = case.cell.name == GIVEN and case.entropy is not None
        if args.router in ("rsc", "both") or (args.router is None and (measured_here or not asked)):
            yield case, "rsc", case.by_rsc(bars, multi_hop)
        if args.router in ("entropy", "both") or (args.router is None and asked):
            yield case, "entropy", case.by_entropy(bars)


def _decision_row(case: Case, router: str, routing: Routing) -> dict[str, Any]:
    row = routing.model_dump(mode="json")
    row["class"] = row.pop("model_class")
    named = {} if case.cell.name == GIVEN else {"name": case.cell.name}
    return {**named, **row, "router": router}


def _report(cells: Sequence[Cell], bars: Thresholds, multi_hop: bool) -> tuple[list[dict[str, Any]], list[str]]:
    """The sweeps of Appendix D as JSON rows and as texts."""
    rows: list[dict[str, Any]] = []
    texts = []
    for threshold, values in (("tau_nf", TAU_NF_VALUES), ("rho1_threshold", RHO1_VALUES)):
        outcomes = sweep(cells, threshold, values, bars, multi_hop=multi_hop)
        texts.append(sweep_table(outcomes, getattr(bars, threshold)))
        for outcome in outcomes:
            row = vars(outcome)
            rows.append({"sweep": row["threshold"], **{k: v for k, v in row.items() if k != "threshold"}})
    if any(cell.rho is not None for cell in cells):
        coupled = coupling_sweep(cells)
        texts.append(coupling_table(coupled))
        rows += [{"sweep": "cot_or_three_agent", **vars(outcome)} for outcome in coupled]
    return rows, texts


def _learn(cases: Sequence[Case]) -> tuple[Learned, list[str]]:
    """The learned threshold, and the names of those without a No-Filter accuracy to learn from."""
    known = [case.cell.nf for case in cases if case.cell.nf is not None]
    return threshold_from(known), [case.cell.name for case in cases if case.cell.nf is None]


def _learned_row(learned: Learned, unknown: Sequence[str]) -> dict[str, Any]:
    values: Mapping[str, float | int] = vars(learned)
    return {"learned": "tau_nf", **values, "gap": learned.gap, "without_accuracy": list(unknown)}


def _rho(text: str | None) -> Rho | None:
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) != 3:
        raise ConfigError(f"--rho {text!r}: give three numbers with commas between them, such as 0.6,0.4,0.1")
    first, second, third = (_number("--rho", part) for part in parts)
    return first, second, third


def _thresholds(pairs: list[str]) -> Thresholds:
    known = {each.name for each in fields(Thresholds)}
    thresholds = Thresholds()
    for key, value in parse_set(pairs).items():
        if key not in known:
            raise ConfigError(f"--set {key}: there is no such threshold; there is: {', '.join(sorted(known))}")
        thresholds = replace(thresholds, **{key: _number(f"--set {key}", value)})
    return thresholds


def _optional(name: str, text: str | None) -> float | None:
    return None if text is None else _number(name, text)


def _number(name: str, text: object) -> float:
    try:
        value = float(str(text))
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is not a number") from None
    if not abs(value) < float("inf"):  # also refuses nan
        raise ConfigError(f"{name}: {text!r} is not a finite number")
    return value
