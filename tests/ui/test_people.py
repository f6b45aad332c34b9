"""Who somebody is and what they may do, for every way to sign in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
from starlette.requests import Request

from mdqa.errors import ConfigError, InputError
from mdqa.settings import Settings
from tests.ui.helpers import open_scripted
from tests.ui.serving import PEOPLE, with_users
from ui.context import Context
from ui.people import LOCAL, Forbidden, Role, Visitor, require, visitor

SPACE = {"SYSTEM": "spaces", "OAUTH_CLIENT_ID": "id", "OAUTH_CLIENT_SECRET": "secret"}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with closing(open_scripted(tmp_path, start=False).store) as store:
        yield Context(Settings(database=store.path), store, None, "scripted", ())  # type: ignore[arg-type]


def with_settings(context: Context, **environment: str) -> Context:
    return replace(context, settings=Settings.from_environment(environment))


def test_alone_on_a_laptop_one_may_everything(context: Context) -> None:
    assert visitor(context, None) == visitor(context, gr.Request()) == Visitor(LOCAL, "admin")
    assert require(context, None).may()
    assert visitor(context, gr.Request(username="ann")) == Visitor("ann", "admin")


def test_the_owner_and_the_people_of_the_file(context: Context, tmp_path: Path) -> None:
    context = with_users(context, tmp_path)
    context = replace(context, settings=replace(context.settings, user="eve", password="secret"))
    for name, role in {**PEOPLE, "eve": "admin"}.items():
        assert visitor(context, gr.Request(username=name)) == Visitor(name, role)
    for request in (None, gr.Request(), gr.Request(username="")):
        with pytest.raises(InputError, match="sign in first"):
            visitor(context, request)
    with pytest.raises(Forbidden, match="tom has no role"):
        visitor(context, gr.Request(username="tom"))


def test_a_broken_list_of_people_is_for_the_owner_only(context: Context, tmp_path: Path) -> None:
    """Its path and entries go to the log, not to whoever is signed in."""
    context = with_users(context, tmp_path)
    assert context.settings.users is not None
    context.settings.users.write_text('{"users": [{"name": "eve"}]}', encoding="utf-8")
    with pytest.raises(Forbidden, match="cannot be read at the moment") as refused:
        visitor(context, gr.Request(username="ann"))
    assert str(tmp_path) not in str(refused.value) and "eve" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "roles", "allowed"),
    [
        ("ann", ("annotator",), True),
        ("ann", ("analyst",), False),
        ("ann", ("analyst", "annotator"), True),
        ("ann", (), False),
        ("lin", ("analyst",), True),
        ("lin", ("annotator",), False),
        ("lin", (), False),
        ("ada", ("annotator",), True),
        ("ada", (), True),
    ],
)
def test_admins_may_everything_others_what_names_their_role(
    context: Context, tmp_path: Path, name: str, roles: tuple[Role, ...], allowed: bool
) -> None:
    context, request = with_users(context, tmp_path), gr.Request(username=name)
    if allowed:
        assert require(context, request, *roles).name == name
    else:
        with pytest.raises(Forbidden, match=f"{name} is signed in as"):
            require(context, request, *roles)


def hugging_face(name: object, ends: float = 3600.0) -> gr.Request:
    """A request with the session that Gradio's login routes leave."""
    info = {"userinfo": {"preferred_username": name}, "expires_at": time.time() + ends}
    return gr.Request(Request({"type": "http", "headers": [], "session": {"oauth_info": info}}))


def test_hugging_face_accounts_have_the_roles_of_the_lists(context: Context) -> None:
    settings = {**SPACE, "MDQA_ADMINS": "ada, bo", "MDQA_ANALYSTS": "lin"}
    closed = with_settings(context, **settings)
    assert visitor(closed, hugging_face("bo")) == Visitor("bo", "admin")
    assert visitor(closed, hugging_face("lin")) == Visitor("lin", "analyst")
    with pytest.raises(Forbidden, match="ann has no role"):
        visitor(closed, hugging_face("ann"))
    opened = with_settings(context, **settings, MDQA_OPEN_ROLE="annotator")
    assert visitor(opened, hugging_face("ann")) == Visitor("ann", "annotator")
    nameless = gr.Request(Request({"type": "http", "headers": [], "session": {}}), username="ada")
    for request in (None, gr.Request(username="ada"), nameless, hugging_face("ada", ends=-1), hugging_face(["ada"])):
        with pytest.raises(InputError, match="sign in first"):
            visitor(opened, request)


def test_nobody_owns_a_space_that_asks_for_no_name(context: Context) -> None:
    assert visitor(with_settings(context, SYSTEM="spaces"), None) == Visitor(LOCAL, "analyst")


def test_cookies_that_anybody_could_sign_do_not_count(context: Context) -> None:
    outside = with_settings(context, OAUTH_CLIENT_ID="id", OAUTH_CLIENT_SECRET="secret")
    without = with_settings(context, SYSTEM="spaces", OAUTH_CLIENT_ID="id")
    assert outside.settings.sign_in == without.settings.sign_in == ""


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"MDQA_USER": "ann"}, "go together"),
        ({"MDQA_PASSWORD": "secret"}, "go together"),
        ({"MDQA_OPEN_ROLE": "admin"}, "MDQA_OPEN_ROLE='admin'"),
        ({"MDQA_LOG_LEVEL": "loud"}, "MDQA_LOG_LEVEL='loud'"),
    ],
)
def test_settings_that_mean_something_else_than_they_say_are_refused(environment: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Settings.from_environment(environment)
