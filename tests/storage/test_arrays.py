"""Attention arrays: exact where promised, small, and never pickled."""

import io
import pickle

import numpy as np
import pytest

from mdqa.errors import StorageError
from mdqa.records import AttentionMap, TokenHeat
from storage.arrays import pack_arrays, unpack_arrays
from storage.store import Store
from tests.storage.builders import assert_equal_maps, attention_map, header


@pytest.mark.parametrize("heat", [True, False])
def test_map_round_trip(store: Store, heat: bool) -> None:
    original = attention_map(heat=heat)
    store.runs.begin(header())
    store.runs.finish(header(status="ok"), [original])
    (stored,) = store.runs.maps("r1")
    assert_equal_maps(stored, original)
    assert stored.summary() == original.summary()


def test_token_weights_of_very_different_size_keep_their_digits(store: Store) -> None:
    weights = np.array([[3e-7, 1e-7, 0.0], [0.9, 0.1, 1e-3], [0.0, 0.0, 0.0]], dtype=np.float32)
    heat = TokenHeat(
        heads=((0, 0), (1, 0), (2, 0)),
        texts=("abc",),
        document=np.zeros(3, dtype=np.int64),
        spans=np.array([[0, 1], [1, 2], [2, 3]]),
        weights=weights,
    )
    base = attention_map(heat=False)
    original = AttentionMap(stage="s", title="t", documents=base.documents, mass=base.mass, heat=heat)
    store.runs.begin(header())
    store.runs.finish(header(status="ok"), [original])
    stored = store.runs.maps("r1")[0].heat
    assert stored is not None
    np.testing.assert_allclose(stored.weights, weights, rtol=1e-3)


def test_no_tokens_and_no_documents(store: Store) -> None:
    heat = TokenHeat(
        heads=((0, 0),),
        texts=(),
        document=np.zeros(0, dtype=np.int32),
        spans=np.zeros((0, 2), dtype=np.int32),
        weights=np.zeros((1, 0), dtype=np.float32),
    )
    original = AttentionMap(stage="s", title="t", documents=(), mass=np.zeros((2, 2, 0), dtype=np.float32), heat=heat)
    store.runs.begin(header())
    store.runs.finish(header(status="ok"), [original])
    assert_equal_maps(store.runs.maps("r1")[0], original)


def test_arrays_are_compressed() -> None:
    assert len(pack_arrays(mass=np.zeros((32, 32, 200), dtype=np.float32))) < 2000


def test_objects_are_neither_written_nor_read() -> None:
    with pytest.raises(StorageError, match="holds Python objects"):
        pack_arrays(bad=np.array([object()]))
    buffer = io.BytesIO()
    np.savez(buffer, bad=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        unpack_arrays(buffer.getvalue())
    with pytest.raises(ValueError, match="allow_pickle"):
        unpack_arrays(pickle.dumps([1, 2]))
