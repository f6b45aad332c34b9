"""What several commands share: arguments about models and questions, and the objects made from them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mdqa.backends.base import Backend
from mdqa.benchmarks.base import SPLITS, Problem, in_split, read_questions
from mdqa.benchmarks.flashrag import CANDIDATES, Corpus, read_corpus
from mdqa.benchmarks.placing import SETTINGS, Placement, place_all
from mdqa.calibration import find_profile, read_profile
from mdqa.errors import ConfigError, InputError, OutputError, ProfileError
from mdqa.methods.base import Encoder, Tools
from mdqa.records import Profile, Question
from mdqa.registry import BACKENDS, READERS
from mdqa.retrieval.base import PairScorer
from mdqa.settings import Settings

SHOWN_NOTICES = 5
"""Notices of a file that are printed; the others are counted."""


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose and load a model; their defaults come from the settings when they are used."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        help="builtin, a Hugging Face id, a folder, vllm:NAME for an engine of vLLM, http://HOST:PORT/v1 for a server, "
        "scripted, or 'A + B': A writes, B shows attention (default: MDQA_MODEL)",
    )
    group.add_argument(
        "--backend",
        default="auto",
        choices=("auto", *BACKENDS),
        help="what runs the model (vllm: an engine of its own)",
    )
    group.add_argument("--device", help="auto, cpu, cuda, cuda:0 ... (default: MDQA_DEVICE or auto)")
    group.add_argument("--dtype", help="auto, float32, bfloat16, float16 (default: MDQA_DTYPE or auto)")


def add_question_arguments(
    parser: argparse.ArgumentParser, *, split: str, seed: int, several: bool = False, required: bool = True
) -> None:
    """The arguments that choose questions; ``split`` (the part of the file) and ``seed`` are their defaults.

    With ``several`` there may be more than one input, and ``--limit`` holds for each of them. Not ``required``: there
    is another way to say which questions.
    """
    group = parser.add_argument_group("questions")
    files, each = (
        ("questions with their documents, one file or several, or hf:owner/name[:config][:split]", " of every file")
        if several
        else ("questions with their documents, or a data set: hf:owner/name[:config][:split]", "")
    )
    group.add_argument(
        "--input", type=Path, required=required, metavar="FILE", help=files, nargs="+" if several else None
    )
    group.add_argument("--format", default="auto", choices=("auto", *READERS), help="the file's format")
    group.add_argument("--limit", type=positive, metavar="N", help=f"use the first N questions{each} only")
    group.add_argument(
        "--split",
        default=split,
        choices=SPLITS,
        help=f"use the questions whose id has an even (calibration) or odd (held-out) SHA-256 (default: {split})",
    )
    parser.add_argument("--seed", type=int, default=seed, help=f"seed of everything that is drawn (default: {seed})")


def add_corpus_arguments(parser: argparse.ArgumentParser) -> None:
    """``--corpus`` and ``--candidates``: where questions that come without documents get theirs."""
    group = parser.add_argument_group("corpus")
    group.add_argument("--corpus", type=Path, metavar="FILE", help="passages for questions that have no documents")
    group.add_argument(
        "--candidates",
        type=positive,
        default=CANDIDATES,
        metavar="N",
        help=f"passages that BM25 takes from --corpus for a question (default: {CANDIDATES})",
    )


def add_placing_arguments(parser: argparse.ArgumentParser) -> None:
    """``--position``, ``--documents`` and ``--setting``: the questions in another setting (``benchmarks.placing``)."""
    group = parser.add_argument_group("setting of the documents")
    group.add_argument(
        "--position", type=positive, metavar="N", help="put the documents marked gold in place N, counted from 1"
    )
    group.add_argument(
        "--documents", type=positive, metavar="N", help="use N documents, leaving out distractors from the end"
    )
    group.add_argument(
        "--setting",
        default="given",
        choices=SETTINGS,
        help="gold documents only (oracle), no documents (closed_book), or all but the gold ones (no_gold)",
    )


def add_database_argument(parser: argparse.ArgumentParser) -> None:
    """``--db``: where runs and profiles are stored."""
    parser.add_argument("--db", type=Path, metavar="FILE", help="the database (default: MDQA_DATABASE)")


def positive(text: str) -> int:
    """A whole number above zero, for argparse."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not above zero")
    return min(value, sys.maxsize)  # what slices take


def parse_set(pairs: Sequence[str]) -> dict[str, Any]:
    """``key=value`` pairs as options. Lists and null are read as JSON, everything else stays text for the field.

    ConfigError for a pair without ``=`` or a key given twice.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ConfigError(f"--set {pair!r}: write it as key=value")
        if key in options:
            raise ConfigError(f"--set {key}: given twice")
        options[key] = _value(key, value.strip())
    return options


def _value(key: str, text: str) -> Any:
    if text != "null" and not text.startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--set {key}: {text!r} is not valid JSON: {error}") from None


def questions_from(args: argparse.Namespace) -> list[Question]:
    """The chosen questions of the input, or of several inputs in turn; InputError if there is none in one of them."""
    paths = args.input if isinstance(args.input, list) else [args.input]
    corpus = corpus_from(args)
    read = [item for path in paths for item in questions_in(path, args.format, args.split, args.limit, corpus)]
    given = {name: getattr(args, name) for name in ("position", "documents", "setting") if hasattr(args, name)}
    return placed(read, Placement(**given))


def corpus_from(args: argparse.Namespace) -> Corpus | None:
    """The corpus of ``--corpus``, if there is one, with a line about what cannot be used of it."""
    if getattr(args, "corpus", None) is None:
        return None
    problems: list[Problem] = []
    corpus = read_corpus(args.corpus, candidates=args.candidates, on_problem=problems.append)
    _say(problems)
    if problems:
        print(f"{args.corpus}: {len(problems)} passages cannot be used and are left out", file=sys.stderr)
    return corpus


def placed(questions: Sequence[Question], wanted: Placement) -> list[Question]:
    """The questions in another setting; those that cannot be placed are counted, the first of them shown.

    InputError if none can.
    """
    done = place_all(questions, wanted)
    for reason in done.left_out[:SHOWN_NOTICES]:
        print(f"note: {one_line(reason)}", file=sys.stderr)
    if done.left_out:
        print(f"{len(done.left_out)} of {len(questions)} questions cannot be placed and are left out", file=sys.stderr)
    if not done.questions:
        raise InputError(f"no question can be placed ({wanted.suffix.removeprefix('@')}): {done.left_out[0]}")
    return list(done.questions)


def questions_in(
    path: Path, format: str, split: str, limit: int | None, corpus: Corpus | None = None
) -> list[Question]:
    """The first ``limit`` questions of one part of a file; InputError if there is none."""
    notices: list[Problem] = []
    most = limit if split == "all" else None  # a split is cut after it is made
    read = read_questions(path, format=format, limit=most, corpus=corpus, on_notice=notices.append)
    questions = list(in_split(read, split))[:limit]
    _say(notices)
    if not questions:
        raise InputError(f"there are no questions in it (split: {split})", place=str(path))
    return questions


def _say(notices: Sequence[Problem]) -> None:
    """The first notices, and how many more there are."""
    for notice in notices[:SHOWN_NOTICES]:
        print(f"note: {one_line(f'{notice.place}: {notice.message}')}", file=sys.stderr)
    if len(notices) > SHOWN_NOTICES:
        print(f"note: {len(notices) - SHOWN_NOTICES} more of this kind", file=sys.stderr)


def open_backend(args: argparse.Namespace, settings: Settings) -> Backend:
    """Load the chosen model, with a line on standard error for every step."""
    from mdqa.backends.loading import default_model, load_backend  # noqa: PLC0415 (imports torch)

    return load_backend(
        args.model or settings.model or default_model(),
        backend=args.backend,
        device=args.device or settings.device,
        dtype=args.dtype or settings.dtype,
        cache=settings.cache,
        progress=steps_said(),
        **served(settings),
    )


def steps_said() -> Callable[[str, float | None], None]:
    """What says the steps of loading a model on standard error, each once."""
    last = ""

    def progress(message: str, _: float | None) -> None:
        nonlocal last
        if message != last:  # fractions change often, a log does not need each of them
            print(message, file=sys.stderr, flush=True)
            last = message

    return progress


def served(settings: Settings) -> dict[str, str]:
    """What servers and engines need to know, as arguments of ``load_backend``."""
    return {
        "api_key": settings.api_key,
        "vllm_python": settings.vllm_python,
        "vllm_arguments": settings.vllm_args,
    }


def make_tools(backend: Backend, profile: Profile | None = None) -> Tools:
    """The tools of a run: the backend, the profile, and models of retrieval, each loaded when first asked for.

    An encoder or cross-encoder that the person names runs where the model runs and may be fetched. The key of an
    embeddings server is read from the settings when the server is first asked for.
    """
    device = getattr(backend, "device", "cpu")

    def packaged() -> Encoder:
        from mdqa.retrieval.dense import MiniLMEncoder  # noqa: PLC0415 (loads weights)

        return MiniLMEncoder()

    def named(name: str) -> Encoder:
        from mdqa.retrieval.dense import SentenceEncoder  # noqa: PLC0415 (loads weights)

        print(f"loading the sentence encoder {one_line(name)}", file=sys.stderr, flush=True)
        return SentenceEncoder(name, device=device, local_only=False)

    def cross_encoder(name: str) -> PairScorer:
        from mdqa.retrieval.cross_encoder import CrossEncoder  # noqa: PLC0415 (loads weights)

        print(f"loading the cross-encoder {one_line(name)}", file=sys.stderr, flush=True)
        return CrossEncoder(name, device=device, local_only=False)

    def served(url: str, model: str) -> Encoder:
        from mdqa.retrieval.openai_embeddings import OpenAIEmbeddings  # noqa: PLC0415 (most runs need no client)

        return OpenAIEmbeddings(url, model, key=Settings.from_environment().api_key)

    return Tools(
        backend=backend,
        make_encoder=packaged,
        profile=profile,
        load_encoder=named,
        load_cross_encoder=cross_encoder,
        open_embeddings=served,
    )


def choose_profile(method: str, model: str, name: str, stored: Sequence[Profile]) -> Profile | None:
    """The profile with this name or from this JSON file, or without a name the one for the model, if there is one.

    ProfileError if a named profile does not exist or belongs to another method or model.
    """
    profile = read_profile(Path(name)) if name.endswith(".json") else find_profile(method, model, name, more=stored)
    if profile is not None and (profile.method, profile.model) != (method, model):
        raise ProfileError(
            f"the profile {profile.name!r} was made for {profile.method} with {profile.model}, "
            f"not for {method} with {model}; make one with: python -m mdqa calibrate"
        )
    return profile


def write_lines(rows: Sequence[dict[str, Any]], output: str) -> None:
    """Rows as JSON lines to a file or, for ``-``, standard output."""
    text = "".join(json_line(row) for row in rows)
    if output == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(output)
    check_output(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(output, error) from None


def json_line(row: dict[str, Any]) -> str:
    """One JSON line. ASCII only where UTF-8 has no form for a character (lone surrogates)."""
    text = json.dumps(row, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def one_line(message: str) -> str:
    """A message as one line that no terminal takes for a command: control characters as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(message.split()))


def check_output(path: Path, source: Path | None = None) -> None:
    """InputError if a file cannot be made or replaced at this path, or is the command's input ``source``."""
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise InputError("input and output are the same file", place=str(path))
    if not path.absolute().parent.is_dir():
        raise InputError(f"there is no folder {path.absolute().parent}; make it first", place=str(path))
    if path.is_dir():
        raise InputError("this is a folder; name a file", place=str(path))
    if path.exists() and not path.is_file():
        raise InputError("this is a device or a pipe; name a file, or - for standard output", place=str(path))
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise InputError("it may not be written; check its permissions or name another file", place=str(path))
