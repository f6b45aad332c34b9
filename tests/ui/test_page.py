"""Who may call what, through the server: every listener, for every role, however it is called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import gradio as gr
import httpx
import pytest
from gradio.utils import get_upload_folder

from mdqa.errors import InputError
from mdqa.users import User, hashed, read_users, write_users
from tests.storage.builders import complete, header
from tests.ui.helpers import open_scripted
from tests.ui.serving import PASSWORD, call, defaults, queued, served, sign_in, with_users
from ui.context import Context
from ui.guard import guarded
from ui.layout import TABS
from ui.page import MAX_DEPTH, Page, Sessions, cleaned

SECRET = "Rosalind-Franklin-4711"
PROFILE = "hand (madara, cafe)"


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


def test_every_listener_states_its_roles(server: tuple[Page, str]) -> None:
    page, _ = server
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


def test_names_of_profiles_are_for_those_who_see_runs(server: tuple[Page, str]) -> None:
    page, url = server
    number = next(n for n in listeners(page) if page.fns[n].name == "profiles_now")
    with sign_in(url, "ann") as ann, sign_in(url, "lin") as lin:
        assert PROFILE not in ann.get("/config").text
        assert PROFILE in call(lin, number, defaults(page, number)).text


def test_nobody_calls_anything_before_the_sign_in(server: tuple[Page, str]) -> None:
    page, url = server
    with httpx.Client(base_url=url) as stranger:
        for number in listeners(page)[:5]:
            assert call(stranger, number, []).status_code == 401
        assert stranger.get("/config").status_code == stranger.get("/gradio_api/info").status_code == 401
        first = stranger.get("/").text
        assert "auth_required" in first and "mdqa-tabs" not in first
        assert stranger.post("/login", data={"username": "ann", "password": "wrong"}).status_code == 400
        assert stranger.get("/gradio_api/heartbeat/some-session").status_code == 401
        assert stranger.post("/gradio_api/upload", files={"files": ("a.json", b"{}")}).status_code == 401


def test_annotators_load_and_save_no_files(server: tuple[Page, str]) -> None:
    _, url = server
    with sign_in(url, "lin") as lin, sign_in(url, "ann") as ann:
        sent = {"files": ("a.json", b'{"a": 1}')}
        [path] = lin.post("/gradio_api/upload", files=sent).json()
        assert lin.get(f"/gradio_api/file={path}").text == '{"a": 1}'
        assert ann.post("/gradio_api/upload", files=sent).status_code == 403
        for route in ("file=", "file/"):
            answer = ann.get(f"/gradio_api/{route}{path}")
            assert answer.status_code == 403 and "signed in as annotator" in answer.text


def test_the_sign_in_stays_on_this_site(server: tuple[Page, str]) -> None:
    _, url = server
    said = {"username": "ann", "password": PASSWORD}
    with httpx.Client(base_url=url) as client:
        open_line = client.post("/login", data=said).headers.get_list("set-cookie")
        tls = client.post("/login", data=said, headers={"x-forwarded-proto": "https"}).headers.get_list("set-cookie")
    assert len(open_line) == len(tls) == 2
    for cookie in [*open_line, *tls]:
        assert "HttpOnly" in cookie and "samesite=lax" in cookie.lower() and "samesite=none" not in cookie.lower()
    assert all("Secure" in cookie for cookie in tls) and any("Secure" not in cookie for cookie in open_line)


def test_an_open_page_is_of_the_person_who_opened_it(server: tuple[Page, str], telling: int) -> None:
    page, url = server
    session, routes = "of ada alone", ("/gradio_api/heartbeat/of ada alone", "/gradio_api/queue/data")
    with sign_in(url, "ada") as ada, sign_in(url, "lin") as lin, sign_in(url, "ada") as elsewhere:
        body = {"fn_index": telling, "data": defaults(page, telling), "session_hash": session}
        ada.post("/gradio_api/queue/join", json=body).raise_for_status()
        with ada.stream("GET", routes[0]) as alive:
            assert alive.status_code == 200
        for route in routes:
            answer = lin.get(route, params={"session_hash": session})
            assert answer.status_code == 403 and SECRET not in answer.text
        answer = call(lin, telling, defaults(page, telling), session_hash=session)
        assert SECRET not in answer.text and ("opened by somebody else" in answer.text or "update" in answer.text)
        with elsewhere.stream("GET", routes[1], params={"session_hash": session}) as answers:
            assert any(SECRET in line for line in answers.iter_lines())


def test_whose_a_page_is_stays_known_as_long_as_it_is_in_use() -> None:
    sessions = Sessions(most=3)
    assert sessions.are_of("a", "ada") and not sessions.are_of("a", "lin") and not sessions.are_of("a", None)
    for number in range(5):
        assert sessions.are_of(str(number), "lin") and sessions.are_of("a", "ada")
    assert sessions.are_of("0", "ada")  # left for longest, and forgotten
    assert not sessions.are_of("x" * 100, "ada"), "a name that would fill the memory is not kept"


def test_a_new_password_ends_what_the_old_one_opened(server: tuple[Page, str], context: Context, telling: int) -> None:
    page, url = server
    users, data = context.settings.users, defaults(page, telling)
    assert users is not None
    before = users.read_bytes()
    with sign_in(url, "lin") as thief, sign_in(url, "ada") as ada, sign_in(url, "lin") as lin:
        assert SECRET in call(thief, telling, data).text
        try:
            changed = read_users(users) | {"lin": User("lin", "analyst", hashed("a new password"))}
            write_users(users, changed.values())
            lin.post("/login", data={"username": "lin", "password": "a new password"}).raise_for_status()
            assert call(thief, telling, data).status_code == 401
            assert SECRET in call(lin, telling, data).text and SECRET in call(ada, telling, data).text
        finally:
            users.write_bytes(before)


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
    assert not page._queue.event_analytics  # nothing is kept of who called what


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
            assert call(lin, telling, data).status_code == 401
        finally:
            users.write_bytes(before)


@pytest.mark.parametrize(("name", "theirs"), [("ann", "annotate"), ("lin", ""), ("ada", "")])
def test_the_tabs_are_those_of_the_role(server: tuple[Page, str], name: str, theirs: str) -> None:
    page, url = server
    number = next(n for n in listeners(page) if page.fns[n].name == "open_page" and page.fns[n].fn.roles is None)
    with sign_in(url, name) as client:
        head, _, *tabs = call(client, number, []).json()["data"]
    seen = [tab for (tab, _, _), update in zip(TABS, tabs, strict=True) if update["visible"] is True]
    assert seen == ([tab for tab, _, _ in TABS if tab == theirs] if theirs else [tab for tab, _, _ in TABS])
    assert name in str(head) and "Sign out" in str(head)


def test_nobody_reads_or_answers_what_is_open_for_another(context: Context, server: tuple[Page, str]) -> None:
    """An item with the form, the note and the undo of one annotator, asked for by another one."""
    page, url = server
    assert context.store.queues.send("secret", "Odd ones", who="ada")
    number = next(n for n in listeners(page) if page.fns[n].name == "annotate")

    def say(client: httpx.Client, do: str, **order: object) -> dict[str, object]:
        session = f"of {id(client)}"  # a session for every call would take most of the time
        answer = call(client, number, [{"do": do, "queue": "Odd ones", **order}], session_hash=session)
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


@pytest.mark.parametrize("path", ["/etc/passwd", "https://example.org/x", "../x", "a\x00b", "", 7, None])
def test_no_file_is_read_or_fetched_that_nobody_uploaded(path: object) -> None:
    file = {"path": path, "meta": {"_type": "gradio.FileData"}}
    with pytest.raises(InputError, match="not loaded here"):
        cleaned([{"a": file}])
    uploaded = {**file, "path": str(Path(get_upload_folder()) / "abc" / "x.json")}
    assert cleaned([uploaded]) == [uploaded]
    assert cleaned({"path": "/etc", "meta": "data"}) == {"path": "/etc", "meta": "data"}


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


def test_what_stays_as_it_is_is_not_made_anew(context: Context) -> None:
    with Page(context) as page:
        button, name, number, kept = gr.Button(), gr.Textbox(), gr.Number(), gr.State(0)
        boxes = [name, number, kept]
        button.click(guarded(lambda: [gr.skip(), 3, gr.skip()]), None, boxes)
        button.click(guarded(lambda: [gr.Textbox(lines=4), gr.skip(), 5]), None, boxes)
        button.click(guarded(lambda: [gr.skip(), gr.skip(), gr.skip()]), None, boxes)
        button.click(guarded(lambda kept: [str(kept), 1, kept + 1]), kept, boxes)
        button.click(guarded(gr.skip), None, boxes)
    stays = {"__type__": "update"}
    with served_page(page) as client:
        answers = [
            call(client, number, [None] * (number == 3), session_hash="one").json()["data"] for number in range(5)
        ]
        assert call(client, 3, [None], session_hash="one").json()["data"] == ["6", 1, None]
    nothing = [stays, stays, None]
    assert answers == [[stays, 3, None], [stays | {"lines": 4}, stays, None], nothing, ["5", 1, None], nothing]
