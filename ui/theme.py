"""The Gradio theme: neutral greys with one teal accent, set once for light and dark. The rest is in ``styles``."""

from __future__ import annotations

import gradio as gr
from gradio.themes.utils import colors, sizes

ACCENT = colors.Color(
    name="mdqa-teal",
    c50="#effaf8",
    c100="#d6f1ed",
    c200="#aee2db",
    c300="#7accc2",
    c400="#48b0a5",
    c500="#14857c",
    c600="#0f7068",
    c700="#0d5a54",
    c800="#0c4844",
    c900="#0a3b38",
    c950="#052321",
)
NEUTRAL = colors.Color(
    name="mdqa-slate",
    c50="#f7f8f8",
    c100="#eef0f1",
    c200="#dfe3e5",
    c300="#c6ccd0",
    c400="#98a2a9",
    c500="#647078",
    c600="#4c575f",
    c700="#38424a",
    c800="#232b31",
    c900="#171d22",
    c950="#0f1418",
)


def theme() -> gr.themes.Base:
    """The theme object for ``launch``."""
    base = gr.themes.Base(
        primary_hue=ACCENT,
        secondary_hue=ACCENT,
        neutral_hue=NEUTRAL,
        radius_size=sizes.radius_md,
        text_size=sizes.text_md,
        spacing_size=sizes.spacing_md,
        # The SemiBold file that comes with Gradio 6.31 holds a few glyphs only; Bold is complete.
        font=(gr.themes.LocalFont("IBM Plex Sans", weights=(400, 700)), "ui-sans-serif", "system-ui", "sans-serif"),
    )
    return base.set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="*neutral_950",
        body_text_color="*neutral_900",
        body_text_color_dark="*neutral_100",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_400",
        background_fill_primary_dark="*neutral_900",
        background_fill_secondary_dark="*neutral_900",
        border_color_primary="*neutral_200",
        border_color_primary_dark="*neutral_700",
        block_background_fill="white",
        block_background_fill_dark="*neutral_900",
        block_border_width="1px",
        block_shadow="none",
        block_label_text_color="*neutral_700",
        block_label_text_color_dark="*neutral_200",
        block_title_text_color="*neutral_800",
        block_title_text_color_dark="*neutral_100",
        block_title_text_weight="600",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_400",
        input_background_fill="white",
        input_background_fill_dark="*neutral_800",
        input_border_width="1px",
        input_border_color="*neutral_300",
        input_border_color_dark="*neutral_600",
        input_placeholder_color="*neutral_500",
        input_placeholder_color_dark="*neutral_400",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_500",
        button_primary_text_color="white",
        button_primary_text_color_dark="white",
        button_secondary_background_fill="white",
        button_secondary_background_fill_hover="*neutral_100",
        button_secondary_background_fill_dark="*neutral_800",
        button_secondary_background_fill_hover_dark="*neutral_700",
        button_secondary_border_color="*neutral_300",
        button_secondary_border_color_dark="*neutral_600",
        # What can be ticked is seen as such: 3 to 1 against its ground (WCAG 1.4.11).
        checkbox_border_color="*neutral_500",
        checkbox_border_color_dark="*neutral_400",
        checkbox_background_color_selected="*primary_600",
        checkbox_background_color_selected_dark="*primary_500",
        link_text_color="*primary_600",
        link_text_color_dark="*primary_300",
    )
