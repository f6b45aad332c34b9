"""The only way from text to HTML: everything goes through :func:`escape`; numbers have one look everywhere."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping

DASH = "–"


def escape(text: object) -> str:
    """Text made harmless for HTML, attributes included."""
    return html.escape(str(text), quote=True)


def plain(text: object, limit: int = 80) -> str:
    """Text for Plotly labels and hovers, which read a little HTML: without angle brackets and ampersands, and short."""
    clean = str(text).replace("<", "‹").replace(">", "›").replace("&", "＆")
    clean = " ".join(clean.split())
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


def short(text: object, limit: int = 80) -> str:
    """The beginning of a text on one line; not escaped."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def element(name: str, inner: str = "", classes: str = "", **attributes: object) -> str:
    """An element around ready HTML; attribute values are escaped, underscores in their names become hyphens."""
    given = {"class": classes, **attributes} if classes else attributes
    text = "".join(f' {key.replace("_", "-")}="{escape(value)}"' for key, value in given.items() if value is not None)
    return f"<{name}{text}>{inner}</{name}>"


def text(name: str, content: object, classes: str = "", **attributes: object) -> str:
    """An element around a text, which is escaped."""
    return element(name, escape(content), classes, **attributes)


def details(summary: str, inner: str, classes: str = "", *, opened: bool = False, anchor: str = "") -> str:
    """A part that opens on click or Enter; the first two arguments are ready HTML. ``anchor``: its id."""
    place = f' id="{escape(anchor)}"' if anchor else ""
    state = " open" if opened else ""
    return f'<details class="{escape(classes)}"{place}{state}><summary>{summary}</summary>{inner}</details>'


def badge(label: str, kind: str = "", title: str = "") -> str:
    """A small label; ``kind`` is good, bad, warn, gold or nothing. The words carry the meaning, the colour helps."""
    return text("span", label, f"mdqa-badge {kind}".strip(), title=title or None)


def table(headers: Iterable[str], rows: Iterable[Iterable[str]], classes: str = "", caption: str = "") -> str:
    """A table from plain header texts and rows of ready HTML, in a box that scrolls sideways."""
    head = "".join(text("th", header, scope="col") for header in headers)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    title = text("caption", caption) if caption else ""
    return (
        f'<div class="mdqa-scroll" tabindex="0"><table class="mdqa-table {escape(classes)}">{title}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(items: Mapping[str, object]) -> str:
    """Name and value pairs."""
    inner = "".join(f"<div>{text('dt', name)}{text('dd', value)}</div>" for name, value in items.items())
    return element("dl", inner, "mdqa-facts")


def empty(title: str, hint: str) -> str:
    """What stands where there is nothing yet: what it is and what to do."""
    return element("div", text("p", title, "mdqa-empty-title") + text("p", hint), "mdqa-empty")


def message(content: str, kind: str = "info") -> str:
    """A message box; ``kind`` is info, warn or bad."""
    sign = {"info": "i", "warn": "!", "bad": "×", "good": "✓"}[kind]
    role = "alert" if kind == "bad" else "status"
    inner = f'<span class="mdqa-sign" aria-hidden="true">{sign}</span>' + text("div", content)
    return element("div", inner, f"mdqa-message {kind}", role=role)


def number(value: float | None, digits: int = 3) -> str:
    """A score: fixed digits, scientific where these would show nothing, a dash where there is none."""
    if value is None or not math.isfinite(value):
        return DASH
    if value != 0 and abs(value) < 0.5 * 10**-digits:
        return f"{value:.1e}".replace("-", "−")
    if abs(value) >= 1e5:
        return f"{value:.2e}".replace("-", "−")
    return f"{value:.{digits}f}".replace("-", "−")


def count(value: int) -> str:
    """A whole number with thousands marks: 12,345."""
    return f"{value:,}"


def seconds(value: float) -> str:
    """A duration: 0.42 s, 12.3 s, 3 min 05 s."""
    if value < 10:
        return f"{value:.2f} s"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s"


def whole_seconds(value: float) -> str:
    """A duration that still grows: 3 s, 3 min 05 s."""
    minutes, rest = divmod(int(value), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def plural(n: int, one: str, many: str = "") -> str:
    """``3 documents``, ``1 document``."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"
