"""What each part of DuQUAD is worth: the ablations, and other methods on the same questions (Tables 2, 1 and 7)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from mdqa.records import RunResult
from mdqa.reports.base import Chart, Column, Report, Row, joined, mean
from mdqa.reports.common.answers import (
    BESIDE,
    INTERVALS,
    MEASURES,
    Given,
    beside,
    columns_beside,
    correct,
    measured,
    scored,
    titled,
)
from mdqa.reports.duquad.stored import HOW, METHOD
from mdqa.reports.grouping import Group, groups, left_out, older, same_question
from mdqa.scoring.evidence import gold_recall
from mdqa.scoring.losses import own_stage, own_stages

NEEDS = (
    "finished DuQUAD runs over questions with accepted answers, with their ablations; make them with: "
    f"{HOW} --set compare_ablations=true (or one run each with without_local, without_global, without_pruning)"
)

SWITCHES = ("without_local", "without_global", "without_pruning")

WHOLE = "duquad"
VARIANTS: Mapping[str, str] = MappingProxyType(
    {
        WHOLE: "DuQUAD",
        "without_local": "w/o Local Agent",
        "without_global": "w/o Global Agent",
        "without_pruning": "w/o Quality Pruning",
    }
)


METRIC = "sub_em"


@dataclass(frozen=True)
class Read(Given):
    """One answer to one question, and the documents it was given from (None where that is not known)."""

    documents: tuple[str, ...] | None


@dataclass
class Variant:
    """What one variant answered, by question."""

    title: str
    answers: dict[Hashable, Read] = field(default_factory=dict)


def report(runs: Sequence[RunResult]) -> Report:
    """SubEM, EM and F1 of DuQUAD, of each ablation, and of every other method that answered the same questions.

    An ablation comes from the opinions of runs that compared (same replies of the agents), else from runs of its own.
    Differences are variant minus DuQUAD over the questions that both answered, paired bootstrap as in Table 7.
    McNemar's exact test is on SubEM, the reading of the paper's accuracy, with Holm's correction over all rows of a
    group.
    """
    done = scored(runs)
    mine = [run for run in done if run.method == METHOD]
    made = groups(mine, ignore=(*SWITCHES, *BESIDE))
    others = groups([run for run in done if run.method != METHOD])
    rows: list[Row] = []
    used = set()
    passed = []
    for group in made:
        variants = _variants(group.members)
        if WHOLE in variants:
            fitting = [other for other in others if (other.model, other.data) == (group.model, group.data)]
            passed += [other for other in fitting if other not in passed]
            variants |= {f"{other.method} {i}": _method(other) for i, other in enumerate(fitting)}
            rows += _rows(group, variants)
            used |= {given.run.id for variant in variants.values() for given in variant.answers.values()}
    correct(rows)
    alone = bool(rows) and len(rows) == len({row["group"] for row in rows})
    return Report(
        name="ablations",
        title="DuQUAD, its ablations and other methods",
        source="DuQUAD, Table 2 (other methods: Tables 1 and 7).",
        columns=(
            Column(key="group", title="Runs"),
            Column(key="variant", title="Method"),
            *MEASURES,
            *columns_beside(METRIC, "DuQUAD's"),
            Column(key="read", title="Documents read last", digits=1),
            Column(key="recall", title="Gold among them", unit="%", digits=1),
            Column(key="n", title="n", digits=0),
        ),
        rows=tuple(rows),
        chart=Chart(kind="bars", x="variant", y=METRIC, series="group", low=f"{METRIC}_low", high=f"{METRIC}_high"),
        n=len(used),
        note=joined(
            (
                "SubEM is the reading of the paper's accuracy. p: McNemar's exact test on SubEM against DuQUAD, over "
                "the questions that both answered; p (Holm) is corrected for all tests of the group.",
                INTERVALS,
                left_out(len(runs), len(done), "they failed, or no accepted answer is known"),
                older(passed),
                f"There is no ablation among these runs; make them with: {HOW} --set compare_ablations=true."
                if alone
                else "",
            )
        ),
        needs="" if rows else NEEDS,
    )


def _variants(runs: Sequence[RunResult]) -> dict[str, Variant]:
    """Every variant's answers: of a run that compared its ablations where there is one, of the newest such run."""
    found: dict[str, Variant] = {}
    runs = sorted(runs, key=lambda run: (any(o.role == "ablation" for o in run.opinions), run.created), reverse=True)

    def add(key: str, title: str, given: Read) -> None:
        found.setdefault(key, Variant(title)).answers.setdefault(same_question(given.run.question), given)

    for run in runs:
        compared = [opinion for opinion in run.opinions if opinion.role == "ablation"]
        for opinion in compared:
            add(opinion.group, VARIANTS.get(opinion.group, opinion.title), Read(run, opinion.answer, opinion.documents))
        if not compared:
            off = [name for name in SWITCHES if run.config.get(name)]
            title = ", ".join(VARIANTS[name] for name in off) or VARIANTS[WHOLE]
            add(" and ".join(off) or WHOLE, title, Read(run, run.answer, _read(run)))
    order = [key for key in VARIANTS if key in found]
    return {key: found[key] for key in (*order, *(key for key in found if key not in order))}


def _read(run: RunResult) -> tuple[str, ...] | None:
    last = own_stage(run, "judge")
    return last.documents if last is not None else None


def _last(run: RunResult) -> tuple[str, ...] | None:
    own = own_stages(run.stages)
    return own[-1].kept if own else None


def _method(group: Group) -> Variant:
    """Another method's answers; documents as its last stage kept them."""
    return Variant(titled(group), {question: Read(run, run.answer, _last(run)) for question, run in group.runs.items()})


def _rows(group: Group, variants: Mapping[str, Variant]) -> list[Row]:
    whole = variants[WHOLE].answers
    rows: list[Row] = []
    for key, variant in variants.items():
        mine = variant.answers
        known = [(one.documents, one.run.question.gold_ids) for one in mine.values() if one.documents is not None]
        recalls = [recall for documents, gold in known if (recall := gold_recall(documents, gold)) is not None]
        rows.append(
            {
                "group": group.label,
                "variant": variant.title,
                "key": key,
                **measured(mine),
                **beside(mine, None if key == WHOLE else whole, METRIC),
                **mean("read", [float(len(documents)) for documents, _ in known]),
                **mean("recall", recalls),
            }
        )
    return rows
