"""The reply behind a score: which agent said what about which document, in which attempt, to which prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mdqa.records import RunResult
from mdqa.trace import ModelCall
from ui.views.assessment import HEADS, figure
from ui.views.ledger import STATUS_WORDS, signal_words
from ui.views.markup import badge, count, details, element, escape, plural, seconds, short, text

MAX_REPLY = 8_000
MAX_PROMPT = 40_000

CLOSE_REPLY = """
element.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) element.querySelector(".mdqa-reply").hidden = true;
});
element.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && element.querySelector(".mdqa-reply")) {
    element.querySelector(".mdqa-reply").hidden = true;
  }
});
"""


def reply_view(run: RunResult, call: ModelCall, calls: Mapping[int, ModelCall], document_id: str = "") -> str:
    """What the model replied in this call, the first attempt too where it is a second one, and the exact prompt."""
    about = [d for d in ([document_id] if document_id else call.documents) if d in run.question.document_ids]
    numbers = [run.question.document_ids.index(d) + 1 for d in about]
    agent = _WHO.get(call.role) or f"{call.role.replace('_', ' ').capitalize()} Agent"
    one = run.question.document(about[0]) if len(about) == 1 else None
    where = f" on document {numbers[0]}: {short(one.title or one.text, 70)}" if one else ""
    labels = _gave(run, call, about)
    labels += badge(STATUS_WORDS[call.parse], "warn") if call.parse != "ok" else ""
    labels += badge(f"attempt {call.attempt}", "warn") if call.attempt > 1 else ""
    labels += badge(f"one reply for {plural(len(call.documents), 'document')}") if len(call.documents) > 1 else ""
    close = text("button", "Close", "mdqa-copy", type="button", data_close="")
    cost = call.cost
    meta = f"call {call.index + 1} · {count(cost.prompt_tokens)} tokens in, {count(cost.completion_tokens)} out"
    parts = [
        element("div", text("h4", agent + where, dir="auto") + close, "head"),
        element("div", labels + text("span", f"{meta} · {seconds(cost.seconds)}", "mdqa-quiet"), "mdqa-badges"),
    ]
    for earlier in _attempts(call, calls):
        parts.append(text("h5", f"Attempt {earlier.attempt}: {STATUS_WORDS[earlier.parse]}") + _said(earlier))
    parts.append((text("h5", f"Attempt {call.attempt}") if call.attempt > 1 else "") + _said(call))
    prompt = call.prompt[:MAX_PROMPT] + (" …" if len(call.prompt) > MAX_PROMPT else "")
    parts.append(details("The exact prompt", text("pre", prompt), "mdqa-raw"))
    return element("section", "".join(parts), "mdqa-reply", data_testid="reply", aria_label=agent + where)


_WHO: Mapping[str, str] = {
    "extractor": "Generator",
    "generator": "Generator",
    "likelihood": "Question likelihood",
    "local_agent": "Local Agent",
    "global_agent": "Global Agent",
    "judge": "Judge",
}


def _gave(run: RunResult, call: ModelCall, about: Sequence[str]) -> str:
    """The score that was read out of the reply for one document."""
    if len(about) != 1:
        return ""
    for stage in run.stages:
        for signal, behind in stage.calls.items():
            if behind.get(about[0]) == call.index and stage.scores[signal][about[0]].value is not None:
                value = stage.scores[signal][about[0]].value
                assert value is not None
                return badge(f"{HEADS.get(signal, signal_words(signal))} {figure(signal, value)}", "info")
    return ""


def _attempts(call: ModelCall, calls: Mapping[int, ModelCall]) -> list[ModelCall]:
    """Earlier attempts at the same reply."""
    same = (call.stage, call.role, call.documents)
    return [
        other
        for other in calls.values()
        if other.index < call.index
        and other.attempt < call.attempt
        and (other.stage, other.role, other.documents) == same
    ]


def _said(call: ModelCall) -> str:
    """The model's own text; how the program began the reply for it stands before it, apart."""
    if call.purpose != "generate":
        return text("p", "This call reads numbers from the model; it writes no text.", "mdqa-note")
    output = call.output[:MAX_REPLY] + (" …" if len(call.output) > MAX_REPLY else "")
    begun = text("span", _begun(call.prompt), "begun", title="the program began the reply so") if call.output else ""
    return element("pre", begun + escape(output or "(nothing)"))


def _begun(prompt: str) -> str:
    """The start of the JSON object that a prompt ends with; empty where it does not."""
    start = prompt.rfind("{")
    tail = prompt[start:] if start >= 0 else ""
    return tail if 1 < len(tail) <= 40 and "}" not in tail and "\n" not in tail.strip() else ""
