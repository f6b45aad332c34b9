"""Failures: all stored runs, found by what became of them; ticked ones are compared, run again, queued, exported."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
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
from ui.views.markup import message

MOST_PICKED = 5_000
"""Ids that one event may bring."""

LISTEN = """
const picked = new Set(), kept = {}, folds = {};
let at = "", shown = "";
const find = (what) => element.querySelector(what);
const all = (what) => [...element.querySelectorAll(what)];
const root = () => find(".mdqa-failures");
const every = () => Boolean(find("[data-every]")?.checked);
const seen = () => element.offsetParent !== null;

const go = (address, fixed) => {
  const wanted = new URLSearchParams(address.split("?")[1] || "");
  if (!fixed) for (const field of find(".mdqa-failures-form")?.elements ?? []) {
    if (!field.name) continue;
    const value = field.type === "checkbox" && !field.checked ? "" : field.value.trim();
    if (value) wanted.set(field.name, value); else wanted.delete(field.name);
  }
  trigger("select", { go: "?" + wanted });
};
const first = () => {
  const wanted = new URLSearchParams((root()?.dataset.address || "").split("?")[1] || "");
  wanted.delete("page");
  return "?" + wanted;
};

const say = () => {
  const number = find("[data-count]"), link = find("[data-compare]");
  if (!number) return;
  const total = Number(find("[data-every]").dataset.total);
  const here = all("[data-pick]").filter((box) => box.checked).length;
  const others = picked.size > here ? `, ${(picked.size - here).toLocaleString("en")} of them on other pages` : "";
  number.textContent = every() ? `All ${total.toLocaleString("en")} that match`
    : picked.size ? `${picked.size.toLocaleString("en")} ticked${others}` : "Nothing ticked";
  const most = Number(link.dataset.most), fits = !every() && picked.size > 0 && picked.size <= most;
  const several = every() || picked.size > most ? `Compare (${most} at most)` : `Compare ${picked.size}`;
  link.textContent = every() || picked.size > 1 ? several : "Open";
  if (fits) link.href = "?run=" + [...picked].join(","); else link.removeAttribute("href");
  link.setAttribute("aria-disabled", String(!fits));
  find(".mdqa-taken").classList.toggle("some", every() || picked.size > 0);
};
const drawn = () => {
  for (const box of all("[data-pick]")) box.checked = picked.has(box.dataset.pick);
  for (const box of all("[data-keep]")) if (box.dataset.keep in kept) box.value = kept[box.dataset.keep];
  for (const part of all("details.mdqa-fold[id]")) {
    const narrow = part.id === "mdqa-facets" && innerWidth < 900;
    part.open = folds[part.id] ?? (narrow ? false : part.open);
  }
  say();
  if (at && seen()) all("[data-at]").find((part) => part.dataset.at === at)?.focus({ preventScroll: true });
  at = "";
  const address = root()?.dataset.address;
  if (!address || !seen() || address === shown) return;
  if (shown) history.replaceState(null, "", address);
  shown = address;
};
watch("value", drawn);
drawn();

element.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-go]");
  if (link && event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) {
    event.preventDefault();
    at = link.dataset.at || "";
    go(link.getAttribute("href"), "fixed" in link.dataset);
  }
  if (event.target.closest("[data-page]")) for (const box of all("[data-pick]")) picked.add(box.dataset.pick);
  if (event.target.closest("[data-none]")) { picked.clear(); find("[data-every]").checked = false; }
  if (event.target.closest("[data-page], [data-none]")) {
    for (const box of all("[data-pick]")) box.checked = picked.has(box.dataset.pick);
    say();
  }
  const button = event.target.closest("[data-act]");
  if (!button) return;
  if (button.dataset.act === "delete" && !("sure" in button.dataset)) {
    button.dataset.sure = "";
    button.textContent = "Really delete?";
    return;
  }
  trigger("select", {
    act: button.dataset.act, picked: [...picked], every: every(), address: root().dataset.address,
    queue: find("[name=queue]")?.value, note: find("[name=note]")?.value,
    name: button.dataset.name, title: find("[name=filter_name]")?.value,
  });
});
element.addEventListener("change", (event) => {
  const box = event.target;
  if (box.dataset.pick) { if (box.checked) picked.add(box.dataset.pick); else picked.delete(box.dataset.pick); }
  if (box.dataset.pick || "every" in box.dataset) say();
  if (box.dataset.keep) kept[box.dataset.keep] = box.value;
  if (box.form?.matches(".mdqa-failures-form")) { at = box.dataset.at || ""; go(first()); }
});
element.addEventListener("submit", (event) => {
  event.preventDefault();
  at = document.activeElement?.dataset.at || "";
  go(first());
});
element.addEventListener("toggle", (event) => {
  if (event.target.id) folds[event.target.id] = event.target.open;
}, true);
"""
"""Links and the form ask for another list; ticks are kept by run id, over pages and filters, as long as the page."""


def build(context: Context, page: gr.Blocks, tab: gr.Tab) -> None:
    """Lay out and wire the tab."""
    now = gr.State("")
    said = gr.HTML(apply_default_css=False, elem_id="mdqa-failures-said")
    file = gr.DownloadButton("Save the file", visible=False, size="sm", elem_id="mdqa-failures-file")
    runs = gr.HTML(apply_default_css=False, js_on_load=LISTEN, elem_id="mdqa-failures")
    shown = [runs, now, said, file]

    def draw(wanted: Wanted, words: str = "", path: str | None = None) -> list[Any]:
        view = look(context, wanted)
        button = gr.DownloadButton(value=path, visible=path is not None)
        return [failures_page(view), view.wanted.at(view.wanted.page), words, button]

    def open_page(request: gr.Request) -> list[Any]:
        """The list of the address, where this tab is meant by it."""
        address = dict(request.query_params)
        if tab_of(str(address.get("tab"))) != TAB:
            return [gr.skip() for _ in shown]
        return draw(read_values(address))

    def choose(event: gr.EventData, request: gr.Request) -> Iterator[list[Any]]:
        """A link, the form, or something to do with the runs that are ticked."""
        act = _text(event, "act")
        if not act:
            yield draw(read_address(_text(event, "go")))
            return
        wanted, folder = read_address(_text(event, "address")), None
        try:
            if act == "export":
                folder = Path(tempfile.mkdtemp(prefix="mdqa-export-"))
                path = folder / "runs.jsonl"
                number = export_lines(context, _taken(event, wanted, MOST_EXPORTED, "exported"), path)
                yield draw(wanted, exported(number, path.stat().st_size), str(path))
            else:
                yield draw(wanted, do(act, event, wanted, request))
        except InputError as problem:
            yield [gr.skip(), gr.skip(), message(explained(problem), "bad"), gr.skip()]
        finally:  # Gradio has a copy of its own by now
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def do(act: str, event: gr.EventData, wanted: Wanted, request: gr.Request) -> str:
        name, title = _text(event, "name"), _text(event, "title")
        match act:
            case "again":
                done = again(context, _taken(event, wanted, MOST_AGAIN, "put in line"))
                return started(done.new, done.refused)
            case "send":
                queue, note = _text(event, "queue"), _text(event, "note")
                ids = _taken(event, wanted, MOST_SENT, "sent")
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

    def _taken(event: gr.EventData, wanted: Wanted, most: int, verb: str) -> list[str]:
        picked = getattr(event, "picked", None)
        ids = [one for one in picked if isinstance(one, str)] if isinstance(picked, list) else []
        return taken(context, wanted, ids[:MOST_PICKED], getattr(event, "every", False) is True, most, verb)

    page.load(guarded(open_page), None, shown, **QUIET)
    tab.select(guarded(lambda address: draw(read_address(address))), now, shown, **QUIET)
    runs.select(guarded(choose), None, shown, **QUIET)


def _text(event: gr.EventData, name: str) -> str:
    """A text that the browser sent with the event; empty for anything else."""
    value = getattr(event, name, "")
    return value if isinstance(value, str) else ""
