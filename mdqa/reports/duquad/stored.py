"""What the reports of DuQUAD read off a stored run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mdqa.methods.duquad.config import DuQUADConfig
from mdqa.methods.duquad.fusion import Scores, rank
from mdqa.records import Opinion, RunResult
from mdqa.scoring.answers import best_subspan_em
from mdqa.scoring.losses import own_stage

METHOD = "duquad"
SIGNALS = ("sim", "ppl", "cont")
TOP_K = 6
"""The paper's setting in its study of gold recall (Figure 3)."""

HOW = "python -m mdqa answer --method duquad"

TITLES: Mapping[str, str] = MappingProxyType({"sim": "Sim", "ppl": "PPL", "cont": "Cont"})
"""The signals' names in Figure 3."""


def paper_weights() -> dict[str, float]:
    """The weights of Table 6, which are the method's defaults."""
    return dict(DuQUADConfig().weights)


def signals(run: RunResult) -> dict[str, Scores]:
    """The signals as they were measured, those with a number for at least one document."""
    found = own_stage(run, "structural_fusion")
    if found is None:
        return {}
    scores = {name: found.scores[name] for name in SIGNALS if name in found.scores}
    return {name: by_id for name, by_id in scores.items() if any(score.value is not None for score in by_id.values())}


def ranking(run: RunResult) -> tuple[str, ...] | None:
    """All documents as the Local Agent's selection ranked them, best first; None where none has a score."""
    for name in ("structural_fusion", "local_selection"):
        found = own_stage(run, name)
        if found is not None:
            scores = found.scores.get("SFS") or next(iter(found.scores.values()), {})
            if any(score.value is not None for score in scores.values()):
                return rank(found.documents, scores)
    return None


def opinion(run: RunResult, role: str) -> Opinion | None:
    """The first opinion in this role; None if there is none."""
    return next((opinion for opinion in run.opinions if opinion.role == role), None)


def right(answer: str, run: RunResult) -> bool:
    """Whether an answer is right, as the paper's accuracy is read here: an accepted answer stands in it (SubEM)."""
    return best_subspan_em(answer, run.question.answers) > 0


def gold_first(runs: Sequence[RunResult]) -> str:
    """A warning where the first document is a gold one in every question; empty otherwise."""
    if len(runs) < 2 or not all(run.question.documents[0].gold for run in runs):
        return ""
    return (
        "In all of these questions the first document is gold. Equal scores go to the earlier document, which favours "
        "it: put the evidence at other positions too before you trust such numbers."
    )
