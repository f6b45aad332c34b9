"""MADARA: assess the documents with three agents, then treat them as the model and task need.

The router (``router.py``) decides once per model and task from a calibration profile (``calibration.py``); a
treatment can also be set by hand. ``answer`` follows Figure 1: route, assess, select, generate; PDE reads each
selected document alone and lets the answers vote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from mdqa.errors import ProfileError
from mdqa.methods.base import Method, MethodConfig, Tools, documents_in_order
from mdqa.methods.madara import agents, treatments
from mdqa.methods.madara.agents import Decoding, Signal
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.parsing import Task, answer_text
from mdqa.methods.madara.router import Thresholds, chosen_by_hand, decide
from mdqa.methods.madara.treatments import Ballot, Scores, Tally
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.records import DocumentScore, Opinion, Profile, Question, Routing


def route_profile(profile: Profile, thresholds: Thresholds) -> Routing:
    """What the router decides for a profile; ProfileError if the profile has not what it takes."""
    try:
        rho = tuple(float(value) for value in profile.values["rho"])
        nf = profile.values.get("nf")
        accuracy = None if nf is None else float(nf["em_squad"])
        degenerate = bool(profile.values.get("degenerate", False))
    except (KeyError, TypeError, ValueError) as error:
        raise ProfileError(
            f"the profile {profile.name!r} is damaged ({type(error).__name__}: {error}); calibrate again"
        ) from None
    if len(rho) != 3:
        raise ProfileError(f"the profile {profile.name!r} has {len(rho)} correlations instead of 3; calibrate again")
    return decide((rho[0], rho[1], rho[2]), accuracy, thresholds, degenerate=degenerate)


class MADARA(Method):
    """Model-Adaptive Document Assessment Routing Architecture."""

    name: ClassVar[str] = "madara"
    title: ClassVar[str] = "MADARA"
    summary: ClassVar[str] = (
        "Three agents assess each document; a probe of the model decides whether scores are ranked, thresholded, "
        "reasoned first, or documents are read alone and their answers vote."
    )
    Config = MADARAConfig
    uses_profile: ClassVar[bool] = True
    without_profile: ClassVar[str] = "; or set the option treatment to nf, three_agent, cot, sda, atf or pde"
    config: MADARAConfig

    @classmethod
    def profile_needed(cls, config: MethodConfig) -> bool:
        """A profile is what the router decides by; a treatment set by hand needs none."""
        assert isinstance(config, MADARAConfig)
        return config.treatment == "auto"

    def __init__(self, config: MethodConfig, tools: Tools) -> None:
        super().__init__(config, tools)
        if tools.profile is not None:
            route_profile(tools.profile, self.config.thresholds)  # a damaged profile is said before any work

    def answer(self, item: Question, run: Recorder) -> str:
        """Route, assess, select, generate."""
        routing = self._route(run)
        run.route(routing)
        treatment, task = routing.treatment, self._task(item)
        if treatment == "nf":
            self._no_filter(item, run)
            return self._generate(item, item.document_ids, task, run)
        if treatment == "pde" and self.config.pde_votes == "random":
            kept = self._random_selection(item, run)
            return self._extract(item, kept, dict.fromkeys(kept, 1.0), task, run)
        scores = self._assess(item, treatment, run)
        kept = self._select(item, treatment, scores, run)
        if treatment == "pde":
            uniform = self.config.pde_votes == "uniform"
            return self._extract(item, kept, {d: 1.0 if uniform else scores[d].value for d in kept}, task, run)
        return self._generate(item, kept, task, run)

    def _route(self, run: Recorder) -> Routing:
        """The router's decision for the profile, or the treatment set by hand."""
        profile, chosen = self.tools.profile, self.config.treatment
        if profile is not None and profile.model != self.tools.backend.model:
            run.notice(
                f"The profile {profile.name!r} was made for the model {profile.model!r}, not for "
                f"{self.tools.backend.model!r}: its measures may not hold.",
                warning=True,
            )
        found = route_profile(profile, self.config.thresholds) if profile is not None else None
        if chosen != "auto":
            return chosen_by_hand(chosen, found)
        assert found is not None  # __init__ refuses to route without a profile
        return found

    def _task(self, item: Question) -> Task:
        return agents.task_of(item) if self.config.task == "auto" else self.config.task

    def _decoding(self, *, cot: bool) -> Decoding:
        config = self.config
        tokens = config.cot_max_tokens if cot else config.agent_max_tokens
        return Decoding(config.temperature, config.top_p, tokens, config.generator_max_tokens)

    def _no_filter(self, item: Question, run: Recorder) -> None:
        with run.stage("input", "All documents in their given order", item.document_ids, branch="nf") as stage:
            status = DocumentScore(status="unavailable", detail="No-Filter does not assess documents")
            stage.score("aggregate", dict.fromkeys(item.document_ids, status))
            stage.keep(item.document_ids, dict.fromkeys(item.document_ids, "No-Filter keeps every document"))

    def _assess(self, item: Question, treatment: str, run: Recorder) -> Scores:
        """The agents' scores, and the one score per document that the treatment works with."""
        config = self.config
        cot = treatment == "cot" or (treatment == "sda" and config.sda_cot)
        decoding, characters = self._decoding(cot=cot), config.claim_characters
        conflict = agents.ask_conflict_per_document if config.conflict_per_doc else agents.ask_conflict
        signals: dict[str, Scores] = {}
        title = "Three agents grade the documents" + (" after reasoning" if cot else "")
        with run.stage("assessment", title, item.document_ids, branch=treatment) as stage:
            relevance = agents.ask_relevance(item, run, decoding, cot=cot)
            stage.key_sentences.update({document: (quote,) for document, quote in relevance.quotes.items()})
            signals["relevance"] = self._record(stage, "relevance", relevance)
            consistency = agents.ask_consistency(item, run, decoding, cot=cot, characters=characters)
            signals["consistency"] = self._record(stage, "consistency", consistency)
            findings = conflict(item, run, decoding, cot=cot, characters=characters, scale=config.conflict_scale)
            signals["conflict"] = self._record(stage, "conflict", findings)
            if findings.opinion:
                run.opinion(findings.opinion)
            aggregate = stage.score("aggregate", treatments.aggregate(signals, config.weights))
            if treatment != "sda":
                return aggregate
            return stage.score("rank_aligned", treatments.rank_aligned(signals, config.sda_weights, ties=config.ties))

    def _record(self, stage: StageDraft, name: str, signal: Signal) -> Scores:
        if signal.note:
            stage.note = f"{stage.note} {signal.note}".strip()
        return stage.score(name, signal.scores, calls=signal.calls)

    def _select(self, item: Question, treatment: str, scores: Scores, run: Recorder) -> list[str]:
        """The documents that go to the generator, best first."""
        config, threshold = self.config, None
        signal = "rank_aligned" if treatment == "sda" else "aggregate"
        order = treatments.ranking(scores)
        with run.stage("selection", _SELECTION[treatment], item.document_ids, branch=treatment) as stage:
            if treatment == "atf":
                kept, threshold = treatments.adaptive_filter(
                    scores, kappa=config.kappa, keep_min=config.keep_min, k=config.k
                )
            else:
                kept = order[: config.k]
            stage.score(signal, scores, threshold=threshold)
            stage.keep(kept, _reasons(order, kept, scores, threshold))
        return kept

    def _random_selection(self, item: Question, run: Recorder) -> list[str]:
        """PDE-Random: documents drawn by the run's seed and the question's id."""
        with run.stage("selection", "Random documents", item.document_ids, branch="pde") as stage:
            kept = treatments.random_documents(item.document_ids, self.config.k, f"{run.seed}:{item.id}")
            status = DocumentScore(status="unavailable", detail="PDE-Random does not assess documents")
            stage.score("aggregate", dict.fromkeys(item.document_ids, status))
            stage.keep(kept, {d: "drawn" if d in kept else "not drawn" for d in item.document_ids})
        return kept

    def _generate(self, item: Question, kept: tuple[str, ...] | list[str], task: Task, run: Recorder) -> str:
        """One answer from the kept documents, in their order."""
        seed = agents.derived_seed(run.seed, "generator", item.id)
        documents = documents_in_order(item, kept)
        with run.stage("generation", "Generator reads the kept documents together", kept):
            request = agents.generator_request(item, documents, task, self._decoding(cot=False), seed)
            reply = run.generate("generator", [request], stream=True)[0]
        answer = answer_text(reply.text, task)
        run.opinion(
            Opinion(
                role="generator",
                title="Generator",
                answer=answer,
                documents=tuple(kept),
                chosen=True,
                status="ok" if answer else "parse_error",
                call=reply.call,
            )
        )
        return answer

    def _extract(
        self, item: Question, kept: list[str], weights: Mapping[str, float | None], task: Task, run: Recorder
    ) -> str:
        """PDE (Algorithm 2): every kept document is read alone, all in one batch, and the answers vote."""
        decoding = self._decoding(cot=False)
        with run.stage("extraction", "Each document is read alone and votes", kept, branch="pde") as stage:
            requests = [
                agents.generator_request(
                    item, [document], task, decoding, agents.derived_seed(run.seed, "extractor", item.id, document.id)
                )
                for document in documents_in_order(item, kept)
            ]
            replies = run.generate("extractor", requests)
            ballots = [
                Ballot(document, answer_text(reply.text, task), weights[document])
                for document, reply in zip(kept, replies, strict=True)
            ]
            calls = {document: reply.call for document, reply in zip(kept, replies, strict=True)}
            tally = treatments.vote(ballots, drop_abstentions=self.config.drop_abstentions)
            stage.score("vote_weight", {b.document: _vote_weight(b) for b in ballots}, calls=calls)
            winners = [ballot.document for ballot in tally.winning.ballots] if tally.winning else []
            stage.keep(winners, _vote_reasons(ballots, tally))
            for ballot in ballots:
                run.opinion(_ballot_opinion(ballot, tally, calls[ballot.document]))
        return tally.answer


_SELECTION: Mapping[str, str] = {
    "three_agent": "Best documents by weighted score",
    "cot": "Best documents by weighted score",
    "sda": "Best documents by aligned ranks",
    "atf": "Documents above the adaptive threshold",
    "pde": "Best documents by weighted score",
}


def _reasons(order: list[str], kept: list[str], scores: Scores, threshold: float | None) -> dict[str, str]:
    """Per document its rank and why it was kept or dropped."""
    reasons = {}
    for rank, document in enumerate(order, 1):
        value = scores[document].value
        what = f"rank {rank}" if value is not None else f"rank {rank}: no score, behind all scored documents"
        if value is not None and threshold is not None:
            above = value >= threshold - treatments.TOLERANCE
            what += f", {'reaches' if above else 'below'} the threshold {threshold:.3f}"
            what += ", kept to have the smallest number" if document in kept and not above else ""
            what += f", beyond the best {len(kept)}" if document not in kept and above else ""
        elif document not in kept:
            what += f", beyond the best {len(kept)}"
        reasons[document] = what
    return reasons


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
    values: dict[str, Any] = {"weight": ballot.weight, "group": key, "call": call}
    return Opinion(
        role="extractor",
        title="Reading of one document",
        answer=ballot.answer,
        documents=(ballot.document,),
        chosen=bool(key) and key == tally.winner,
        status="ok" if key else "parse_error",
        **values,
    )
