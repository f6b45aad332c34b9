"""The generator: reads kept documents together, or each alone so that the readings vote (PDE, Algorithm 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.backends.base import GenerationRequest
from mdqa.methods.base import documents_in_order
from mdqa.methods.madara import agents, treatments
from mdqa.methods.madara.assessing import decoding_of
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.treatments import Ballot, Tally
from mdqa.methods.recorder import Recorder
from mdqa.methods.tasks import Task, answer_text
from mdqa.records import DocumentScore, Opinion, Question


@dataclass(frozen=True)
class Reading:
    """An answer read from some documents, and the model call behind it."""

    answer: str
    call: int


@dataclass(frozen=True)
class Reader:
    """The generator of one run."""

    item: Question
    run: Recorder
    config: MADARAConfig
    task: Task

    def together_request(self, documents: Sequence[str]) -> GenerationRequest:
        """One answer from these documents, in this order."""
        return self._request(documents, "generator")

    def alone_request(self, document: str) -> GenerationRequest:
        """One answer from one document."""
        return self._request([document], "extractor", document)

    def _request(self, documents: Sequence[str], role: str, *ids: str) -> GenerationRequest:
        return agents.generator_request(
            self.item,
            documents_in_order(self.item, documents),
            self.task,
            decoding_of(self.config),
            agents.derived_seed(self.run.seed, role, self.item.id, *ids),
            abstain=self.config.may_abstain,
        )

    def read(self, role: str, requests: Sequence[GenerationRequest], *, stream: bool = False) -> list[Reading]:
        """The answers in the replies to these requests, asked in one batch."""
        replies = self.run.generate(role, requests, stream=stream)
        return [Reading(answer_text(reply.text, self.task), reply.call) for reply in replies]

    def together(self, documents: Sequence[str]) -> str:
        """Stage ``generation``: one answer from these documents, in this order."""
        with self.run.stage("generation", "Generator reads the kept documents together", documents):
            [reading] = self.read("generator", [self.together_request(documents)], stream=True)
        self.run.opinion(
            Opinion(
                role="generator",
                title="Generator",
                answer=reading.answer,
                documents=tuple(documents),
                chosen=True,
                status="ok" if reading.answer else "parse_error",
                call=reading.call,
            )
        )
        return reading.answer

    def alone(self, kept: Sequence[str], weights: Mapping[str, float | None]) -> str:
        """Stage ``extraction``: every kept document is read alone, all in one batch, and the answers vote."""
        with self.run.stage("extraction", "Each document is read alone and votes", kept, branch="pde") as stage:
            found = self.read("extractor", [self.alone_request(document) for document in kept])
            readings = dict(zip(kept, found, strict=True))
            tally = self.vote(readings, kept, weights)
            ballots = _ballots(readings, kept, weights)
            calls = {document: reading.call for document, reading in readings.items()}
            stage.score("vote_weight", {b.document: _vote_weight(b) for b in ballots}, calls=calls)
            winners = [ballot.document for ballot in tally.winning.ballots] if tally.winning else []
            stage.keep(winners, _vote_reasons(ballots, tally))
            for ballot in ballots:
                self.run.opinion(_ballot_opinion(ballot, tally, calls[ballot.document]))
        return tally.answer

    def vote(self, readings: Mapping[str, Reading], kept: Sequence[str], weights: Mapping[str, float | None]) -> Tally:
        """The vote of the kept documents' readings, best document first."""
        return treatments.vote(_ballots(readings, kept, weights), drop_abstentions=self.config.drop_abstentions)


def _ballots(readings: Mapping[str, Reading], kept: Sequence[str], weights: Mapping[str, float | None]) -> list[Ballot]:
    return [Ballot(document, readings[document].answer, weights[document]) for document in kept]


def _vote_weight(ballot: Ballot) -> DocumentScore:
    if ballot.weight is None:
        return DocumentScore(status="unavailable", detail="the document has no score, so its vote counts 0")
    return DocumentScore(value=ballot.weight)


def _vote_reasons(ballots: list[Ballot], tally: Tally) -> dict[str, str]:
    weights = {group.key: group.weight for group in tally.groups}
    reasons = {}
    for ballot in ballots:
        key = treatments.normalise(ballot.answer)
        if not key:
            reasons[ballot.document] = "gave no answer"
        else:
            side = "won" if key == tally.winner else "lost"
            reasons[ballot.document] = f"votes for {ballot.answer!r}, which {side} with {weights[key]:.3f}"
    return reasons


def _ballot_opinion(ballot: Ballot, tally: Tally, call: int) -> Opinion:
    key = treatments.normalise(ballot.answer)
    return Opinion(
        role="extractor",
        title="Reading of one document",
        answer=ballot.answer,
        documents=(ballot.document,),
        chosen=bool(key) and key == tally.winner,
        status="ok" if key else "parse_error",
        weight=ballot.weight,
        group=key,
        call=call,
    )
