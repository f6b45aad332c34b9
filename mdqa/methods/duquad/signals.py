"""The three signals of the Structural Fusion Score, measured with the encoder and the model.

Each gives one entry per document. What cannot be measured (no encoder, a backend without likelihoods or attention)
is an ``unavailable`` entry with the reason; whether that is acceptable is the method's decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mdqa.attention.contrast import CONTENT_FREE
from mdqa.errors import MissingDependency, ModelError
from mdqa.methods.duquad.agents import agent_prompt, likelihood_prompt
from mdqa.methods.duquad.fusion import (
    LocalRanker,
    document_attention,
    document_contrast,
    relative_contrast,
    token_masked_contrast,
)
from mdqa.methods.recorder import Recorder
from mdqa.records import DocumentScore, Question
from mdqa.retrieval.base import Ranker
from mdqa.retrieval.bm25 import BM25Ranker
from mdqa.retrieval.dense import DenseRanker, cosine_scores
from mdqa.retrieval.fusion import ReciprocalRankFusion

Contrast = Literal["token_masked", "document", "relative", "plain"]

TITLES: Mapping[str, str] = {
    "sim": "semantic relevance",
    "ppl": "structural inference",
    "cont": "attention contrast",
}


@dataclass(frozen=True)
class Signal:
    """One signal: an entry per document, the calls behind it, and for ``cont`` the keys and values to use again."""

    scores: Mapping[str, DocumentScore]
    calls: Mapping[str, int] = field(default_factory=dict)
    prefix: Any = None
    missing: str = ""


def measure(item: Question, compute: Callable[[], Signal], *, allow_missing: bool) -> Signal:
    """The signal, or ``unavailable`` for every document with the reason; the error itself unless that is allowed."""
    try:
        return compute()
    except (ModelError, MissingDependency) as error:
        if not allow_missing:
            raise
        score = DocumentScore(status="unavailable", detail=str(error))
        return Signal(dict.fromkeys(item.document_ids, score), missing=str(error))


def semantic_relevance(item: Question, run: Recorder) -> Signal:
    """``sim``: cosine of the question's and the document's embedding (title and text), in [-1, 1].

    The encoder reads no more of a long document than its own window.
    """
    cosines = cosine_scores(run.tools.encoder, item.question, item.documents)
    return Signal(_scores(dict(zip(item.document_ids, cosines, strict=True))))


def structural_inference(item: Question, run: Recorder, *, restriction: bool = False) -> Signal:
    """``ppl``: mean log-likelihood of the question's tokens given one document (natural log, at most 0).

    (1/N) sum over t of log p(x_t | d, x_<t) over the N question tokens, all documents in one batch. Minus the mean
    negative log-likelihood, so that higher is more relevant. The likelihood of the question alone is the same for
    every document and is left out: it changes neither the ranking nor a z-score. ``restriction`` adds a sentence to
    the question which says that the document answers it (LongLLMLingua's restrictive statement, in our words).
    """
    prompts = [likelihood_prompt(item, document, restriction=restriction) for document in item.documents]
    results = run.log_likelihood("likelihood", prompts, target="question")
    means = {i: likelihood.mean for i, (likelihood, _) in zip(item.document_ids, results, strict=True)}
    calls = {i: call for i, (_, call) in zip(item.document_ids, results, strict=True)}
    return Signal(_scores(means), calls)


def attention_contrast(item: Question, run: Recorder, *, kind: Contrast, max_cited: int) -> Signal:
    """``cont``: attention that the question puts on a document beyond what a content-free query ("N/A") puts there.

    Two passes over the Global Agent's own prompt; the second takes the documents' keys and values from the first,
    and so can the Global Agent's reply (``prefix``). Weights are means over the query's rows, summed over all layers,
    heads and the document's tokens. With ``token_masked`` the tokens whose contrast lies more than two deviations
    below their document's mean are left out; with ``document`` all tokens count; with ``relative`` the two masses of a
    document are divided instead of subtracted; with ``plain`` the question's own mass counts, without a second pass.
    """
    model = run.tools.inspectable
    masked = kind == "token_masked"
    heads = tuple((layer, head) for layer in range(model.layers) for head in range(model.heads)) if masked else ()
    first = run.attend(
        "attention",
        agent_prompt(item, item.documents, max_cited),
        publish=False,
        title="Attention of the question (Global Agent's prompt)",
        retrieval_heads=heads,
        keep_prefix=True,
    )
    run.publish_map(replace(first.map, retrieval_heads=(), heat=None))
    if kind == "plain":
        return Signal(_scores(document_attention(first.map)), prefix=first.prefix)
    second = run.attend(
        "content-free attention",
        agent_prompt(item, item.documents, max_cited, question=CONTENT_FREE),
        publish=False,
        title=f'Attention of "{CONTENT_FREE}" (Global Agent\'s prompt)',
        retrieval_heads=heads,
        prefix=first.prefix,
    )
    if not masked:
        contrast = _BY_DOCUMENT[kind](first.map, second.map)
    elif first.map.heat is None or second.map.heat is None:
        raise ModelError(f"the backend {model.name!r} gave no attention per token; choose the contrast 'document'")
    else:
        contrast = token_masked_contrast(first.map.heat, second.map.heat, first.map.documents)
    return Signal(_scores(contrast), prefix=first.prefix)


_BY_DOCUMENT = {"document": document_contrast, "relative": relative_contrast}


def ranker_scores(name: LocalRanker, item: Question, run: Recorder) -> list[float]:
    """Scores of another ranker than the SFS per document, higher is better; ``rrf`` fuses BM25 and the encoder."""

    def dense() -> Ranker:
        return DenseRanker(run.tools.encoder)

    makers: Mapping[str, Callable[[], Ranker]] = {
        "bm25": BM25Ranker,
        "dense": dense,
        "rrf": lambda: ReciprocalRankFusion(BM25Ranker(), dense()),
    }
    return makers[name]().rank(item.question, item.documents)


def _scores(values: Mapping[str, float]) -> dict[str, DocumentScore]:
    return {
        key: DocumentScore(value=value)
        if math.isfinite(value)
        else DocumentScore(status="unavailable", detail=f"the model returned {value!r}")
        for key, value in values.items()
    }
