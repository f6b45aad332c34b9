"""How retrieve and read puts the documents in order, with one ranker or several, and what the ledger gets of it.

The rankers themselves are those of ``mdqa.retrieval``; here they are given the run's model, its encoders and the
method's options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mdqa.backends.base import Attention
from mdqa.errors import ConfigError
from mdqa.methods.answers import answer_prompt
from mdqa.methods.base import Tools
from mdqa.methods.recorder import Recorder, StageDraft
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.listwise import Permuter
from mdqa.records import DocumentScore, Question
from mdqa.registry import RANKERS, load
from mdqa.retrieval.base import Ranker, best_first, by_place, full_text
from mdqa.retrieval.cross_encoder import EXAMPLES
from mdqa.retrieval.dense import PACKAGED_MODEL, SentenceEncoder, default_instruction
from mdqa.retrieval.found_in_the_middle import LAYERS, FoundInTheMiddle, Look
from mdqa.retrieval.fusion import reciprocal_rank_fusion, reranked
from mdqa.retrieval.listwise import ListwiseRanker

FUSED = ("bm25", "dense")
"""The rankers behind ``rrf``; the paper does not name its own."""


@dataclass(frozen=True)
class Ranking:
    """Indices of the documents, best first; ``by``: whose order it is, for the reasons in the ledger."""

    order: Sequence[int]
    by: str


def scoring_parts(config: RetrieveReadConfig) -> tuple[str, ...]:
    """The rankers that score documents one by one with these options; none where the model itself ranks."""
    match config.ranker:
        case "rrf":
            return FUSED
        case "rrf_rerank":
            return (*FUSED, "cross_encoder")
        case "listwise" | "found_in_the_middle":
            return ()
        case name:
            return (name,)


def prepare(config: RetrieveReadConfig, tools: Tools) -> None:
    """Load the models that are named, so that a wrong name is said at once and not once per question.

    Raises ConfigError for a model that must be named and is not, or that cannot be named here; ModelError for one that
    cannot be loaded.
    """
    for part in scoring_parts(config):
        if part != "bm25" and not (part == "dense" and config.encoder == PACKAGED_MODEL):
            make_ranker(part, config, tools)


def make_ranker(name: str, config: RetrieveReadConfig, tools: Tools) -> Ranker:
    """The ranker of this name with the models that the options name."""
    cls = load(RANKERS, name, "ranker")
    ranker: Ranker
    match name:
        case "dense":
            instruction = _instruction(config, config.encoder)
            ranker = cls(tools.named_encoder(config.encoder), instruction=instruction)
        case "openai":
            if not config.embeddings_url or not config.embeddings_model:
                raise ConfigError(
                    "the ranker openai needs the address of a server and a model there: "
                    "--set embeddings_url=http://HOST:PORT/v1 --set embeddings_model=NAME"
                )
            encoder = tools.served_encoder(config.embeddings_url, config.embeddings_model)
            ranker = cls(encoder, instruction=_instruction(config, config.embeddings_model))
        case "cross_encoder":
            if not config.cross_encoder:
                raise ConfigError(
                    f"the ranker {config.ranker} needs a cross-encoder, and none comes with the program. Name a folder "
                    f"or a Hugging Face id: --set cross_encoder={EXAMPLES[0]} (small) or {EXAMPLES[1]}. "
                    "Nothing is downloaded before one is named."
                )
            ranker = cls(tools.named_cross_encoder(config.cross_encoder))
        case _:
            ranker = cls()
    return ranker


def _instruction(config: RetrieveReadConfig, encoder: str) -> str | None:
    """The text before the question: a person's with a space behind it, or what this encoder usually gets."""
    text = default_instruction(encoder) if config.instruction is None else config.instruction
    return f"{text} " if text and config.instruction and not text[-1].isspace() else text


def rank_documents(config: RetrieveReadConfig, item: Question, run: Recorder, stage: StageDraft) -> Ranking:
    """The documents in order; every signal on the way is recorded."""
    match config.ranker:
        case "rrf" | "rrf_rerank":
            return _fused(config, item, run, stage)
        case "listwise":
            return _listwise(config, item, run, stage)
        case "found_in_the_middle":
            return _calibrated(item, run, stage)
        case name:
            return Ranking(best_first(_scores(name, config, item, run, stage)), name)


def _scores(name: str, config: RetrieveReadConfig, item: Question, run: Recorder, stage: StageDraft) -> Sequence[float]:
    """One ranker's scores, as a signal, and a word about what its model did not read."""
    run.cancel.check()
    ranker = make_ranker(name, config, run.tools)
    scores = ranker.rank(item.question, item.documents)
    stage.score(name, dict(zip(item.document_ids, scores, strict=True)))
    texts = [full_text(document) for document in item.documents]
    if name == "dense":
        encoder = run.tools.named_encoder(config.encoder)
        if isinstance(encoder, SentenceEncoder):
            _note(stage, encoder.name, encoder.max_tokens, encoder.truncated(texts), "documents are longer")
    if name == "cross_encoder":
        scorer = run.tools.named_cross_encoder(config.cross_encoder)
        cut = scorer.truncated(item.question, texts)
        _note(stage, scorer.name, scorer.max_tokens, cut, "documents with the question are longer")
    return scores


def _note(stage: StageDraft, model: str, tokens: int, truncated: Sequence[bool], what: str) -> None:
    if any(truncated):
        note = f"{model} reads {tokens} tokens; {sum(truncated)} of {len(truncated)} {what}."
        stage.note = f"{stage.note} {note}".strip()


def _fused(config: RetrieveReadConfig, item: Question, run: Recorder, stage: StageDraft) -> Ranking:
    """Reciprocal rank fusion, and for ``rrf_rerank`` the cross-encoder's order of all documents."""
    by_ranker = [_scores(name, config, item, run, stage) for name in FUSED]
    fused = reciprocal_rank_fusion(by_ranker, config.rrf_k)
    stage.score("rrf", dict(zip(item.document_ids, fused, strict=True)))
    if config.ranker == "rrf":
        return Ranking(best_first(fused), "rrf")
    return Ranking(reranked(fused, _scores("cross_encoder", config, item, run, stage)), "rrf_rerank")


def _listwise(config: RetrieveReadConfig, item: Question, run: Recorder, stage: StageDraft) -> Ranking:
    """The order that the model gives, as reciprocal places."""
    permute = Permuter(run, config)
    order = ListwiseRanker(permute, window=config.listwise_window).order(item.question, item.documents)
    scores: dict[str, float | DocumentScore] = {
        document: permute.score(place) for document, place in zip(item.document_ids, by_place(order), strict=True)
    }
    stage.score("listwise", scores, calls=permute.calls)
    if not permute.asked:
        stage.note = "One document needs no order: the model is not asked."
    unread = permute.asked and len(permute.unread) == permute.asked
    return Ranking(order, "input order, since the model's could not be read" if unread else "listwise")


def _calibrated(item: Question, run: Recorder, stage: StageDraft) -> Ranking:
    """Found in the Middle: attention in place, that of a dummy there, and the difference, which ranks."""

    def attend(question: str, look: Look) -> Attention:
        place = look.replaced
        whose = "the documents" if place is None else f"a dummy in place {place + 1}"
        options: dict[str, Any] = {"rows": "last", "pool": "mean", "prefix": look.prefix, "keep_prefix": place is None}
        return run.attend(
            "attention" if place is None else "dummy_attention",
            answer_prompt(question, look.documents),
            publish=place is None,
            title=f"Attention of the prompt's last token to {whose}",
            **options,
        )

    progress: Callable[[int, int], None] = stage.progress
    calibrated = FoundInTheMiddle(attend).calibrate(item.question, item.documents, progress)
    signals = {
        "attention": calibrated.attention,
        "dummy_attention": calibrated.dummy,
        "found_in_the_middle": calibrated.scores,
    }
    for name, values in signals.items():
        stage.score(name, dict(zip(item.document_ids, values, strict=True)))
    layers = run.tools.inspectable.layers
    counted = f"last {LAYERS} of {layers} layers" if layers > LAYERS else f"all {layers} layers"
    stage.note = f"Mean weight per token over all heads of the {counted}. It re-orders only; no attention is changed."
    return Ranking(best_first(calibrated.scores), "found_in_the_middle")
