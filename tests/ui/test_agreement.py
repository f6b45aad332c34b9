"""The Agreement tab without a browser: its numbers, decisions, what labels are used for, and who may do what."""

from __future__ import annotations

import csv
import json
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from mdqa.benchmarks.base import in_split, read_questions
from mdqa.errors import InputError
from storage.label_files import import_lines, snapshot
from storage.store import Store
from tests.reports.builders import duquad, question
from tests.ui.helpers import open_scripted
from tests.ui.labelled import ALPHA, KAPPA, QUEUE, SAME, fill
from ui import agreement
from ui.context import Context
from ui.tabs import agreement as tab
from ui.views import agreement as views


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A context whose database nobody changes."""
    with closing(open_scripted(tmp_path_factory.mktemp("filled"))) as context:
        fill(context.store)
        yield context


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    with closing(open_scripted(tmp_path)) as opened:
        fill(opened.store)
        yield opened


def item_of(context: Context, run: str) -> int:
    return next(item.id for item in context.store.queues.items(QUEUE) if item.run == run)


def test_the_numbers_are_those_of_a_calculation_by_hand(filled: Context) -> None:
    found = agreement.standing(filled, QUEUE)
    assert [one.run for one in found.contested] == ["r2", "r6", "r7"]
    pair = agreement.numbers(found).table.lines[0]
    assert (pair.kind, pair.one, pair.two) == ("person-person", "ann", "bob")
    assert pair.cohen is not None
    assert (pair.percent.value, pair.cohen.value, pair.krippendorff.value) == pytest.approx((SAME, KAPPA, ALPHA))
    html = views.table(agreement.numbers(found).table)
    for words in ("62.5%", "0.38", "0.42", "Person with person", "Majority of people · duquad, m"):
        assert words in html
    assert "NaN" not in html and "nan" not in html


def test_reading_says_how_far(filled: Context) -> None:
    *steps, last = agreement.read(filled, QUEUE, step=3)
    assert [(step.done, step.total) for step in steps if isinstance(step, agreement.Reading)] == [(3, 8), (6, 8)]
    assert isinstance(last, agreement.Standing)
    with pytest.raises(InputError, match="there is no queue 'none'"):
        agreement.standing(filled, "none")


def test_decisions_are_entries_and_can_be_taken_back(context: Context) -> None:
    number = item_of(context, "r2")
    one = agreement.decide(context, QUEUE, number, "first", "chief", "Document 1.", "form-1")
    assert agreement.decide(context, QUEUE, number, "first", "chief", "Document 1.", "form-1") == one
    found = agreement.standing(context, QUEUE)
    assert found.together[number].source == "adjudicated"
    assert [one.run for one in found.contested] == ["r6", "r7", "r2"]
    shown = views.item(agreement.item(context, QUEUE, number))
    assert "Decided by chief" in shown and "<script" not in shown
    assert "&lt;b&gt;bob&lt;/b&gt; on r2" in shown and "<b>bob" not in shown
    agreement.decide(context, QUEUE, number, "second", "chief", "", "form-2")
    assert agreement.standing(context, QUEUE).together[number].label == "second"
    agreement.decide(context, QUEUE, number, "", "chief", "not sure", "form-3")
    assert agreement.standing(context, QUEUE).together[number].source == "tie"
    actions = [entry.action for entry in context.store.labels.log(QUEUE)]
    assert (actions.count("adjudicate"), actions.count("label")) == (3, 16)
    with pytest.raises(InputError, match="there is no label 'third'"):
        agreement.decide(context, QUEUE, number, "third", "chief", "", "form-4")
    with pytest.raises(InputError, match="nobody has labelled this item"):
        agreement.decide(context, QUEUE, 999, "first", "chief", "", "form-5")


def test_use_these_labels(filled: Context) -> None:
    found = agreement.standing(filled, QUEUE)
    judge = {row["outcome"]: row for row in agreement.use(found, "judge").rows}
    # both people: 1, 4, 3 first or second alike; the ties 2, 6, 7 say nothing
    assert (judge["Local only"]["count"], judge["Local only"]["judge"]) == (3, 2 / 3)
    assert (judge["Global only"]["count"], judge["Global only"]["judge"]) == (2, 0.0)
    assert (judge["Disagreement"]["count"], judge["Disagreement"]["gold"]) == (5, 4 / 5)
    threshold = agreement.use(found, "threshold").rows
    assert [(row["half"], row["setting"]) for row in threshold] == [
        ("calibration", "0.40, before"),
        ("calibration", "0.61, after"),
        ("held-out", "0.40, before"),
        ("held-out", "0.61, after"),
    ]
    # before, d1 and d2 are kept: all that is marked, and half of the others dropped
    assert [row["balanced"] for row in threshold] == [0.75, 1.0, 0.75, 1.0]
    assert agreement.use(found, "no_filter").needs
    with pytest.raises(InputError, match="there is nothing called 'x'"):
        agreement.use(found, "x")


@pytest.mark.parametrize("name", agreement.FILES)
def test_every_file(filled: Context, tmp_path: Path, name: str) -> None:
    path = agreement.save(filled, QUEUE, name, tmp_path)
    assert path == tmp_path / name
    if name == "labels.jsonl":
        with Store.open(tmp_path / "other.db") as other, path.open(encoding="utf-8") as lines:
            import_lines(other, lines)
            assert snapshot(other) == snapshot(filled.store)
    if name == "labels.csv":
        assert path.read_bytes().count(b"\r\n") == 17
    if name == "agreement.csv":
        with path.open(encoding="utf-8", newline="") as stream:
            rows = {(row["one"], row["two"], row["coefficient"]): row for row in csv.DictReader(stream)}
        cohen = rows["ann", "bob", "cohen"]
        assert (cohen["queue"], cohen["kind"], cohen["items"]) == (QUEUE, "person-person", "8")
        assert float(cohen["value"]) == pytest.approx(KAPPA)
        assert float(rows["ann", "bob", "krippendorff"]["value"]) == pytest.approx(ALPHA)
    if name == "evidence.jsonl":
        questions = list(read_questions(path))
        assert [question.gold_ids for question in questions] == [("d1",)] * 8
        assert questions[0].meta["people"] == {"markers": 2, "marks": {"d1": 2}}
    if name == "dataset.zip":
        with zipfile.ZipFile(path) as archive:
            assert sorted(archive.namelist()) == ["README.md", "data/items.jsonl"]
            lines = [json.loads(line) for line in archive.read("data/items.jsonl").decode().splitlines()]
            card = archive.read("README.md").decode()
        assert [line["label"] for line in lines] == ["first", "", "second", "second", "first", "", "", "first"]
        assert lines[1]["labels"][1]["annotator"] == "annotator_2"
        assert "Krippendorff's alpha: 0.416" in card and "ann" not in card.split("## Guidelines")[1].split("##")[0]


def test_there_is_no_other_file(filled: Context, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        agreement.save(filled, QUEUE, "../x", tmp_path)


def test_heads_are_calibrated_on_the_calibration_half(context: Context) -> None:
    name = agreement.calibrate_heads(context, agreement.standing(context, QUEUE), "scripted")
    deadline = time.monotonic() + 60
    while not (state := context.engine.calibrations()[0]).finished:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (state.name, state.title, state.status) == (name, "CAFE", "ok")
    profile = next(profile for profile in context.store.profiles.list() if profile.name == name)
    rows = [row["name"] for row in profile.values["quality"]["rows"]]
    assert (profile.n, profile.values["quality"]["n"]) == (2, 6)
    assert rows[:3] == ["retrieval heads", "before: hand", "all heads"]


def test_without_marks_there_is_nothing_to_calibrate(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        fill(context.store, evidence=False)
        found = agreement.standing(context, QUEUE)
        with pytest.raises(InputError, match="nobody has marked evidence"):
            agreement.calibrate_heads(context, found, "scripted")
        with pytest.raises(InputError, match="nobody has marked evidence"):
            agreement.save(context, QUEUE, "evidence.jsonl", tmp_path)
        assert agreement.use(found, "threshold").needs


def test_an_item_with_one_answer_has_no_order_and_no_second(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        made = duquad(question("q1"), local=("Danube", ("d1",)), overall=("The Danube.", ("d1",)), answer="Danube")
        context.store.runs.begin(made.model_copy(update={"status": "running", "answer": ""}))
        context.store.runs.finish(made)
        context.store.queues.send(made.id, QUEUE, "analyst")
        for person, label in (("ann", "first"), ("bob", "neither")):
            form = context.store.assignments.next_item(QUEUE, person)
            assert form is not None
            context.store.labels.answer(form.token, person, label)
        found = agreement.standing(context, QUEUE)
        assert [one.first_shown for one in agreement.numbers(found).people] == [None, None]
        opened = agreement.item(context, QUEUE, found.contested[0].item)
        assert views.choices(opened) == [("Right", "first"), ("Wrong", "neither"), ("Cannot tell", "cannot_tell")]
        assert views.item(opened).count("Answer of the run") == 1


def test_heads_without_a_question_in_the_calibration_half_say_what_to_do(filled: Context) -> None:
    found = agreement.standing(filled, QUEUE)
    held_out = {run_id for run_id, run in found.runs.items() if any(in_split([run.question], "held-out"))}
    kept = replace(found, together={n: one for n, one in found.together.items() if one.run in held_out})
    with pytest.raises(
        InputError, match=r"6 questions .* none falls .* --queue 'Local and Global disagree' --split all"
    ):
        agreement.calibrate_heads(filled, kept, "scripted")


def test_why_heads_are_not_calibrated_stands_in_place_of_the_earlier_report(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        fill(context.store, evidence=False)
        said, rows = handlers(context)["calibrate"](QUEUE)
        assert "nobody has marked evidence" in said and rows == ""


def test_empty_states_say_what_to_do(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path)) as context:
        assert agreement.queue_names(context) == []
        context.store.queues.make("Empty")
        found = agreement.standing(context, "Empty")
        assert "Nobody has labelled anything in “Empty” yet" in views.head(found)
        assert views.contested(found) == views.people([]) == ""
        assert views.over_time([], by="tens") is None
        assert "Nobody has labelled anything yet" in views.table(agreement.numbers(found).table)


@dataclass
class Click:
    """What the browser sends with a click in the list."""

    item: Any = None


def handlers(context: Context) -> dict[str, Any]:
    with gr.Blocks() as page, gr.Tab("Agreement") as own:
        tab.build(context, page, own)
    return {fn.fn.__name__: fn.fn for fn in page.fns.values()}


def test_the_tab(context: Context) -> None:
    call = handlers(context)
    assert call["offer"](None).value == QUEUE
    head, grid, _, persons, picture, _, listed, made, _ = list(call["compute"](QUEUE, "tens"))[-1]
    assert "People differ on" in head and "Krippendorff" in grid and "annotator" not in persons
    assert picture.visible and call["draw_time"](made, "day").visible
    assert listed.count("Open</button>") == 3
    assert views.NOTHING in next(call["compute"](None, "tens"))
    number = item_of(context, "r2")
    opened = call["open_item"](QUEUE, Click(number), gr.Request())
    assert opened[0] == number and opened[3].visible and ("Neither", "neither") in opened[4].choices
    with pytest.raises(gr.Error, match="no item of the list"):
        call["open_item"](QUEUE, Click("1; drop"), gr.Request())
    decided = call["decide"](QUEUE, number, "first", "", opened[1], gr.Request())
    assert "Kept." in decided[7] and decided[6].visible and "decided" in decided[8]
    with pytest.raises(gr.Error, match="choose a label first"):
        call["decide"](QUEUE, number, None, "", "form", gr.Request())
    taken = call["take_back"](QUEUE, number, "", "form-x", gr.Request())
    assert "taken back" in taken[7] and not taken[6].visible
    (file,) = list(call["prepare"](QUEUE, "labels.csv"))
    assert file.visible


def test_only_admins_decide_and_only_who_sees_runs_reads(context: Context) -> None:
    call = handlers(context)
    assert call["decide"].roles == call["take_back"].roles == ()
    for name in ("offer", "compute", "open_item", "prepare", "calibrate", "draw_time"):
        assert call[name].roles == ("analyst",)
    public = replace(context, settings=replace(context.settings, user="chief", password="secret"))
    with pytest.raises(gr.Error, match="sign in first"):
        handlers(public)["decide"](QUEUE, item_of(context, "r2"), "first", "", "t", gr.Request())
    assert context.store.labels.adjudicated(QUEUE) == {}
