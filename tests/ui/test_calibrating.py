"""Calibrations on the page's engine: planned, started, stopped, taken up again, kept; nothing hostile gets through."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mdqa.errors import ConfigError, InputError, MdqaError
from mdqa.passes import Passes
from mdqa.records import Question
from mdqa.registry import method_class
from tests.ui.helpers import SCRIPTED, SlowBackend, open_scripted, question
from tests.ui.test_actions import wait_until
from ui.actions import follow, start_runs
from ui.calibrating import Pace, keep
from ui.context import Context
from ui.inputs import LoadedFile
from ui.judging import judge
from ui.planning import Wish, calibrations, load_files, plan, shown_calibrations, start
from ui.views.calibration import CalibrationState, plan_view


def items(n: int = 12, *, gold: bool = True, start: int = 0) -> tuple[Question, ...]:
    made = [
        question().model_copy(update={"id": f"q{i}", "question": f"How long is the river Skerr in part {i}?"})
        for i in range(start, start + n)
    ]
    if gold:
        return tuple(made)
    bare = tuple(d.model_copy(update={"gold": None}) for d in question().documents)
    return tuple(item.with_documents(bare) for item in made)


def wish(**changes: object) -> Wish:
    given = Wish(method="cafe", model=SCRIPTED, files=(LoadedFile("a.jsonl", items()),), split="all", limit=4, name="x")
    return replace(given, **changes)  # type: ignore[arg-type]


def to_the_end(context: Context) -> CalibrationState:
    wait_until(lambda: all(state.finished for state in shown_calibrations(context)), 30)
    return shown_calibrations(context)[0]


def test_every_calibration_has_a_form() -> None:
    infos = {info.name: info for info in calibrations()}
    assert set(infos) == {"cafe", "madara"}
    assert infos["cafe"].resumes and infos["cafe"].measures and not infos["madara"].measures
    assert all(field.name != "data" for info in infos.values() for field in info.fields)
    assert {"k1", "m1", "doc_pool"} <= {field.name for field in infos["cafe"].fields}


@pytest.mark.parametrize("method", ["cafe", "madara"])
def test_a_calibration_gives_a_profile_that_runs_can_choose(context: Context, method: str) -> None:
    options = {"bootstrap": 20} if method == "madara" else {"k1": 2}
    start(context, wish(method=method, name=" mine ", held_out=2, options=options))
    state = to_the_end(context)
    assert (state.status, state.profile, state.error) == ("ok", "mine", "")
    assert 0 < state.done == state.total
    profile = context.store.profiles.get("mine", method=method)
    assert (profile.model, profile.n, profile.seed, profile.data) == (SCRIPTED, 4, 42, "a.jsonl (all)")
    assert {name: profile.values["options"][name] for name in options} == options
    assert profile.name in {known.name for known in context.profiles(SCRIPTED)}
    assert context.profile_for(method, SCRIPTED, "mine") == profile
    if method == "cafe":
        assert profile.values["quality"]["n"] == 2
    assert not list((context.settings.cache / "calibrations").rglob("*.npz")), "finished work leaves no pieces"


def answered_by_no_filter(context: Context, *questions: Question) -> list[str]:
    config = method_class("madara").Config.parse({"treatment": "nf"})
    ids = [start_runs(context, item, {"madara": config}, model=SCRIPTED)[0] for item in questions]
    assert all(snapshot.status == "ok" for snapshot in list(follow(context, ids, every=0.02))[-1])
    return ids


def test_verdicts_stand_in_for_gold_answers(context: Context) -> None:
    made = tuple(item.model_copy(update={"answers": ()}) for item in items(4))
    known = items(1, start=4)
    wished = wish(method="madara", files=(LoadedFile("a", (*made, *known)),), limit=9, options={"bootstrap": 0})
    before = plan(context, wished)
    assert (before.unanswered, before.judged, before.tied, before.obstacles) == (4, None, 0, ())
    asked = replace(wished, labels=True)
    with pytest.raises(InputError, match="nobody has judged a stored answer to any of the 4 questions"):
        start(context, asked)
    assert any("treatment nf" in line for line in plan(context, asked).obstacles)
    first, second, third = answered_by_no_filter(context, *made[:3])
    judge(context, first, True, "ann", "1")
    judge(context, second, False, "ann", "2")
    judge(context, third, False, "ann", "3")
    judge(context, third, True, "bob", "4")
    after = plan(context, asked)
    assert (after.unanswered, after.judged, after.tied, after.obstacles) == (4, 2, 1, ())
    assert "2 of these judged by people, 1 more left out" in plan_view(after)
    start(context, asked)
    state = to_the_end(context)
    assert (state.status, state.error) == ("ok", "")
    values = context.store.profiles.get("x", method="madara").values
    assert (values["nf_source"], values["nf"]["n"]) == ("labels", 3)  # two judged, one with gold answers
    assert plan(context, wish(labels=True, name="y")).judged is None  # CAFE measures no answers


def test_the_plan_says_what_it_will_take(context: Context) -> None:
    files = (LoadedFile("a.jsonl", items(6)), LoadedFile("b.jsonl", items(3, gold=False, start=6)))
    made = plan(context, wish(files=files, limit=5, held_out=20))
    assert (made.read, made.part, made.taken, made.unmarked, made.used) == (9, 9, 5, 2, 3)  # a, b, a, b, a
    assert (made.held_out, made.passes, made.pieces, made.obstacles) == (3, 9, 0, ())
    halves = [plan(context, wish(files=files, split=split, limit=99)).part for split in ("calibration", "held-out")]
    assert sum(halves) == 9 and min(halves) > 0
    assert plan(context, wish(method="madara", files=files)).used == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"files": ()}, "load a file"),
        ({"files": (LoadedFile("empty.jsonl"),)}, "load a file"),
        ({"files": (LoadedFile("a", items(gold=False)),)}, "none of 4 questions has a document marked"),
        ({"name": "  "}, "give the profile a name"),
        ({"name": "hand"}, "there already is a profile 'hand'"),
        ({"name": "a\u202eb"}, "cannot be seen"),
        ({"name": "x" * 101}, "101 characters"),
        ({"name": "cafe-builtin"}, "ships with the program"),
        ({"model": "somebody/else"}, "not offered"),
        ({"method": "direct"}, "unknown calibration"),
        ({"split": "some"}, "no part"),
        ({"limit": None}, "number of questions"),
        ({"limit": 0}, "number of questions"),
        ({"limit": 1.5}, "whole number"),
        ({"held_out": -1}, "held-out"),
        ({"seed": -1}, "seed"),
        ({"seed": True}, "seed"),
        ({"options": {"k1": 0}}, "k1"),
        ({"options": {"doc_pool": "<img>"}}, "doc_pool"),
        ({"options": {"cancel": 1}}, "cancel"),
        ({"method": "madara", "limit": 1}, "at least two"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(context: Context, changes: dict[str, object], words: str) -> None:
    made = plan(context, wish(**changes))
    assert any(words in line for line in made.obstacles), made.obstacles
    with pytest.raises(MdqaError, match=words):
        start(context, wish(**changes))
    assert shown_calibrations(context) == []
    assert len(context.store.profiles.list()) == 2


def test_a_model_without_attention_is_said_before_any_work(context: Context) -> None:
    weak = replace(context.models[0], id="http://somewhere", capabilities=("generate",))
    limited = replace(context, models=(*context.models, weak))
    with pytest.raises(ConfigError, match="CAFE needs attention"):
        start(limited, wish(model=weak.id))
    assert plan(limited, wish(method="madara", model=weak.id)).obstacles == ()


def test_too_long_a_question_fails_before_the_first_pass(context: Context) -> None:
    long = question().with_documents(
        tuple(d.model_copy(update={"text": "river " * 9000}) for d in question().documents[:2])
    )
    start(context, wish(files=(LoadedFile("a", (long,)),)))
    state = to_the_end(context)
    assert state.status == "failed" and "window holds" in state.error and state.done == 0


def test_replacing_is_asked_for(context: Context) -> None:
    start(context, wish(name="hand", replace=True))
    assert to_the_end(context).status == "ok"
    assert context.store.profiles.get("hand", method="cafe").n == 4


def test_a_stopped_calibration_is_taken_up_where_it_was(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.05)) as context:
        start(context, wish(limit=10))
        wait_until(lambda: shown_calibrations(context)[0].done >= 3, 20)
        with pytest.raises(ConfigError, match="being made already"):
            start(context, wish(limit=10))
        began = time.perf_counter()
        assert context.engine.stop(shown_calibrations(context)[0].id)
        state = to_the_end(context)
        assert time.perf_counter() - began < 3
        assert state.status == "cancelled" and state.resumes and 3 <= state.done < 20
        assert not [p for p in context.store.profiles.list() if p.name == "x"]
        before = plan(context, wish(limit=10)).pieces
        assert before is not None and before >= state.done
    with closing(open_scripted(tmp_path)) as again:  # as after a restart of the program
        assert plan(again, wish(limit=10)).pieces == before
        start(again, wish(limit=10))
        done = to_the_end(again)
        assert (done.status, done.found) == ("ok", before)
        backend: SlowBackend = again.engine._model.backend  # type: ignore[assignment]
        taken_up = backend.passes
        resumed = again.store.profiles.get("x", method="cafe")
        start(again, wish(limit=10, name="whole"))
        to_the_end(again)
        assert taken_up == backend.passes - taken_up - before  # nothing that was there is done again
        assert again.store.profiles.get("whole", method="cafe").values == resumed.values
        assert plan(again, wish(limit=10, name="other")).pieces == 0


def test_calibrations_wait_in_line_and_can_be_stopped_there(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, delay=0.05)) as context:
        start(context, wish(limit=10))
        wait_until(lambda: shown_calibrations(context)[0].done >= 1, 20)
        second = start(context, wish(name="y"))
        now = {state.name: state for state in shown_calibrations(context)}
        assert (now["y"].place, now["x"].place) == (1, 0)
        assert context.engine.stop(second)
        assert {state.name: state.status for state in shown_calibrations(context)}["y"] == "cancelled"
        assert context.engine.snapshot(second) is None  # it is no run
    assert {state.status for state in context.engine.calibrations()} == {"cancelled"}


def test_the_line_is_limited_for_calibrations_too(tmp_path: Path) -> None:
    with closing(open_scripted(tmp_path, queue=1, start=False)) as context:
        context.engine.start()
        context.engine.load(SCRIPTED)
        context.engine.close()  # nobody takes jobs any more
        start(context, wish())
        with pytest.raises(ConfigError, match="waiting already"):
            start(context, wish(name="y"))


def test_a_name_that_is_taken_meanwhile_costs_no_work(context: Context) -> None:
    made = context.store.profiles.get("hand", method="cafe").model_copy(update={"n": 99})
    assert keep(context.store, made, replace=False).name == "hand (2)"
    assert keep(context.store, made, replace=False).name == "hand (3)"
    assert context.store.profiles.get("hand", method="cafe").n == 8
    assert keep(context.store, made, replace=True).name == "hand"
    assert context.store.profiles.get("hand", method="cafe").n == 99


def test_a_disk_that_cannot_be_written_names_no_path_of_the_server(context: Context) -> None:
    context.settings.cache.mkdir(parents=True, exist_ok=True)
    (context.settings.cache / "calibrations").write_text("a file where the folder should be")
    start(context, wish())
    state = to_the_end(context)
    assert state.status == "failed" and "reference" in state.error
    assert str(context.settings.cache) not in state.error


def test_uploaded_files_are_limited_and_doubled_questions_named(context: Context, tmp_path: Path) -> None:
    def write(name: str, *questions: Question) -> str:
        path = tmp_path / name
        path.write_text("".join(q.model_dump_json() + "\n" for q in questions) + "{broken\n")
        return str(path)

    first = write("a.jsonl", *items(2))
    second = write("b.jsonl", *items(3))
    one, two = load_files([first, second], context)
    assert [q.id for q in one.questions] == ["q0", "q1"] and [q.id for q in two.questions] == ["q2"]
    assert [r.place for r in two.refused if "taken once" in r.reason] == ["b.jsonl, q0", "b.jsonl, q1"]
    assert any("line 3" in r.place for r in one.refused)
    tight = replace(context, settings=replace(context.settings, max_documents=2))
    assert load_files([first], tight)[0].questions == ()
    assert load_files([], context) == ()
    with pytest.raises(InputError, match="load a file"):
        start(context, wish(files=load_files([], context)))


def test_the_rest_is_estimated_from_the_last_steps() -> None:
    pace = Pace()
    assert pace.remaining(0, 10) is None
    for done in range(51):
        pace.mark(done * 0.001, done)  # found pieces
    for step in range(1, 5):
        pace.mark(0.05 + 2.0 * step, 50 + step)
    assert pace.remaining(8.05, 60) == pytest.approx(12, abs=0.5)
    assert pace.remaining(9.05, 60) == pytest.approx(11, abs=0.5)
    assert pace.remaining(28.05, 60) == pytest.approx(100, abs=1)  # a long step: the others may be as long
    assert pace.remaining(8.05, 54) == 0


def test_pieces_belong_to_method_model_and_name(tmp_path: Path) -> None:
    folders = {
        Passes.for_profile(tmp_path, *key).folder
        for key in (("cafe", "m", "x"), ("cafe", "m", "y"), ("cafe", "n", "x"))
    }
    assert len(folders) == 3
