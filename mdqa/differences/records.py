"""What is different between two runs, as values. Differences of numbers are later minus earlier."""

from __future__ import annotations

from typing import Any

from mdqa.records import Cost, DocumentScore, Opinion, Record, Routing


class OptionChange(Record):
    """An option of the method with another value; None where a run does not have it."""

    name: str
    before: Any
    after: Any


class SignalChange(Record):
    """One signal of one document in one stage; a score is None where the stage did not give one."""

    signal: str
    before: DocumentScore | None = None
    after: DocumentScore | None = None
    rank_before: int | None = None
    rank_after: int | None = None

    @property
    def delta(self) -> float | None:
        """Later minus earlier number; None unless both are there."""
        if self.before is None or self.after is None or self.before.value is None or self.after.value is None:
            return None
        return self.after.value - self.before.value

    @property
    def changed(self) -> bool:
        """Whether score or rank differ."""
        return self.before != self.after or self.rank_before != self.rank_after


class Place(Record):
    """A document in a stage: ``position`` (from 1) among those that went on, None where it came in and was dropped."""

    position: int | None
    reason: str = ""


class StageChange(Record):
    """One document in one stage of both runs; a place is None where it did not come in (or there is no such stage)."""

    stage: str
    title: str
    branch: str = ""
    before: Place | None = None
    after: Place | None = None
    signals: tuple[SignalChange, ...] = ()

    @property
    def kept_changed(self) -> bool:
        """Whether it went on in one of the runs only."""
        before, after = (place is not None and place.position is not None for place in (self.before, self.after))
        return before != after

    @property
    def changed(self) -> bool:
        """Whether place or any signal differ."""
        places = [(place is None, place and place.position) for place in (self.before, self.after)]
        return places[0] != places[1] or any(signal.changed for signal in self.signals)


class DocumentChange(Record):
    """One document of either run. Numbers are its places in the input, from 1; None where it was not given.

    ``reached_*``: it was among those that the answer was written from. ``shifted``: it has another number only because
    others came or went before it.
    """

    id: str
    title: str
    gold: bool | None
    number_before: int | None
    number_after: int | None
    edited: bool = False
    shifted: bool = False
    reached_before: bool = False
    reached_after: bool = False
    stages: tuple[StageChange, ...] = ()

    @property
    def added(self) -> bool:
        """Whether only the later run has it."""
        return self.number_before is None

    @property
    def removed(self) -> bool:
        """Whether only the earlier run has it."""
        return self.number_after is None

    @property
    def moved(self) -> bool:
        """Whether it was put elsewhere among the others."""
        return not (self.added or self.removed or self.shifted) and self.number_before != self.number_after

    @property
    def changed(self) -> bool:
        """Whether anything but a shifted number differs."""
        if self.added or self.removed or self.moved or self.edited or self.reached_before != self.reached_after:
            return True
        return any(stage.changed for stage in self.stages)


class DecisionChange(Record):
    """What an agent, a judge or a reading said in both runs; None where it did not speak. ``name`` is for people."""

    name: str
    role: str
    before: Opinion | None = None
    after: Opinion | None = None


class RouteChange(Record):
    """MADARA's route in both runs; ``measures`` are those with another value, as (name, earlier, later)."""

    before: Routing | None = None
    after: Routing | None = None
    measures: tuple[tuple[str, float | None, float | None], ...] = ()

    @property
    def treatment_changed(self) -> bool:
        """Whether another treatment was taken."""
        return (self.before and self.before.treatment) != (self.after and self.after.treatment)


class Differences(Record):
    """Everything that differs. ``correct_*`` is None where no answer is expected, and for a run that did not end well.

    ``interventions``: what was done to the documents since the earlier run, in words. ``documents``: all of both runs,
    those of the later one in its order and then those that only the earlier one has. ``decisions`` and ``route`` hold
    what changed only.
    """

    before: str
    after: str
    answer_before: str
    answer_after: str
    correct_before: bool | None = None
    correct_after: bool | None = None
    options: tuple[OptionChange, ...] = ()
    interventions: tuple[str, ...] = ()
    documents: tuple[DocumentChange, ...] = ()
    decisions: tuple[DecisionChange, ...] = ()
    route: RouteChange | None = None
    cost_before: Cost
    cost_after: Cost

    @property
    def answer_changed(self) -> bool:
        """Whether the answers differ as texts, white space at their ends aside."""
        return self.answer_before.strip() != self.answer_after.strip()

    @property
    def flipped(self) -> bool:
        """Whether a right answer became wrong or a wrong one right."""
        return None not in (self.correct_before, self.correct_after) and self.correct_before != self.correct_after

    @property
    def changed_documents(self) -> tuple[DocumentChange, ...]:
        """Those with a difference of their own."""
        return tuple(document for document in self.documents if document.changed)

    @property
    def reused(self) -> float | None:
        """Share (0 to 1) of the later run's prompt tokens that did not have to go through the model again."""
        sent = self.cost_after.prompt_tokens
        return self.cost_after.cached_tokens / sent if sent else None
