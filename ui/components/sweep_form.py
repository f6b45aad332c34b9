"""The form of a position sweep: which document, which positions, which methods, and what it would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.records import RunResult
from mdqa.studies.position_sweep import GOLD
from ui.actions import methods
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.studying import CHOSEN, EVERY, FEW, SweepWish, estimate_sweep
from ui.views.markup import text
from ui.views.studies import document_name, estimate_line

SWEEPING = (
    "The document goes to one position after the other, the rest stays in order: does the method find it anywhere?"
)

POSITIONS = [("First, middle, last", FEW), ("Every position", EVERY), ("These:", CHOSEN)]


@dataclass(frozen=True)
class SweepForm:
    """The components; :meth:`show` fills them for a run."""

    context: Context
    document: gr.Dropdown
    which: gr.Radio
    typed: gr.Textbox
    methods: gr.CheckboxGroup
    estimate: gr.HTML
    button: gr.Button

    @property
    def inputs(self) -> list[Any]:
        """What :meth:`wish` reads, in its order."""
        return [self.document, self.which, self.typed, self.methods]

    @property
    def outputs(self) -> list[Any]:
        """What :meth:`show` fills, in its order."""
        return [*self.inputs, self.estimate, self.button]

    def wish(
        self, document: str | None, which: str | None, typed: str | None, chosen: Sequence[str] | None
    ) -> SweepWish:
        """What the form says."""
        return SweepWish(document or GOLD, which or FEW, typed or "", tuple(chosen or ()))

    def show(self, run: RunResult) -> list[Any]:
        """Values for :attr:`outputs`: the gold documents, or the first one where none is marked; the run's method."""
        choices = document_choices(run)
        document = choices[0][1] if choices else GOLD
        return [
            gr.Dropdown(choices=choices, value=document),
            FEW,
            gr.Textbox("", visible=False),
            [run.method],
            *self.estimated(run, SweepWish(document, FEW, "", (run.method,))),
        ]

    def estimated(self, run: RunResult, wish: SweepWish) -> list[Any]:
        """The estimate, and the button that it allows."""
        found = estimate_sweep(self.context, run, wish)
        return [estimate_line(found), gr.Button(interactive=not found.obstacle)]


def document_choices(run: RunResult) -> list[tuple[str, str]]:
    """What can be moved: the gold documents where there are some, then each document."""
    documents, gold = run.question.documents, run.question.gold_ids
    first = [("The gold document" if len(gold) == 1 else f"The {len(gold)} gold documents", GOLD)] if gold else []
    return [*first, *((document_name(documents, document.id, 60), document.id) for document in documents)]


def build_sweep_form(context: Context, run: gr.Radio) -> SweepForm:
    """Lay out and wire it; ``run`` holds the id of the run in front."""
    gr.HTML(text("h3", "Position sweep") + text("p", SWEEPING, "mdqa-note"), apply_default_css=False)
    document = gr.Dropdown([], label="Document to move", elem_id="mdqa-sweep-document")
    which = gr.Radio(POSITIONS, value=FEW, label="Positions", elem_id="mdqa-sweep-positions")
    typed = gr.Textbox(
        label="Positions, from 1", placeholder="1, 5, 10", max_length=4000, max_lines=1, visible=False,
        elem_id="mdqa-sweep-typed",
    )  # fmt: skip
    names = [(info.title, info.name) for info in methods()]
    chosen = gr.CheckboxGroup(names, label="Methods", elem_id="mdqa-sweep-methods")
    estimate = gr.HTML(apply_default_css=False, elem_id="mdqa-sweep-estimate")
    button = gr.Button("Sweep positions", elem_id="mdqa-sweep")
    form = SweepForm(context, document, which, typed, chosen, estimate, button)

    def changed(run_id: str, *values: Any) -> list[Any]:
        wish = form.wish(*values)
        base = context.store.runs.get(run_id)
        return [gr.Textbox(visible=wish.which == CHOSEN), *form.estimated(base, wish)]

    gr.on(
        [document.input, which.input, typed.input, chosen.input],
        guarded(changed),
        [run, *form.inputs],
        [typed, estimate, button],
        trigger_mode="always_last",
        **QUIET,
    )
    return form
