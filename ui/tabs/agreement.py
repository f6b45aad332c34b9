"""Agreement: a queue's coefficients, its people, the items to decide, and what the labels are used for."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from ui import agreement
from ui.agreement import FILES, USES, Reading, Standing, numbers, queue_names, read, standing
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.people import require, visitor
from ui.views import agreement as views
from ui.views.markup import message, text
from ui.views.reports import SAVE, report_head, report_table

BY = [("by tens of labels", "tens"), ("by day", "day")]


@dataclass(frozen=True)
class Found:
    """The components of what was computed: coefficients, people, their course, and the items on which they differ."""

    top: gr.HTML
    grid: gr.HTML
    more: gr.Column
    persons: gr.HTML
    time: gr.Plot
    deciding: gr.Column
    listed: gr.HTML
    made: gr.State
    uses: gr.Column

    @property
    def outputs(self) -> list[Any]:
        """What Compute fills, in the order of :func:`_drawn`."""
        parts = [self.top, self.grid, self.more, self.persons, self.time, self.deciding, self.listed]
        return [*parts, self.made, self.uses]


@dataclass(frozen=True)
class Opened:
    """The item in front and the form of its decision. ``token``: one per form, so that a decision counts once."""

    number: gr.State
    token: gr.State
    shown: gr.HTML
    form: gr.Row
    label: gr.Radio
    note: gr.Textbox
    keep: gr.Button
    back: gr.Button
    said: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What an opened item fills, in the order of :func:`_opened`."""
        return [self.number, self.token, self.shown, self.form, self.label, self.note, self.back, self.said]


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    with gr.Row(elem_classes="mdqa-filters"):
        queue = gr.Dropdown([], label="Queue", scale=4, min_width=220, elem_id="mdqa-agreement-queue")
        press = gr.Button("Compute", variant="primary", scale=0, min_width=120, elem_id="mdqa-agreement-compute")
    top = gr.HTML(views.NOTHING, apply_default_css=False, elem_id="mdqa-agreement-head")
    grid = gr.HTML(apply_default_css=False, elem_id="mdqa-agreement-table")
    with gr.Column(visible=False, elem_classes="mdqa-agreement-part") as more:
        gr.HTML(text("h2", "Every annotator"), apply_default_css=False)
        persons = gr.HTML(apply_default_css=False, elem_id="mdqa-agreement-people")
        by = gr.Radio(BY, value="tens", label="Over time", elem_id="mdqa-agreement-by")
        time = gr.Plot(show_label=False, container=False, elem_id="mdqa-agreement-time")
    with gr.Column(visible=False, elem_classes="mdqa-agreement-part") as deciding:
        gr.HTML(text("h2", "Items on which people differ"), apply_default_css=False)
        listed = gr.HTML(apply_default_css=False, js_on_load=views.OPEN, elem_id="mdqa-contested")
        opened = _build_opened()
    made = gr.State(None)
    found = Found(top, grid, more, persons, time, deciding, listed, made, _build_use(context, queue))

    def offer(now: str | None) -> Any:
        names = queue_names(context)
        return gr.Dropdown(choices=names, value=now if now in names else names[0] if names else None)

    def compute(name: str | None, how: str) -> Iterator[list[Any]]:
        if not name:
            yield _cleared()
            return
        for step in read(context, name):
            if isinstance(step, Reading):
                yield [views.reading(step.done, step.total), *(gr.skip() for _ in found.outputs[1:])]
                continue
            yield _drawn(step, how)

    def draw_time(stretches: Any, how: str) -> Any:
        figure = views.over_time(stretches[how], by=how) if stretches else None
        return gr.Plot(figure, visible=figure is not None)

    tab.select(guarded(offer), queue, queue, **QUIET)
    page.load(guarded(offer), queue, queue, **QUIET)
    gr.on([press.click, queue.input], guarded(compute), [queue, by], found.outputs, **QUIET).then(
        guarded(lambda: ["", gr.Row(visible=False), ""]), None, [opened.shown, opened.form, opened.said], **QUIET
    )
    by.input(guarded(draw_time), [made, by], time, **QUIET)
    _wire_decisions(context, queue, found, opened)


def _build_opened() -> Opened:
    shown = gr.HTML(apply_default_css=False, elem_id="mdqa-agreement-item")
    with gr.Row(visible=False, elem_classes="mdqa-decision") as form:
        label = gr.Radio([], label="Decision", min_width=280, elem_id="mdqa-decision")
        note = gr.Textbox(
            label="Why (optional)", max_lines=4, max_length=2000, min_width=220, elem_id="mdqa-decision-note"
        )
        keep = gr.Button("Decide", variant="primary", scale=0, min_width=110, elem_id="mdqa-decide")
        back = gr.Button("Take back", scale=0, min_width=110, visible=False, elem_id="mdqa-decision-back")
    said = gr.HTML(apply_default_css=False, elem_id="mdqa-decision-said")
    return Opened(gr.State(0), gr.State(""), shown, form, label, note, keep, back, said)


def _wire_decisions(context: Context, queue: gr.Dropdown, found: Found, opened: Opened) -> None:
    def open_item(name: str | None, event: gr.EventData, request: gr.Request) -> list[Any]:
        chosen = getattr(event, "item", None)
        if not isinstance(chosen, int):
            raise InputError("that is no item of the list", place="Item")
        return _opened(context, name or "", chosen, request)

    def decide(
        name: str | None, chosen: int, value: str | None, why: str | None, form_id: str, request: gr.Request
    ) -> Any:
        if not value:
            raise InputError("choose a label first", place="Decision")
        return _decided(context, name or "", chosen, value, why or "", form_id, request)

    def take_back(name: str | None, chosen: int, why: str | None, form_id: str, request: gr.Request) -> Any:
        return _decided(context, name or "", chosen, "", why or "", form_id, request)

    number, note, token = opened.number, opened.note, opened.token
    after = [*opened.outputs, found.listed, found.top]
    found.listed.select(guarded(open_item), queue, opened.outputs, **QUIET)
    opened.keep.click(guarded(decide, roles=()), [queue, number, opened.label, note, token], after, **QUIET)
    opened.back.click(guarded(take_back, roles=()), [queue, number, note, token], after, **QUIET)


def _cleared() -> list[Any]:
    """Values for the outputs of Compute where no queue is chosen."""
    gone = gr.Column(visible=False)
    return [views.NOTHING, "", gone, "", gr.Plot(), gone, "", None, gr.skip()]


def _drawn(found: Standing, how: str) -> list[Any]:
    """Values for the outputs of Compute."""
    some = bool(found.together)
    result = numbers(found)
    stretches = {"tens": result.tens, "day": result.days}
    figure = views.over_time(stretches[how], by=how)
    return [
        views.head(found),
        views.table(result.table),
        gr.Column(visible=some),
        views.people(result.people, found.titles),
        gr.Plot(figure, visible=figure is not None),
        gr.Column(visible=some),
        views.contested(found),
        stretches,
        gr.Column(visible=some),
    ]


def _opened(context: Context, queue: str, number: int, request: gr.Request | None, words: str = "") -> list[Any]:
    """The item's parts; the form only for who may decide."""
    found = agreement.item(context, queue, number)
    admin = visitor(context, request).may()
    decided = found.decision is not None
    return [
        number,
        uuid.uuid4().hex,
        views.item(found),
        gr.Row(visible=admin),
        gr.Radio(choices=views.choices(found), value=found.decision.label if found.decision else None),
        "",
        gr.Button(visible=admin and decided),
        message(words, "good") if words else "",
    ]


def _decided(
    context: Context, queue: str, number: int, label: str, note: str, token: str, request: gr.Request | None
) -> list[Any]:
    """Keep it; the item, the list and the head as they are then."""
    who = require(context, request)
    agreement.decide(context, queue, number, label, who.name, note, token or uuid.uuid4().hex)
    found = standing(context, queue, only_contested=True)
    try:
        opened = _opened(context, queue, number, request, "Kept." if label else "The decision was taken back.")
    except InputError:  # nobody had labelled it, and now nothing is left of it
        opened = [0, "", "", gr.Row(visible=False), gr.skip(), "", gr.skip(), ""]
    return [*opened, views.contested(found), views.head(found)]


def _build_use(context: Context, queue: gr.Dropdown) -> gr.Column:
    """What labels are used for: reports with before and after, CAFE's heads, files."""
    with gr.Column(visible=False, elem_classes="mdqa-agreement-part") as box:
        gr.HTML(text("h2", "Use these labels"), apply_default_css=False)
        with gr.Row(elem_classes="mdqa-agreement-uses"):
            buttons = {
                what: gr.Button(words, size="md", elem_id=f"mdqa-use-{what}") for what, (words, _) in USES.items()
            }
            heads = gr.Button("CAFE's heads, from evidence marks", size="md", elem_id="mdqa-use-heads")
        report = gr.HTML(apply_default_css=False, elem_id="mdqa-use-head")
        rows = gr.HTML(apply_default_css=False, js_on_load=SAVE, elem_id="mdqa-use-table")
        with gr.Row(elem_classes="mdqa-filters"):
            kind = gr.Dropdown(
                [(words, name) for name, words in FILES.items()],
                value=next(iter(FILES)),
                label="Save",
                scale=3,
                elem_id="mdqa-labels-kind",
            )
            make = gr.Button("Prepare the file", size="md", scale=0, min_width=180, elem_id="mdqa-labels-make")
            file = gr.DownloadButton(
                "Download", visible=False, size="md", scale=0, min_width=230, elem_id="mdqa-labels-file"
            )

    def use(what: str) -> Any:
        def work(name: str | None) -> Iterator[list[str]]:
            for step in read(context, name or ""):
                if isinstance(step, Reading):
                    yield [views.reading(step.done, step.total), ""]
                else:
                    found = agreement.use(step, what)
                    yield [report_head(found), report_table(found)]

        return guarded(work)

    def calibrate(name: str | None) -> list[str]:
        try:
            made = agreement.calibrate_heads(context, standing(context, name or ""), context.model)
        except Exception as problem:  # in the place of an earlier report, which would pass for what came of it
            return [message(explained(problem), "bad"), ""]
        words = (
            f"The calibration of CAFE's heads for {context.model} is in line as “{made}”. Profiles shows how far "
            "it is, and then how well the new heads find held-out evidence, beside the heads before."
        )
        return [message(words, "good"), ""]

    def prepare(name: str | None, wanted: str) -> Iterator[Any]:
        folder = Path(tempfile.mkdtemp(prefix="mdqa-export-"))
        try:
            path = agreement.save(context, name or "", wanted, folder)
            yield gr.DownloadButton(f"Download {path.name}", value=str(path), visible=True)
        finally:  # Gradio has a copy of its own by now
            shutil.rmtree(folder, ignore_errors=True)

    for what, button in buttons.items():
        button.click(use(what), queue, [report, rows], **QUIET)
    heads.click(guarded(calibrate), queue, [report, rows], **QUIET)
    queue.input(guarded(lambda: ["", ""]), None, [report, rows], **QUIET)  # they speak of another queue's labels
    make.click(guarded(prepare), [queue, kind], file, **QUIET)
    gr.on([queue.input, kind.input], guarded(lambda: gr.DownloadButton(visible=False)), None, file, **QUIET)
    return box
