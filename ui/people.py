"""Who is in front of the page and what they may do. Every handler asks here, never the page.

Three ways to sign in: none (a laptop; the one person there may everything), a name and a password (``MDQA_USER`` and
``MDQA_PASSWORD``, ``MDQA_USERS``), or a Hugging Face account (a Space with ``hf_oauth``).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mdqa.errors import ConfigError, InputError, MdqaError
from mdqa.settings import Settings
from mdqa.users import ROLES, Role, clean_name, read_users
from ui.logs import log

if TYPE_CHECKING:
    import gradio as gr

    from ui.context import Context

__all__ = ["LOCAL", "ROLES", "Forbidden", "Role", "Visitor", "require", "signed_in", "visitor"]

LOCAL = "local"
"""Who is there where nobody has to sign in."""


class Forbidden(MdqaError):
    """A visitor asks for what their role does not allow; the text says so to them."""


@dataclass(frozen=True)
class Visitor:
    """A person at the page, as the server knows them; ``name`` stands in the logs of labels and queues."""

    name: str
    role: Role

    def may(self, *roles: Role) -> bool:
        """Whether this person's role is one of these; admins may everything."""
        return self.role == "admin" or self.role in roles


def visitor(context: Context, request: gr.Request | None) -> Visitor:
    """The person behind a request.

    Raises:
        InputError: a sign-in is needed and missing.
        Forbidden: the person is signed in and has no role here (any more).
    """
    settings = context.settings
    name = signed_in(settings, request)
    if settings.sign_in == "":
        # A Space that asks nobody for a name is open to everybody: nobody there is its owner. A name is there only
        # where a program that serves this page signs people in itself.
        return Visitor(name or LOCAL, "analyst" if settings.space else "admin")
    if name is None:
        raise InputError("sign in first: what is done here is kept under the name of the person who does it")
    role = _role(settings, name)
    if role is None:
        raise Forbidden(f"{name} has no role here; ask the owner of this page for one")
    return Visitor(name, role)


def signed_in(settings: Settings, request: gr.Request | None) -> str | None:
    """The name that somebody signed in with, whether it has a role here or not; None: nobody is signed in."""
    name = _hugging_face_name(request) if settings.sign_in == "huggingface" else getattr(request, "username", None)
    return clean_name(name) if isinstance(name, str) and name else None


def require(context: Context, request: gr.Request | None, *roles: Role) -> Visitor:
    """The person behind a request if their role is one of ``roles`` or admin; without roles, admins only.

    Raises:
        InputError: a sign-in is needed and missing.
        Forbidden: the person's role does not allow it.
    """
    found = visitor(context, request)
    if not found.may(*roles):
        wanted = " or ".join(dict.fromkeys([*roles, "admin"]))
        raise Forbidden(f"this needs the role {wanted}; {found.name} is signed in as {found.role}")
    return found


def _role(settings: Settings, name: str) -> Role | None:
    """The role of a signed-in person; None for one who has none."""
    if settings.sign_in == "huggingface":
        if name in settings.admins:
            return "admin"
        return "analyst" if name in settings.analysts else settings.open_role
    if settings.user and name == clean_name(settings.user):
        return "admin"
    try:
        user = read_users(settings.users).get(name) if settings.users else None
    except ConfigError as problem:  # it names the file and what stands in it
        log.error("nobody of the users file has a role: %s", problem)
        raise Forbidden("the list of people cannot be read at the moment; tell the owner of this page") from None
    return user.role if user else None


def _hugging_face_name(request: gr.Request | None) -> str | None:
    """The account's name out of the signed session cookie; None where nobody is signed in, or not any more.

    Gradio's login routes put it there (https://www.gradio.app/guides/sharing-your-app#o-auth-login-via-hugging-face).
    """
    scope: Mapping[str, Any] = getattr(getattr(request, "request", None), "scope", None) or {}
    info = (scope.get("session") or {}).get("oauth_info") or {}
    ends = info.get("expires_at")
    if ends is not None and ends < time.time():
        return None
    name = (info.get("userinfo") or {}).get("preferred_username")
    return name if isinstance(name, str) else None
