"""The style sheet's colours: text on its ground reaches WCAG AA (4.5 to 1) in light and dark."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPOSITORY
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


def rules() -> list[tuple[str, dict[str, str]]]:
    """Selector and declarations of every rule of every sheet, without comments and the blocks around rules."""
    plain = re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL)
    found = re.findall(r"([^{}]+)\{([^{}]*)\}", plain)
    return [
        (selector.strip(), dict(re.findall(r"([\w-]+)\s*:\s*([^;]+?)\s*(?:;|$)", body))) for selector, body in found
    ]


def used_pairs() -> set[tuple[str, str]]:
    """Text colour and ground wherever a rule says both; where it only says the text's colour, the page's own ground."""
    pairs = set()
    for _, declared in rules():
        text = re.fullmatch(r"var\(--([\w-]+)\)(?: !important)?", declared.get("color", ""))
        ground = re.fullmatch(r"var\(--([\w-]+)\)", declared.get("background", ""))
        if text and (ground or "background" not in declared):
            pairs.add((text[1], ground[1] if ground else "paper"))
    return {(text, ground) for text, ground in pairs if (text, ground) != ("paper", "paper")}


@pytest.mark.parametrize("mode", [":root", ".dark"])
def test_every_colour_of_text_in_any_sheet_is_readable_on_its_ground(mode: str) -> None:
    found = colours(":root") | (colours(".dark") if mode == ".dark" else {})
    pairs = sorted(used_pairs())
    assert len(pairs) > 15
    unreadable = {}
    for text, ground in pairs:
        light, dark = sorted((luminance(found[text]), luminance(found[ground])), reverse=True)
        ratio = (light + 0.05) / (dark + 0.05)
        if ratio < 4.5:
            unreadable[(text, ground)] = round(ratio, 2)
    assert not unreadable


@pytest.mark.parametrize("mode", [":root", ".dark"])
def test_text_under_the_strongest_token_heat_is_readable(mode: str) -> None:
    body = re.search(rf"^{re.escape(mode)} \{{(.*?)^\}}", CSS, re.MULTILINE | re.DOTALL)
    assert body is not None
    heat = re.search(r"--heat: (\d+), (\d+), (\d+);", body[1])
    strongest = max(
        float(x) for x in re.findall(r"\.mdqa-heat \.h\d \{ background: rgba\(var\(--heat\), ([\d.]+)\)", CSS)
    )
    assert heat is not None
    found = colours(":root") | (colours(".dark") if mode == ".dark" else {})
    paper = [int(found["paper"][i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [
        round(strongest * int(part) + (1 - strongest) * own) for part, own in zip(heat.groups(), paper, strict=True)
    ]
    light, dark = sorted((luminance(found["ink"]), luminance("#" + "".join(f"{c:02x}" for c in mixed))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_colours_in_the_sheets_of_the_parts_come_from_the_base() -> None:
    """A colour of its own would not change with the mode; shadows, which darken in both, are free."""
    for sheet in sorted((REPOSITORY / "ui" / "styles").glob("*.css")):
        if sheet.name == "base.css":
            continue
        for line in sheet.read_text(encoding="utf-8").splitlines():
            if re.search(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", line.split("{", 1)[-1]):
                pytest.fail(f"{sheet.name}: {line.strip()}")


def test_no_focus_is_hidden_but_that_of_headings_and_marks() -> None:
    """Headings are focused by the program, and marks of the picture get a stroke of their own."""
    hidden = [s for s, declared in rules() if "none" in declared.get("outline", "") and "focus" in s]
    assert set(hidden) <= {".mdqa-flow .mark:focus", ".mdqa-tour h2:focus", ".mdqa-asked:focus"}


def test_motion_ends_where_people_ask_for_less() -> None:
    moving = [s for s, declared in rules() if "animation" in declared and declared["animation"] != "none"]
    reduced = re.search(r"prefers-reduced-motion: reduce\) \{(.*?)\n\}", CSS, re.DOTALL)
    assert reduced is not None
    assert all(selector in reduced[1] for selector in moving), moving


def test_no_shorthand_with_a_property_is_followed_by_its_longhand() -> None:
    """Gradio re-serialises the sheet and loses ``border: … var()`` before ``border-left: …`` in one rule."""
    for name in ("border", "background", "margin", "padding"):
        found = re.findall(rf"\{{[^}}]*\b{name}:[^;}}]*var\([^}}]*\b{name}-(?!radius|collapse)[\w-]+:[^}}]*\}}", CSS)
        assert not found, found


def test_rules_inside_media_reach_what_they_name() -> None:
    """Gradio puts the page's content in front of their selectors: the container and the mode stand around that."""
    plain = re.sub(r"/\*.*?\*/", "", CSS, flags=re.DOTALL)
    blocks = re.findall(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)\s*\}", plain)
    assert len(blocks) == plain.count("@media") > 5
    selectors = [selector for block in blocks for selector in re.findall(r"([^{}]+)\{", block)]
    assert [
        one.strip() for one in selectors if re.search(r"\.gradio-container|\.dark|:root|(?<![\w-])body\b", one)
    ] == []
