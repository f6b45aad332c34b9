"""One profile: where it comes from, its head maps or its probe, what was measured with it, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from ui.context import Context
from ui.profiles import find, implied_routing, ringed_heads
from ui.views.markup import empty, text
from ui.views.profiles import (
    STAGES,
    head_scores,
    maps_intro,
    probe_view,
    profile_head,
    quality_table,
    ranked_heads,
    score_map,
)

SAVE_FILE = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-save]");
  if (!button) return;
  const content = button.parentElement.querySelector("pre").textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content + "\\n"], { type: "application/json" }));
  link.download = button.dataset.save;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
"""
"""Saves the JSON that the page already shows: no file is made on the server."""

NOTHING = empty("No profile chosen", "Choose one of the list above to see its heads or its probe.")


@dataclass(frozen=True)
class ProfilePanel:
    """The components of a profile; :meth:`show` fills them for a key of the list."""

    context: Context
    head: gr.HTML
    intro: gr.HTML
    maps: tuple[gr.Plot, ...]
    rest: gr.HTML
    remove: gr.Button
    confirm: gr.Column
    question: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [self.head, self.intro, *self.maps, self.rest, self.remove, self.confirm, self.question]

    def show(self, key: str) -> list[Any]:
        """Values for :attr:`outputs`; ProfileError if there is no such profile. An empty key shows nothing."""
        closed = [gr.Column(visible=False), ""]
        if not key:
            return [NOTHING, "", *(gr.Plot(value=None, visible=False) for _ in self.maps), "", _remove(False), *closed]
        entry = find(self.context, key)
        profile = entry.profile
        ringed = ringed_heads(profile)
        tables = {stage: scores for stage in STAGES if (scores := head_scores(profile, stage)) is not None}
        plots = [
            gr.Plot(score_map(tables[stage], ringed[stage], stage), visible=True)
            if stage in tables
            else gr.Plot(value=None, visible=False)
            for stage in STAGES
        ]
        rest = quality_table(profile.values.get("quality"))
        if tables:
            rest = ranked_heads(tables, ringed) + rest
        if "rho" in profile.values:
            rest += probe_view(profile.values, *implied_routing(profile))
        return [
            profile_head(entry),
            maps_intro(tables, ringed),
            *plots,
            rest,
            _remove(not entry.builtin),
            *closed,
        ]

    def ask(self, key: str) -> list[Any]:
        """The question before a profile is deleted: confirm box and its words."""
        profile = find(self.context, key).profile
        words = f"Delete {profile.name}? Runs that used it stay; new runs cannot choose it any more."
        return [gr.Column(visible=True), text("p", words, "mdqa-note", dir="auto")]


def _remove(possible: bool) -> Any:
    return gr.Button(visible=possible)


def build_profile_panel(context: Context) -> tuple[ProfilePanel, gr.Button, gr.Button]:
    """Lay out a profile; also the buttons that confirm and give up deleting it."""
    head = gr.HTML(NOTHING, apply_default_css=False, js_on_load=SAVE_FILE, elem_id="mdqa-profile")
    with gr.Row(elem_classes="mdqa-profile-actions"):
        remove = gr.Button("Delete…", size="sm", visible=False, elem_id="mdqa-profile-delete")
    with gr.Column(visible=False, elem_classes="mdqa-confirm") as confirm:
        question = gr.HTML(apply_default_css=False)
        with gr.Row(elem_classes="mdqa-pages"):
            sure = gr.Button("Delete it", variant="stop", size="sm", elem_id="mdqa-profile-sure")
            not_sure = gr.Button("Keep it", size="sm", elem_id="mdqa-profile-keep")
    intro = gr.HTML(apply_default_css=False)
    with gr.Row(elem_classes="mdqa-maps"):
        maps = tuple(
            gr.Plot(show_label=False, container=False, visible=False, elem_id=f"mdqa-map-{stage}") for stage in STAGES
        )
    rest = gr.HTML(apply_default_css=False, elem_id="mdqa-profile-rest")
    return ProfilePanel(context, head, intro, maps, rest, remove, confirm, question), sure, not_sure
