"""Ask: put a question together, choose methods and a model, watch them work, see why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import gradio as gr

from mdqa.errors import ConfigError, MdqaError
from storage.runs import UnknownRun
from ui.actions import LOOK_EVERY, load_view, obstacles, run_again, run_id_from, snapshots, start_runs, stop, title_of
from ui.components.method_picker import build_method_picker
from ui.components.model_picker import build_model_picker
from ui.components.question_input import build_question_input
from ui.components.result_panel import build_result_panel, run_choices
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.studying import find
from ui.views.live import live_panel
from ui.views.markup import message, text
from ui.views.models import model_status
from ui.views.models import obstacles as obstacle_view

MAX_SHOWN_RUNS = 8

WELCOME = """
<div class="mdqa-welcome">
<h2>Ask a question of many documents, and see why the answer came out</h2>
<ol>
<li><strong>Take an example</strong> on the left, or paste documents, or load a file.</li>
<li><strong>Choose a method.</strong> DuQUAD lets two agents and a judge read; MADARA routes between four treatments of
scored documents; CAFE looks at the model's own attention. The baselines answer directly or retrieve first.</li>
<li><strong>Run</strong>, and watch each stage. Every document keeps its scores and the reason why it stayed or
went.</li>
</ol>
<p class="mdqa-note">Every run is kept under its own address and listed in Failures.</p>
</div>
"""

SET_ADDRESS = """
let shown = "";
watch("value", () => {
  const address = element.querySelector("[data-address]")?.dataset.address;
  if (!address || address === shown) return;
  shown = address;
  history.replaceState(null, "", address);
  if (innerWidth < 900 || element.getBoundingClientRect().top < 0) element.scrollIntoView({ block: "start" });
});
"""
"""Puts the address of the run that is shown into the address bar and the run into view where it is not."""


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    with gr.Row(elem_classes="mdqa-work"):
        with gr.Column(scale=2, min_width=320, elem_classes="mdqa-input"):
            question = build_question_input(context)
            methods = build_method_picker()
            model = build_model_picker(context)
            warnings = gr.HTML(apply_default_css=False)
            with gr.Row(elem_classes="mdqa-actions"):
                run = gr.Button("Run", variant="primary", elem_id="mdqa-run")
                halt = gr.Button("Stop", variant="stop", interactive=False, elem_id="mdqa-stop")
        with gr.Column(scale=3, min_width=320, elem_classes="mdqa-output"):
            live = gr.HTML(WELCOME, apply_default_css=False, js_on_load=SET_ADDRESS, elem_id="mdqa-live")
            panel = build_result_panel(context)
    running, fresh = gr.State([]), gr.State([])  # the runs on the page; those to be drawn after "Run again"

    controls = [live, panel.box, running, run, halt]
    asked = {*question.inputs, *methods.inputs, *model.inputs}

    async def start(values: Mapping[Any, Any]) -> AsyncIterator[list[Any]]:
        yield [message("Checking the question …"), gr.Column(visible=False), [], *_buttons(busy=True)]
        try:
            ids = start_runs(
                context,
                question.item(values),
                methods.configs(values),
                model=values[model.model],
                profile=values[model.profile] or "",
                seed=_seed(values[model.seed]),
                overflow=values[model.overflow],
            )
        except Exception as problem:  # whatever it is, the page must not stay in its busy state
            yield [message(explained(problem), "bad"), gr.skip(), [], *_buttons(busy=False)]
            return
        async for update in watch(ids):
            yield update

    async def watch(ids: list[str], beside: Sequence[str] = (), before: str = "") -> AsyncIterator[list[Any]]:
        """Looks without holding a thread, so that many people can watch at once.

        ``beside``: finished runs that stay in the panel; ``before``: the run that the first one is set against.
        """
        all_ids = [*ids, *beside]
        drawn, now = "", snapshots(context, ids)
        while not all(snapshot.finished for snapshot in now):
            last, drawn = drawn, _with_address(live_panel(now), all_ids, before)
            if drawn != last:
                yield [drawn, gr.skip(), all_ids, *_buttons(busy=True)]
            await asyncio.sleep(LOOK_EVERY)
            now = snapshots(context, ids)
        yield [_with_address(live_panel(now), all_ids, before), gr.skip(), all_ids, *_buttons(busy=False)]

    async def again(values: Mapping[Any, Any], event: gr.EventData) -> AsyncIterator[list[Any]]:
        """The run in front once more with what was changed under its answer."""
        old = values[panel.run]
        async for update in repeat(values, lambda: panel.what_if.start(old, values[panel.before].get(old, ""), event)):
            yield update

    def comparing(name: str) -> Callable[[Mapping[Any, Any]], AsyncIterator[list[Any]]]:
        async def compare(values: Mapping[Any, Any]) -> AsyncIterator[list[Any]]:
            """The run in front once more, with treatments that it did not choose."""
            async for update in repeat(values, lambda: run_again(context, values[panel.run], {"compare": name})):
                yield update

        return compare

    async def repeat(values: Mapping[Any, Any], start_again: Callable[[], str]) -> AsyncIterator[list[Any]]:
        """The run in front once more, as ``start_again`` puts it in line; it takes the old one's place."""
        old, before = values[panel.run], values[panel.before]
        try:
            new = start_again()
        except Exception as problem:  # whatever it is, what was typed must not be lost
            yield [*(gr.skip() for _ in controls), message(explained(problem), "bad"), [], gr.skip()]
            return
        beside = [run_id for run_id in values[running] if run_id != old]
        yield [gr.skip(), gr.Column(visible=False), [new, *beside], *_buttons(busy=True), "", [], gr.skip()]
        async for update in watch([new], beside, old):
            yield [*update, "", [new, *beside], {**before, new: old}]

    def show(ids: Sequence[str], before: Mapping[str, str], request: gr.Request) -> list[Any]:
        """The finished runs, the first one in front; nothing where the start was refused."""
        titles = _titles(context, ids)
        if not titles:
            return [gr.skip() for _ in shown]
        return [gr.Column(visible=True), run_choices(titles), *panel.show(titles[0][1], before, request)]

    def press_stop(ids: Sequence[str]) -> Any:
        stop(context, ids)
        return gr.Button(interactive=False)

    def warn(values: Mapping[Any, Any]) -> str:
        try:
            configs = methods.configs(values)
            return obstacle_view(obstacles(context, list(configs), values[model.model], configs))
        except MdqaError as problem:
            return obstacle_view([str(problem)])

    async def open_page(request: gr.Request) -> AsyncIterator[list[Any]]:
        """The run (or runs, parted by commas) of the address; goes on watching one that is still working.

        An address with a study shows the run that the study is about.
        """
        address = dict(request.query_params)
        # Other tabs have addresses with runs too.
        here = address.get("tab", "ask") == "ask"
        given, study = (str(address.get(name, "")) if here else "" for name in ("run", "study"))
        if not given and not study:
            yield [gr.skip() for _ in [*controls, panel.before]]
            return
        try:
            given = given or find(context, study).base
            ids = [run_id_from(part) for part in re.split(r"[,\s]+", given) if part][:MAX_SHOWN_RUNS]
            if not ids:
                raise UnknownRun("the address names no run")
            earlier = ""
            with suppress(UnknownRun):  # a run that is gone, or never was, has nothing to be set against
                earlier = run_id_from(address.get("before"))
            before = {ids[0]: earlier} if earlier else {}
            if any(not snapshot.finished for snapshot in snapshots(context, ids)):
                async for update in watch(ids, before=earlier):
                    yield [*update, before]
            else:
                for run_id in ids:
                    load_view(context, run_id)
                yield [_with_address("", ids, earlier, study), gr.skip(), ids, *_buttons(busy=False), before]
        except MdqaError as problem:
            yield [message(explained(problem), "bad"), gr.skip(), [], *_buttons(busy=False), {}]

    shown = [panel.box, panel.run, *panel.outputs]
    started = run.click(guarded(start), asked, controls, **QUIET)
    started.then(guarded(show), [running, panel.before], shown, **QUIET).then(
        guarded(lambda: model_status(context.engine.model_status)), None, model.status, **QUIET
    )
    halt.click(guarded(press_stop), running, halt, **QUIET)
    opened = page.load(guarded(open_page), None, [*controls, panel.before], **QUIET)
    opened.then(guarded(show), [running, panel.before], shown, **QUIET)
    repeated = panel.what_if.form.submit(
        guarded(again),
        {panel.run, panel.before, running},
        [*controls, panel.what_if.problem, fresh, panel.before],
        **QUIET,
    )
    repeated.then(guarded(show), [fresh, panel.before], shown, **QUIET)
    for name, button in panel.decisions.buttons.items():
        button.click(
            guarded(comparing(name)),
            {panel.run, panel.before, running},
            [*controls, panel.decisions.problem, fresh, panel.before],
            **QUIET,
        ).then(guarded(show), [fresh, panel.before], shown, **QUIET)
    gr.on([tab.select, page.load], guarded(model.profiles_now), [model.model, model.profile], model.profile, **QUIET)
    gr.on([methods.chosen.change, model.model.change, *methods.choices], guarded(warn), asked, warnings, **QUIET)


def _buttons(*, busy: bool) -> list[Any]:
    return [gr.Button("Running …" if busy else "Run", interactive=not busy), gr.Button(interactive=busy)]


def _seed(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError("the seed must be a whole number")
    return int(value)


def _with_address(content: str, ids: Sequence[str], before: str = "", study: str = "") -> str:
    """The live panel with the address of its runs, for the browser's address bar."""
    address = "?run=" + ",".join(ids) + (f"&before={before}" if before else "") + (f"&study={study}" if study else "")
    return content + text("span", "", "mdqa-hidden", data_address=address)


def _titles(context: Context, ids: Sequence[str]) -> list[tuple[str, str]]:
    """Titles and ids of those runs that are stored (one that waits is not yet)."""
    found = []
    for run_id in ids:
        with suppress(UnknownRun):
            found.append((title_of(context.store.runs.row(run_id).method), run_id))
    return found
