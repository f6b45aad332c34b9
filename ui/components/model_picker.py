"""Step 3: the model with what it needs and can do, calibration profile, rule for long documents, seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.errors import ConfigError
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.markup import text
from ui.views.models import model_card, model_status

OVERFLOW = [
    ("Refuse the run and give the numbers", "refuse"),
    ("Cut the longest documents to one length", "shorten"),
    ("Leave out documents from the end", "drop_last"),
]
AUTOMATIC = ""


@dataclass(frozen=True)
class ModelPicker:
    """The components of step 3."""

    context: Context
    model: gr.Dropdown
    status: gr.HTML
    timer: gr.Timer
    profile: gr.Dropdown
    overflow: gr.Radio
    seed: gr.Number

    @property
    def inputs(self) -> set[Any]:
        """Everything a handler needs to know the model and how to run."""
        return {self.model, self.profile, self.overflow, self.seed}

    def profiles_now(self, model: str, chosen: str) -> Any:
        """The profile picker with what is stored now; the choice stays if it is still there."""
        choices = _profile_choices(self.context, model)
        kept = chosen if chosen in {value for _, value in choices} else AUTOMATIC
        return gr.Dropdown(choices=choices, value=kept)


def build_model_picker(context: Context) -> ModelPicker:
    """Lay out and wire step 3."""
    by_id = {card.id: card for card in context.models}
    gr.HTML(text("h2", "3 · Model"), apply_default_css=False)
    model = gr.Dropdown(
        [(card.name, card.id) for card in context.models],
        value=context.model,
        label="Language model",
        elem_id="mdqa-model",
    )
    status = gr.HTML(model_status(context.engine.model_status), apply_default_css=False, elem_id="mdqa-model-status")
    with gr.Accordion("What this model needs and can do", open=False):
        card = gr.HTML(model_card(by_id[context.model]), apply_default_css=False)
        with gr.Row(elem_classes="mdqa-controls"):
            load = gr.Button("Load it now", size="sm", elem_id="mdqa-load")
            unload = gr.Button("Free its memory", size="sm", elem_id="mdqa-unload")
    with gr.Accordion("Profile, long documents, seed", open=False):
        profile = gr.Dropdown(
            _profile_choices(context, context.model),
            value=AUTOMATIC,
            label="Calibration profile",
            info="CAFE's heads and MADARA's probe, prepared once per model",
        )
        overflow = gr.Radio(OVERFLOW, value="refuse", label="Too long for the model")
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=2**31 - 1, step=1)
    timer = gr.Timer(1.0)

    def choose(name: str) -> tuple[Any, ...]:
        chosen = by_id.get(name, by_id[context.model])
        return model_card(chosen), gr.Dropdown(choices=_profile_choices(context, chosen.id), value=AUTOMATIC)

    def look() -> tuple[Any, ...]:
        now = context.engine.model_status
        return model_status(now), gr.Timer(active=not now.settled)

    def load_now(name: str) -> tuple[Any, ...]:
        if name not in by_id:
            raise ConfigError(f"the model {name!r} is not offered here")
        context.engine.load(name)
        return model_status(context.engine.model_status), gr.Timer(active=True)

    def free() -> tuple[Any, ...]:
        """In line like everything else: a run that works keeps its model until it ends."""
        context.engine.unload()
        return model_status(context.engine.model_status), gr.Timer(active=True)

    load.click(guarded(load_now), model, [status, timer], **QUIET)
    unload.click(guarded(free, roles=()), None, [status, timer], **QUIET)  # it is everybody's model: for admins
    model.change(guarded(choose), model, [card, profile], **QUIET)
    timer.tick(guarded(look), None, [status, timer], **QUIET)
    return ModelPicker(context, model, status, timer, profile, overflow, seed)


def _profile_choices(context: Context, model: str) -> list[tuple[str, str]]:
    """Automatic first, then the stored and packaged profiles for this model by name."""
    methods: dict[str, list[str]] = {}
    for profile in context.profiles(model):
        methods.setdefault(profile.name, []).append(profile.method)
    named = [(f"{name} ({', '.join(dict.fromkeys(of))})", name) for name, of in methods.items()]
    return [("Automatic: the newest that fits", AUTOMATIC), *named]
