"""The Documents and Heads tabs of a stored run: what they show, what a press asks for, what they refuse."""

from __future__ import annotations

import gradio as gr
import pytest

from mdqa.errors import InputError
from mdqa.registry import method_class
from tests.ui.helpers import SCRIPTED, question
from ui.actions import View, follow, load_view, start_runs
from ui.components.documents_panel import build_documents_panel, cards, highlights, read_head
from ui.components.head_panel import HeadPanel, build_head_panel, head_choices, head_parts
from ui.context import Context
from ui.views.flow import evidence_flow
from ui.views.head_grid import head_grid
from ui.views.heads import head_distribution, heads_by_document


def run_of(context: Context, n: int, method: str = "cafe", **options: object) -> View:
    config = method_class(method).Config.parse(options)
    ids = start_runs(context, question(n), {method: config}, model=SCRIPTED)
    last = list(follow(context, ids, every=0.02))[-1]
    assert all(snapshot.status == "ok" for snapshot in last), [snapshot.error for snapshot in last]
    return load_view(context, ids[0])


def head_panel(context: Context) -> HeadPanel:
    with gr.Blocks():
        return build_head_panel(context, gr.Radio([]))


def test_two_hundred_documents_come_in_pages(context: Context) -> None:
    view = run_of(context, 200)
    with gr.Blocks():
        made = build_documents_panel(context, gr.Radio([]))
    pages, highlight, shown = made.show(view)
    assert pages.visible and [value for _, value in pages.choices] == list(range(0, 200, 30))
    assert pages.choices[-1][0] == "181 to 200 of 200"
    assert highlight.visible and shown.count('<details class="mdqa-card') == 30
    heated = cards(view, 30, highlights(view)[1][1])
    assert heated.count('<details class="mdqa-card') == 30 and 'title="place 31 in' in heated
    assert cards(view, None, "9:0-0") == shown  # a map that is not there: key sentences


def test_a_small_run_has_one_page(context: Context) -> None:
    view = run_of(context, 4, "direct")
    with gr.Blocks():
        pages, highlight, _ = build_documents_panel(context, gr.Radio([])).show(view)
    assert not pages.visible and not highlight.visible


def test_heads_of_a_run_are_shown_with_the_first_of_the_stage_in_front(context: Context) -> None:
    view = run_of(context, 6)
    made = head_panel(context)
    shown = dict(zip(made.outputs, made.show(view), strict=True))
    assert shown[made.map].visible and shown[made.document].value == "d2"  # the gold one
    grid = shown[made.grid]
    assert grid.count("data-head=") == view.maps[0].mass.shape[0] * view.maps[0].mass.shape[1]
    assert f'data-head="{shown[made.head].value}" tabindex="0" aria-selected="true"' in grid
    assert "head-tokens" in shown[made.tokens]
    assert shown[made.distribution].visible and shown[made.by_document].visible


def test_a_run_without_maps_says_why(context: Context) -> None:
    view = run_of(context, 4, "direct")
    made = head_panel(context)
    shown = dict(zip(made.outputs, made.show(view), strict=True))
    assert "did not look at attention" in shown[made.intro]
    assert shown[made.grid] == shown[made.tokens] == shown[made.facts] == ""
    assert not shown[made.map].visible and not shown[made.distribution].visible


def test_any_head_can_be_asked_for_and_one_without_tokens_says_so(context: Context) -> None:
    view = run_of(context, 6)
    kept = view.maps[0].heat.heads  # type: ignore[union-attr]
    other = next((layer, head) for layer in range(4) for head in range(4) if (layer, head) not in kept)
    picker, facts, _, tokens = head_parts(view, 0, "d2", other)
    assert picker.value == f"{other[0]}-{other[1]}" in [value for _, value in picker.choices]
    assert f"Layer {other[0]}, head {other[1]} puts" in facts
    assert "Not kept for this head" in tokens and "larger K1" in tokens
    assert len(head_choices(view.maps[0], kept[0])) == len(head_choices(view.maps[0], other)) - 1


@pytest.mark.parametrize("text", [None, "", "3", "a-b", "-1-2", "1-2-3", "²-1", "1e3-1", "9999999999-1"])
def test_what_is_no_head_is_refused(text: str | None) -> None:
    with pytest.raises(InputError, match="there is no head"):
        read_head(text)
    assert read_head("3-11") == (3, 11)


def test_what_a_result_over_two_hundred_documents_sends_stays_small(context: Context) -> None:
    view = run_of(context, 200)
    attention, documents = view.maps[0], view.run.question.documents
    sent = {
        "flow": evidence_flow(view.run),
        "cards": cards(view, 0, None),
        "heads": head_grid(attention, documents, "d2", (0, 0)),
        "distribution": head_distribution(attention, documents, (0, 0)).to_json(),
        "by document": heads_by_document(attention, documents).to_json(),
    }
    sizes = {name: len(content.encode()) for name, content in sent.items()}
    assert sum(sizes.values()) < 500_000, sizes
