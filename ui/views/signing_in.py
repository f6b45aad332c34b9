"""What stands above the boxes of Gradio's sign-in page, with the style of that page: it is given no style sheet."""

from __future__ import annotations

from ui.views.markup import element, text

STYLE = """
.wrap:has(.mdqa-sign-in) { min-height: 86vh; min-height: 86dvh; margin: 0; background: none; }
.wrap > :has(.mdqa-sign-in) {
  flex: none; width: 100%; max-width: 420px; min-width: 0 !important; gap: 16px; padding: 28px 24px;
  border: 1px solid var(--border-color-primary); border-radius: 12px; background: var(--background-fill-primary);
}
.wrap h2:has(~ .auth .mdqa-sign-in) { display: none; }
.auth:has(.mdqa-sign-in), .auth:has(.mdqa-sign-in) ~ .creds { margin: 0; }
.auth:has(.mdqa-sign-in) ~ .form, .auth:has(.mdqa-sign-in) ~ .form .block {
  gap: 12px; padding: 0; border: 0; background: none; box-shadow: none;
}
.auth:has(.mdqa-sign-in) ~ .form [data-testid="block-info"] { display: inline-block; text-transform: capitalize; }
.mdqa-sign-in h1 { margin: 0; font-size: 1.5rem; font-weight: 700; line-height: 1.3; }
.mdqa-sign-in span { display: block; color: var(--body-text-color-subdued); }
.mdqa-sign-in span + span { margin-top: 16px; color: var(--body-text-color); }
"""
"""Rules that reach nothing but that page, in Gradio's own colours: those of ``ui/styles`` are not there."""


def sign_in_message() -> str:
    """The program's name and what to do; Gradio puts it into a paragraph."""
    said = text("span", "Which documents led to the answer, and why")
    said += text("span", "Sign in with the name and the password that you were given.")
    return f"<style>{STYLE}</style>" + element("div", text("h1", "mdqa") + said, "mdqa-sign-in")
