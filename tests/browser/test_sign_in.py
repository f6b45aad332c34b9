"""Signing in: everybody finds the tabs of their role, and the way out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from mdqa.users import User, hashed, write_users
from tests.browser.conftest import Server
from tests.browser.steps import open_tab
from ui.layout import TABS

pytestmark = pytest.mark.browser

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def guarded_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for a name: ann annotates, ada is the admin."""
    folder = tmp_path_factory.mktemp("people")
    users = folder / "users.json"
    write_users(users, [User("ann", "annotator", hashed(PASSWORD)), User("ada", "admin", hashed(PASSWORD))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MDQA_USERS", str(users))
        server = Server(folder, "scripted")
        server.start()
    try:
        yield server
    finally:
        server.stop()


def sign_in(page: Page, server: Server, name: str, password: str = PASSWORD, tab: str = "") -> None:
    page.goto(f"{server.url}/?tab={tab}" if tab else server.url)
    page.get_by_label("username").fill(name)
    page.get_by_label("password").fill(password)
    page.get_by_role("button", name="Login").click()


def test_everybody_finds_the_tabs_of_their_role(page: Page, guarded_server: Server) -> None:
    tabs = page.locator("#mdqa-tabs").get_by_role("tab")
    sign_in(page, guarded_server, "ann")
    expect(page.locator(".mdqa-who")).to_contain_text("ann", timeout=60_000)
    expect(page.locator("#mdqa-annotate")).to_be_visible()
    expect(tabs.filter(visible=True)).to_have_text(["Annotate"])
    expect(page.locator("#mdqa-run")).not_to_be_visible()
    assert page.get_by_role("link", name="Sign out").get_attribute("href") == "logout"
    page.wait_for_timeout(1_000)  # a page that is left in the middle of its first events logs errors of its own
    page.context.clear_cookies()  # and so does one whose person signs out while it is still open
    sign_in(page, guarded_server, "ada")
    expect(page.locator(".mdqa-who")).to_contain_text("admin", timeout=60_000)
    expect(page.locator("#mdqa-run")).to_be_visible()
    for _, title, _ in TABS:
        expect(tabs.filter(visible=True).filter(has_text=title)).to_have_count(1)


def test_what_is_typed_stays(page: Page, guarded_server: Server) -> None:
    sign_in(page, guarded_server, "ada", tab="annotate")
    expect(page.locator(".mdqa-who")).to_contain_text("admin", timeout=60_000)
    page.wait_for_timeout(1_000)  # the page's own first events leave no trace to wait for
    page.get_by_role("button", name="Make a queue from stored runs").click()
    page.wait_for_timeout(1_000)  # no person writes in the moment in which a field appears
    name = page.locator("#mdqa-make-name textarea")
    name.fill("typed by hand")
    for tab in ("Agreement", "Annotate"):
        open_tab(page, tab)
        page.wait_for_timeout(1_000)
    expect(name).to_have_value("typed by hand")
