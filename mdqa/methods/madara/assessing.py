"""Scores of the documents: by the three agents, or by a ranking that asks no agent, written into the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mdqa.methods.madara import agents, treatments
from mdqa.methods.madara.agents import Asking, Decoding, Signal
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.plans import Assessment
from mdqa.methods.madara.relevance import question_likelihoods, similarities
from mdqa.methods.madara.treatments import Scores
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.records import ASIDE, Question

TITLES: Mapping[Assessment, str] = {
    "base": "Three agents grade the documents",
    "cot": "Three agents grade the documents after reasoning",
    "similarity": "Documents ranked by similarity to the question",
    "likelihood": "Documents ranked by how likely they make the question",
}


@dataclass(frozen=True)
class Assessed:
    """Every signal that a selection may go by, by its name: ``aggregate`` and ``rank_aligned``, or the ranking's."""

    signals: Mapping[str, Scores]


def decoding_of(config: MADARAConfig, *, cot: bool = False) -> Decoding:
    """How replies are written with these options."""
    return Decoding(
        config.temperature,
        config.top_p,
        config.cot_max_tokens if cot else config.agent_max_tokens,
        config.generator_max_tokens,
    )


def ask_conflict(item: Question, run: Recorder, config: MADARAConfig) -> Signal:
    """The Conflict Agent's scores."""
    return agents.ask_all(run, [_conflict(item, run, config, cot=False)])[0]


def _conflict(item: Question, run: Recorder, config: MADARAConfig, *, cot: bool) -> Asking:
    """The Conflict Agent is asked once per query or (``conflict_per_doc``) once per document."""
    decoding = decoding_of(config, cot=cot)
    if config.conflict_per_doc:
        return agents.conflict_per_document(
            item, run, decoding, cot=cot, characters=config.claim_characters, scale=config.conflict_scale
        )
    decoding = replace(decoding, agent_tokens=max(config.conflict_max_tokens, decoding.agent_tokens))
    return agents.conflict(
        item, run, decoding, cot=cot, characters=config.claim_characters, scale=config.conflict_scale
    )


def assess(
    item: Question,
    run: Recorder,
    config: MADARAConfig,
    kind: Assessment,
    *,
    name: str = "assessment",
    branch: str = "",
    conflict: Signal | None = None,
) -> Assessed:
    """Carry out one assessment as the stage ``name``, for the treatment ``branch``.

    ``conflict``: the Conflict Agent's scores where they are there already.
    """
    with run.stage(name, TITLES[kind], item.document_ids, branch=branch) as stage:
        if kind == "similarity":
            return Assessed({"similarity": stage.score("similarity", similarities(item, run))})
        if kind == "likelihood":
            scores, calls = question_likelihoods(item, run)
            return Assessed({"likelihood": stage.score("likelihood", scores, calls=calls)})
        return _agents(item, run, config, stage, cot=kind == "cot", conflict=conflict)


def _agents(
    item: Question, run: Recorder, config: MADARAConfig, stage: StageDraft, *, cot: bool, conflict: Signal | None
) -> Assessed:
    decoding = decoding_of(config, cot=cot)
    askings = [
        agents.relevance(item, run, decoding, cot=cot),
        agents.consistency(item, run, decoding, cot=cot, characters=config.claim_characters),
    ]
    if conflict is None:
        askings.append(_conflict(item, run, config, cot=cot))
    asked = agents.ask_all(run, askings)  # one batch: no agent waits for another
    signals = dict(zip(agents.AGENTS, asked if conflict is None else [*asked, conflict], strict=True))
    stage.key_sentences.update({document: (quote,) for document, quote in signals["relevance"].quotes.items()})
    found = {name: record(stage, name, signal) for name, signal in signals.items()}
    opinion = signals["conflict"].opinion
    if opinion and conflict is None and stage.branch != ASIDE:  # one voice is enough beside the answer
        run.opinion(opinion)
    return Assessed(
        {
            "aggregate": stage.score("aggregate", treatments.aggregate(found, config.weights)),
            "rank_aligned": stage.score(
                "rank_aligned", treatments.rank_aligned(found, config.sda_weights, ties=config.ties)
            ),
        }
    )


def record(stage: StageDraft, name: str, signal: Signal) -> Scores:
    """Write an agent's scores, their calls and what was odd about them into the stage."""
    if signal.note:
        stage.note = f"{stage.note} {signal.note}".strip()
    return stage.score(name, signal.scores, calls=signal.calls)
