"""Labelled items as a Hugging Face data set: ``data/items.jsonl`` and a card, readable by ``datasets`` and by anything.

Names of annotators are replaced by ``annotator_1`` and so on, in the order of their names, unless they are asked for:
what somebody labelled at work is theirs. Everything else is as people left it.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mdqa.agreement.judges import judge_label
from mdqa.agreement.ratings import Rated, consensus, latest
from mdqa.agreement.table import agreement_table
from mdqa.candidates import candidates_of
from mdqa.records import RunResult
from mdqa.statistics.agreement import Coefficient

ITEMS = "data/items.jsonl"
CARD = "README.md"

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
"""Size categories of the hub's cards."""

FIELDS = {
    "item": "number of the item in its queue",
    "run": "id of the run that the item is about",
    "question_id": "id of the question",
    "question": "the question",
    "answers": "accepted answers, where they are known",
    "documents": "the documents in the order in which they were given: `id`, `title`, `text`",
    "method": "the method that answered",
    "model": "the model that it used",
    "candidates": "the answers to decide between, in canonical order: `key`, `title`, `answer`",
    "judge": "whom the run's own answer sides with: `first`, `second`, `neither`, or empty",
    "labels": "what each annotator said: `annotator`, `label`, `evidence` (ids of documents), `note`, `seconds`, "
    "`first_shown` (which candidate came first; empty where there is one)",
    "label": "the adjudicated label, else the majority's, else empty",
    "source": "`adjudicated`, `majority` or `tie`",
    "evidence": "documents that more than half of those who marked any marked",
}
"""Fields of a line, for the card."""


def items(
    runs: Mapping[str, RunResult], ratings: Iterable[Rated], adjudicated: Mapping[int, Rated], *, names: bool = False
) -> Iterator[dict[str, Any]]:
    """The labelled items as JSON-ready objects, by their number; items whose run is not among ``runs`` are left out.

    ``names``: keep the annotators' names.
    """
    mine = latest(ratings)
    known = sorted({rating.annotator for rating in mine}, key=lambda name: (name.casefold(), name))
    called = {name: name if names else f"annotator_{number}" for number, name in enumerate(known, 1)}
    for number, one in sorted(consensus(mine, adjudicated).items()):
        run = runs.get(one.run)
        if run is None:
            continue
        candidates = candidates_of(run)
        own = sorted((r for r in mine if r.item == number), key=lambda rating: known.index(rating.annotator))
        yield {
            "item": number,
            "run": run.id,
            "question_id": run.question.id,
            "question": run.question.question,
            "answers": list(run.question.answers),
            "documents": [{"id": d.id, "title": d.title, "text": d.text} for d in run.question.documents],
            "method": run.method,
            "model": run.model,
            "candidates": [{"key": c.key, "title": c.title, "answer": c.answer} for c in candidates],
            "judge": judge_label(run),
            "labels": [_label(rating, called[rating.annotator], len(candidates)) for rating in own],
            "label": one.label,
            "source": one.source,
            "evidence": list(one.evidence),
        }


def _label(rating: Rated, name: str, candidates: int) -> dict[str, Any]:
    return {
        "annotator": name,
        "label": rating.label,
        "evidence": list(rating.evidence),
        "note": rating.note,
        "seconds": rating.seconds,
        "first_shown": "" if candidates < 2 else "second" if rating.swapped else "first",
    }


def files(
    runs: Mapping[str, RunResult],
    ratings: Iterable[Rated],
    adjudicated: Mapping[int, Rated],
    *,
    queue: str,
    guidelines: str = "",
    names: bool = False,
) -> dict[str, str]:
    """The files of the folder by their path in it."""
    mine = latest(ratings)
    lines = [
        json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items(runs, mine, adjudicated, names=names)
    ]
    table = agreement_table(mine, adjudicated, runs)
    together = next((line for line in table.lines if line.kind in ("people", "person-person")), None)
    found = (
        (("Percent agreement", together.percent), ("Krippendorff's alpha", together.krippendorff)) if together else ()
    )
    return {ITEMS: "".join(f"{line}\n" for line in lines), CARD: _card(len(lines), len(mine), found, queue, guidelines)}


def write_folder(folder: Path, *arguments: Any, **options: Any) -> int:
    """Write :func:`files` into a folder, which is made if need be; how many items there are.

    FileExistsError, before anything is written, if one of the files is there.
    """
    found = files(*arguments, **options)
    for name in found:
        if (folder / name).exists():
            raise FileExistsError(f"{folder / name} is there already; choose another folder")
    for name, content in found.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return found[ITEMS].count("\n")


def write_archive(path: Path, *arguments: Any, **options: Any) -> None:
    """Write :func:`files` as one zip file."""
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in files(*arguments, **options).items():
            archive.writestr(name, content)


def _card(
    number: int, labels: int, coefficients: Sequence[tuple[str, Coefficient]], queue: str, guidelines: str
) -> str:
    size = next((name for limit, name in SIZES if number < limit), "100K<n<1M")
    title = json.dumps(f"Labels of {queue}", ensure_ascii=False)
    agreed = [f"- {name}: {_value(found)}" for name, found in coefficients]
    parts = [
        "---",
        f"pretty_name: {title}",
        "license: unknown",
        "task_categories:",
        "- question-answering",
        "size_categories:",
        f"- {size}",
        "tags:",
        "- mdqa",
        "- human-labels",
        "configs:",
        "- config_name: default",
        "  data_files:",
        "  - split: train",
        f"    path: {ITEMS}",
        "---",
        "",
        f"# Labels of “{queue}”",
        "",
        f"{number} items with {labels} labels by people. Each item is a question with its documents and the answers of "
        "a multi-document question answering method between which people decided, without seeing who gave which "
        "answer, in an order that was drawn for each person.",
        "",
        "## Fields",
        "",
        *(f"- `{name}`: {words}" for name, words in FIELDS.items()),
        "",
        "Labels: `first` and `second` (that candidate is right), `both`, `neither`, `cannot_tell`. With one candidate, "
        "`first` says that it is right.",
        "",
        "## Agreement",
        "",
        *(agreed or ["- One person or nobody has labelled; agreement needs a second one."]),
        "",
        "## Guidelines",
        "",
        guidelines or "None were written.",
        "",
        "## Before you share it",
        "",
        "Say who labelled, how they were chosen and paid, and under which licence the documents may be passed on; "
        "`license` above is to be filled in.",
        "",
    ]
    return "\n".join(parts)


def _value(found: Coefficient) -> str:
    if found.value is None:
        return found.note
    ends = f" [{found.low:.3f}, {found.high:.3f}]" if found.low is not None and found.high is not None else ""
    return f"{found.value:.3f}{ends} over {found.items} items"
