"""Which models a page offers, and two of them as one: one writes, another one is looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from mdqa.backends.loading import recorded_name
from mdqa.calibration import builtin_profiles
from mdqa.errors import CapabilityError, ConfigError
from mdqa.registry import method_class
from tests.ui.helpers import open_scripted, question
from tests.ui.serving import call, defaults, served
from ui.actions import obstacles, start_runs
from ui.components.model_picker import together
from ui.context import Context, offered
from ui.views.models import model_card

SERVER = "small@http://127.0.0.1:9/v1"


@pytest.fixture
def context(tmp_path: Path) -> Context:
    opened = open_scripted(tmp_path, start=False)
    return replace(opened, models=offered(SERVER, ["vllm:builtin", f"{SERVER} + builtin"]), model=SERVER)


def test_two_offered_models_are_offered_together(context: Context) -> None:
    pair = context.card(together(SERVER, "HuggingFaceTB/SmolLM2-360M-Instruct"))
    assert pair is not None and "attention" in pair.capabilities and "steering" not in pair.capabilities
    assert "The first one writes" in model_card(pair)
    same = context.card(together("vllm:builtin", "builtin"))
    assert same is not None and "steering" in same.capabilities
    assert context.card(SERVER) is not None and "attention" not in context.card(SERVER).capabilities  # type: ignore[union-attr]


@pytest.mark.parametrize("model", ["builtin", "vllm:builtin", "vllm:builtin + builtin"])
def test_the_same_weights_have_the_same_profiles(model: str, context: Context) -> None:
    assert recorded_name(model) == "builtin"
    assert context.profiles(model) == [profile for profile in builtin_profiles() if profile.model == "builtin"] != []
    assert context.profile_for("cafe", model) is not None
    assert not obstacles(context, ["madara"], model, {"madara": method_class("madara").Config()})


@pytest.mark.parametrize(
    "model",
    [
        "elsewhere@http://127.0.0.1:9/v1",
        f"{SERVER} + somebody/else",
        "http://169.254.169.254/v1 + builtin",
        f"{SERVER} + {SERVER}",
        f"{SERVER} + vllm:builtin",
        "builtin + builtin",
        f"{SERVER} + builtin + builtin",
        f"{SERVER} + ",
        "",
    ],
)
def test_nothing_else_is(model: str, context: Context) -> None:
    assert context.card(model) is None
    with pytest.raises(ConfigError, match="not offered here"):
        start_runs(context, question(), {"direct": method_class("direct").Config()}, model=model)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("builtin", "builtin"),
        ("mine", "vllm:mine"),
        ("mine + builtin", "vllm:mine + builtin"),
        (f"{SERVER} + builtin", f"{SERVER} + builtin"),
        ("gone + builtin", "gone + builtin"),
    ],
)
def test_a_run_is_asked_again_by_the_name_that_led_to_its_model(recorded: str, asked: str, context: Context) -> None:
    context = replace(context, models=offered(SERVER, ["vllm:mine", "vllm:builtin"]))
    assert context.asked_as(recorded) == asked
    assert (context.card(asked) is None) is ("gone" in recorded)


def test_what_a_method_lacks_is_said_before_and_a_second_model_has_it(context: Context) -> None:
    configs = {"retrieve_read": method_class("retrieve_read").Config.parse({"ranker": "found_in_the_middle"})}
    lines = obstacles(context, list(configs), SERVER, configs)
    assert "attention" in lines[0]
    with pytest.raises(CapabilityError, match="attention"):
        start_runs(context, question(), configs, model=SERVER)
    assert not obstacles(context, list(configs), together(SERVER, "builtin"), configs)


def test_the_page_offers_a_second_model_where_the_first_shows_nothing(context: Context) -> None:
    with served(context) as (page, url), httpx.Client(base_url=url, timeout=30) as visitor:
        [choose] = [n for n, listener in page.fns.items() if "mdqa-beside" in {b.elem_id for b in listener.outputs}]
        server, own = (call(visitor, choose, [name]).json()["data"] for name in (SERVER, "builtin"))
        assert server[0]["visible"] and not own[0]["visible"]
        assert "builtin" in {value for _, value in server[0]["choices"]}
        assert len(defaults(page, choose)) == 1
