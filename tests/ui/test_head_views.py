"""All heads of a map as fields to press, one head in numbers and on its tokens, an example's explanation."""

from __future__ import annotations

import re

import numpy as np
import plotly.graph_objects as go
import pytest

from mdqa.benchmarks.examples import example
from mdqa.records import AttentionMap, Document, TokenHeat
from tests.ui.hostile import EVIL, Markup, hostile_map, hostile_run, parsed
from tests.ui.staged import small_run
from ui.views.head_grid import head_facts, head_grid, head_tokens
from ui.views.heads import head_distribution, heads_by_document
from ui.views.lesson import lesson

DOCUMENTS = tuple(Document(id=f"d{i}", title=f"Title {i}", text="some words", gold=i == 2) for i in range(1, 4))
IDS = tuple(document.id for document in DOCUMENTS)


def small_map(**changes: object) -> AttentionMap:
    """Two layers of three heads over three documents; layer 1, head 2 looks at the second one most."""
    mass = np.full((2, 3, 3), 0.1, dtype=np.float32)
    mass[1, 2] = (0.2, 0.6, 0.1)
    mass[0, 0, 1] = 0.3
    given = {"stage": "s", "title": "Stage", "documents": IDS, "mass": mass, "retrieval_heads": ((1, 2),)}
    return AttentionMap(**(given | changes))  # type: ignore[arg-type]


def fields(html: str) -> list[dict[str, str]]:
    """The attributes of every field of the grid."""
    return [dict(re.findall(r'([\w-]+)="([^"]*)"', found)) for found in re.findall(r"<button(.*?)></button>", html)]


def test_every_head_is_a_field_with_its_number_and_one_is_a_stop_for_the_keyboard() -> None:
    html = head_grid(small_map(), DOCUMENTS, "d2", (0, 1))
    found = fields(html)
    assert [field["data-head"] for field in found] == ["0-0", "0-1", "0-2", "1-0", "1-1", "1-2"]
    assert [field["data-head"] for field in found if field["tabindex"] == "0"] == ["0-1"]
    assert [field["data-head"] for field in found if field["aria-selected"] == "true"] == ["0-1"]
    assert found[-1]["title"] == "layer 1, head 2: mass 0.6000, retrieval head"
    levels = {field["data-head"]: re.search(r"m(\d)", field["class"])[1] for field in found}  # type: ignore[index]
    assert levels["1-2"] == "9" and levels["0-0"] == "5" and levels["0-1"] == "2"
    assert [field["data-head"] for field in found if "ring" in field["class"]] == ["1-2"]
    assert "2. Title 2 (gold)" in html


def test_layers_that_were_not_run_are_said() -> None:
    assert "other 4 were not run" in head_grid(small_map(model_layers=6), DOCUMENTS, "d1", (0, 0))
    assert "not run" not in head_grid(small_map(model_layers=2), DOCUMENTS, "d1", (0, 0))


def test_a_map_without_any_mass_has_no_colour() -> None:
    html = head_grid(small_map(mass=np.zeros((2, 3, 3), dtype=np.float32)), DOCUMENTS, "d1", (0, 0))
    assert all(re.search(r"\bm0\b", field["class"]) for field in fields(html))


def test_thirty_two_layers_of_heads_over_fifty_documents_stay_below_a_megabyte() -> None:
    documents = tuple(Document(id=f"d{i}", title=f"Title {i}", text="text") for i in range(50))
    mass = np.random.default_rng(0).random((32, 32, 50), dtype=np.float32)
    attention = AttentionMap("s", "s", tuple(d.id for d in documents), mass, ((3, 4),))
    html = head_grid(attention, documents, "d7", (3, 4))
    assert len(fields(html)) == 1024
    assert len(html.encode()) < 300_000


def test_a_head_is_told_in_numbers() -> None:
    words = parsed(head_facts(small_map(), DOCUMENTS, "d1", (1, 2))).text
    assert "puts 0.2000 on 1. Title 1: rank 1 of 6 heads" in words
    assert "Most of its mass, 0.6000, is on 2. Title 2 (gold); 0.9000 on all" in words
    assert "the heads that the stage worked with" in words
    assert "worked with" not in head_facts(small_map(), DOCUMENTS, "d1", (0, 0))
    assert "rank 2 of 6" in head_facts(small_map(), DOCUMENTS, "d2", (0, 0))


def heat(head: tuple[int, int]) -> TokenHeat:
    texts = tuple(document.text for document in DOCUMENTS)
    spans = np.array([[0, 4], [5, 10]] * 3)
    weights = np.array([[0.1, 0.2, 0.3, 0.9, 0.1, 0.1]])
    return TokenHeat((head,), texts, np.array([0, 0, 1, 1, 2, 2]), spans, weights)


def test_tokens_are_shown_for_the_documents_that_the_head_prefers() -> None:
    html = head_tokens(small_map(heat=heat((1, 2))), DOCUMENTS, (1, 2))
    assert html.index("2. Title 2") < html.index("1. Title 1") < html.index("3. Title 3")
    assert html.count("<details") == 3 and html.count(" open>") == 1
    assert '<i class="heat h9">words</i>' in html


@pytest.mark.parametrize("method", ["cafe", "duquad"])
def test_tokens_that_were_not_kept_say_why_and_what_to_do(method: str) -> None:
    html = head_tokens(small_map(heat=heat((1, 2))), DOCUMENTS, (0, 0), method=method)
    assert "only for the heads it works with: layer 1, head 2" in html
    assert ("larger K1" in html) == (method == "cafe")
    none = head_tokens(small_map(), DOCUMENTS, (0, 0), method=method)
    assert "Not kept for this head" in none and "keeps the mass per document only" in none


def test_hostile_texts_stay_text_here_too() -> None:
    run = hostile_run()
    attention, documents, document = hostile_map(run), run.question.documents, run.question.document_ids[0]
    for html in (
        head_grid(attention, documents, document, (0, 1)),
        head_facts(attention, documents, document, (0, 1)),
        head_tokens(attention, documents, (0, 1)),
    ):
        markup: Markup = parsed(html)
        assert set(markup.tags) <= {*("button", "details", "div", "h3", "i", "p", "section", "span", "summary")}
        assert not [name for name, _ in markup.attributes if name.startswith("on")]
    assert EVIL in parsed(head_tokens(attention, documents, (0, 1))).text


def test_an_examples_result_explains_it_and_leads_to_where_it_is_seen() -> None:
    item = example("conflict")
    run = small_run().model_copy(update={"question": item.question})
    html = lesson(run)
    assert item.shows in parsed(html).text and item.title in html
    assert re.findall(r'data-part="(\w+)"', html) == ["Decisions", "Documents"]
    assert lesson(small_run()) == ""
    assert lesson(run.model_copy(update={"status": "failed"})) == ""


def test_maps_of_large_models_stay_below_a_megabyte() -> None:
    ids = tuple(f"d{i}" for i in range(50))
    documents = tuple(Document(id=i, title=f"Title {i}", text="text") for i in ids)
    generator = np.random.default_rng(0)
    attention = AttentionMap("s", "s", ids, generator.random((32, 32, 50), dtype=np.float32), ((3, 4), (31, 31)))
    for figure in (head_distribution(attention, documents, (3, 4)), heads_by_document(attention, documents)):
        assert isinstance(figure, go.Figure)
        assert len(figure.to_json()) < 1_000_000


def test_cells_of_many_documents_do_not_vanish_between_gaps() -> None:
    for n, gap in ((20, 1), (200, 0)):
        ids = tuple(f"d{i}" for i in range(1, n + 1))
        documents = tuple(Document(id=i, text="text", gold=i == "d7") for i in ids)
        attention = AttentionMap("s", "s", ids, np.ones((2, 2, n), dtype=np.float32), ((1, 1),))
        figure = heads_by_document(attention, documents)
        assert figure.data[0].xgap == gap
        assert list(figure.data[0].x[5:8]) == ["6", "7★", "8"]
