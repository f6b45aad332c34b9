"""Quality-aware pruning: the candidates that the agents cite, their DocScore, and their key sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdqa.backends.base import GenerationRequest
from mdqa.errors import MissingDependency, ModelError
from mdqa.methods.asking import Reply, ask
from mdqa.methods.duquad.agents import Statement, score_prompt, score_schema, yes_no_prompt
from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.parsing import ScoreReply, existing_sentences, parse_score
from mdqa.methods.duquad.sentences import nearest, pick
from mdqa.methods.recorder import Recorder
from mdqa.methods.sentences import split_sentences
from mdqa.records import DocumentScore, Question

RETRY_TOKENS = 64
"""Room kept in the window for the reminder that a retry adds."""


@dataclass(frozen=True)
class Candidates:
    """The documents whose quality is scored, in input order, why per document, and the fallback (empty if none)."""

    ids: tuple[str, ...]
    reasons: Mapping[str, str]
    fallback: str = ""


@dataclass(frozen=True)
class Scores:
    """DocScores with the calls behind them; a status where there is no number."""

    scores: Mapping[str, DocumentScore]
    calls: Mapping[str, int]


@dataclass(frozen=True)
class Assessment:
    """What was found out about the candidates: DocScores, those that were written where others decide, and replies."""

    deciding: Scores
    written: Scores | None
    replies: Mapping[str, Reply[ScoreReply]]


@dataclass(frozen=True)
class Verdict:
    """Which candidates are kept, why per document, and the fallback that was taken (empty if none)."""

    kept: tuple[str, ...]
    reasons: Mapping[str, str]
    fallback: str = ""


def gather(documents: Sequence[str], statements: Sequence[Statement], best: str) -> Candidates:
    """What either agent cites; ``best``, the first document by SFS, if there is nothing."""
    who = {i: [statement.title for statement in statements if i in statement.cited] for i in documents}
    reasons = {
        i: f"kept: cited by the {' and the '.join(titles)}" if titles else "dropped: no agent cites it"
        for i, titles in who.items()
    }
    cited = tuple(i for i in documents if who[i])
    if cited:
        return Candidates(cited, reasons)
    reasons[best] = "kept: no agent cites any document; this one ranks first by SFS"
    return Candidates((best,), reasons, f"No agent cites a document; {best}, first by SFS, is the only candidate.")


def assess(item: Question, run: Recorder, candidates: Sequence[str], config: DuQUADConfig) -> Assessment:
    """DocScore of every candidate and what the Score Agent said of it, all in one batch (two with both scores)."""
    asked = config.key_sentences == "agent" or not config.continuous_doc_score
    replies = ask_score_agent(item, run, candidates, config) if asked else {}
    written = written_scores(candidates, replies)
    if not config.continuous_doc_score:
        return Assessment(written, None, replies)
    return Assessment(continuous_scores(item, run, candidates), written if asked else None, replies)


def ask_score_agent(
    item: Question, run: Recorder, candidates: Sequence[str], config: DuQUADConfig
) -> dict[str, Reply[ScoreReply]]:
    """The Score Agent's reply per candidate, all in one batch. A document too long for its prompt gets none."""
    prompts = {i: score_prompt(item, item.document(i), config.max_key_sentences) for i in candidates}
    sentences = {i: len(split_sentences(item.document(i).text)) for i in candidates}
    backend, reserved = run.tools.backend, config.score_max_tokens + RETRY_TOKENS
    fitting = [i for i in candidates if backend.count_tokens(backend.render(prompts[i])) + reserved <= backend.window]
    requests = [
        GenerationRequest(
            prompt=prompts[i],
            max_new_tokens=config.score_max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            seed=run.seed,
            schema=score_schema(sentences[i], config.max_key_sentences),
        )
        for i in fitting
    ]
    replies = ask(run, "score", requests, parse_score) if requests else []
    return dict(zip(fitting, replies, strict=True))


def written_scores(candidates: Sequence[str], replies: Mapping[str, Reply[ScoreReply]]) -> Scores:
    """DocScore as the Score Agent wrote it, or the status that says why there is no number."""
    too_long = DocumentScore(status="unavailable", detail="the document is too long for the Score Agent's prompt")
    return Scores(
        {i: replies[i].score(lambda reply: reply.score) if i in replies else too_long for i in candidates},
        {i: reply.call for i, reply in replies.items()},
    )


def continuous_scores(item: Question, run: Recorder, candidates: Sequence[str]) -> Scores:
    """DocScore = p(yes) / (p(yes) + p(no)) of the reply to "does the document help", in [0, 1].

    An option of ours: a small model's written numbers are coarse. The calls are those of the yes.
    """
    prompts = [yes_no_prompt(item, item.document(i), reply) for i in candidates for reply in ("yes", "no")]
    results = run.log_likelihood("score", prompts, target="reply")
    pairs = dict(zip(candidates, zip(results[::2], results[1::2], strict=True), strict=True))
    return Scores(
        {i: DocumentScore(value=share(yes.logprob, no.logprob)) for i, ((yes, _), (no, _)) in pairs.items()},
        {i: call for i, ((_, call), _) in pairs.items()},
    )


def share(yes: float, no: float) -> float:
    """exp(yes) / (exp(yes) + exp(no)) without overflow."""
    gap = no - yes
    return 1.0 / (1.0 + math.exp(gap)) if gap < 0 else math.exp(-gap) / (1.0 + math.exp(-gap))


def prune(
    candidates: Sequence[str], scores: Mapping[str, DocumentScore], threshold: float, best_ranked: str
) -> Verdict:
    """The candidates whose DocScore reaches the threshold; if there are none, the best of them.

    Nothing is dropped to an empty set (our choice, the paper does not say): without a survivor the highest score
    stays, without any score the candidate ranked best by SFS (``best_ranked``). Ties go to the earlier candidate.
    """
    numbers = {i: score.value for i in candidates if (score := scores[i]).value is not None}
    kept = tuple(i for i in candidates if numbers.get(i, -1.0) >= threshold)
    reasons = {i: _reason(scores[i], threshold) for i in candidates}
    if kept:
        return Verdict(kept, reasons)
    if numbers:
        best = max(numbers, key=lambda i: numbers[i])
        why = f"no DocScore reaches {threshold:.2f}; the highest, {numbers[best]:.2f}, is kept"
    else:
        best, why = best_ranked, "no candidate has a DocScore; the one ranked best by SFS is kept"
    return Verdict((best,), {**reasons, best: f"kept: {why}"}, why)


def _reason(score: DocumentScore, threshold: float) -> str:
    if score.value is None:
        return f"dropped: no readable DocScore ({score.status}{': ' if score.detail else ''}{score.detail})"
    if score.value >= threshold:
        return f"kept: DocScore {score.value:.2f} reaches {threshold:.2f}"
    return f"dropped: DocScore {score.value:.2f} below {threshold:.2f}"


def key_sentences(
    item: Question,
    run: Recorder,
    kept: Sequence[str],
    replies: Mapping[str, Reply[ScoreReply]],
    config: DuQUADConfig,
    *,
    own: bool = True,
) -> dict[str, tuple[str, ...]]:
    """The sentences that the judge will see per kept document, copied from it, in document order.

    The Score Agent's indices where it named sentences that exist; else the nearest by embedding, said as a fallback
    (unless the encoder was chosen). Without ``own`` they are for an ablation, and no fallback of the run is counted.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    for document_id in kept:
        sentences = split_sentences(item.document(document_id).text)
        reply = replies.get(document_id)
        named = reply.value.sentences if reply is not None and reply.value is not None else ()
        chosen[document_id] = pick(sentences, existing_sentences(named, len(sentences), config.max_key_sentences))
        if not chosen[document_id]:
            missing.append(document_id)
        if strange := [number for number in named if not 1 <= number <= len(sentences)]:
            run.notice(
                f"The Score Agent named sentences {', '.join(map(str, strange))} of {document_id}, which has "
                f"{len(sentences)}; they were left out."
            )
    if missing:
        chosen.update(_by_encoder(item, run, missing, config, own))
    return chosen


def _by_encoder(
    item: Question, run: Recorder, documents: Sequence[str], config: DuQUADConfig, own: bool
) -> dict[str, tuple[str, ...]]:
    """The sentences nearest to the question, or the first ones where there is no encoder."""
    count, names = config.fallback_sentences, ", ".join(documents)
    sentences = {i: split_sentences(item.document(i).text) for i in documents}
    flat = [text for i in documents for text in sentences[i]]
    try:
        vectors = run.tools.encoder.encode([item.question, *flat])
    except (ModelError, MissingDependency) as error:
        run.notice(
            f"Key sentences of {names}: the first {count} of each document, because there is no encoder: {error}",
            warning=True,
            fallback=own,
        )
        return {i: sentences[i][:count] for i in documents}
    if config.key_sentences == "agent":
        run.notice(
            f"The Score Agent named no key sentence of {names}; the {count} nearest to the question are taken.",
            fallback=own,
        )
    chosen, start = {}, 1
    for i in documents:
        end = start + len(sentences[i])
        chosen[i] = pick(sentences[i], nearest(vectors[0], vectors[start:end], count))
        start = end
    return chosen
