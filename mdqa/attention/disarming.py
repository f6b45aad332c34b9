"""Text never becomes structure: control tokens inside documents, titles and questions are broken before rendering."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mdqa.prompting import Segment, Turn

COMMON_MARKERS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>",
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>",
    "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CALLS]", "<think>", "</think>", "<tool_call>", "</tool_call>",
)  # fmt: skip
"""Chat markers of the usual model families, broken inside data whichever model is in use."""


_BARRED = r"<[|\uff5c][^|\uff5c<>\s]{1,48}[|\uff5c]>"
"""The form of nearly all others (<|start_of_role|>, DeepSeek's with wide bars), for servers whose own are not known."""


class Disarmer:
    """Breaks control tokens: those of the usual families, and ``special``, the ones of the model in use."""

    def __init__(self, special: Iterable[str] = ()) -> None:
        # a space inside one of spaces would make it longer, again and again
        breakable = (m for m in special if len(m) > 1 and m not in f"{m[0]} {m[1:]}")
        markers = sorted({*COMMON_MARKERS, *breakable}, key=len, reverse=True)
        self._markers = re.compile("|".join((*(re.escape(marker) for marker in markers), _BARRED)))

    def text(self, text: str) -> str:
        """The text with every control token broken after its first character (``<|x|>`` becomes ``< |x|>``)."""
        while self._markers.search(text):
            text = self._markers.sub(lambda match: match[0][0] + " " + match[0][1:], text)
        return text

    def segments(self, turn: Turn) -> tuple[Segment, ...]:
        """The turn's segments, broken one by one and where two of them put a control token together."""
        segments = [Segment(self.text(s.text), s.kind, s.document_id) for s in turn.segments]
        if self._markers.search("".join(s.text for s in segments)):
            segments = [
                Segment(s.text if i == 0 else " " + s.text, s.kind, s.document_id) for i, s in enumerate(segments)
            ]
        return tuple(segments)
