"""Steering to sentences in place of documents (the paper's ablation, Table 5), without a model.

Stage 2's heads then choose among all sentences of the documents that are left: by the attention of their tokens,
which the pass has recorded together with the place of every token in the document's text. Shapes: K heads, T tokens,
S sentences, D documents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mdqa.attention.heads import document_shares, top_documents, union_of_top
from mdqa.attention.layout import anchor_character
from mdqa.methods.cafe.selection import head_name
from mdqa.methods.sentences import sentence_spans
from mdqa.records import Document, Head, TokenHeat


@dataclass(frozen=True)
class Sentence:
    """A sentence: characters [start, end) of its document's rendered block, and the words, copied from its text."""

    document_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class SentenceSelection:
    """Union over heads of their top sentences, in prompt order, and what it means for the documents.

    ``documents``: those that hold a chosen sentence. ``best``: (K, D) each document's highest share of a sentence.
    ``relevance``: the highest sum over heads that one of its sentences has. Both are 0 without a sentence.
    """

    chosen: tuple[Sentence, ...]
    documents: tuple[str, ...]
    best: np.ndarray
    relevance: dict[str, float]
    reasons: dict[str, str]

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """The words of the chosen sentences per document."""
        return {d: tuple(s.text for s in self.chosen if s.document_id == d) for d in self.documents}


def sentences_of(heat: TokenHeat, documents: Sequence[Document]) -> tuple[Sentence, ...]:
    """All sentences of the documents, given in the prompt's order as in ``heat.texts``. Headers belong to none."""
    found = []
    for document, block in zip(documents, heat.texts, strict=True):
        text = document.text.strip()
        places = _places(text, block, header_lines=1 + document.title.strip().count("\n"))
        found += [Sentence(document.id, places[a], places[b - 1] + 1, text[a:b]) for a, b in sentence_spans(text)]
    return tuple(found)


def sentence_shares(
    heat: TokenHeat,
    documents: Sequence[str],
    sentences: Sequence[Sentence],
    heads: Sequence[Head],
    *,
    pool: Literal["sum", "mean"] = "sum",
) -> np.ndarray:
    """Share of every sentence in each head's attention to all sentences (eq. 1 over sentences), (K, S).

    ``documents``: ids in the order of ``heat.texts``. ``pool`` mean divides by the number of tokens first. A token
    belongs to the sentence of its first character that is not white space.
    """
    owner = _owners(heat, documents, sentences)
    inside, count = owner >= 0, len(sentences)
    rows = [heat.weights[heat.heads.index(head)] for head in heads]
    mass: np.ndarray = np.stack([np.bincount(owner[inside], row[inside], minlength=count) for row in rows])  # (K, S)
    if pool == "mean":
        mass = mass / np.maximum(np.bincount(owner[inside], minlength=count), 1)
    return document_shares(mass)


def select_sentences(
    documents: Sequence[str], sentences: Sequence[Sentence], shares: np.ndarray, heads: Sequence[Head], top: int
) -> SentenceSelection:
    """The ``top`` sentences of every head, united (eq. 7 over sentences); ties go to the earlier sentence."""
    chosen = union_of_top(shares, top)
    ranks = [{s: rank for rank, s in enumerate(top_documents(row, len(sentences)), 1)} for row in shares]
    best, relevance, reasons = np.zeros((len(heads), len(documents))), {}, {}
    for column, document in enumerate(documents):
        own = [i for i, sentence in enumerate(sentences) if sentence.document_id == document]
        best[:, column] = shares[:, own].max(axis=1, initial=0.0)
        relevance[document] = float(shares[:, own].sum(axis=0).max(initial=0.0))
        picked = [i for i in own if i in chosen]
        if picked:
            names = ", ".join(head_name(heads[k]) for k in sorted({k for i in picked for k in chosen[i]}))
            count = "1 sentence" if len(picked) == 1 else f"{len(picked)} sentences"
            reasons[document] = f"candidate: {count} in the top {top} of head {names}"
        elif own:
            rank, k = min((ranks[k][i], k) for i in own for k in range(len(heads)))
            reasons[document] = f"not a candidate: best sentence rank {rank} (head {head_name(heads[k])}), {top} needed"
        else:
            reasons[document] = "not a candidate: no sentence"
    selected = tuple(sentences[i] for i in chosen)
    holders = {sentence.document_id for sentence in selected}
    return SentenceSelection(selected, tuple(d for d in documents if d in holders), best, relevance, reasons)


def _places(text: str, block: str, header_lines: int) -> Sequence[int]:
    """Where each character of a document's text stands in its block, which has the header's lines before it.

    A block may have more spaces than the text: control tokens written inside a document are broken by one.
    """
    start = 0
    for _ in range(header_lines):
        start = block.index("\n", start) + 1
    if block[start:] == text:
        return range(start, len(block))
    places = []
    for character in text:
        while block[start] != character:
            start += 1
        places.append(start)
        start += 1
    return places


def _owners(heat: TokenHeat, documents: Sequence[str], sentences: Sequence[Sentence]) -> np.ndarray:
    """The sentence of every token, (T,); -1 for those of headers and of the blanks between sentences.

    A token without text goes with the one before it.
    """
    starts = {d: [(s.start, i) for i, s in enumerate(sentences) if s.document_id == d] for d in documents}
    owner = np.full(len(heat.document), -1)
    for token, (d, (start, end)) in enumerate(zip(heat.document.tolist(), heat.spans.tolist(), strict=True)):
        if start == end:
            same = token > 0 and heat.document[token - 1] == d
            owner[token] = owner[token - 1] if same else -1
            continue
        place = anchor_character(heat.texts[d], start, end)
        own = starts[documents[d]]
        before = bisect_right(own, (place, len(sentences))) - 1
        if before >= 0 and place < sentences[own[before][1]].end:
            owner[token] = own[before][1]
    return owner
