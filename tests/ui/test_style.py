"""The style sheet's colours: text on its ground reaches WCAG AA (4.5 to 1) in light and dark."""

from __future__ import annotations

import re

import pytest

from ui.layout import style_sheet

CSS = style_sheet()

PAIRS = [
    (text, ground)
    for text, grounds in {
        "ink": ("paper", "paper-2", "accent-2", "warn-2", "bad-2"),
        "ink-2": ("paper", "paper-2", "accent-2"),
        "ink-3": ("paper", "paper-2"),
        "accent": ("paper", "accent-2"),
        "good": ("good-2",),
        "bad": ("bad-2",),
        "warn": ("warn-2",),
        "gold": ("gold-2",),
        "paper": ("ink", "accent"),
    }.items()
    for ground in grounds
]


def colours(selector: str) -> dict[str, str]:
    body = re.search(rf"^{re.escape(selector)} \{{(.*?)^\}}", CSS, re.MULTILINE | re.DOTALL)
    assert body is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", body[1]))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("mode", [":root", ".dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_is_readable(mode: str, text: str, ground: str) -> None:
    found = colours(":root") | (colours(".dark") if mode == ".dark" else {})
    light, dark = sorted((luminance(found[text]), luminance(found[ground])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_no_shorthand_with_a_property_is_followed_by_its_longhand() -> None:
    """Gradio re-serialises the sheet and loses ``border: … var()`` before ``border-left: …`` in one rule."""
    for name in ("border", "background", "margin", "padding"):
        found = re.findall(rf"\{{[^}}]*\b{name}:[^;}}]*var\([^}}]*\b{name}-(?!radius|collapse)[\w-]+:[^}}]*\}}", CSS)
        assert not found, found
