"""Profiles: calibrate a method for a model, follow and stop it, look at profiles, import and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import MdqaError
from ui.components.calibration_form import CalibrationForm, build_calibration_form
from ui.components.profile_panel import ProfilePanel, build_profile_panel
from ui.context import Context
from ui.guard import QUIET, explained, guarded
from ui.planning import shown_calibrations, start
from ui.profiles import delete, find, import_profile, listed
from ui.views.calibration import CalibrationState, calibration_list
from ui.views.markup import message, text
from ui.views.profiles import profile_list

CHOOSE = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-profile]");
  if (!button) return;
  for (const other of element.querySelectorAll("[data-profile]")) other.ariaPressed = String(other === button);
  trigger("select", { key: button.dataset.profile });
  if (innerWidth < 900) document.querySelector("#mdqa-profile")?.scrollIntoView({ block: "start" });
});
"""
"""A click on a row chooses its profile; the list itself is not drawn again, so that the keyboard's place stays."""

FOLLOW = """
let shown = null;
watch("value", () => {
  const first = element.querySelector("[data-calibration]")?.dataset.calibration;
  if (shown !== null && first && first !== shown && innerWidth < 900) element.scrollIntoView({ block: "start" });
  shown = first ?? "";
});
"""
"""Brings a calibration that has just been started into view on a narrow page."""

INTRO = (
    "CAFE's retrieval heads and MADARA's probe belong to one model and are found once, on questions whose gold "
    "documents are known. The result is a profile; it stays and can be chosen on the Ask page."
)


@dataclass(frozen=True)
class Profiles:
    """The components of the tab with what their handlers do.

    ``which``: the calibration that Stop stops; ``known``: the ids of those that had ended at the last look; ``chosen``
    and ``keys``: the profile in front and all that are listed.
    """

    context: Context
    form: CalibrationForm
    which: gr.Dropdown
    begin: gr.Button
    halt: gr.Button
    going: gr.HTML
    timer: gr.Timer
    known: gr.State
    upload: gr.UploadButton
    notice: gr.HTML
    rows: gr.HTML
    keys: gr.State
    chosen: gr.State
    panel: ProfilePanel

    @property
    def progress(self) -> list[Any]:
        """What :meth:`follow` fills."""
        return [self.going, self.which, self.halt, self.timer]

    @property
    def shelf(self) -> list[Any]:
        """What :meth:`shelve` fills."""
        return [self.rows, self.keys, self.chosen, *self.panel.outputs]

    @property
    def everything(self) -> list[Any]:
        """What changes when a calibration may have ended."""
        return [*self.progress, self.known, *self.shelf]

    def follow(self, picked: str | None, *, again: bool = False) -> list[Any]:
        """The calibrations now, what Stop would stop, and whether to look again (``again``: in any case)."""
        states = shown_calibrations(self.context)
        active = [state for state in states if not state.finished]
        ids = [state.id for state in active]
        picked = picked if picked in ids else (ids[-1] if ids else None)
        return [
            calibration_list(states),
            gr.Dropdown(choices=_names(active), value=picked, visible=len(active) > 1),
            gr.Button(interactive=bool(active)),
            gr.Timer(active=again or bool(active)),
        ]

    def shelve(self, key: str) -> list[Any]:
        """The list and the chosen profile; the first one where the chosen one is gone."""
        entries = listed(self.context)
        now = tuple(entry.key for entry in entries)
        key = key if key in now else (now[0] if now else "")
        return [profile_list(entries, key), now, key, *self.panel.show(key)]

    def look(self, seen: Sequence[str], picked: str | None) -> list[Any]:
        """The calibrations now; a profile that has just been made comes into the list and to the front."""
        now, ended = self.follow(picked), _ended(self.context)
        if ended == tuple(seen):
            return [*now, gr.skip(), *_skips(self.shelf)]
        new = _newest(self.context, seen)
        return [*now, ended, *(self.shelve(new) if new else _skips(self.shelf))]

    def open(self, picked: str | None, key: str, rows_now: Sequence[str]) -> list[Any]:
        """What there is now. A list and a choice that still hold are left alone: somebody may be choosing."""
        same = key in rows_now and tuple(entry.key for entry in listed(self.context)) == tuple(rows_now)
        return [*self.follow(picked), _ended(self.context), *(_skips(self.shelf) if same else self.shelve(key))]

    def start(self, values: Mapping[Any, Any]) -> list[Any]:
        """Put the calibration of the form in line; what was said, the plan, and :meth:`follow`."""
        try:
            start(self.context, self.form.wish(values))
        except Exception as problem:
            return [message(explained(problem), "bad"), gr.skip(), *_skips(self.progress)]
        return ["", self.form.plan(values), *self.follow(values[self.which], again=True)]

    def stop(self, picked: str | None) -> list[Any]:
        """Stop the picked calibration; with one, that."""
        active = [state.id for state in shown_calibrations(self.context) if not state.finished]
        if active:  # the picker is only seen with several; what a hidden one holds may be out of date
            self.context.engine.stop(picked if picked in active else active[-1])
        return self.follow(None, again=True)

    def choose(self, event: gr.EventData) -> list[Any]:
        """The profile of the row that was pressed; what was said of another one goes."""
        key = find(self.context, getattr(event, "key", "")).key
        return [key, *self.panel.show(key), ""]

    def take(self, path: str | None) -> list[Any]:
        """Import the file; what was said, and :meth:`shelve`."""
        try:
            entry = import_profile(self.context, path)
        except MdqaError as problem:
            return [message(explained(problem), "bad"), *_skips(self.shelf)]
        return [message(f"{entry.profile.name} is in the list.", "good"), *self.shelve(entry.key)]

    def remove(self, key: str) -> list[Any]:
        """Delete the profile; what was said, and :meth:`shelve`."""
        gone = delete(self.context, key)
        return [message(f"{gone.name} is deleted.", "good"), *self.shelve("")]


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    with gr.Row(elem_classes="mdqa-work"):
        with gr.Column(scale=2, min_width=320, elem_classes="mdqa-input"):
            gr.HTML(text("p", INTRO, "mdqa-note"), apply_default_css=False)
            form = build_calibration_form(context)
            which = gr.Dropdown([], label="Calibration to stop", visible=False, elem_id="mdqa-calibration-which")
            with gr.Row(elem_classes="mdqa-actions"):
                begin = gr.Button("Calibrate", variant="primary", elem_id="mdqa-calibrate")
                halt = gr.Button("Stop", variant="stop", interactive=False, elem_id="mdqa-calibration-stop")
        with gr.Column(scale=3, min_width=320, elem_classes="mdqa-output"):
            going = gr.HTML(apply_default_css=False, js_on_load=FOLLOW, elem_id="mdqa-calibrations")
            with gr.Row(elem_classes="mdqa-head-row"):
                gr.HTML(text("h2", "Profiles"), apply_default_css=False)
                upload = gr.UploadButton(
                    "Import a JSON file", file_types=[".json"], size="sm", elem_id="mdqa-profile-import"
                )
            notice = gr.HTML(apply_default_css=False, elem_id="mdqa-profile-notice")
            rows = gr.HTML(apply_default_css=False, js_on_load=CHOOSE, elem_id="mdqa-profiles")
            chosen = gr.State("")
            panel, sure, not_sure = build_profile_panel(context, chosen)
    keys, known, timer = gr.State(()), gr.State(()), gr.Timer(1.0, active=False)
    parts = Profiles(context, form, which, begin, halt, going, timer, known, upload, notice, rows, keys, chosen, panel)
    _wire(parts, tab)
    panel.remove.click(guarded(panel.ask), chosen, [panel.confirm, panel.question], **QUIET)
    not_sure.click(guarded(lambda: [gr.Column(visible=False), ""]), None, [panel.confirm, panel.question], **QUIET)
    sure.click(guarded(parts.remove), chosen, [notice, *parts.shelf], **QUIET)


def _wire(parts: Profiles, tab: gr.Tab) -> None:
    form, which, chosen, notice = parts.form, parts.which, parts.chosen, parts.notice
    tab.select(guarded(parts.open), [which, chosen, parts.keys], parts.everything, **QUIET)
    parts.timer.tick(guarded(parts.look), [parts.known, which], parts.everything, **QUIET)
    parts.begin.click(guarded(parts.start), {*form.inputs, which}, [form.said, form.preview, *parts.progress], **QUIET)
    parts.known.change(guarded(form.plan), form.inputs, form.preview, **QUIET)  # finished pieces may be there now
    parts.halt.click(guarded(parts.stop), which, parts.progress, **QUIET)
    parts.rows.select(guarded(parts.choose), None, [chosen, *parts.panel.outputs, notice], **QUIET)
    parts.upload.upload(guarded(parts.take), parts.upload, [notice, *parts.shelf], **QUIET)


def _skips(outputs: Sequence[Any]) -> list[Any]:
    """Every one of these stays as it is."""
    return [gr.skip() for _ in outputs]


def _names(active: Sequence[CalibrationState]) -> list[tuple[str, str]]:
    return [(f"{state.title}: {state.name} for {state.model}", state.id) for state in active]


def _ended(context: Context) -> tuple[str, ...]:
    """The calibrations on the page that have ended."""
    return tuple(state.id for state in shown_calibrations(context) if state.finished)


def _newest(context: Context, seen: Sequence[str]) -> str:
    """The key of the profile that was finished since the last look; empty where there is none."""
    for state in shown_calibrations(context):
        if state.status == "ok" and state.id not in seen:
            for entry in listed(context):
                known = entry.profile
                if (entry.title, known.model, known.name) == (state.title, state.model, state.profile):
                    return entry.key
    return ""
