"""Step 3: the model with what it needs and can do, calibration profile, rule for long documents, seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr

from mdqa.backends.base import SEPARATOR
from mdqa.errors import ConfigError
from ui.context import Context
from ui.guard import QUIET, guarded
from ui.views.markup import text
from ui.views.models import can_be_freed, can_be_loaded, model_card, model_status

OVERFLOW = [
    ("Refuse the run and give the numbers", "refuse"),
    ("Cut the longest documents to one length", "shorten"),
    ("Leave out documents from the end", "drop_last"),
]
AUTOMATIC = ALONE = ""


@dataclass(frozen=True)
class ModelPicker:
    """The components of step 3."""

    context: Context
    model: gr.Dropdown
    beside: gr.Dropdown
    status: gr.HTML
    timer: gr.Timer
    profile: gr.Dropdown
    overflow: gr.Radio
    seed: gr.Number

    @property
    def inputs(self) -> set[Any]:
        """Everything a handler needs to know the model and how to run."""
        return {self.model, self.beside, self.profile, self.overflow, self.seed}

    def chosen(self, values: Mapping[Any, Any]) -> str:
        """The model that is asked for, of two as one their common name."""
        return together(values[self.model], values[self.beside])

    def profiles_now(self, model: str, beside: str, chosen: str) -> Any:
        """The profile picker with what is stored now; the choice stays if it is still there."""
        choices = _profile_choices(self.context, together(model, beside))
        kept = chosen if chosen in {value for _, value in choices} else AUTOMATIC
        return gr.Dropdown(choices=choices, value=kept)


def together(model: str | None, beside: str | None) -> str:
    """The name of two models as one; of one, where nothing stands beside it; empty where none is chosen."""
    return f"{model}{SEPARATOR}{beside}" if model and beside else model or ""


def build_model_picker(context: Context) -> ModelPicker:
    """Lay out and wire step 3."""
    gr.HTML(text("h2", "3 · Model"), apply_default_css=False)
    model = gr.Dropdown(
        [(card.name, card.id) for card in context.models],
        value=context.model,
        label="Language model",
        elem_id="mdqa-model",
    )
    beside = _inspector_picker(context, context.model)
    status = gr.HTML(model_status(context.engine.model_status), apply_default_css=False, elem_id="mdqa-model-status")
    with gr.Accordion("What this model needs and can do", open=False) as about:
        card = gr.HTML(_card(context, context.model), apply_default_css=False)
        with gr.Row(elem_classes="mdqa-controls"):
            load = gr.Button("Load this model", size="md", elem_id="mdqa-load")
            unload = gr.Button("Free the loaded one", size="md", elem_id="mdqa-unload")
    with gr.Accordion("Profile, long documents, seed", open=False):
        profile = gr.Dropdown(
            [("Automatic: the newest that fits", AUTOMATIC)],  # the others come when an analyst opens the page
            value=AUTOMATIC,
            label="Calibration profile",
            info="CAFE's heads and MADARA's probe, prepared once per model",
        )
        overflow = gr.Radio(OVERFLOW, value="refuse", label="Too long for the model")
        seed = gr.Number(0, label="Seed", precision=0, minimum=0, maximum=2**31 - 1, step=1)
    timer = gr.Timer(1.0)

    def choose(model: str) -> tuple[Any, ...]:
        return _inspector_picker(context, together(model, ALONE)), *complete(model, ALONE)

    def complete(model: str, beside: str) -> tuple[Any, ...]:
        name = together(model, beside)
        return _card(context, name), gr.Dropdown(choices=_profile_choices(context, name), value=AUTOMATIC)

    def look(model: str, beside: str) -> tuple[Any, ...]:
        now, name = context.engine.model_status, together(model, beside)
        buttons = (gr.Button(interactive=can_be_loaded(now, name)), gr.Button(interactive=can_be_freed(now)))
        return model_status(now), gr.Timer(active=not now.settled), *buttons

    def load_now(model: str, beside: str) -> tuple[Any, ...]:
        name = together(model, beside)
        if context.card(name) is None:
            raise ConfigError(f"the model {name!r} is not offered here")
        context.engine.load(name)
        return look(model, beside)

    def free(model: str, beside: str) -> tuple[Any, ...]:
        """In line like everything else: a run that works keeps its model until it ends."""
        context.engine.unload()
        return look(model, beside)

    state, both = [status, timer, load, unload], [model, beside]
    load.click(guarded(load_now), both, state, **QUIET)
    unload.click(guarded(free, roles=()), both, state, **QUIET)  # it is everybody's model: for admins
    model.change(guarded(choose), model, [beside, card, profile], **QUIET)
    beside.change(guarded(complete), both, [card, profile], **QUIET)
    # Somebody else may have loaded or freed a model since.
    gr.on([timer.tick, about.expand, model.change, beside.change], guarded(look), both, state, **QUIET)
    return ModelPicker(context, model, beside, status, timer, profile, overflow, seed)


def _inspector_picker(context: Context, model: str) -> gr.Dropdown:
    """What may stand beside this model to be looked at; hidden where it shows its own attention."""
    cards = context.inspectors(model)
    return gr.Dropdown(
        [("Nothing: no attention", ALONE), *((card.name, card.id) for card in cards)],
        value=ALONE,
        visible=bool(cards),
        label="Look inside",
        info="This model shows no attention. Another one, on this machine, can read the same prompts and show its own.",
        elem_id="mdqa-beside",
    )


def _card(context: Context, model: str) -> str:
    """What there is to say of a model; of the first one for a name that is not offered."""
    return model_card(context.card(model) or context.models[0])


def _profile_choices(context: Context, model: str) -> list[tuple[str, str]]:
    """Automatic first, then the stored and packaged profiles for this model by name."""
    methods: dict[str, list[str]] = {}
    for profile in context.profiles(model):
        methods.setdefault(profile.name, []).append(profile.method)
    named = [(f"{name} ({', '.join(dict.fromkeys(of))})", name) for name, of in methods.items()]
    return [("Automatic: the newest that fits", AUTOMATIC), *named]
