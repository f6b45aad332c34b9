"""A calibration before it starts (what it will take) and while it waits, works or has just ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mdqa.records import RunStatus
from ui.views.markup import badge, count, element, empty, message, plural, text
from ui.views.summary import STATUS

KEPT_NOTE = "Finished pieces are kept: start it again with the same settings to go on from here."
LOST_NOTE = "Its work is not kept: started again, it begins from the start."


@dataclass(frozen=True)
class Plan:
    """What a calibration would do.

    ``read``: questions in the files; ``part``: of the chosen half; ``taken``: as many of them as were asked for;
    ``unmarked``: of these without gold documents; ``used``: as many as the method uses. ``passes`` of the model at most
    (0 where the method cannot use the questions). ``unanswered``: questions without gold answers, where the method
    measures answers; ``judged``: how many of them people judged, None where that was not asked for, and ``tied`` with
    as many for as against. ``pieces``: finished ones of an earlier attempt, None where the
    method keeps none. ``obstacles``: why it cannot start.
    """

    title: str
    read: int = 0
    part: int = 0
    split: str = "all"
    taken: int = 0
    unmarked: int = 0
    used: int = 0
    held_out: int | None = None
    passes: int = 0
    unanswered: int = 0
    judged: int | None = None
    tied: int = 0
    pieces: int | None = None
    obstacles: tuple[str, ...] = ()


@dataclass(frozen=True)
class CalibrationState:
    """A calibration at one moment. ``place``: how many jobs are before it. ``remaining``: seconds, None if unknown.

    ``stopping``: a stop was asked for and the step that is going on has not come to its end. ``profile``: the name
    under which the finished profile is kept. ``resumes``: whether its finished pieces are kept.
    """

    id: str
    title: str
    model: str
    name: str
    status: RunStatus
    elapsed: float = 0.0
    place: int = 0
    stopping: bool = False
    preparing: str = ""
    done: int = 0
    total: int = 0
    doing: str = ""
    remaining: float | None = None
    found: int = 0
    resumes: bool = False
    profile: str = ""
    error: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "running"


def plan_view(plan: Plan) -> str:
    """How many questions, how many lack gold marks, how many passes, what is there from before, what is in the way."""
    if not plan.read:
        hint = "Load one or several files of questions; CAFE needs their gold documents to be marked."
        return empty("No questions yet", hint)
    half = "" if plan.split == "all" else f" of {count(plan.part)} in the {plan.split} half"
    labels = [badge(f"{plural(plan.taken, 'question')}{half}")]
    if plan.unmarked:
        labels.append(badge(f"{count(plan.unmarked)} without gold marks", "warn"))
    if plan.unanswered:
        labels.append(badge(f"{count(plan.unanswered)} without gold answers", "warn"))
    if plan.judged is not None and plan.unanswered:
        tied = f", {count(plan.tied)} more left out: as many for as against" if plan.tied else ""
        labels.append(badge(f"{count(plan.judged)} of these judged by people{tied}", "good" if plan.judged else "warn"))
    if plan.held_out:
        labels.append(badge(f"{count(plan.held_out)} held out to measure on"))
    if plan.passes:
        labels.append(badge(f"about {plural(plan.passes, 'pass', 'passes')} of the model"))
    parts = [element("div", "".join(labels), "mdqa-badges")]
    if plan.used and plan.used < plan.taken:
        parts.append(message(f"{plan.title} uses {count(plan.used)} of them and leaves the others out.", "warn"))
    parts.extend(message(line[:1].upper() + line[1:], "warn") for line in plan.obstacles)
    if plan.pieces:
        found = plural(plan.pieces, "finished piece")
        words = f"{found} of an earlier attempt will be used, as far as the settings are the same."
        parts.append(message(words, "good"))
    elif plan.pieces is None:
        parts.append(
            text("p", f"{plan.title} keeps no finished pieces: a stopped calibration cannot go on.", "mdqa-note")
        )
    return element("div", "".join(parts), "mdqa-plan")


def calibration_list(states: Sequence[CalibrationState]) -> str:
    """Every calibration of this program as a card, the newest first; empty where there is none."""
    if not states:
        return ""
    return element("div", "".join(_card(state) for state in states), "mdqa-live")


def _card(state: CalibrationState) -> str:
    word, kind = STATUS[state.status]
    if state.place > 0:
        word, kind = f"Waiting, number {state.place} in line", "info"
    elif state.stopping:
        word, kind = "Stopping after this step", "warn"
    elif state.preparing:
        word, kind = "Getting the model ready", "info"
    head = (
        badge(state.title, "method")
        + badge(word, kind)
        + text("strong", state.name, dir="auto")
        + text("span", f"for {state.model}", "mdqa-quiet")
    )
    parts = [element("div", head, "mdqa-live-head")]
    if state.error:
        parts.append(message(state.error, "bad"))
    if state.preparing:
        parts.append(message(state.preparing))
    if state.total:
        parts.append(_progress(state))
    elif not (state.finished or state.place or state.preparing):
        parts.append(text("p", f"The first pass is under way · {duration(state.elapsed)} so far", "mdqa-quiet"))
    if state.status == "ok":
        parts.append(message(_kept(state), "good"))
    elif state.finished:
        parts.append(text("p", KEPT_NOTE if state.resumes else LOST_NOTE, "mdqa-note"))
    return element("section", "".join(parts), "mdqa-live-run", data_calibration=state.id)


def _kept(state: CalibrationState) -> str:
    if state.profile == state.name:
        return f"The profile {state.profile} is stored; it can be chosen below and on the Ask page."
    return f"The name {state.name} was taken in the meantime; the profile is stored as {state.profile}."


def _progress(state: CalibrationState) -> str:
    share = min(state.done / state.total, 1.0) * 100
    numbers = {"aria_valuemin": 0, "aria_valuemax": state.total, "aria_valuenow": state.done}
    bar = element(
        "span",
        f'<i style="left:0;width:{share:.1f}%"></i>',
        "mdqa-bar wide",
        role="progressbar",
        aria_label=f"Progress of {state.name}",
        **numbers,
    )
    words = [
        f"{count(state.done)} of {count(state.total)}",
        state.doing,
        duration(state.elapsed) + ("" if state.finished else " so far"),
    ]
    if state.found:
        words.insert(1, f"{plural(state.found, 'piece')} found")
    if not state.finished and state.remaining is not None:
        words.append(f"about {duration(state.remaining)} left")
    return element("div", bar + text("p", " · ".join(word for word in words if word), "mdqa-quiet"), "mdqa-progress")


def duration(value: float) -> str:
    """A rough duration: 7 s, 3 min 20 s, 2 h 05 min."""
    whole = max(round(value), 1)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
