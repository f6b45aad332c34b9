"""What is known of a run that did not get as far as its result: its row kept up to date, the trace put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlite_utils import Database

from mdqa.records import AttentionMap, Cost, Opinion, RunResult, Stage
from mdqa.trace import BaseEvent, Event, ModelCall, Notice, OpinionGiven, Routed, RunFinished, StageFinished
from storage.encoding import clean_text, now


def so_far(header: RunResult, events: Sequence[Event], maps: Sequence[AttentionMap]) -> RunResult:
    """The run's header with everything its stored events say; the time is that of the last event."""
    stages: list[Stage] = []
    opinions: list[Opinion] = []
    notices: list[str] = []
    cost, fallbacks, parse_failures = Cost(), 0, 0
    more: dict[str, Any] = {}
    for event in events:
        match event:
            case StageFinished():
                stages.append(event.stage)
            case OpinionGiven():
                opinions.append(event.opinion)
            case Routed():
                more["routing"] = event.routing
            case Notice():
                notices.append(event.message)
                fallbacks += event.fallback
            case ModelCall():
                cost += event.cost
                parse_failures += event.parse != "ok"
            case RunFinished():
                more |= {"cost": event.cost, "error": event.error}
            case _:
                pass
    seconds = max((event.at for event in events), default=0.0)
    parts = {
        "stages": tuple(stages),
        "opinions": tuple(opinions),
        "notices": tuple(notices),
        "fallbacks": fallbacks,
        "parse_failures": parse_failures,
        "attention_summary": tuple(attention_map.summary() for attention_map in maps),
        "cost": cost.model_copy(update={"seconds": seconds}),
    }
    return header.model_copy(update=parts | more)


def note(db: Database, run_id: str, event: BaseEvent) -> bool:
    """Bring the row of an unfinished run up to date with an event; False if there is no such row."""
    calls = event.cost.llm_calls if isinstance(event, ModelCall) else 0
    sql = "update runs set updated = ?, seconds = max(seconds, ?), llm_calls = llm_calls + ?"
    values: list[Any] = [now(), event.at, calls]
    if isinstance(event, RunFinished):
        # Should the process die before finish(), the run is still known to have ended well.
        sql += ", status = ?, answer = ?"
        values += [event.status, clean_text(event.answer)]
    return db.execute(f"{sql} where id = ? and finished is null", [*values, run_id]).rowcount > 0
