"""From a prompt to token ids, with the place of every document and of the question among them.

The chat template is rendered once with a marker in place of each turn's text; the texts are put in afterwards, so the
characters of every segment are known whatever the template does around them. The whole rendered prompt is then
tokenized in one go and the tokenizer's own offsets say which tokens belong to which segment: nothing is searched
for (a document may contain the question, or another document) and no piecewise counts are added up. A token that
reaches over a border belongs to the segment of its first character that is not white space.

Text never becomes structure: a control token written inside a document, title or question is broken by a space
before rendering, so that the only chat turns are the template's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mdqa.attention.disarming import Disarmer
from mdqa.errors import ConfigError
from mdqa.prompting import Prompt, Segment, SegmentKind


@dataclass(frozen=True)
class Span:
    """A segment's place: characters [start, end) of the rendered text, tokens [first, last) of the ids."""

    kind: SegmentKind
    document_id: str | None
    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True)
class Layout:
    """A prompt ready for the model. ``offsets[i]`` are the characters of token i in ``text``."""

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    spans: tuple[Span, ...]
    reply: Span

    def of_kind(self, kind: SegmentKind) -> tuple[Span, ...]:
        """All spans of one kind, in prompt order."""
        return tuple(span for span in self.spans if span.kind == kind)

    @property
    def question(self) -> Span:
        """The last span marked as the question; ValueError if there is none or it has no tokens."""
        spans = [span for span in self.of_kind("question") if span.last > span.first]
        if not spans:
            raise ValueError("the prompt has no question segment with at least one token")
        return spans[-1]

    def target(self, kind: SegmentKind | Literal["reply"]) -> Span:
        """What a likelihood is taken of: the begun reply, or the last span of a kind; ConfigError if it is empty."""
        if kind == "question":
            return self.question
        spans = [self.reply] if kind == "reply" else list(self.of_kind(kind))
        if not spans or spans[-1].last == spans[-1].first:
            raise ConfigError(f"the prompt has no {kind} whose likelihood could be taken")
        return spans[-1]

    def anchor(self, token: int) -> int:
        """The character of ``text`` that says where a token belongs; -1 for a token without text."""
        return anchor_character(self.text, *self.offsets[token])


class PromptEncoder:
    """Renders and tokenizes prompts for one tokenizer (a fast one: offsets are needed)."""

    def __init__(self, tokenizer: Any) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError("a fast tokenizer (with character offsets) is needed")
        self.tokenizer = tokenizer
        special = [str(t.content) for t in tokenizer.added_tokens_decoder.values() if t.special]
        self._disarmer = Disarmer(special)
        self._frames: dict[tuple[str, ...], tuple[str, ...]] = {}

    def disarm(self, text: str) -> str:
        """The text with every control token broken after its first character (``<|x|>`` becomes ``< |x|>``)."""
        return self._disarmer.text(text)

    def render(self, prompt: Prompt) -> str:
        """The whole prompt as text, chat template applied."""
        return self._place(prompt)[0]

    def encode(self, prompt: Prompt) -> Layout:
        """The prompt's tokens and spans."""
        text, places, reply = self._place(prompt)
        encoded = self.tokenizer(text, add_special_tokens=not self._has_template, return_offsets_mapping=True)
        offsets = tuple((int(a), int(b)) for a, b in encoded["offset_mapping"])
        anchors = [anchor_character(text, start, end) for start, end in offsets]
        spans = tuple(
            Span(segment.kind, segment.document_id, start, end, *_tokens(anchors, start, end))
            for segment, start, end in places
        )
        reply_span = Span("text", None, *reply, *_tokens(anchors, *reply))
        return Layout(text, tuple(encoded["input_ids"]), offsets, spans, reply_span)

    @property
    def _has_template(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def _place(self, prompt: Prompt) -> tuple[str, list[tuple[Segment, int, int]], tuple[int, int]]:
        """Rendered text, segments with their characters, characters of the begun reply."""
        turns = [(turn.role, self._disarmer.segments(turn)) for turn in prompt.turns]
        frame = self._frame(tuple(role for role, _ in turns))
        text, places = frame[0], []
        for (_, segments), following in zip(turns, frame[1:], strict=True):
            for segment in segments:
                places.append((segment, len(text), len(text) + len(segment.text)))
                text += segment.text
            text += following
        reply = self.disarm(prompt.reply)
        return text + reply, places, (len(text), len(text) + len(reply))

    def _frame(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        if roles not in self._frames:
            self._frames[roles] = _render_frame(self, roles)
        return self._frames[roles]


def _render_frame(encoder: PromptEncoder, roles: tuple[str, ...]) -> tuple[str, ...]:
    """The template's text before, between and after the turns: len(roles) + 1 pieces.

    Templates that refuse a system turn get it at the head of the first user turn, as their makers advise.
    """
    marks = [f"\ue000{i}\ue001" for i in range(len(roles))]
    if not encoder._has_template:
        return ("", *["\n\n"] * len(roles))
    options = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
    messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
    try:
        text = encoder.tokenizer.apply_chat_template(messages, **options)
    except Exception:  # jinja's raise_exception gives no type of its own to catch
        if len(roles) < 2 or roles[0] != "system":
            raise
        merged = [{"role": "user", "content": f"{marks[0]}\n\n{marks[1]}"}, *messages[2:]]
        text = encoder.tokenizer.apply_chat_template(merged, **options)
    pieces = re.split("|".join(map(re.escape, marks)), text)
    if len(pieces) != len(roles) + 1:
        raise ValueError("the model's chat template repeats or drops a turn; this model cannot be used")
    return tuple(pieces)


def anchor_character(text: str, start: int, end: int) -> int:
    """The character that says where a token belongs: its first one that is not white space, else its last; -1 if none.

    A word with a space before it is the word's; a question mark with a line break after it (one token in the Qwen and
    Llama 3 families) is the question's.
    """
    piece = text[start:end]
    if not piece:
        return -1
    return end - (len(piece.lstrip()) or 1)


def _tokens(anchors: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Range of the tokens whose anchor lies in [start, end)."""
    inside = [i for i, anchor in enumerate(anchors) if start <= anchor < end]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)
