"""In which annotation queues a run is, with who sent it and why, and a way to take it out."""

from __future__ import annotations

from collections.abc import Sequence

from storage.queues import QueueItem
from ui.views.markup import element, message, short, text

TAKE_OUT = """
element.addEventListener("click", (event) => {
  const button = event.target.closest("[data-queue]");
  if (button) trigger("select", { queue: button.dataset.queue });
});
"""
"""A click on "Take out" tells the server which queue is meant."""


def queued_in(places: Sequence[QueueItem], said: str = "", kind: str = "info") -> str:
    """What has just happened (``said``, empty if nothing has), then a line per queue."""
    lines = "".join(element("li", _place(place)) for place in places)
    listed = element("ul", lines, "mdqa-queued") if lines else ""
    return (message(said, kind) if said else "") + listed


def _place(place: QueueItem) -> str:
    when = place.created.replace("T", " ")[:16]
    why = text("span", f"“{short(place.note, 160)}”", "note", dir="auto") if place.note else ""
    button = text("button", "Take out", "mdqa-copy", type="button", data_queue=place.queue)
    words = text("span", f"since {when} UTC, sent by {short(place.added_by, 40)}", "mdqa-quiet")
    name = text("strong", f"In “{place.queue}”", dir="auto")
    return name + " " + words + why + button
