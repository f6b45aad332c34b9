"""What people's labels stand in for: which answers are right, and which documents hold the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from mdqa.agreement.judges import judge_label
from mdqa.agreement.ratings import CANNOT_TELL, CHOICES, Consensus
from mdqa.candidates import candidates_of
from mdqa.records import Question, RunResult
from mdqa.reports.grouping import finished, same_question


def answer_is_right(run: RunResult, label: str) -> bool | None:
    """Whether people found the run's answer right, from their label of its candidates; None where that does not follow.

    It does not follow from ``cannot_tell``, nor from ``neither`` where the answer is neither candidate's. Of a run with
    one candidate, its answer, ``first`` and ``both`` say that it is right.
    """
    if label in ("", CANNOT_TELL) or run.status != "ok":
        return None
    if len(candidates_of(run)) < 2:
        return {"first": True, "both": True, "neither": False}.get(label)
    sided = judge_label(run)
    if sided not in CHOICES:
        return None if label in ("neither", "both") else False
    return label in ("both", sided)


@dataclass(frozen=True)
class Marked:
    """Questions with the documents that people marked as evidence, and how many had no document with a majority."""

    questions: tuple[Question, ...]
    undecided: int


def marked_questions(runs: Mapping[str, RunResult], labels: Iterable[Consensus]) -> Marked:
    """The labelled questions with people's evidence marks in place of what was marked before.

    A document is gold where more than half of those who marked anything marked it; the marks of several items about
    one question are added up. ``meta["people"]`` holds the numbers. Questions without any mark are left out.
    """
    questions: dict[Hashable, Question] = {}
    marks: dict[Hashable, Counter[str]] = {}
    markers: Counter[Hashable] = Counter()
    for one in labels:
        if one.run not in runs or not one.markers:
            continue
        item = runs[one.run].question
        key = same_question(item)
        questions.setdefault(key, item)
        marks.setdefault(key, Counter()).update(one.marks)
        markers[key] += one.markers
    found, undecided = [], 0
    for key, item in questions.items():
        gold = {document for document, number in marks[key].items() if 2 * number > markers[key]}
        if not gold & set(item.document_ids):
            undecided += 1
            continue
        documents = tuple(d.model_copy(update={"gold": d.id in gold}) for d in item.documents)
        people = {"markers": markers[key], "marks": dict(marks[key])}
        found.append(item.model_copy(update={"documents": documents, "meta": {**item.meta, "people": people}}))
    return Marked(tuple(found), undecided)


Content = tuple[Hashable, ...]


def content(item: Question) -> Content:
    """What two questions must share to be the same for a verdict: words and documents in their order, whatever ids."""
    return (item.question, *((document.title, document.text) for document in item.documents))


def verdicts(
    runs: Mapping[str, RunResult], labels: Iterable[Consensus], *, method: str, model: str, treatment: str = ""
) -> dict[Content, bool]:
    """By :func:`content` whether people found a method's answers right, over finished runs that read all documents.

    With ``treatment`` only runs that took it. Of several runs of a question the majority counts, a tie says nothing.
    """
    votes: dict[Content, list[bool]] = {}
    for one in labels:
        run = runs.get(one.run)
        if run is None or not finished([run], method) or run.model != model or run.overflow != "refuse":
            continue
        if treatment and (run.routing is None or run.routing.treatment != treatment):
            continue
        right = answer_is_right(run, one.label)
        if right is not None:
            votes.setdefault(content(run.question), []).append(right)
    return {key: 2 * sum(said) > len(said) for key, said in votes.items() if 2 * sum(said) != len(said)}
