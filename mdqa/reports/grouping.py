"""Stored runs as groups that may be compared: one model, one data set, one setting, and each question once."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mdqa.benchmarks.placing import Placement, read_suffix, source_id
from mdqa.interventions import done_to
from mdqa.records import Question, RunResult

Runs = Mapping[Hashable, RunResult]
"""Runs by their question (:func:`same_question`)."""


@dataclass(frozen=True)
class Group:
    """Runs of one method, model and data set with the same options that count.

    ``members`` are all of them, ``runs`` the newest of each question. ``label`` says in words what sets the group apart
    from the others of a list.
    """

    method: str
    model: str
    data: str
    config: Mapping[str, Any]
    runs: Runs
    members: tuple[RunResult, ...]
    label: str = ""

    @property
    def older(self) -> int:
        """How many members were passed over for another run of the same question."""
        return len(self.members) - len(self.runs)


def same_question(item: Question) -> Hashable:
    """What two runs must share to answer the same question: its id and words, and the documents in their order."""
    return (item.id, item.question, tuple((document.id, document.title, document.text) for document in item.documents))


def data_set(item: Question, *, pool: bool = False) -> str:
    """The name of the question's data set and how its documents were placed (``nq20@p10``); may be empty.

    Questions whose documents somebody changed by hand stand apart (``nq20@what-if``).
    With ``pool`` the position of the evidence does not count.
    """
    found = read_suffix(item.id) if "placed" in item.meta else None
    placement = found[1] if found else Placement()
    suffix = (replace(placement, position=None) if pool else placement).suffix
    return str(item.meta.get("dataset") or "") + suffix + ("@what-if" if done_to(item) else "")


def sources(runs: Iterable[RunResult]) -> list[str]:
    """Per run the id of the question that it answers, the same for one question at several positions."""
    return [source_id(run.question) for run in runs]


def finished(runs: Sequence[RunResult], method: str = "") -> list[RunResult]:
    """The runs that ended well, of one method or of all."""
    return [run for run in runs if run.status == "ok" and method in ("", run.method)]


def groups(
    runs: Sequence[RunResult],
    *,
    ignore: Collection[str] = (),
    only: Collection[str] | None = None,
    pool: bool = False,
    prefer: Callable[[RunResult], float] = lambda run: 0.0,
) -> list[Group]:
    """The runs by method, model, data set and options, in order of appearance.

    Args:
        runs: any runs.
        ignore: options that may differ inside a group.
        only: the options that count at all; default: all but ``ignore``.
        pool: put questions with the evidence at different positions into one group.
        prefer: of several runs of a question the one with the highest value stands for all, then the newest.
    """
    found: dict[Hashable, dict[Hashable, list[RunResult]]] = {}
    for run in runs:
        key = (run.method, run.model, data_set(run.question, pool=pool), _text(_counting(run, ignore, only)))
        found.setdefault(key, {}).setdefault(same_question(run.question), []).append(run)
    made = []
    for by_question in found.values():
        newest = {question: _chosen(same, prefer) for question, same in by_question.items()}
        first = next(iter(newest.values()))
        made.append(
            Group(
                method=first.method,
                model=first.model,
                data=data_set(first.question, pool=pool),
                config=_counting(first, ignore, only),
                runs=newest,
                members=tuple(run for same in by_question.values() for run in same),
            )
        )
    return _labelled(made)


def older(made: Sequence[Group]) -> str:
    """A sentence on the runs that were passed over for a newer one of the same question; empty if there are none."""
    passed = sum(group.older for group in made)
    return f"{passed} older runs of the same questions were passed over." if passed else ""


def left_out(given: int, used: int, why: str) -> str:
    """A sentence on runs that could not be used; empty if all were."""
    return f"{given - used} of {given} runs are left out: {why}." if used < given else ""


def own_work(run: RunResult) -> float:
    """For ``prefer`` of :func:`groups`: 1 for a run whose time and computed tokens are its method's own, else 0."""
    return float(run.cost.own_work)


def _counting(run: RunResult, ignore: Collection[str], only: Collection[str] | None) -> dict[str, Any]:
    return {name: value for name, value in run.config.items() if name not in ignore and (only is None or name in only)}


def _chosen(same: Sequence[RunResult], prefer: Callable[[RunResult], float]) -> RunResult:
    return max(enumerate(same), key=lambda pair: (prefer(pair[1]), pair[1].created, pair[0]))[1]


def _labelled(made: Sequence[Group]) -> list[Group]:
    labelled = []
    for group in made:
        like = [other for other in made if other.method == group.method]
        names = [name for name in group.config if len({_text(other.config.get(name)) for other in like}) > 1]
        parts = [group.model, group.data, *(f"{name}={group.config[name]}" for name in names)]
        labelled.append(replace(group, label=", ".join(part for part in parts if part)))
    return labelled


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def position_of(run: RunResult) -> int | None:
    """Where the evidence stands, from 1: where it was put, else the place of the one gold document; None without."""
    placed = run.question.meta.get("placed")
    if isinstance(placed, Mapping) and isinstance(placed.get("position"), int):
        return int(placed["position"])
    gold = run.question.gold_ids
    return run.question.document_ids.index(gold[0]) + 1 if len(gold) == 1 else None
