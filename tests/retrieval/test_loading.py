"""Loading a model while another thread loads one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from transformers import PreTrainedModel

from mdqa.retrieval.dense import MiniLMEncoder


def test_encoders_loaded_by_several_threads_leave_transformers_as_it_was() -> None:
    before = PreTrainedModel.tie_weights  # exchanged while a model loads; two at once would leave it exchanged
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: MiniLMEncoder(), range(3)))
    assert PreTrainedModel.tie_weights is before
