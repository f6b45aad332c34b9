"""Every model call: exact prompt, output, tokens, time and how reading the output went."""

from __future__ import annotations

from collections.abc import Sequence

from mdqa.trace import ModelCall
from ui.views.ledger import STATUS_WORDS
from ui.views.markup import badge, count, details, element, empty, plural, seconds, short, text

PAGE = 40
MAX_SHOWN = 60_000


def prompt_list(
    calls: Sequence[ModelCall], first: int = 0, numbers: dict[str, int] | None = None, *, made: int = 0
) -> str:
    """One page of calls from index ``first``; ``numbers`` gives the number of each document as it was given.

    ``made``: how many calls the run made, so that those that were not kept can be told from none.
    """
    if not calls and made:
        return empty(
            "The prompts of this run are not here",
            f"Its {plural(made, 'call')} came with a result file of the command line, which holds no prompts.",
        )
    if not calls:
        return empty("No model calls", "Each call of the model is listed here with its exact prompt and output.")
    shown = calls[first : first + PAGE]
    rest = f"Calls {first + 1} to {first + len(shown)} of {plural(len(calls), 'call')}."
    note = text("p", rest, "mdqa-note")
    return note + element("div", "".join(_call(call, numbers or {}) for call in shown), "mdqa-calls")


def _call(call: ModelCall, numbers: dict[str, int]) -> str:
    cost = call.cost
    about = ", ".join(str(numbers.get(d, short(d, 12))) for d in call.documents[:8])
    noun = "document" if len(call.documents) == 1 else "documents"
    where = [] if call.stage == call.role else [call.stage.replace("_", " ")]
    where += [f"{noun} {about}{' …' if len(call.documents) > 8 else ''}"] if about else []
    tokens = f"{count(cost.prompt_tokens)} tokens in ({count(cost.prefill_tokens_computed)} computed)"
    if call.purpose == "generate":
        tokens += f", {count(cost.completion_tokens)} out"
    labels = badge(call.purpose if call.purpose != "generate" else "reply", "")
    if call.parse != "ok":
        labels += badge(STATUS_WORDS[call.parse], "warn")
    if call.attempt > 1:
        labels += badge(f"attempt {call.attempt}", "warn")
    if call.finish_reason == "length":
        labels += badge("cut at the token limit", "warn")
    head = (
        text("strong", f"{call.index + 1}. {call.role.replace('_', ' ')}")
        + element("span", labels, "mdqa-badges")
        + text("span", " · ".join([*where, tokens, seconds(cost.seconds)]), "mdqa-quiet")
    )
    prompt = call.prompt[:MAX_SHOWN] + (" …" if len(call.prompt) > MAX_SHOWN else "")
    body = text("h4", f"Prompt (seed {call.seed}, hash {call.prompt_hash})") + text("pre", prompt, "mdqa-prompt")
    if call.purpose == "generate":
        body += text("h4", "Output") + text("pre", call.output or "(nothing)", "mdqa-output")
    return details(head, body, "mdqa-call")
