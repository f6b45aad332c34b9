"""The page: header, tabs, look. A new tab is a file in ``ui/tabs`` and a line in ``TABS``."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import Any

import gradio as gr

from ui.context import Context
from ui.guard import QUIET, guarded
from ui.theme import theme
from ui.views.markup import text

TITLE = "mdqa · multi-document question answering"

TABS = (
    ("ask", "Ask", "ui.tabs.ask"),
    ("history", "History", "ui.tabs.history"),
    ("profiles", "Profiles", "ui.tabs.profiles"),
    ("reports", "Reports", "ui.tabs.reports"),
)
"""Id (also ``?tab=``), title and module of every tab; the module has ``build(context, page, tab)``."""

HEADER = (
    '<header class="mdqa-header"><span class="mdqa-logo" aria-hidden="true"></span><div>'
    + text("h1", "mdqa")
    + text("p", "Which documents led to the answer, and why")
    + "</div></header>"
)


def build_ui(context: Context) -> gr.Blocks:
    """All tabs in one page, wired to the context. Theme and style go to ``launch``: see :func:`appearance`."""
    with gr.Blocks(title=TITLE, analytics_enabled=False, fill_width=True, delete_cache=(3600, 86400)) as page:
        gr.HTML(HEADER, apply_default_css=False)
        with gr.Tabs(elem_id="mdqa-tabs") as tabs:
            for name, title, module in TABS:
                with gr.Tab(title, id=name) as tab:
                    import_module(module).build(context, page, tab)

        def choose_tab(request: gr.Request) -> Any:
            wanted = str(dict(request.query_params).get("tab", ""))
            return gr.Tabs(selected=wanted) if wanted in {name for name, _, _ in TABS} else gr.skip()

        page.load(guarded(choose_tab), None, tabs, **QUIET)
    return page


def appearance() -> dict[str, Any]:
    """Theme, style sheet and script, as arguments of ``launch``."""
    folder = files("ui")
    return {
        "theme": theme(),
        "css": style_sheet(),
        "js": (folder / "page.js").read_text(encoding="utf-8"),
    }


def style_sheet() -> str:
    """``ui/styles/base.css`` with colours and what all pages share, then the sheet of each part of the page."""
    sheets = {sheet.name: sheet.read_text(encoding="utf-8") for sheet in (files("ui") / "styles").iterdir()}
    return "\n".join([sheets.pop("base.css"), *(sheets[name] for name in sorted(sheets))])
