"""Attention maps as rows: what they are about as JSON, arrays as compressed ``.npz`` BLOBs (never pickled).

Mass keeps its float32. Token weights are stored as float16 relative to each head's largest weight, since weights of
1e-6 would lose most of their digits as plain float16; they come back as float32 within 0.1% of what they were.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from sqlite_utils import Database

from mdqa.errors import StorageError
from mdqa.records import AttentionMap, Head, TokenHeat
from storage.encoding import clean_text, pack, to_json, unpack


def pack_arrays(**arrays: np.ndarray) -> bytes:
    """Named arrays as a compressed ``.npz``; StorageError for arrays of Python objects."""
    if objects := [name for name, array in arrays.items() if array.dtype.hasobject]:
        raise StorageError(f"array {objects[0]!r} holds Python objects and cannot be stored")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **cast(Any, arrays))
    return buffer.getvalue()


def unpack_arrays(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of :func:`pack_arrays`."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def map_row(attention_map: AttentionMap) -> dict[str, Any]:
    """The map as a row of ``attention_maps`` without its run; made outside of a transaction, as compression takes time.

    ``digest`` is the same for equal maps only.
    """
    heat = attention_map.heat
    about = {
        "stage": attention_map.stage,
        "title": attention_map.title,
        "documents": attention_map.documents,
        "retrieval_heads": attention_map.retrieval_heads,
        "model_layers": attention_map.model_layers,
        "pool": attention_map.pool,
        "heat": None if heat is None else {"heads": heat.heads, "texts": heat.texts},
    }
    row: dict[str, Any] = {
        "stage": clean_text(attention_map.stage),
        "about": pack(to_json(about, f"attention map of stage {attention_map.stage!r}")),
        "mass": pack_arrays(mass=np.asarray(attention_map.mass, dtype=np.float32)),
        "heat": None if heat is None else _pack_heat(heat),
    }
    digest = hashlib.sha256()
    for name in ("about", "mass", "heat"):
        part = row[name] if isinstance(row[name], bytes) else str(row[name]).encode()
        digest.update(len(part).to_bytes(8, "big") + part)
    return row | {"digest": digest.hexdigest()}


def store_map(db: Database, run: str, row: dict[str, Any]) -> None:
    """Append a map's row to the run. Call it inside a write transaction."""
    db.table("attention_maps").insert({"run": run, **row})


def store_missing_maps(db: Database, run: str, rows: Iterable[dict[str, Any]]) -> None:
    """Append those rows that the run does not have yet; two equal ones are two maps."""
    there = Counter(digest for (digest,) in db.execute("select digest from attention_maps where run = ?", [run]))
    for row in rows:
        if there[row["digest"]] > 0:
            there[row["digest"]] -= 1
        else:
            store_map(db, run, row)


def load_maps(db: Database, run: str) -> list[AttentionMap]:
    """The run's maps in the order in which they came."""
    rows = db.query("select about, mass, heat from attention_maps where run = ? order by id", [run])
    return [_map(row) for row in rows]


def _pack_heat(heat: TokenHeat) -> bytes:
    weights = np.asarray(heat.weights, dtype=np.float32)  # (H, T)
    scale = np.abs(weights).max(axis=1, keepdims=True, initial=0.0)  # (H, 1)
    scale[scale == 0] = 1.0
    return pack_arrays(
        document=np.asarray(heat.document, dtype=np.int32),  # (T,)
        spans=np.asarray(heat.spans, dtype=np.int32),  # (T, 2)
        weights=(weights / scale).astype(np.float16),
        scale=scale,
    )


def _map(row: dict[str, Any]) -> AttentionMap:
    about = json.loads(unpack(row["about"]))
    heat = None
    if row["heat"] is not None:
        arrays = unpack_arrays(row["heat"])
        heat = TokenHeat(
            heads=_heads(about["heat"]["heads"]),
            texts=tuple(about["heat"]["texts"]),
            document=arrays["document"],
            spans=arrays["spans"],
            weights=arrays["weights"].astype(np.float32) * arrays["scale"],
        )
    return AttentionMap(
        stage=about["stage"],
        title=about["title"],
        documents=tuple(about["documents"]),
        mass=unpack_arrays(row["mass"])["mass"],
        retrieval_heads=_heads(about["retrieval_heads"]),
        model_layers=about["model_layers"],
        pool=about["pool"],
        heat=heat,
    )


def _heads(pairs: list[list[int]]) -> tuple[Head, ...]:
    return tuple((layer, head) for layer, head in pairs)
