"""The page: header, tabs, look. A new tab is a file in ``ui/tabs`` and a line in ``TABS``."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

import gradio as gr

from mdqa.errors import InputError, MdqaError
from ui.context import Context
from ui.filtering import tab_of
from ui.guard import QUIET, SEES_RUNS, explained, guarded
from ui.page import Page
from ui.people import ROLES, Role, visitor
from ui.theme import theme
from ui.views.header import header
from ui.views.keeping import keeping
from ui.views.tour import tour

TITLE = "mdqa · multi-document question answering"

TABS = (
    ("ask", "Ask", "ui.tabs.ask"),
    ("compare", "Compare", "ui.tabs.compare"),
    ("failures", "Failures", "ui.tabs.failures"),
    ("annotate", "Annotate", "ui.tabs.annotate"),
    ("agreement", "Agreement", "ui.tabs.agreement"),
    ("profiles", "Profiles", "ui.tabs.profiles"),
    ("reports", "Reports", "ui.tabs.reports"),
)
"""Id (also ``?tab=``), title and module of every tab; the module has ``build(context, page, tab)``."""

SHEETS = ("base", "ask", "result", "documents", "decisions", "madara", "profiles", "duquad", "reports")
"""The sheets that come first, in this order: what follows may set a part of the page again. The others have none."""

KEPT_SECONDS = 60
"""Between two looks whether snapshots are taken, where there are any."""

TAB_ROLES: dict[str, tuple[Role, ...]] = {"annotate": ROLES}
"""Who is shown a tab, where that is not :data:`SEES_RUNS`. Handlers check for themselves: see :mod:`ui.page`."""


def build_ui(context: Context) -> Page:
    """All tabs in one page, wired to the context. Theme and style go to ``launch``: see :func:`appearance`."""
    sign_in = context.settings.sign_in
    options = {"title": TITLE, "analytics_enabled": False, "fill_width": True, "delete_cache": (3600, 86400)}
    with Page(context, **options) as page:
        head = gr.HTML(header(sign_in), apply_default_css=False)
        keeps = gr.HTML(kept(context, None), apply_default_css=False, elem_id="mdqa-kept")
        gr.HTML(tour(), apply_default_css=False, elem_id="mdqa-tour-box")
        with gr.Tabs(elem_id="mdqa-tabs") as tabs:
            built = {}
            for name, title, module in TABS:
                # All are there from the start; the style sheet covers them until it is known whose they are. Gradio
                # gives a field its first value back when somebody leaves it, in a tab that was hidden first.
                with gr.Tab(title, id=name, elem_id=f"mdqa-tab-{name}") as built[name]:
                    import_module(module).build(context, page, built[name])

        def open_page(request: gr.Request) -> list[Any]:
            """Who is there, the tabs that are theirs, and the one of the address in front."""
            person, problem = None, ""
            try:
                person = visitor(context, request)
            except InputError:
                problem = "Sign in to use this page."
            except MdqaError as refused:
                problem = explained(refused)
            theirs = [name for name in built if person and person.may(*TAB_ROLES.get(name, SEES_RUNS))]
            wanted = tab_of(str(dict(request.query_params).get("tab", "")))
            front = wanted if wanted in theirs else theirs[0] if theirs and theirs[0] != TABS[0][0] else None
            chosen = gr.Tabs(selected=front) if front else gr.skip()
            if not sign_in:
                return [gr.skip(), chosen, *(gr.skip() for _ in built)]
            said = header(sign_in, person.name if person else "", person.role if person else "", problem)
            # "hidden", for a tab that is taken away altogether keeps its button.
            return [said, chosen, *(gr.Tab(visible=name in theirs or "hidden") for name in built)]

        def look(request: gr.Request) -> str:
            return kept(context, request)

        page.load(guarded(open_page, roles=None), None, [head, tabs, *built.values()], **QUIET)
        if context.snapshots is not None:
            gr.on([page.load, gr.Timer(KEPT_SECONDS).tick], guarded(look, roles=None), None, keeps, **QUIET)
    return page


def kept(context: Context, request: gr.Request | None) -> str:
    """Whether what is done here is kept, for the person behind a request; None: for anybody."""
    try:
        admin = request is not None and visitor(context, request).may()
    except MdqaError:
        admin = False
    state = context.snapshots.state if context.snapshots is not None else None
    return keeping(state, temporary=context.settings.temporary, admin=admin)


def appearance() -> dict[str, Any]:
    """Theme, style sheet and script, as arguments of ``launch``."""
    return {
        "theme": theme(),
        "css": style_sheet(),
        "js": script(),
    }


def script() -> str:
    """One function that calls those of ``ui/scripts``, one file per part of the page, when the page is loaded."""
    folder = files("ui") / "scripts"
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in sorted(f.name for f in folder.iterdir())]
    return "() => {\n" + "\n".join(f"({part.strip()})();" for part in parts) + "\n}"


def style_sheet() -> str:
    """The sheets of ``ui/styles``: those of :data:`SHEETS`, then one for each further part of the page."""
    sheets = {sheet.name: sheet.read_text(encoding="utf-8") for sheet in (files("ui") / "styles").iterdir()}
    first = [sheets.pop(f"{name}.css") for name in SHEETS]
    return "\n".join([*first, *(sheets[name] for name in sorted(sheets))])
