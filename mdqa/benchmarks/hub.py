"""Data sets of the Hugging Face hub, and folders laid out like one, as records: ``hf:owner/name[:config][:split]``.

Rows stream through the package ``datasets``, which is needed for these inputs only; which reader understands a row is
told by its columns, as with files. With one name after the id, that is the config if the data set has one of that name
and the split otherwise. Without a split, the first there is of :data:`SPLITS` is read: the hidden answers of a test
part are of no use.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from mdqa.errors import InputError, MissingDependency

PREFIX = "hf:"
"""How an input begins that is no file."""

SPLITS = ("validation", "dev", "test", "train")
"""Splits in the order in which they are looked for."""


def is_hub(name: str) -> bool:
    """Whether an input names a data set and not a file."""
    return name.startswith(PREFIX)


def rows(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row with its place, as JSON values.

    MissingDependency without the package; InputError for a data set, config or split that cannot be read.
    """
    path, config, split = _parts(name)
    try:
        datasets = import_module("datasets")  # only these inputs need it
    except ModuleNotFoundError as problem:
        if problem.name != "datasets":
            raise
        raise MissingDependency(f"reading {name}", "datasets") from None
    number = 0
    try:
        config, split = _chosen(datasets, path, config, split)
        place = f"{PREFIX}{path}" + (f", config {config}" if config else "") + f", split {split}"
        found = datasets.load_dataset(path, config or None, split=split, streaming=True)
        for number, row in enumerate(found, 1):
            yield f"{place}, row {number}", json.loads(json.dumps(row, default=str))
    except InputError:
        raise
    except Exception as problem:  # the package raises what the hub, the network or the files bring
        lines = str(problem).strip().splitlines() or [type(problem).__name__]
        raise InputError(
            f"cannot be read as a Hugging Face data set: {lines[0]}; write it as hf:owner/name[:config][:split] and "
            "check that the hub is reachable",
            place=f"{name}, after row {number}" if number else name,
        ) from None


def _parts(name: str) -> tuple[str, str, str]:
    """The data set's id or folder, and the names behind it."""
    path, *names = name.removeprefix(PREFIX).split(":")
    if not path or len(names) > 2 or not all(names):
        raise InputError("is no data set; write it as hf:owner/name[:config][:split]", place=name)
    return path, names[0] if names else "", names[1] if len(names) == 2 else ""


def _chosen(datasets: Any, path: str, config: str, split: str) -> tuple[str, str]:
    """Config and split, the split looked for where none is named; InputError lists what there is."""
    configs = list(datasets.get_dataset_config_names(path))
    if config and not split and config not in configs:
        config, split = "", config
    if not config:
        config = "default" if "default" in configs else configs[0] if len(configs) == 1 else ""
    if config not in configs:
        raise InputError(
            f"has the configs {', '.join(configs)}; name one: hf:{path}:CONFIG[:SPLIT]", place=PREFIX + path
        )
    splits = [str(name) for name in datasets.get_dataset_split_names(path, config)]
    split = split or next((name for name in SPLITS if name in splits), splits[0] if splits else "")
    if split not in splits:
        raise InputError(f"has no split {split!r}; there is: {', '.join(splits)}", place=PREFIX + path)
    return config, split
