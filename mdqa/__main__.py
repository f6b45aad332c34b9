"""The command line: ``python -m mdqa COMMAND``.

Data goes to ``--output`` or standard output, messages to standard error. Exit status 0: done; 1: some work failed or
was stopped; 2: bad arguments or input.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from mdqa.errors import (
    CapabilityError,
    ConfigError,
    InputError,
    MdqaError,
    MissingDependency,
    OutputError,
    ProfileError,
)

COMMANDS = (
    "answer",
    "evaluate",
    "calibrate",
    "masking",
    "study",
    "heads",
    "score",
    "diagnose",
    "treatments",
    "report",
    "bench",
    "route",
    "methods",
    "models",
    "profiles",
    "export",
    "store",
    "backup",
    "restore",
    "users",
    "doctor",
    "labels",
    "import-labels",
)
"""The commands in the order of ``--help``. Each is a module of :mod:`mdqa.commands` with ``add`` and ``run``."""

OWN = ("mdqa", "storage")
"""Packages of this repository."""

BAD_INPUT = (ConfigError, InputError, ProfileError, CapabilityError, MissingDependency)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the problem and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands; parsed arguments carry the command's ``run`` function."""
    parser = Parser(prog="python -m mdqa", description="Answer questions from many documents and see why.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name in COMMANDS:
        module = import_module(f"mdqa.commands.{name.replace('-', '_')}")
        summary = str(module.__doc__).strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add(command)
        command.set_defaults(run=module.run)
    return parser


def _joined(arguments: Sequence[str]) -> list[str]:
    """``--rho -0.1,0.2,0.3`` with an equals sign: argparse takes a list that begins with a minus for an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--rho":
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        args = build_parser().parse_args(_joined(sys.argv[1:] if arguments is None else arguments))
        run: Callable[[argparse.Namespace], int] = args.run
        status = run(args)
        sys.stdout.flush()  # here, where a reader that went away or a full disk can still be told
        return status
    except SystemExit as leaving:  # argparse leaves the process itself; callers of main want the status
        return int(leaving.code or 0)
    except MdqaError as problem:
        _say(str(problem))
        return 2 if isinstance(problem, BAD_INPUT) else 1
    except KeyboardInterrupt:
        print("mdqa: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our standard output went away; Python would complain once more at exit
        _silence()
        return 1
    except OSError as problem:
        _say(str(OutputError(str(problem.filename or "standard output"), problem)))
        _silence()
        return 1
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] in OWN:
            raise
        print(f"mdqa: the package {problem.name!r} is missing; run: pip install -r requirements.txt", file=sys.stderr)
        return 2


def _say(message: str) -> None:
    from mdqa.commands.options import one_line  # noqa: PLC0415 (needs packages, and their lack has to be told too)

    print(f"mdqa: {one_line(message)}", file=sys.stderr)


def _silence() -> None:
    """Send what is still buffered for standard output nowhere: Python would fail on it once more at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _streams() -> None:
    """Standard output is UTF-8 whatever the locale is; a stream that the caller closed takes nothing."""
    if sys.stderr is None:  # print(file=None) would write messages among the data
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for the whole process)
    if sys.stdout is None:  # opened for reading: data for it is an error, not silently lost
        sys.stdout = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")


if __name__ == "__main__":
    _streams()
    sys.exit(main())
