"""One profile: where it comes from, its head maps or its probe, what was measured with it, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import ProfileError
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.profiles import comparable, find, implied_routing, ringed_heads
from ui.views.heads_compared import heads_compared
from ui.views.markup import empty, text
from ui.views.probe import probe_view, probes_compared
from ui.views.profiles import (
    STAGES,
    head_scores,
    maps_intro,
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
    other: gr.Dropdown
    compared: gr.HTML
    remove: gr.Button
    confirm: gr.Column
    question: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        middle = [self.rest, self.other, self.compared]
        return [self.head, self.intro, *self.maps, *middle, self.remove, self.confirm, self.question]

    def show(self, key: str) -> list[Any]:
        """Values for :attr:`outputs`; ProfileError if there is no such profile. An empty key shows nothing."""
        closed = [gr.Column(visible=False), ""]
        if not key:
            maps = [gr.Plot(value=None, visible=False) for _ in self.maps]
            return [NOTHING, "", *maps, "", _other([]), "", _remove(False), *closed]
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
            _other(comparable(self.context, entry)),
            "",
            _remove(not entry.builtin),
            *closed,
        ]

    def compare(self, key: str, other: str | None) -> str:
        """The profile in front beside another one; nothing where none is chosen."""
        if not other:
            return ""
        profiles = find(self.context, key).profile, find(self.context, other).profile
        if profiles[0].method != profiles[1].method:
            raise ProfileError("only profiles of one method can be set side by side; choose another one")
        if profiles[0].method == "cafe":
            return heads_compared(*profiles, (ringed_heads(profiles[0]), ringed_heads(profiles[1])))
        (one, _), (two, _) = (implied_routing(profile) for profile in profiles)
        return probes_compared(*profiles, (one, two))

    def ask(self, key: str) -> list[Any]:
        """The question before a profile is deleted: confirm box and its words."""
        profile = find(self.context, key).profile
        words = f"Delete {profile.name}? Runs that used it stay; new runs cannot choose it any more."
        return [gr.Column(visible=True), text("p", words, "mdqa-note", dir="auto")]


def _other(choices: list[tuple[str, str]]) -> Any:
    """The picker of a second profile; hidden where there is none of the same kind."""
    return gr.Dropdown(choices=[("None", ""), *choices], value="", visible=bool(choices))


def _remove(possible: bool) -> Any:
    return gr.Button(visible=possible)


def build_profile_panel(context: Context, chosen: gr.State) -> tuple[ProfilePanel, gr.Button, gr.Button]:
    """Lay out a profile; also the buttons that confirm and give up deleting it. ``chosen``: the key of the list."""
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
    other = gr.Dropdown([], label="Compare with", visible=False, elem_id="mdqa-profile-other")
    compared = gr.HTML(apply_default_css=False, elem_id="mdqa-profile-compared")
    panel = ProfilePanel(context, head, intro, maps, rest, other, compared, remove, confirm, question)
    other.input(guarded(panel.compare), [chosen, other], compared, **QUIET)
    return panel, sure, not_sure
