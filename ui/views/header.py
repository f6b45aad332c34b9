"""The head of the page: what this is, who is signed in, and the way out."""

from __future__ import annotations

from mdqa.settings import SignIn
from ui.views.markup import badge, element, message, text
from ui.views.tour import OPENER


def header(sign_in: SignIn = "", name: str = "", role: str = "", problem: str = "") -> str:
    """The head for a person; ``problem`` says why a signed-in or unknown person finds nothing here.

    Without either, where people sign in, it is not known yet who is there.
    """
    title = '<span class="mdqa-logo" aria-hidden="true"></span>' + element(
        "div", text("h1", "mdqa") + text("p", "Which documents led to the answer, and why")
    )
    who = _who(sign_in, name, role) if sign_in else ""
    door = OPENER if (name or not sign_in) and role != "annotator" and not problem else ""
    known = name or problem or not sign_in
    head = element("header", title + door + who, "mdqa-header" if known else "mdqa-header mdqa-unknown")
    return head + (message(problem, "warn") if problem else "")


def _who(sign_in: SignIn, name: str, role: str) -> str:
    """Relative addresses: the page may stand below another one."""
    if not name:  # who signs in with a password has done so before there is a page
        door = text("a", "Sign in with Hugging Face", href="login/huggingface")
        return element("nav", door, "mdqa-who", aria_label="Account") if sign_in == "huggingface" else ""
    said = text("span", name, dir="auto") + (badge(role) if role else "") + text("a", "Sign out", href="logout")
    return element("nav", said, "mdqa-who", aria_label="Account")
