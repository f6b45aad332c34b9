"""What was done with the runs of the Failures tab, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ui.views.markup import element, message, plural, text


def started(new: Sequence[str], refused: Sequence[str]) -> str:
    """Which runs were put in line (ids, with links), and why others were not."""
    said = ""
    if new:
        links = " ".join(text("a", place, href=f"?run={run_id}") for place, run_id in enumerate(new, 1))
        inner = text("strong", f"{plural(len(new), 'run')} in line, one after the other.") + " Open: " + links
        said = element("div", inner, "mdqa-message good mdqa-new-runs", role="status")
    return said + "".join(message(words, "bad") for words in refused)


def sent(new: int, there: int, gone: int, queue: str) -> str:
    """How many runs are new in a queue."""
    parts = [f"{plural(new, 'run')} sent to “{queue.strip()}”."] if new else []
    if there:
        parts.append(f"{plural(there, 'run')} {'was' if there == 1 else 'were'} in it already; nothing was changed.")
    if gone:
        parts.append(f"{plural(gone, 'run')} {'is' if gone == 1 else 'are'} not there any more.")
    return message(" ".join(parts), "good" if new else "info")


def exported(number: int, size: int) -> str:
    """What stands in the file."""
    amount = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
    words = f"{plural(number, 'run')} as JSON lines ({amount}), each with its question, documents and verdicts."
    return message(f"{words} Press Save the file.", "good")
