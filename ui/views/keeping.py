"""Whether what is done on the page will be there tomorrow, where it may not be."""

from __future__ import annotations

from dataclasses import dataclass

from ui.views.markup import message

TEMPORARY = (
    "What is done here is temporary: this Space forgets it when it restarts. Download what you want to keep (Failures, "
    "Agreement). Its owner can keep it: set MDQA_SNAPSHOTS to a private data set (hf://datasets/OWNER/NAME, with the "
    "secret HF_TOKEN) or to the folder of a mounted bucket."
)
LOST = (
    "Earlier work could not be brought back, and what is done now is stored in no snapshot: a restart may lose it. The "
    "owner has to start the page again; its log says what was wrong."
)


@dataclass(frozen=True)
class SnapshotState:
    """How the snapshots are doing. ``problem``: what went wrong last, for admins; empty where all is well."""

    where: str
    problem: str = ""
    notice: str = ""
    """What went well with something to know, for admins."""
    lost: bool = False
    """Earlier work could not be brought back, so nothing is stored until a restart can."""
    minutes_ago: float = 0.0
    """Since everything was known to be stored."""
    late: bool = False


def keeping(state: SnapshotState | None, *, temporary: bool, admin: bool) -> str:
    """The banner for a person, empty where all is well. ``temporary``: the disk of a Space, and no snapshots."""
    if state is None:
        return message(TEMPORARY, "warn") if temporary else ""
    if state.lost:
        return message(f"{LOST} It was: {state.problem}" if admin else LOST, "bad")
    if not admin:
        return ""
    said = []
    if state.problem or state.late:
        why = state.problem or "the snapshot that is being taken does not end; see the program's log"
        since = f"Everything was stored {_ago(state.minutes_ago)}; what came after would be lost."
        said.append(message(f"Snapshots: {why.rstrip('.')}. {since}", "bad"))
    if state.notice:
        said.append(message(f"Snapshots: {state.notice}", "warn"))
    return "".join(said)


def _ago(minutes: float) -> str:
    if minutes < 1:
        return "less than a minute ago"
    whole = round(minutes)
    return f"{whole} minute{'s' if whole != 1 else ''} ago" if whole < 120 else f"{round(minutes / 60)} hours ago"
