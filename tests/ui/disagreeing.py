"""A real run of DuQUAD whose agents say what a script tells them: they disagree, the judge sides with one of them."""

from __future__ import annotations

from mdqa.records import Document, Question
from storage.store import Store
from tests.methods.duquad.helpers import Run, agent, judge, run_duquad, score

TEXTS = (
    ("Velden, a history", "Velden lies on the Ostra. The first bridge of Velden was of wood. It burned down in 1871."),
    ("The Ostra bridge", "The stone bridge of Velden was opened in 1912. It has four arches. Boats pass below it."),
    ("Bridges of the north", "Iron bridges came late. The bridge of Hallen was opened in 1899."),
    ("Public works", "The new bridge of Velden was planned in 1919. It was opened in 1921 after two winters."),
    ("Bread", "Bread is baked from flour, water and salt."),
    ("Almanac", "The bridge was closed for repair. Traffic in Velden went by ferry. It opened again in 1950."),
    ("Weather", "It rains a lot in spring."),
    ("Fish of the Ostra", "Trout and grayling live in the upper river."),
)
GOLD = 4


def question() -> Question:
    """Eight documents, the fourth of them gold."""
    documents = tuple(
        Document(id=f"d{place}", title=title, text=words, gold=place == GOLD)
        for place, (title, words) in enumerate(TEXTS, 1)
    )
    asked = "When was the bridge of Velden that stands today opened?"
    return Question(id="velden", question=asked, answers=("1921",), documents=documents)


def run_of(local: str, everything: str, *judged: str, scores: tuple[str, ...], **options: object) -> Run:
    """A run in which the agents, the judge and the Score Agent (one reply per candidate) say this."""
    replies = {"agent": [local, everything], "score": list(scores), "judge": list(judged)}
    return run_duquad(replies, question(), k=4, weight_ppl=0, weight_cont=0, **options)


def disagreeing(**options: object) -> Run:
    """Local says 1912, Global 1921; the judge takes the latter. One score is low, one cannot be read."""
    local = agent("1912", 2, 1, reasoning="Document 2 says that the stone bridge was opened in 1912.")
    everything = agent("1921.", 4, 2, 6, reasoning="Document 4 names the new bridge, which was opened in 1921.")
    scores = (score(0.2, 2), score(0.5, 1), score(0.9, 1, 2), "no idea", "still none")
    verdict = judge("1921").replace("checked", "Both bridges were opened; the one of 1921 is the later one.")
    more = [judge("1921"), judge("1912"), judge("1950")] if options.get("compare_ablations") else []
    return run_of(local, everything, verdict, *more, scores=scores, **options)


def stored(store: Store, run: Run) -> str:
    """Keep a run with its trace, as the page would; its id."""
    result = run.result
    store.runs.begin(result.model_copy(update={"status": "running", "answer": ""}))
    for event in run.events:
        store.runs.record(result.id, event)
    store.runs.finish(result, correct=True)
    return result.id
