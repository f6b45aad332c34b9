"""A study before it starts, while it works, and what it took; what is common to its kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from mdqa.records import Cost, Document, RunStatus
from mdqa.studies.base import Outcome, Tally
from ui.views.calibration import duration
from ui.views.charts import common_look
from ui.views.figures import GRID
from ui.views.markup import badge, count, element, message, plain, plural, seconds, short, text
from ui.views.summary import STATUS


@dataclass(frozen=True)
class StudyState:
    """A study at one moment. ``done`` of ``total`` runs have ended, ``found`` of them in earlier attempts.

    ``place``: how many jobs are before it (0 when it works). ``doing`` and ``run``: the variant that is being carried
    out, in words, and its run. ``remaining``: seconds left, None where there is nothing to go by.
    """

    id: str
    base: str
    title: str
    status: RunStatus
    total: int
    done: int
    found: int = 0
    failed: int = 0
    place: int = 0
    stopping: bool = False
    preparing: str = ""
    doing: str = ""
    run: str = ""
    elapsed: float = 0.0
    remaining: float | None = None
    error: str = ""

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen."""
        return self.status != "running"


@dataclass(frozen=True)
class Estimate:
    """What a study would take: ``left`` of ``runs`` runs are to be carried out, at ``seconds`` each."""

    runs: int
    left: int
    seconds: float
    obstacle: str = ""

    @property
    def words(self) -> str:
        """For people, before it starts."""
        if self.obstacle:
            return self.obstacle[:1].upper() + self.obstacle[1:]
        if not self.left:
            return f"All {plural(self.runs, 'run')} of it are there already."
        there = f", {count(self.runs - self.left)} are there already" if self.left < self.runs else ""
        time = f", about {duration(self.left * self.seconds)} at the time of this run" if self.seconds else ""
        return f"{plural(self.runs, 'run')}{there}{time}. Other people's runs come between them."


def estimate_line(estimate: Estimate) -> str:
    """The estimate below a form; a reason why it cannot start stands out."""
    if estimate.obstacle:
        return message(estimate.words, "warn")
    return text("p", estimate.words, "mdqa-note")


def progress_view(state: StudyState) -> str:
    """How far the study is."""
    word, kind = STATUS[state.status]
    if state.place > 0:
        word, kind = f"Waiting, {plural(state.place, 'job')} before it", "info"
    elif state.stopping:
        word, kind = "Stopping", "warn"
    elif state.preparing:
        word, kind = "Getting the model ready", "info"
    address = f"?study={state.id}"
    link = text("a", "Permanent address", href=address) + text(
        "button", "Copy link", "mdqa-copy", type="button", data_copy=address
    )
    head = badge(state.title, "method") + badge(word, kind) + element("span", link, "mdqa-address")
    parts = [element("div", head, "mdqa-live-head"), _bar(state)]
    if state.error:
        parts.append(message(state.error, "bad"))
    return element("section", "".join(parts), "mdqa-live-run", data_study=state.id, aria_live="polite")


def _bar(state: StudyState) -> str:
    share = 100 * min(state.done / state.total, 1.0) if state.total else 100.0
    numbers = {"aria_valuemin": 0, "aria_valuemax": state.total, "aria_valuenow": state.done}
    bar = element(
        "span", f'<i style="left:0;width:{share:.1f}%"></i>', "mdqa-bar wide", role="progressbar",
        aria_label="Runs of the study", **numbers,
    )  # fmt: skip
    words = [f"{count(state.done)} of {plural(state.total, 'run')}"]
    if state.failed:
        words.append(f"{count(state.failed)} failed")
    if state.preparing or state.doing:
        words.append(state.preparing or state.doing)
    if not state.finished and state.remaining is not None:
        words.append(f"about {duration(state.remaining)} left")
    return element("div", bar + text("p", " · ".join(words), "mdqa-quiet"), "mdqa-progress")


def member_note(base: str, study: str) -> str:
    """On the page of a study's run: where it comes from."""
    words = "This run was made by a study of " + text("a", "another run", href=f"?run={base}")
    link = text("a", "Back to the study", href=f"?study={study}")
    return element("p", f"{words}, with one thing changed. {link}", "mdqa-note", data_testid="member")


def tally_line(tally: Tally) -> str:
    """How many runs there are and how they ended; empty where all of them ended well."""
    if tally.ok == tally.total:
        return ""
    parts = [
        f"{count(number)} {word}"
        for number, word in (
            (tally.failed, "failed"),
            (tally.stopped, "stopped before the end"),
            (tally.running, "at work"),
            (tally.missing, "not begun"),
        )
        if number
    ]
    words = f"{count(tally.ok)} of {plural(tally.total, 'run')} came to an answer; {', '.join(parts)}. "
    return message(
        words + "Only those with an answer are compared.", "warn" if tally.failed or tally.stopped else "info"
    )


def spent_line(cost: Cost, runs: int) -> str:
    """What the runs took, with what did not have to be computed again."""
    saved = cost.prompt_tokens - cost.prefill_tokens_computed
    share = f" ({100 * saved // cost.prompt_tokens}% not computed again)" if cost.prompt_tokens and saved > 0 else ""
    words = (
        f"{plural(runs, 'run')}: {count(cost.llm_calls)} model calls, {count(cost.prompt_tokens)} prompt tokens sent, "
        f"{count(cost.prefill_tokens_computed)} of them computed{share}, {seconds(cost.seconds)} of work."
    )
    return text("p", words, "mdqa-note")


def state_cell(outcome: Outcome) -> str:
    """The state of a member that has no answer to compare, with its error."""
    if outcome.state == "missing":
        return badge("Not begun")
    word, kind = STATUS[outcome.state]
    return badge(word, kind, title=outcome.error) + (
        text("span", short(outcome.error, 120), "mdqa-quiet error", dir="auto") if outcome.error else ""
    )


def run_link(outcome: Outcome, base: str) -> str:
    """To the member's own page, set against the base run; a dash where there is none yet."""
    if not outcome.run:
        return "–"
    return text("a", "Open", href=f"?run={outcome.run}&before={base}", aria_label=f"Open the run {outcome.run[:8]}")


def correct_marks(before: bool | None, after: bool | None) -> str:
    """Right or wrong before and after; a change stands out."""
    if before is None or after is None:
        return "–"
    sign = {True: "✓", False: "×"}
    if before == after:
        return text("span", sign[after], "mdqa-quiet", title="right in both" if after else "wrong in both")
    return badge(f"{sign[before]} → {sign[after]}", "good" if after else "bad", title="right" if after else "wrong")


def signed(value: float) -> str:
    """A change with its sign; a plain 0 for none."""
    shown = f"{value:+.2f}".replace("-", "−")
    return shown if shown.strip("+−0.") else "0"


def document_name(documents: Sequence[Document], document_id: str, limit: int = 40) -> str:
    """``3. Title ★``, for labels of figures and choices."""
    for number, document in enumerate(documents, 1):
        if document.id == document_id:
            star = " ★ gold" if document.gold else ""
            return f"{number}. {plain(document.title or document.text, limit)}{star}"
    return plain(document_id, limit)


def chart_layout(figure: go.Figure, height: int, x: str, y: str, series: int = 1) -> go.Figure:
    """The common look of the studies' pictures; the style sheet colours text and lines."""
    common_look(figure, height, series if series > 1 else 0)
    figure.update_xaxes(title=x, showgrid=False)
    figure.update_yaxes(title=y, gridcolor=GRID, automargin=True)
    return figure
