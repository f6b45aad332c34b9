"""Ask: put a question together, choose methods and a model, watch them work, see why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import ConfigError, MdqaError
from storage.runs import UnknownRun
from ui.actions import LOOK_EVERY, load_view, obstacles, run_again, run_id_from, snapshots, start_runs, stop, title_of
from ui.components.decision_panel import DecisionPanel
from ui.components.method_picker import MethodPicker, build_method_picker
from ui.components.model_picker import ModelPicker, build_model_picker
from ui.components.question_input import QuestionInput, build_question_input
from ui.components.result_panel import ResultPanel, build_result_panel, run_choices
from ui.components.what_if import WhatIf
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
  if (!element.offsetParent) return; // another tab is in front; choosing this one takes the address
  history.replaceState(null, "", address);
  if (innerWidth < 900 || element.getBoundingClientRect().top < 0) element.scrollIntoView({ block: "start" });
});
"""
"""Puts the address of the run that is shown into the address bar and the run into view where it is not."""


@dataclass(frozen=True)
class Ask:
    """The components of the tab with what their handlers do.

    ``running``: the ids of the runs on the page; ``fresh``: those to be drawn after one of them was run again.
    """

    context: Context
    question: QuestionInput
    methods: MethodPicker
    model: ModelPicker
    warnings: gr.HTML
    run: gr.Button
    halt: gr.Button
    live: gr.HTML
    panel: ResultPanel
    running: gr.State
    fresh: gr.State

    @property
    def asked(self) -> set[Any]:
        """Everything a handler needs to know what is asked for."""
        return {*self.question.inputs, *self.methods.inputs, *self.model.inputs}

    @property
    def controls(self) -> list[Any]:
        """What changes while runs work."""
        return [self.live, self.panel.box, self.running, self.run, self.halt]

    @property
    def shown(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.panel.box, self.panel.run, *self.panel.outputs]

    async def start(self, values: Mapping[Any, Any]) -> AsyncIterator[list[Any]]:
        """Put what is asked for in line and watch it: values for :attr:`controls`."""
        yield [message("Checking the question …"), gr.Column(visible=False), [], *_buttons(busy=True)]
        try:
            ids = start_runs(
                self.context,
                self.question.item(values),
                self.methods.configs(values),
                model=self.model.chosen(values),
                profile=values[self.model.profile] or "",
                seed=_seed(values[self.model.seed]),
                overflow=values[self.model.overflow],
            )
        except Exception as problem:  # whatever it is, the page must not stay in its busy state
            yield [message(explained(problem), "bad"), gr.skip(), [], *_buttons(busy=False)]
            return
        async for update in self.watch(ids):
            yield update

    async def watch(self, ids: list[str], beside: Sequence[str] = (), before: str = "") -> AsyncIterator[list[Any]]:
        """Values for :attr:`controls` until the runs are done; holds no thread, so that many people can watch at once.

        ``beside``: finished runs that stay in the panel; ``before``: the run that the first one is set against.
        """
        all_ids = [*ids, *beside]
        drawn, now = "", snapshots(self.context, ids)
        while not all(snapshot.finished for snapshot in now):
            last, drawn = drawn, _with_address(live_panel(now), all_ids, before)
            if drawn != last:
                yield [drawn, gr.skip(), all_ids, *_buttons(busy=True)]
            await asyncio.sleep(LOOK_EVERY)
            now = snapshots(self.context, ids)
        yield [_with_address(live_panel(now), all_ids, before), gr.skip(), all_ids, *_buttons(busy=False)]

    def repeating(self, part: WhatIf | DecisionPanel) -> dict[str, Any]:
        """What a handler that runs the run in front again reads and fills, as arguments of its listener."""
        return {
            "inputs": {self.panel.run, self.panel.before, self.running},
            "outputs": [*self.controls, part.problem, self.fresh, self.panel.before],
        }

    async def again(self, values: Mapping[Any, Any], event: gr.EventData) -> AsyncIterator[list[Any]]:
        """The run in front once more with what was changed under its answer."""
        old, before, form = values[self.panel.run], values[self.panel.before], self.panel.what_if
        async for update in self._repeat(values, lambda: form.start(old, before.get(old, ""), event)):
            yield update

    def comparing(self, name: str) -> Callable[[Mapping[Any, Any]], AsyncIterator[list[Any]]]:
        """The handler that runs the run in front once more, with treatments that it did not choose."""

        async def compare(values: Mapping[Any, Any]) -> AsyncIterator[list[Any]]:
            old = values[self.panel.run]
            async for update in self._repeat(values, lambda: run_again(self.context, old, {"compare": name})):
                yield update

        return compare

    async def _repeat(self, values: Mapping[Any, Any], start_again: Callable[[], str]) -> AsyncIterator[list[Any]]:
        """The run in front once more, as ``start_again`` puts it in line; it takes the old one's place."""
        old, before = values[self.panel.run], values[self.panel.before]
        try:
            new = start_again()
        except Exception as problem:  # whatever it is, what was typed must not be lost
            yield [*(gr.skip() for _ in self.controls), message(explained(problem), "bad"), [], gr.skip()]
            return
        beside = [run_id for run_id in values[self.running] if run_id != old]
        yield [gr.skip(), gr.Column(visible=False), [new, *beside], *_buttons(busy=True), "", [], gr.skip()]
        async for update in self.watch([new], beside, old):
            yield [*update, "", [new, *beside], {**before, new: old}]

    def show(self, ids: Sequence[str], before: Mapping[str, str], request: gr.Request) -> list[Any]:
        """The finished runs, the first one in front; nothing where the start was refused."""
        titles = _titles(self.context, ids)
        if not titles:
            return [gr.skip() for _ in self.shown]
        return [gr.Column(visible=True), run_choices(titles), *self.panel.show(titles[0][1], before, request)]

    def stop(self, ids: Sequence[str]) -> Any:
        """Stop the runs on the page."""
        stop(self.context, ids)
        return gr.Button(interactive=False)

    def warn(self, values: Mapping[Any, Any]) -> str:
        """What stands in the way of the chosen methods with the chosen model."""
        try:
            configs = self.methods.configs(values)
            return obstacle_view(obstacles(self.context, list(configs), self.model.chosen(values), configs))
        except MdqaError as problem:
            return obstacle_view([str(problem)])

    async def open_page(self, request: gr.Request) -> AsyncIterator[list[Any]]:
        """The run (or runs, parted by commas) of the address; goes on watching one that is still working.

        An address with a study shows the run that the study is about.
        """
        address = dict(request.query_params)
        # Other tabs have addresses with runs too.
        here = address.get("tab", "ask") == "ask"
        given, study = (str(address.get(name, "")) if here else "" for name in ("run", "study"))
        if not given and not study:
            yield [gr.skip() for _ in [*self.controls, self.panel.before]]
            return
        try:
            ids = _runs_of(self.context, given, study)
            earlier = ""
            with suppress(UnknownRun):  # a run that is gone, or never was, has nothing to be set against
                earlier = run_id_from(address.get("before"))
            before = {ids[0]: earlier} if earlier else {}
            if any(not snapshot.finished for snapshot in snapshots(self.context, ids)):
                async for update in self.watch(ids, before=earlier):
                    yield [*update, before]
            else:
                for run_id in ids:
                    load_view(self.context, run_id)
                yield [_with_address("", ids, earlier, study), gr.skip(), ids, *_buttons(busy=False), before]
        except MdqaError as problem:
            yield [message(explained(problem), "bad"), gr.skip(), [], *_buttons(busy=False), {}]


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
    running, fresh = gr.State([]), gr.State([])
    _wire(Ask(context, question, methods, model, warnings, run, halt, live, panel, running, fresh), page, tab)


def _wire(ask: Ask, page: gr.Blocks, tab: gr.Tab) -> None:
    panel, model, methods = ask.panel, ask.model, ask.methods
    started = ask.run.click(guarded(ask.start), ask.asked, ask.controls, **QUIET)
    started.then(guarded(ask.show), [ask.running, panel.before], ask.shown, **QUIET).then(
        guarded(lambda: model_status(ask.context.engine.model_status)), None, model.status, **QUIET
    )
    ask.halt.click(guarded(ask.stop), ask.running, ask.halt, **QUIET)
    opened = page.load(guarded(ask.open_page), None, [*ask.controls, panel.before], **QUIET)
    opened.then(guarded(ask.show), [ask.running, panel.before], ask.shown, **QUIET)
    repeated = [panel.what_if.form.submit(guarded(ask.again), **ask.repeating(panel.what_if), **QUIET)]
    for name, button in panel.decisions.buttons.items():
        repeated.append(button.click(guarded(ask.comparing(name)), **ask.repeating(panel.decisions), **QUIET))
    for once_more in repeated:
        once_more.then(guarded(ask.show), [ask.fresh, panel.before], ask.shown, **QUIET)
    choice = [model.model, model.beside, model.profile]
    gr.on([tab.select, page.load], guarded(model.profiles_now), choice, model.profile, **QUIET)
    gr.on(
        [methods.chosen.change, model.model.change, model.beside.change, *methods.choices],
        guarded(ask.warn),
        ask.asked,
        ask.warnings,
        **QUIET,
    )


def _runs_of(context: Context, given: str, study: str) -> list[str]:
    """The runs of an address, or the one that its study is about; UnknownRun if it names none."""
    given = given or find(context, study).base
    ids = [run_id_from(part) for part in re.split(r"[,\s]+", given) if part][:MAX_SHOWN_RUNS]
    if not ids:
        raise UnknownRun("the address names no run")
    return ids


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
