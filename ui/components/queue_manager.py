"""For analysts and admins: the queues and how far they are, making one from runs, its settings and practice items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from storage.queue_settings import MAX_FEEDBACK, MAX_GUIDELINES, MAX_OVERLAP, QueueSettings
from storage.queues import MAX_QUEUE_NAME, UnknownQueue
from storage.runs import UnknownRun
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.people import require, visitor
from ui.queue_making import (
    GUIDELINES,
    MOST,
    OTHERS,
    PRESETS,
    change_settings,
    drop_practice,
    label_choices,
    make_queue,
    practice_choices,
    queue_states,
    set_practice,
)
from ui.views.markup import message, plural, text
from ui.views.queue_table import ORDERS, practice_table, queue_table

ORDER_CHOICES = [(words, name) for name, words in ORDERS.items()]
OTHER_CHOICES = [(label.replace("_", " ").capitalize(), label) for label in OTHERS]


def build_queue_manager(context: Context, page: gr.Blocks, tab: gr.Tab, form: gr.HTML) -> None:
    """Lay out and wire it; it stays hidden and empty for annotators. ``form`` tells when a label was kept."""
    with gr.Column(visible=False, elem_id="mdqa-queue-manager") as box:
        gr.HTML(text("h2", "All queues", "mdqa-manage-title"), apply_default_css=False)
        states = gr.HTML(apply_default_css=False, elem_id="mdqa-queue-states")
        again = gr.Button("Refresh", size="sm", scale=0, elem_id="mdqa-queue-refresh")
        _build_making(context, states)
        _build_settings(context, tab, states)

    def look() -> str:
        return queue_table(queue_states(context))

    def arrive(request: gr.Request) -> list[Any]:
        allowed = visitor(context, request).may("analyst")
        return [gr.Column(visible=allowed), look() if allowed else ""]

    # Everybody opens the tab; annotators get nothing of this.
    gr.on([page.load, tab.select], guarded(arrive, roles=("analyst", "annotator")), None, [box, states], **QUIET)
    again.click(guarded(look), None, states, **QUIET)
    # Labels can come faster than the answers to this; the last one is never left out.
    form.select(guarded(look), None, states, trigger_mode="always_last", **QUIET)


def _build_making(context: Context, states: gr.HTML) -> None:
    with gr.Accordion("Make a queue from stored runs", open=False, elem_id="mdqa-queue-make"):
        with gr.Row():
            kind = gr.Dropdown(
                [(preset.name, key) for key, preset in PRESETS.items()], value="agents", label="Which runs"
            )
            name = gr.Textbox(
                PRESETS["agents"].name, label="Name of the queue", max_length=MAX_QUEUE_NAME, elem_id="mdqa-make-name"
            )
            limit = gr.Number(200, label="Runs at most (newest first)", minimum=1, maximum=MOST, precision=0)
        overlap, order, others, rules = _settings_fields(GUIDELINES)
        make = gr.Button("Make the queue", variant="primary", elem_id="mdqa-make")
        said = gr.HTML(apply_default_css=False, elem_id="mdqa-make-said")

    def press(
        kind: str,
        name: str,
        limit: float | None,
        overlap: float | None,
        order: Any,
        others: list[str],
        rules: str,
        request: gr.Request,
    ) -> list[Any]:
        def work(who: str) -> str:
            if kind not in PRESETS:
                raise InputError("choose which runs", place="Runs")
            made = make_queue(
                context,
                who,
                name or "",
                PRESETS[kind].filters,
                limit=int(limit or MOST),
                overlap=int(overlap or 0),
                order=order,
                guidelines=rules or "",
                others=others or (),
            )
            there = f"; {made.there} were there already" if made.there else ""
            left = f"; {plural(made.unusable, 'run')} without an answer left out" if made.unusable else ""
            return f"{plural(made.added, 'run')} added to “{made.queue}”{there}{left}."

        return [_said(context, request, work), queue_table(queue_states(context))]

    fields = [kind, name, limit, overlap, order, others, rules]
    make.click(guarded(press), fields, [said, states], **QUIET)
    kind.input(guarded(lambda key: PRESETS[key].name if key in PRESETS else gr.skip()), kind, name, **QUIET)


def _build_settings(context: Context, tab: gr.Tab, states: gr.HTML) -> None:
    with gr.Accordion(
        "Guidelines, overlap and practice items of a queue", open=False, elem_id="mdqa-queue-settings"
    ) as box:
        queue = gr.Dropdown([], label="Queue", elem_id="mdqa-settings-queue")
        overlap, order, others, rules = _settings_fields("")
        keep = gr.Button("Save as a new version", elem_id="mdqa-settings-keep")
        practice = gr.HTML(apply_default_css=False, elem_id="mdqa-practice")
        with gr.Row():
            run = gr.Dropdown([], label="Item for practice", elem_id="mdqa-practice-run")
            label = gr.Dropdown([], label="Expected", elem_id="mdqa-practice-label")
        words = gr.Textbox(label="Feedback", max_length=MAX_FEEDBACK, lines=2, elem_id="mdqa-practice-words")
        with gr.Row():
            add = gr.Button("Add or change practice item", size="sm", elem_id="mdqa-practice-add")
            drop = gr.Button("No practice item any more", size="sm", elem_id="mdqa-practice-drop")
        said = gr.HTML(apply_default_css=False, elem_id="mdqa-settings-said")

    def names() -> Any:
        return gr.Dropdown(choices=[found.name for found in context.store.queues.queues()])

    def show(name: str | None) -> list[Any]:
        settings = _settings(context, name)
        if name is None or settings is None:
            return [2, "contested", list(OTHERS), "", "", gr.Dropdown(choices=[], value=None)]
        runs = practice_choices(context, name)
        shown = _practice(context, settings, {run_id: asked for asked, run_id in runs})
        offered = [label for label in OTHERS if label in settings.labels]
        run = gr.Dropdown(choices=runs, value=None)
        return [settings.overlap, settings.order, offered, settings.guidelines, shown, run]

    def choose(name: str | None, run_id: str | None) -> Any:
        settings = _settings(context, name)
        if settings is None or not run_id:
            return [gr.Dropdown(choices=[], value=None), ""]
        found = settings.practice(run_id)
        choices = label_choices(context.store.runs.get(run_id), settings.labels)
        return [gr.Dropdown(choices=choices, value=found.label if found else None), found.feedback if found else ""]

    def change(work: Callable[[str], str], name: str | None, request: gr.Request) -> list[Any]:
        return [_said(context, request, work), *show(name), queue_table(queue_states(context))]

    def save(
        name: str | None, overlap: float | None, order: Any, others: list[str], rules: str, request: gr.Request
    ) -> list[Any]:
        def work(who: str) -> str:
            more = {"guidelines": rules or "", "overlap": int(overlap or 0), "order": order, "others": others or ()}
            made = change_settings(context, who, name or "", **more)
            return f"Version {made.version} holds for items that are opened from now on."

        return change(work, name, request)

    def put(name: str | None, run_id: str | None, label: str | None, words: str, request: gr.Request) -> list[Any]:
        def work(who: str) -> str:
            if not run_id or not label:
                raise InputError("choose an item and what is expected", place="Practice")
            set_practice(context, who, name or "", run_id, label, words or "")
            return "Kept as a practice item."

        return change(work, name, request)

    def take(name: str | None, run_id: str | None, request: gr.Request) -> list[Any]:
        def work(who: str) -> str:
            drop_practice(context, who, name or "", run_id or "")
            return "It is an ordinary item now."

        return change(work, name, request)

    fields = [overlap, order, others, rules, practice, run]
    gr.on([box.expand, tab.select], guarded(names), None, queue, **QUIET)
    queue.input(guarded(show), queue, fields, **QUIET)
    run.input(guarded(choose), [queue, run], [label, words], **QUIET)
    keep.click(guarded(save), [queue, overlap, order, others, rules], [said, *fields, states], **QUIET)
    add.click(guarded(put), [queue, run, label, words], [said, *fields, states], **QUIET)
    drop.click(guarded(take), [queue, run], [said, *fields, states], **QUIET)


def _settings_fields(rules: str) -> tuple[gr.Number, gr.Dropdown, gr.CheckboxGroup, gr.Textbox]:
    with gr.Row():
        overlap = gr.Number(2, label="People per item", minimum=1, maximum=MAX_OVERLAP, precision=0)
        order = gr.Dropdown(ORDER_CHOICES, value="contested", label="Order of items")
        others = gr.CheckboxGroup(OTHER_CHOICES, value=list(OTHERS), label="Labels beside “A is right”, “B is right”")
    written = gr.Textbox(rules, label="Guidelines (Markdown)", lines=8, max_lines=20, max_length=MAX_GUIDELINES)
    return overlap, order, others, written


def _settings(context: Context, name: str | None) -> QueueSettings | None:
    try:
        return context.store.queue_settings.of(name) if name else None
    except UnknownQueue:
        return None


def _practice(context: Context, settings: QueueSettings, questions: dict[str, str]) -> str:
    labels = {}
    for item in settings.practice_items:
        try:
            known = label_choices(context.store.runs.get(item.run), settings.labels)
        except UnknownRun:
            continue
        labels[item.run] = next((words for words, label in known if label == item.label), item.label)
    return practice_table(settings, questions, labels)


def _said(context: Context, request: gr.Request, work: Callable[[str], str]) -> str:
    """What was done, or why it was not, beside the button that was pressed."""
    try:
        return message(work(require(context, request, "analyst").name), "good")
    except Exception as problem:
        return message(explained(problem), "bad")
