"""Who may call what, through the server: every listener, for every role, however it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import gradio as gr
import httpx
import pytest

from mdqa.errors import InputError
from tests.storage.builders import complete, header
from tests.ui.helpers import open_scripted
from tests.ui.serving import call, defaults, queued, served, sign_in, with_users
from ui.context import Context
from ui.guard import guarded
from ui.layout import TABS, build_ui
from ui.page import MAX_DEPTH, Page, cleaned

SECRET = "Rosalind-Franklin-4711"


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    folder = tmp_path_factory.mktemp("page")
    with closing(open_scripted(folder)) as opened:
        opened.store.runs.begin(header("secret"))
        opened.store.runs.finish(complete("secret").model_copy(update={"answer": SECRET}))
        yield with_users(opened, folder)


@pytest.fixture(scope="module")
def server(context: Context) -> Iterator[tuple[Page, str]]:
    with served(context) as running:
        yield running


def listeners(page: Page) -> list[int]:
    return [number for number, fn in page.fns.items() if fn.fn is not None]


@pytest.fixture(scope="module")
def telling(server: tuple[Page, str]) -> int:
    """A listener that shows an analyst what runs have answered."""
    page, url = server
    with sign_in(url, "lin") as lin:
        for number in reversed(listeners(page)):
            if (
                page.fns[number].queue
                and SECRET in call(lin, number, defaults(page, number), session_hash="of lin").text
            ):
                return number
    pytest.fail("nothing shows a run's answer, so these tests would see no leak")


def test_every_listener_states_its_roles(context: Context) -> None:
    page = build_ui(context)
    for number in listeners(page):
        handler = page.fns[number].fn
        assert hasattr(handler, "roles"), f"{handler.__module__}.{handler.__qualname__} is not guarded"


def test_what_has_no_roles_is_for_nobody(context: Context) -> None:
    with Page(context) as page:
        button, box = gr.Button(), gr.Textbox()
        button.click(lambda: SECRET, None, box)
    with served_page(page) as client:
        answer = call(client, 0, [])
        assert answer.status_code == 500 and SECRET not in answer.text and "cannot be called" in answer.text


def test_an_annotator_sees_no_run_whatever_is_called(server: tuple[Page, str]) -> None:
    page, url = server
    with sign_in(url, "ann") as ann:
        assert SECRET not in ann.get("/config").text and SECRET not in ann.get("/?run=secret").text
        for number in listeners(page):
            fn = page.fns[number]
            if fn.fn.roles is not None and "annotator" in fn.fn.roles:
                continue
            answer = call(ann, number, defaults(page, number), session_hash="of ann")
            assert SECRET not in answer.text
            refused = answer.status_code == 500 and "signed in as annotator" in answer.text
            silent = answer.status_code == 200 and all(v == {"__type__": "update"} for v in answer.json()["data"])
            if fn.fn.roles is not None:
                assert refused or silent, (fn.name, answer.text[:300])


def test_nobody_calls_anything_before_the_sign_in(server: tuple[Page, str]) -> None:
    page, url = server
    with httpx.Client(base_url=url) as stranger:
        for number in listeners(page)[:5]:
            assert call(stranger, number, []).status_code == 401
        assert stranger.get("/config").status_code == stranger.get("/gradio_api/info").status_code == 401
        first = stranger.get("/").text
        assert "auth_required" in first and "mdqa-tabs" not in first
        assert stranger.post("/login", data={"username": "ann", "password": "wrong"}).status_code == 400


def test_who_signs_out_is_out(server: tuple[Page, str], telling: int) -> None:
    page, url = server
    with sign_in(url, "lin") as lin:
        assert SECRET in call(lin, telling, defaults(page, telling)).text
        cookies = dict(lin.cookies)
        lin.get("/logout")
        lin.cookies.update(cookies)  # somebody who kept the old cookie
        assert call(lin, telling, defaults(page, telling)).status_code == 401


def test_the_queue_has_the_same_gate(server: tuple[Page, str], telling: int) -> None:
    page, url = server
    with sign_in(url, "ann") as ann:
        refused = queued(ann, telling, defaults(page, telling))
    with sign_in(url, "lin") as lin:
        allowed = queued(lin, telling, defaults(page, telling))
    assert SECRET not in refused and "signed in as annotator" in refused
    assert SECRET in allowed


def test_a_person_who_is_taken_off_the_list_is_out_at_once(
    server: tuple[Page, str], context: Context, telling: int
) -> None:
    page, url = server
    users = context.settings.users
    assert users is not None
    data = defaults(page, telling)
    with sign_in(url, "lin") as lin:
        assert SECRET in call(lin, telling, data).text
        before = users.read_bytes()
        try:
            users.write_bytes(before.replace(b'"lin"', b'"tom"'))
            answer = call(lin, telling, data)
            assert SECRET not in answer.text and ("has no role here" in answer.text or "update" in answer.text)
        finally:
            users.write_bytes(before)


@pytest.mark.parametrize(("name", "theirs"), [("ann", "annotate"), ("lin", ""), ("ada", "")])
def test_the_tabs_are_those_of_the_role(server: tuple[Page, str], name: str, theirs: str) -> None:
    page, url = server
    number = next(n for n in listeners(page) if page.fns[n].name == "open_page" and page.fns[n].fn.roles is None)
    with sign_in(url, name) as client:
        head, _, *tabs = call(client, number, []).json()["data"]
    seen = [tab for (tab, _, _), update in zip(TABS, tabs, strict=True) if update["visible"]]
    assert seen == ([tab for tab, _, _ in TABS if tab == theirs] if theirs else [tab for tab, _, _ in TABS])
    assert name in str(head) and "Sign out" in str(head)


def test_nobody_reads_or_answers_what_is_open_for_another(context: Context, server: tuple[Page, str]) -> None:
    """An item with the form, the note and the undo of one annotator, asked for by another one."""
    page, url = server
    assert context.store.queues.send("secret", "Odd ones", who="ada")
    number = next(n for n in listeners(page) if page.fns[n].name == "annotate")

    def say(client: httpx.Client, do: str, **order: object) -> dict[str, object]:
        answer = call(client, number, [{"do": do, "queue": "Odd ones", **order}])
        assert answer.status_code == 200, answer.text
        [found] = answer.json()["data"]
        return found

    with sign_in(url, "ann") as ann, sign_in(url, "bob") as bob:
        token = say(ann, "open")["token"]
        assert token
        before = context.store.labels.log("Odd ones")
        for do in ("save", "skip", "flag"):
            said = say(bob, do, token=token, mark="neither", note="mine", reason="mine")
            assert said.get("refused") or said.get("fault"), (do, said)
        assert context.store.labels.log("Odd ones") == before
        assert say(ann, "save", token=token, mark="neither", note="private to ann").get("done") == "save"
        for do in ("open", "undo", "queues"):
            assert "private to ann" not in str(say(bob, do))
        assert [rating.annotator for rating in context.store.labels.counting("Odd ones")] == ["ann"]


def test_texts_are_cleaned_before_anybody_reads_them() -> None:
    sent = {"a\x00": ["\ud800x", "\ud83d\ude00", 1, None, True, 1.5]}
    assert cleaned(sent) == {"a": ["\ufffdx", "\U0001f600", 1, None, True, 1.5]}
    deep: list[object] = []
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    with pytest.raises(InputError, match="without end"):
        cleaned(deep)


def served_page(page: Page) -> closing[httpx.Client]:
    """A client of a small page, without a network."""
    from fastapi.testclient import TestClient  # noqa: PLC0415 (one test needs it)
    from gradio.routes import App  # noqa: PLC0415

    app = App.create_app(page, auth_dependency=lambda request: "ada")
    return closing(TestClient(app, raise_server_exceptions=False))


def test_every_role_may_call_what_is_guarded_for_it(context: Context) -> None:
    with Page(context) as page:
        button, box = gr.Button(), gr.Textbox()
        button.click(guarded(lambda: "done"), None, box)
    with served_page(page) as client:
        assert call(client, 0, []).json()["data"] == ["done"]
