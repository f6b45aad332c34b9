"""What if: what a page may send, what is made of it, the run that it starts, and what is not computed again."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from mdqa.backends.remembering import remembering
from mdqa.backends.scripted import ScriptedBackend
from mdqa.calibration import find_profile
from mdqa.errors import CapabilityError, ConfigError, InputError, MdqaError
from mdqa.interventions import done_to
from mdqa.methods.cafe.method import CAFEConfig
from mdqa.records import Document, Profile, RunResult
from mdqa.registry import METHODS, method_class
from mdqa.settings import Settings
from storage.runs import UnknownRun
from storage.store import Store
from tests.ui.helpers import SCRIPTED, WordEncoder, question, scripted_profiles
from ui.actions import follow, load_view, methods, run_again, start_runs
from ui.components.what_if import build_what_if
from ui.context import Context, offered
from ui.engine import Engine
from ui.views.whatif import what_if_form, what_would_change
from ui.whatif import Wishes, carried_out, fields_of, gone_since, read_wishes, shown, start

IDS = tuple(f"d{i}" for i in range(1, 9))
EVIL = '</textarea><img src=x onerror="alert(1)">'


def finish(context: Context, *run_ids: str) -> list[RunResult]:
    last = list(follow(context, run_ids, every=0.02))[-1]
    assert all(snapshot.status == "ok" for snapshot in last), [snapshot.error for snapshot in last]
    return [context.store.runs.get(run_id) for run_id in run_ids]


def first_run(context: Context, name: str = "cafe", **options: object) -> RunResult:
    config = {name: method_class(name).Config.parse(options)}
    [run] = finish(context, *start_runs(context, question(8), config, model=SCRIPTED, seed=7, overflow="shorten"))
    return run


def wishes(run: RunResult, *documents: object, **options: str | bool) -> Wishes:
    """What the page sends for these documents (ids, or rows as objects); all of the run's if none are given."""
    rows = [row if isinstance(row, dict) else {"document": row} for row in documents or run.question.document_ids]
    return read_wishes({"run": run.id, "documents": rows, "options": options}, run.id)


def made(context: Context, run: RunResult, *documents: object, before: RunResult | None = None, **options: str | bool):
    return carried_out(run, wishes(run, *documents, **options), context.settings, before)


# The run again ------------------------------------------------------------------------------------------------------


def test_a_run_again_differs_in_what_was_changed_only(context: Context) -> None:
    before = first_run(context, m1=2, k1=2)
    [after] = finish(context, start(context, before, wishes(before, delta="5.5", m2="3")))
    assert after.id != before.id
    assert {name for name, value in after.config.items() if value != before.config[name]} == {"delta", "m2"}
    assert (after.config["delta"], after.config["m2"]) == (5.5, 3)
    for name in ("question", "method", "model", "profile", "seed", "overflow"):
        assert getattr(after, name) == getattr(before, name)
    assert context.store.runs.get(before.id) == before
    assert load_view(context, after.id, before.id).before == before


def test_documents_are_changed_and_the_run_says_so(context: Context) -> None:
    before = first_run(context, "direct")
    edited = {"document": "d3", "text": "The river Skerr is 99 km long, as the town clerk measured. "}
    copy = {"document": "d1", "copied": True}
    asked = wishes(before, "d8", "d1", edited, copy, "d4", "d5", "d6", "d7")
    [after] = finish(context, start(context, before, asked))
    assert after.question.document_ids == ("d8", "d1", "d3", "d1~2", "d4", "d5", "d6", "d7")
    assert after.question.document("d3").text == "The river Skerr is 99 km long, as the town clerk measured."
    assert [entry["kind"] for entry in done_to(after.question)] == ["switch_off", "move", "duplicate", "edit"]
    assert context.store.runs.get(after.id).question == after.question
    assert context.store.runs.get(before.id) == before
    view = load_view(context, after.id, before.id)
    assert view.before == before


def test_the_answer_changes_when_the_document_behind_it_is_off(context: Context) -> None:
    before = first_run(context, "direct")
    source = next(d for d in before.question.documents if before.answer in d.text)
    rest = [name for name in IDS if name != source.id]
    [after] = finish(context, start(context, before, wishes(before, *rest)))
    assert after.answer != before.answer


def test_a_document_that_was_switched_off_can_be_put_back(context: Context) -> None:
    first = first_run(context, "direct")
    edited = {"document": "d2", "text": "Another text."}
    copy = {"document": "d1", "copied": True}
    [second] = finish(context, start(context, first, wishes(first, "d1", copy, edited, "d4", "d5")))
    assert [d.id for d in gone_since(first.question, second.question)] == ["d3", "d6", "d7", "d8"]
    rows = ("d1", "d1~2", "d2", "d3", "d4", "d5")
    changed = made(context, second, *rows, before=first)
    assert changed.words == ("Put back “Title 3” as document 4",)
    assert [d.text for d in changed.question.documents] == [
        second.question.document("d1").text,
        second.question.document("d1").text,
        "Another text.",
        *(first.question.document(name).text for name in ("d3", "d4", "d5")),
    ]
    [third] = finish(context, start(context, second, wishes(second, *rows), first))
    assert third.question == changed.question
    with pytest.raises(InputError, match="has no document 'd3'"):
        made(context, second, *rows)
    only = made(context, second, "d8", before=first)
    assert only.words == ("Switched off all 5 documents", "Put back “Title 8” as document 1")
    assert only.question.document_ids == ("d8",)


def test_nothing_changed_starts_nothing(context: Context) -> None:
    run = first_run(context)
    assert made(context, run).words == ()
    same = {"delta": shown(run, next(f for f in fields_of(run)[0] if f.name == "delta")), "m1": "4"}
    assert made(context, run, **same).options == {}  # delta is shown rounded and stays exact
    with pytest.raises(ConfigError, match="nothing differs"):
        start(context, run, wishes(run, **same))
    assert context.store.runs.count() == 1


@pytest.mark.parametrize("status", ["interrupted", "cancelled", "failed"])
def test_a_run_that_did_not_end_is_repeated_as_it_was(context: Context, status: str) -> None:
    whole = first_run(context, "direct")
    broken = whole.model_copy(update={"id": "broken", "status": status, "answer": "", "stages": ()})
    context.store.runs.begin(broken)
    context.store.runs.finish(broken)
    with gr.Blocks():
        what_if = build_what_if(context, gr.Radio(), gr.State({}))
    box, _, form, words = what_if.show(load_view(context, "broken"))
    assert box.visible and "Run again repeats this run" in words and "mdqa-again" in form
    [again] = finish(context, start(context, broken, wishes(broken)))
    assert (again.answer, again.config, again.question) == (whole.answer, whole.config, whole.question)


def test_the_summary_is_in_words(context: Context) -> None:
    run = first_run(context)
    changed = made(context, run, *IDS[:7], delta="2.6", coarse_filtering=False, order="random")
    assert changed.words == (
        "Switched off document 8 “Title 8”",
        "Delta 2.5649 → 2.6",
        "Coarse filtering on → off",
        "Order best last → random",
    )
    assert changed.options == {"delta": 2.6, "coarse_filtering": False, "order": "random"}
    said = what_would_change((EVIL,))
    assert "Will run again with" in said and "<img" not in said
    assert "Nothing is changed yet" in what_would_change(())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": "-1"}, "CAFE: option 'delta': .* greater than or equal to 0"),
        ({"k1": "65"}, "CAFE: option 'k1': .* less than or equal to 64"),
        ({"m1": "2.5"}, "option 'M1' must be a whole number"),
        ({"m1": "many"}, "option 'M1' must be a whole number, got 'many'"),
        ({"delta": "1e999"}, "option 'Delta' must be a number"),
        ({"m2": " "}, "option 'M2' is empty"),
        ({"tau": "1"}, "there is no option 'tau'"),
        ({"order": "backwards"}, "CAFE: option 'order'"),
        ({"delta": True}, "option 'Delta' cannot be True"),
        ({"coarse_filtering": "no"}, "option 'Coarse filtering' cannot be 'no'"),
    ],
)
def test_bad_values_name_the_option_and_start_nothing(context: Context, options: dict[str, Any], words: str) -> None:
    run = first_run(context)
    with pytest.raises(ConfigError, match=words):
        start(context, run, wishes(run, **options))
    assert context.store.runs.count() == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param([], "every document is switched off", id="all-off"),
        pytest.param([{"document": "nope"}], "has no document 'nope'", id="unknown"),
        pytest.param([{"document": "d1"}, {"document": "d1"}], "listed twice", id="twice"),
        pytest.param([{"document": "d1", "text": " \x00\n "}], "text of document 'd1' is empty", id="empty"),
        pytest.param([{"document": "d1", "text": "x" * 2_100_000}], "Document 1 .* characters", id="too-long"),
        pytest.param([{"document": "d1", "copied": True}] * 201, "one too many", id="too-many"),
    ],
)
def test_documents_that_cannot_be_are_refused(context: Context, rows: list[Any], words: str) -> None:
    run = first_run(context, "direct")
    asked = read_wishes({"run": run.id, "documents": rows, "options": {}}, run.id)
    with pytest.raises(InputError, match=words):
        start(context, run, asked)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="nothing"),
        pytest.param({"run": "r", "documents": "d1", "options": {}}, id="text"),
        pytest.param({"run": "r", "documents": [{"document": 1}], "options": {}}, id="number"),
        pytest.param({"run": "r", "documents": [{"document": "d1", "gold": True}], "options": {}}, id="more"),
        pytest.param({"run": "r", "documents": [{"document": "d" * 2000}], "options": {}}, id="long-id"),
        pytest.param({"run": "r", "documents": [], "options": {"a": [1]}}, id="list"),
        pytest.param({"run": "r", "documents": [], "options": {str(i): "1" for i in range(300)}}, id="many"),
        pytest.param({"run": "r" * 100, "documents": [], "options": {}}, id="run"),
        pytest.param({"run": "other", "documents": [], "options": {}}, id="other-run"),
    ],
)
def test_what_no_page_of_ours_sends_is_refused(data: object) -> None:
    with pytest.raises(InputError, match=r"reload it|another run by now"):
        read_wishes(data, "r")


def test_what_is_gone_is_said(context: Context) -> None:
    before = first_run(context)
    with pytest.raises(UnknownRun):
        run_again(context, "0" * 32, {"delta": 1.0})
    elsewhere = replace(context, models=tuple(card for card in context.models if card.id != SCRIPTED))
    with pytest.raises(ConfigError, match="not offered"):
        run_again(elsewhere, before.id, {"delta": 1.0})
    context.store.profiles.delete(context.store.profiles.get(before.profile, method="cafe"))
    with pytest.raises(CapabilityError, match="profile"):
        start(context, before, wishes(before, delta="1"))


def test_only_a_run_of_the_same_question_is_set_before_another(context: Context) -> None:
    cafe, direct = first_run(context), first_run(context, "direct")
    other = question(3).model_copy(update={"question": "Where does the Skerr end?"})
    [smaller] = finish(context, *start_runs(context, other, {"cafe": CAFEConfig()}, model=SCRIPTED))
    for run_id in (direct.id, smaller.id, "0" * 32, ""):
        assert load_view(context, cafe.id, run_id).before is None


# The form ------------------------------------------------------------------------------------------------------------


def form_of(run: RunResult, gone: tuple[Document, ...] = ()) -> str:
    controls, others = fields_of(run)
    return what_if_form(run, controls, others, {f.name: shown(run, f) for f in (*controls, *others)}, gone)


def test_controls_are_options_of_their_method_and_the_others_are_there_too(context: Context) -> None:
    for info in methods():
        run = first_run(context).model_copy(update={"method": info.name, "config": {}})
        controls, others = fields_of(run)
        assert tuple(field.name for field in controls) == method_class(info.name).controls
        assert {f.name for f in (*controls, *others)} == set(method_class(info.name).Config.model_fields)
        form = form_of(run)
        assert set(re.findall(r'data-option="(\w+)"', form)) == {f.name for f in info.fields}
    assert fields_of(run.model_copy(update={"method": "gone"})) == ((), ())
    assert {"duquad", "madara", "cafe"} <= {name for name in METHODS if method_class(name).controls}


def test_boxes_show_the_runs_own_values(context: Context) -> None:
    run = first_run(context, m1=3, k2=1)
    values = {field.name: shown(run, field) for group in fields_of(run) for field in group}
    assert {n: values[n] for n in ("delta", "m1", "k1", "m2", "k2")} == {
        "delta": "2.5649", "m1": "3", "k1": "4", "m2": "2", "k2": "1"
    }  # fmt: skip
    older = run.model_copy(update={"config": {k: v for k, v in run.config.items() if k != "m2"}})
    assert shown(older, next(f for f in fields_of(older)[0] if f.name == "m2")) == "2"
    form = form_of(run)
    assert '<input type="number" step="1" data-option="m1" value="3">' in form
    assert "0 to 20" in form


def test_every_document_has_a_line_that_says_what_became_of_it(context: Context) -> None:
    run = first_run(context, "direct")
    gone = (Document(id="old", title="Old", text="Was there before."),)
    lines = form_of(run, gone).split("<li ")[1:]
    assert len(lines) == 9 and 'data-document="old"' in lines[-1]
    assert [" checked " in line for line in lines] == [True] * 8 + [False]
    assert ["★ gold" in line for line in lines] == [i == 1 for i in range(9)]
    assert all("reached the answer" in line for line in lines[:8]) and "reached" not in lines[8]
    assert any("says the answer given" in line for line in lines[:8]) and "answer given" not in lines[8]


def test_markup_stays_text(context: Context) -> None:
    run = first_run(context, "direct")
    evil = Document(id=EVIL, title=EVIL, text=f"\n{EVIL}")
    hostile = run.model_copy(update={"question": run.question.with_documents((evil,)), "answer": EVIL})
    form = form_of(hostile, (evil,))
    assert "<img" not in form and form.count("</textarea>") == 2
    [text, _] = re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", form, re.DOTALL)
    assert html.unescape(text) == f"\n{EVIL}"


def test_the_component_shows_sums_up_and_starts(context: Context) -> None:
    with gr.Blocks():
        what_if = build_what_if(context, gr.Radio([]), gr.State({}))
    run = first_run(context)
    box, problem, form, words = what_if.show(load_view(context, run.id))
    assert box.visible is True and problem == "" and f'data-run="{run.id}"' in form and "Nothing is changed" in words
    running = replace(load_view(context, run.id), run=run.model_copy(update={"status": "running"}))
    assert what_if.show(running)[0].visible is False
    sent = SimpleNamespace(run=run.id, documents=[{"document": "d1"}], options={"m1": "2"})
    assert "M1 4 → 2" in what_if.summary(run.id, "", sent)
    sent.options = {"m1": EVIL}
    assert "mdqa-message bad" in what_if.summary(run.id, "", sent) and "<img" not in what_if.summary(run.id, "", sent)
    with pytest.raises(MdqaError):
        what_if.start(run.id, "", SimpleNamespace())
    sent.options = {}
    [after] = finish(context, what_if.start(run.id, "", sent))
    assert after.question.document_ids == ("d1",)


# What is not done again ---------------------------------------------------------------------------------------------


def computed(context: Context, run: RunResult, *purposes: str) -> list[int]:
    """Tokens that each call of these kinds put through the model."""
    calls = load_view(context, run.id).calls
    return [call.cost.prefill_tokens_computed for call in calls if call.purpose in (purposes or (call.purpose,))]


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Context]:
    """A context whose backend remembers, as that of a running program does."""
    settings = Settings(model=SCRIPTED, database=tmp_path / "runs.db", cache=tmp_path / "cache")
    store = Store.open(settings.database)
    for profile in scripted_profiles():
        store.profiles.save(profile)

    def profile_of(method: str, model: str, name: str) -> Profile | None:
        return find_profile(method, model, name, store.profiles.list())

    engine = Engine(store, lambda model, progress: remembering(ScriptedBackend(model=model)), WordEncoder, profile_of)
    engine.start(SCRIPTED)
    with closing(Context(settings, store, engine, SCRIPTED, offered(SCRIPTED))) as opened:
        yield opened


def test_another_delta_computes_no_pass_again(keeping: Context) -> None:
    before = first_run(keeping)
    [delta] = finish(keeping, run_again(keeping, before.id, {"delta": 1.0}))
    [m1] = finish(keeping, run_again(keeping, before.id, {"m1": 3}))
    first, again, narrower = (computed(keeping, run, "attention") for run in (before, delta, m1))
    assert len(first) >= 2 and all(first)
    assert again == [0] * len(first)
    assert narrower[0] == 0 and any(narrower)
    assert delta.cost.cached_tokens > 0.9 * delta.cost.prompt_tokens
    assert delta.attention_summary == before.attention_summary


def test_a_later_option_of_duquad_repeats_no_earlier_call(keeping: Context) -> None:
    before = first_run(keeping, "duquad")
    [after] = finish(keeping, run_again(keeping, before.id, {"threshold": 0.95}))
    calls = load_view(keeping, after.id).calls
    new = {call.role for call in calls if call.cost.prefill_tokens_computed}
    assert new <= {"judge"}
    assert len(calls) > 4 and after.cost.prefill_tokens_computed < 0.3 * before.cost.prefill_tokens_computed
    [same] = finish(keeping, run_again(keeping, before.id, {"max_key_sentences": 6}))
    assert same.answer == before.answer


def test_a_later_option_of_madara_repeats_no_assessment(keeping: Context) -> None:
    before = first_run(keeping, "madara", treatment="sda")
    [after] = finish(keeping, run_again(keeping, before.id, {"k": 2}))
    calls = load_view(keeping, after.id).calls
    new = {call.role for call in calls if call.cost.prefill_tokens_computed}
    assert new <= {"generator"} and len(calls) > 8


def test_switching_the_last_document_off_asks_anew_only_what_read_it(keeping: Context) -> None:
    before = first_run(keeping, "madara", treatment="pde")
    [after] = finish(keeping, start(keeping, before, wishes(before, *IDS[:7])))
    calls = load_view(keeping, after.id).calls
    alone = [call for call in calls if len(call.documents) == 1]
    new = {call.role for call in alone if call.cost.prefill_tokens_computed}
    assert len(alone) >= 14 and new <= {"consistency"}  # which sees the other documents too
