"""Make a calibration profile: CAFE's retrieval heads or MADARA's probe, for one model.

By default only the calibration half of the questions is used, so that the held-out half can be reported on; of that
half, --report N questions of every file show how good the result is. Finished pieces of work are kept: the same
command goes on where a stopped or killed one was. The profile goes into the database, or with --output into a JSON
file that --profile FILE.json reads.

--queue NAME takes, in place of --input, the questions of an annotation queue with the documents that people marked as
evidence: CAFE's heads from people's marks. With --before, the heads before are measured beside the new ones.

MADARA's No-Filter accuracy needs to know which answers are right. Where the file does not say, --labels takes the
verdicts that people gave on the page on stored MADARA runs with treatment nf, of this model, on the same question
over the same documents in the same order: the majority of each person's latest verdict; ties are left out. Labels that
were given in annotation queues come first, as they were given blind. People accept wordings that exact match does not,
so what they say tends to be more than exact match would give.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Container, Sequence
from inspect import signature
from itertools import islice
from pathlib import Path

from mdqa.agreement.learning import content
from mdqa.benchmarks.base import in_split, read_questions
from mdqa.calibration import JUDGED_RUNS, planned, typed_options, write_profile
from mdqa.commands.database import opened, stored_profiles
from mdqa.commands.labelled import labelled, queue_verdicts, write_evidence
from mdqa.commands.options import (
    add_database_argument,
    add_model_arguments,
    add_question_arguments,
    check_output,
    choose_profile,
    make_tools,
    open_backend,
    parse_set,
    questions_from,
)
from mdqa.commands.working import stop_by_signal
from mdqa.errors import Cancelled, ConfigError, InputError
from mdqa.methods.cafe.quality import table
from mdqa.passes import Passes
from mdqa.records import Profile, Question
from mdqa.registry import CALIBRATIONS, load
from mdqa.settings import Settings


def add(parser: argparse.ArgumentParser) -> None:
    """Add this command's arguments."""
    parser.add_argument("--method", required=True, choices=tuple(CALIBRATIONS), help="what to calibrate")
    parser.add_argument("--name", required=True, help="the profile's name")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a JSON file instead of the database")
    parser.add_argument("--replace", action="store_true", help="take the place of a profile of this name")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="an option of the calibration")
    parser.add_argument(
        "--report", type=int, default=20, metavar="N", help="measure the profile on N other questions of every file"
    )
    parser.add_argument(
        "--labels",
        action="store_true",
        help="where a question has no gold answers, use people's verdicts in the database on stored answers to it",
    )
    parser.add_argument(
        "--before", metavar="NAME", help="another profile to measure beside the new one, on the same questions"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_question_arguments(parser, split="calibration", seed=42, several=True, required=False)
    parser.add_argument(
        "--queue",
        metavar="NAME",
        help="in place of --input: an annotation queue, its people's evidence as gold",
    )
    add_model_arguments(parser)
    add_database_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Calibrate and keep the profile."""
    settings = Settings.from_environment()
    if not args.name.strip():
        raise ConfigError("--name: give the profile a name")
    if bool(args.input) == bool(args.queue):
        raise ConfigError("say which questions: either --input FILE or --queue NAME")
    database = args.db or settings.database
    if not args.queue:
        return _run(args, settings, database, ", ".join(path.name for path in args.input))
    with tempfile.TemporaryDirectory(prefix="mdqa-evidence-") as folder:
        args.input, args.format = [_marked(args.queue, database, Path(folder) / "evidence.jsonl")], "auto"
        return _run(args, settings, database, f"evidence marked in {args.queue!r}")


def _marked(queue: str, database: Path, path: Path) -> Path:
    """Write the queue's questions with people's evidence; InputError where nobody marked any."""
    if not database.is_file():
        raise InputError("there is no such database, so there are no queues", place=str(database))
    with opened(database) as store:
        found = labelled(store, queue)
    with path.open("w", encoding="utf-8") as stream:
        if not write_evidence(found, stream).questions:
            raise InputError(f"nobody has marked evidence in {queue!r} yet", place="--queue")
    return path


def _run(args: argparse.Namespace, settings: Settings, database: Path, names: str) -> int:
    """Calibrate on the files of ``--input``, called ``names`` together."""
    from tqdm import tqdm  # noqa: PLC0415 (only commands that take long draw a bar)

    if args.output:
        for path in args.input:
            check_output(args.output, path)
    else:
        with opened(database):
            pass  # says at once, and not after hours of work, that it cannot be used
    calibrate = load(CALIBRATIONS, args.method, "calibration")
    options = typed_options(calibrate, parse_set(args.set))
    questions = questions_from(args)
    print(f"{len(questions)} questions of {names} (split: {args.split})", file=sys.stderr)
    options.setdefault("data", f"{names} ({args.split})")
    accepted = signature(calibrate).parameters
    if "held_out" in accepted and args.report > 0:
        options["held_out"] = _others(args, questions)
    wanted = {name: value for name, value in options.items() if name != "held_out"}
    used, calls = planned(calibrate, questions, held_out=options.get("held_out", ()), seed=args.seed, options=wanted)
    print(f"{used} of them are used, with at most {calls:,} passes of the model", file=sys.stderr)
    if args.labels:
        _check_labels(args, database, accepted)
    backend = open_backend(args, settings)
    try:
        _check_name(args, database, backend.model)
        if args.labels:
            options["verdicts"] = _verdicts(args.method, database, backend.model, questions)
        if args.before:
            options["before"] = _before(args, database, backend.model, accepted)
        with stop_by_signal() as cancel, tqdm(file=sys.stderr, disable=args.quiet, dynamic_ncols=True) as bar:

            def progress(done: int, total: int, message: str = "") -> None:
                bar.total = total
                bar.set_description(message, refresh=False)
                bar.update(done - bar.n)

            tools = make_tools(backend)
            passes = Passes.for_profile(settings.cache, args.method, backend.model, args.name)
            if "passes" in accepted:
                options["passes"] = passes
                if passes.count():
                    bar.write(f"{passes.count()} finished pieces of an earlier attempt are used", file=sys.stderr)
            profile = calibrate(
                questions, tools, name=args.name, seed=args.seed, cancel=cancel, progress=progress, **options
            )
    except Cancelled:
        again = "; the same command goes on from here" if "passes" in accepted else ""
        print(f"stopped; no profile was made{again}", file=sys.stderr)
        return 1
    finally:
        backend.close()
    if args.output:
        write_profile(profile, args.output)
    else:
        with opened(database) as store:
            store.profiles.save(profile, replace=args.replace)
    passes.discard()
    print(f"profile {profile.name!r}: {args.output or database}", file=sys.stderr)
    print(profile.note, file=sys.stderr)
    if "quality" in profile.values:
        print(table(profile.values["quality"]), file=sys.stderr)
    return 0


def _before(args: argparse.Namespace, database: Path, model: str, accepted: Container[str]) -> Profile | None:
    """The profile of ``--before``; ConfigError where the calibration measures none."""
    if "before" not in accepted:
        raise ConfigError(f"--before: the calibration of {args.method} measures no other profile beside its own")
    return choose_profile(args.method, model, args.before, stored_profiles(database))


def _others(args: argparse.Namespace, used: Sequence[Question]) -> list[Question]:
    """Questions with evidence marks of the other half of every file, none of them among the used ones."""
    split = "calibration" if args.split == "held-out" else "held-out"
    seen = {item.id for item in used}
    others: list[Question] = []
    for path in args.input:
        found = in_split(read_questions(path, format=args.format), split)
        others.extend(islice((q for q in found if q.gold_ids and q.id not in seen), args.report))
    return others


def _check_labels(args: argparse.Namespace, database: Path, accepted: Container[str]) -> None:
    """An error, before the model is loaded, if there can be no verdicts to use."""
    if args.method not in JUDGED_RUNS or "verdicts" not in accepted:
        raise ConfigError(f"--labels: the calibration of {args.method} does not measure answers")
    if not database.is_file():
        raise InputError("there is no such database, so there are no labels", place=str(database))


def _verdicts(method: str, database: Path, model: str, questions: Sequence[Question]) -> dict[str, bool]:
    """People's verdicts on stored answers to the questions without gold answers, by question id, and a line on them.

    InputError, before hours of work, if there are such questions and nobody judged an answer to any of them.
    """
    unanswered = [item for item in questions if not item.answers]
    with opened(database) as store:
        labelled = queue_verdicts(store, model=model, **JUDGED_RUNS[method])
        own = {item.id: labelled[key] for item in unanswered if (key := content(item)) in labelled}
        rest = [item for item in unanswered if item.id not in own]
        judged = store.annotations.verdicts(model=model, **JUDGED_RUNS[method]).on(rest)
    right = {**judged.right, **own}
    found = f"people judged {len(right)} of {len(unanswered)} questions without gold answers"
    ties = f"; {judged.tied} more are left out, with as many for as against" if judged.tied else ""
    if unanswered and not right:
        raise InputError(
            f"--labels: {found}{ties}. Answer them on the page with {_named(method)} and {model}, say whether the "
            "answers are right, or leave out --labels",
            place=str(database),
        )
    print(found + ties, file=sys.stderr)
    return right


def _named(method: str) -> str:
    """The runs that count, in words: the method and, if there is one, the treatment."""
    return " and treatment ".join(JUDGED_RUNS[method].values())


def _check_name(args: argparse.Namespace, database: Path, model: str) -> None:
    """ConfigError, before hours of work, if the finished profile could not be kept under its name."""
    if args.replace:
        return
    if args.output and args.output.exists():
        raise ConfigError(f"{args.output} exists already; choose another --output or give --replace")
    stored = () if args.output else stored_profiles(database)
    if any((p.method, p.model, p.name) == (args.method, model, args.name) for p in stored):
        raise ConfigError(f"{database} has a profile {args.name!r} of {args.method} for {model}; give --replace")
