"""Failures: all stored runs, found by what became of them; ticked ones are compared, run again, queued, exported."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradio as gr

from mdqa.errors import InputError
from ui.context import Context
from ui.failures import (
    MOST_AGAIN,
    MOST_EXPORTED,
    MOST_SENT,
    again,
    delete_filter,
    export_lines,
    look,
    rename_filter,
    save_filter,
    send_all,
    taken,
)
from ui.filtering import TAB, Wanted, read_address, read_values, tab_of
from ui.guard import QUIET, explained, guarded
from ui.people import visitor
from ui.views.failures import failures_page
from ui.views.failures_said import exported, sent, started
from ui.views.markup import element, message

MOST_PICKED = 5_000
"""Ids that one event may bring."""

OF_FILTERS = ("save", "rename", "delete")
"""What is done above the list; what is said of it stands there too, all else beside the bar below the list."""

COME_INTO_VIEW = """
watch("value", () => {
  const said = element.querySelector(".mdqa-message");
  const place = element.closest(".mdqa-failures-said") || element;
  if (said) setTimeout(() => place.scrollIntoView({ block: "nearest" }), 80);
});
"""
"""Brings what is said of an act into view, with the button of a file that appears a little later."""


class Failures:
    """What the handlers do; :attr:`skips`: nothing changes of the list, its address, what is said, and the file."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def skips(self) -> list[Any]:
        """As many as the outputs of every handler."""
        return [gr.skip() for _ in range(4)]

    def draw(self, wanted: Wanted, words: str = "", path: str | None = None) -> list[Any]:
        """The list, its address, what is said of the last act, and the button of a file that was made."""
        view = look(self._context, wanted)
        button = gr.DownloadButton(value=path, visible=path is not None)
        return [failures_page(view), view.wanted.at(view.wanted.page), words, button]

    def again(self, address: str) -> list[Any]:
        """The list of an address as it is now."""
        return self.draw(read_address(address))

    def open_page(self, request: gr.Request) -> list[Any]:
        """The list of the page's address, where this tab is meant by it."""
        address = dict(request.query_params)
        return self.draw(read_values(address)) if tab_of(str(address.get("tab"))) == TAB else self.skips

    def choose(self, event: gr.EventData, request: gr.Request) -> Iterator[list[Any]]:
        """A link, the form, or something to do with the runs that are ticked."""
        act = _text(event, "act")
        if not act:
            yield self.again(_text(event, "go"))
            return
        wanted, folder = read_address(_text(event, "address")), None
        try:
            if act == "export":
                folder = Path(tempfile.mkdtemp(prefix="mdqa-export-"))
                path = folder / "runs.jsonl"
                number = export_lines(self._context, self._taken(event, wanted, MOST_EXPORTED, "exported"), path)
                yield self.draw(wanted, exported(number, path.stat().st_size), str(path))
            else:
                yield self.draw(wanted, _placed(act, self._do(act, event, wanted, request)))
        except InputError as problem:
            words = message(explained(problem), "bad")
            yield [gr.skip(), gr.skip(), _placed(act, words), gr.DownloadButton(value=None, visible=False)]
        finally:  # Gradio has a copy of its own by now
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def _do(self, act: str, event: gr.EventData, wanted: Wanted, request: gr.Request) -> str:
        """Carry an act out; what is said of it. InputError if it cannot be done or there is no such act."""
        context, name, title = self._context, _text(event, "name"), _text(event, "title")
        match act:
            case "again":
                done = again(context, self._taken(event, wanted, MOST_AGAIN, "put in line"))
                return started(done.new, done.refused)
            case "send":
                queue, note = _text(event, "queue"), _text(event, "note")
                ids = self._taken(event, wanted, MOST_SENT, "sent")
                found = send_all(context, ids, queue, visitor(context, request).name, note)
                return sent(found.new, found.there, found.gone, queue)
            case "save":
                new = save_filter(context, title, wanted, visitor(context, request).name)
                return message(
                    f"The filter is saved as “{title.strip()}”{'' if new else ' in place of the old one'}.", "good"
                )
            case "rename":
                rename_filter(context, name, title)
                return message(f"“{name}” is now called “{title.strip()}”.", "good")
            case "delete":
                delete_filter(context, name)
                return message(f"The filter “{name}” is deleted; its runs are not.", "good")
        raise InputError(f"there is nothing called {act[:40]!r} to do")

    def _taken(self, event: gr.EventData, wanted: Wanted, most: int, verb: str) -> list[str]:
        """The runs that an act is about: those ticked, or all of the list."""
        picked = getattr(event, "picked", None)
        ids = [one for one in picked if isinstance(one, str)] if isinstance(picked, list) else []
        return taken(self._context, wanted, ids[:MOST_PICKED], getattr(event, "every", False) is True, most, verb)


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    script = (files("ui") / "tabs" / "failures.js").read_text(encoding="utf-8")
    now = gr.State("")
    runs = gr.HTML(apply_default_css=False, js_on_load=script, elem_id="mdqa-failures")
    with gr.Row(elem_classes="mdqa-failures-said"):
        said = gr.HTML(apply_default_css=False, js_on_load=COME_INTO_VIEW, elem_id="mdqa-failures-said")
        file = gr.DownloadButton(
            "Save the file", visible=False, size="sm", scale=0, min_width=120, elem_id="mdqa-failures-file"
        )
    shown, verbs = [runs, now, said, file], Failures(context)
    page.load(guarded(verbs.open_page), None, shown, **QUIET)
    tab.select(guarded(verbs.again), now, shown, **QUIET)
    runs.select(guarded(verbs.choose), None, shown, **QUIET)


def _placed(act: str, words: str) -> str:
    """What is said of an act, marked where it belongs above the list (styles/failures.css)."""
    return element("div", words, "mdqa-said-above") if act in OF_FILTERS else words


def _text(event: gr.EventData, name: str) -> str:
    """A text that the browser sent with the event; empty for anything else."""
    value = getattr(event, name, "")
    return value if isinstance(value, str) else ""
