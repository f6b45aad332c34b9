"""Guidelines as HTML: the few signs of Markdown that instructions need. Everything else stays the text it is.

Headings (``#``), lists (``-`` or ``1.``), paragraphs, ``**strong**``, ``*emphasis*`` and code between backticks.
No links, no images, no HTML: guidelines are read by people who cannot tell who wrote them.
"""

from __future__ import annotations

import re

from ui.views.markup import element, escape

_INLINE = re.compile(r"\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*\s][^*]*)\*|`(?P<code>[^`]+)`")
_LINE = re.compile(r"(?P<heading>#{1,4})\s+|(?P<ul>[-*])\s+|(?P<ol>\d+[.)])\s+")


def guidelines(source: str) -> str:
    """The guidelines; empty for none."""
    blocks: list[tuple[str, list[str]]] = []  # kind and lines; a list or paragraph takes up what follows
    for line in source.splitlines():
        found = _LINE.match(line)
        if not line.strip():
            blocks.append(("", []))
        elif found and found["heading"]:
            blocks.append((f"h{min(len(found['heading']) + 2, 6)}", [line[found.end() :]]))
        elif found:
            kind = "ul" if found["ul"] else "ol"
            if not blocks or blocks[-1][0] != kind:
                blocks.append((kind, []))
            blocks[-1][1].append(line[found.end() :])
        elif blocks and blocks[-1][0] in ("ul", "ol") and line[0].isspace():
            blocks[-1][1][-1] += f" {line.strip()}"
        elif blocks and blocks[-1][0] == "p":
            blocks[-1][1].append(line)
        else:
            blocks.append(("p", [line]))
    return "".join(_block(kind, lines) for kind, lines in blocks if kind)


def _block(kind: str, lines: list[str]) -> str:
    if kind in ("ul", "ol"):
        return element(kind, "".join(element("li", _inline(line)) for line in lines))
    return element(kind, "<br>".join(_inline(line) for line in lines))


def _inline(words: str) -> str:
    parts, end = [], 0
    for found in _INLINE.finditer(words):
        name = found.lastgroup or "em"
        parts += [escape(words[end : found.start()]), element(name, escape(found[name]))]
        end = found.end()
    return "".join([*parts, escape(words[end:])])
