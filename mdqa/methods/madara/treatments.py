"""What MADARA does with scores: aggregation, SDA (Algorithm 1), ATF and the vote of PDE (Algorithm 2). Pure.

**Documents without a score.** A reply that could not be read is a status, never a zero. A document is aggregated over
the agents that did score it, their weights divided by the sum of those weights; if no agent scored it, its aggregate
is a status and it stands behind all scored documents, in the order in which the documents were given. The paper does
not say what happens to unreadable replies; its released code counts them as 0.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Literal

from mdqa.methods.madara.ranks import mid_ranks, ordinal_ranks
from mdqa.methods.ranking import TOLERANCE, ranking
from mdqa.records import DocumentScore

Ties = Literal["mid", "ordinal"]
Scores = Mapping[str, DocumentScore]
"""One entry per document id, in the order in which the documents were given."""

TOP_SCORE = 5.0
_ABSTENTION = re.compile(
    r"(unknown|none|n/?a|unanswerable|insufficient|cannot|can't"
    r"|not (mentioned|stated|given|provided|specified|found|available|known)"
    r"|no (answer|information)"
    r"|(the|this) (document|text|passage) does not|i do(n't| not) know|i'm sorry)\b",
    re.IGNORECASE,
)


def aggregate(agents: Mapping[str, Scores], weights: Mapping[str, float]) -> dict[str, DocumentScore]:
    """Weighted mean of the agents' scores per document, 0 to 5 (paper section 5.3: weights 0.4, 0.3, 0.3).

    Args:
        agents: agent -> document id -> score; every agent has an entry for every document.
        weights: agent -> weight, not negative. With all scores there they are used as they are, divided by their sum.
    """
    return {document: _combine(agents, weights, document) for document in next(iter(agents.values()))}


def _combine(agents: Mapping[str, Scores], weights: Mapping[str, float], document: str) -> DocumentScore:
    entries = {agent: scores[document] for agent, scores in agents.items()}
    there = [(weights[agent], entry.value) for agent, entry in entries.items() if entry.value is not None]
    total = sum(weight for weight, _ in there)
    if total > 0:
        return DocumentScore(value=sum(weight * value for weight, value in there) / total)
    why = "; ".join(f"{agent}: {entry.status}" for agent, entry in entries.items())
    status = next((entry.status for entry in entries.values() if entry.status != "ok"), "unavailable")
    return DocumentScore(status=status, detail=f"no agent with a weight gave a score ({why})")


def rank_aligned(
    agents: Mapping[str, Scores], weights: Mapping[str, float], *, ties: Ties = "mid"
) -> dict[str, DocumentScore]:
    """Score Distribution Alignment: 5 times the weighted mean of each agent's percentile ranks (Algorithm 1).

    An agent's scores become ranks from 0 (lowest) to 1 among the documents that it scored. ``mid`` gives equal scores
    the mean of their ranks; ``ordinal`` orders them by position, as the released code does. An agent that scored a
    single one of several documents puts it in the middle (0.5). One document alone has no rank: its scores stay as
    they are.
    """
    if len(next(iter(agents.values()))) < 2:
        return aggregate(agents, weights)
    ranked = {agent: _percentiles(scores, ties) for agent, scores in agents.items()}
    return {
        document: score if score.value is None else DocumentScore(value=TOP_SCORE * score.value)
        for document, score in aggregate(ranked, weights).items()
    }


def _percentiles(scores: Scores, ties: Ties) -> dict[str, DocumentScore]:
    there = {document: score.value for document, score in scores.items() if score.value is not None}
    ranks = (mid_ranks if ties == "mid" else ordinal_ranks)(list(there.values()))
    top = len(there) - 1
    percent = {d: DocumentScore(value=r / top if top else 0.5) for d, r in zip(there, ranks, strict=True)}
    return {document: percent.get(document, score) for document, score in scores.items()}


def adaptive_threshold(scores: Scores, kappa: float) -> float | None:
    """Mean minus ``kappa`` population standard deviations of all scores (section 4.3); None without any score."""
    values = [score.value for score in scores.values() if score.value is not None]
    return fmean(values) - kappa * pstdev(values) if values else None


def adaptive_filter(scores: Scores, *, kappa: float, keep_min: int, k: int) -> tuple[list[str], float | None]:
    """ATF: the documents at or above the threshold, at least ``keep_min`` and at most ``k``, best first.

    Returns the kept documents and the threshold (None if there is no score at all).
    """
    threshold = adaptive_threshold(scores, kappa)
    order = ranking(scores)
    above = sum(_reaches(scores[document], threshold) for document in order)
    return order[: min(max(above, keep_min), k)], threshold


def _reaches(score: DocumentScore, threshold: float | None) -> bool:
    return threshold is not None and score.value is not None and score.value >= threshold - TOLERANCE


def random_documents(documents: Sequence[str], k: int, seed: int | str) -> list[str]:
    """PDE-Random's selection (section 6.1): up to ``k`` documents drawn without replacement, in the order drawn."""
    return random.Random(seed).sample(list(documents), min(k, len(documents)))


def normalise(answer: str) -> str:
    """The form under which answers are grouped: lower case, no ASCII punctuation, single spaces. Articles stay."""
    return " ".join(answer.lower().translate(str.maketrans("", "", string.punctuation)).split())


def is_abstention(answer: str) -> bool:
    """Whether the answer says that there is none ("unknown", "not mentioned", "the document does not ...")."""
    return bool(_ABSTENTION.match(answer.strip(" \"'`.*([")))


@dataclass(frozen=True)
class Ballot:
    """The answer read from one document alone, and its say in the vote (None: the document has no score)."""

    document: str
    answer: str
    weight: float | None


@dataclass(frozen=True)
class Group:
    """Answers that are the same after normalising, in the order of their documents' ranks."""

    key: str
    weight: float
    ballots: tuple[Ballot, ...]


@dataclass(frozen=True)
class Tally:
    """The outcome of a vote: its groups in the order in which they came up, the winning key and the answer."""

    groups: tuple[Group, ...]
    winner: str
    answer: str

    @property
    def winning(self) -> Group | None:
        """The group that won; None if there was no answer to vote for."""
        return next((group for group in self.groups if group.key == self.winner), None)


def vote(ballots: Sequence[Ballot], *, drop_abstentions: bool = False) -> Tally:
    """The answer group with the highest sum of weights (Algorithm 2); ``ballots`` come in rank order.

    On a tie the group that came up first wins, which holds the best ranked document; the answer is worded as in the
    last ballot of the group. If no ballot has any weight, the best ranked document's own answer wins. A ballot without
    a weight (no score) counts 0; one whose answer has no letter or digit is no vote. With ``drop_abstentions`` answers
    that say there is none are left out where any other group exists (our option; the paper has no such rule).
    """
    gathered: dict[str, list[Ballot]] = {}
    for ballot in ballots:
        if key := normalise(ballot.answer):
            gathered.setdefault(key, []).append(ballot)
    groups = tuple(
        Group(key, sum(b.weight or 0.0 for b in members), tuple(members)) for key, members in gathered.items()
    )
    running = groups
    if drop_abstentions:
        running = tuple(g for g in groups if not is_abstention(g.ballots[0].answer)) or groups
    if not running:
        return Tally((), "", "")
    top = max(group.weight for group in running)
    best = next(group for group in running if group.weight >= top - TOLERANCE)
    return Tally(groups, best.key, best.ballots[-1 if top > 0 else 0].answer)
