"""The log of labels: nothing overwritten, nothing doubled, nothing lost, and what the majority says of a question."""

import json
import math
import signal
import threading
from pathlib import Path

import pytest

from mdqa.errors import StorageError
from mdqa.records import Document, Question, Routing
from storage.annotations import MAX_NAME, Judged, Label
from storage.documents import question_key, stored_key
from storage.export import LABEL_COLUMNS, export
from storage.runs import RunFilter, UnknownRun
from storage.store import Store
from tests.storage.builders import complete, header, python, question

HOSTILE = '<b onmouseover="x">O\'Brien\x00</b>\ud800; drop table annotations --'


def keep(store: Store, run_id: str = "r1", *, treatment: str = "nf", **fields: object) -> None:
    """A finished run of MADARA with this treatment."""
    routing = Routing(treatment=treatment, title="", reason="")
    result = complete(run_id, **({"method": "madara", "model": "m", "routing": routing} | fields))
    store.runs.begin(result.model_copy(update={"status": "running"}))
    store.runs.finish(result)


def say(store: Store, run_id: str, **verdicts: bool | None) -> None:
    for annotator, value in verdicts.items():
        store.annotations.add(run_id, "correct", value, annotator=annotator)


def right(store: Store, treatment: str = "nf") -> tuple[dict[str, bool], int]:
    found = store.annotations.verdicts(method="madara", model="m", treatment=treatment)
    return dict(found.right), len(found.tied)


def test_the_latest_label_of_each_annotator_counts_and_all_are_kept(store: Store) -> None:
    keep(store)
    say(store, "r1", ann=True, bob=True)
    say(store, "r1", ann=False)
    log = store.annotations.list("r1")
    assert [(label.annotator, label.value) for label in log] == [("ann", True), ("bob", True), ("ann", False)]
    assert [label.id for label in log] == sorted(label.id for label in log)
    assert all(label.created.endswith("+00:00") for label in log)
    assert {label.annotator: label.value for label in store.annotations.latest("r1")} == {"ann": False, "bob": True}
    say(store, "r1", ann=None)
    assert {label.annotator: label.value for label in store.annotations.latest("r1")} == {"bob": True}
    assert len(store.annotations.list("r1")) == 4
    assert store.annotations.latest("r1", "another kind") == store.annotations.latest("nobody") == []


def test_two_saves_of_one_form_are_one_label(store: Store) -> None:
    keep(store)
    first = store.annotations.add("r1", "correct", True, annotator="ann", token="form 1")
    assert store.annotations.add("r1", "correct", True, annotator="ann", token="form 1") == first
    assert store.annotations.list() == [first]
    for changes in ({"value": False}, {"annotator": "bob"}, {"run_id": "r2"}, {"value": None}):
        given = {"run_id": "r1", "kind": "correct", "value": True, "annotator": "ann", "token": "form 1"} | changes
        with pytest.raises(StorageError, match="was used for another label"):
            store.annotations.add(**given)  # type: ignore[arg-type]
    assert store.annotations.list() == [first]


def test_a_form_sent_by_many_threads_at_once_is_one_label(store: Store) -> None:
    keep(store)
    found: list[Label] = []
    start = threading.Barrier(8)

    def send() -> None:
        start.wait(10)
        found.append(store.annotations.add("r1", "correct", True, annotator="ann", token="t"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [store.annotations.list()[0]] * 8
    assert len(store.annotations.list()) == 1


LABELLER = """if True:
    import sys
    from storage.store import Store
    with Store.open(sys.argv[1]) as store:
        for number in range(40):
            token = f"shared {number}" if number % 2 else f"{sys.argv[2]} {number}"
            name = "both" if number % 2 else sys.argv[2]
            label = store.annotations.add("r1", "correct", number % 3 == 0, annotator=name, token=token)
            print(label.id, flush=True)
"""


def test_two_processes_lose_and_double_nothing(store: Store) -> None:
    keep(store)
    processes = [python(LABELLER, store.path, name) for name in ("a", "b")]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    tokens = [label.token for label in store.annotations.list("r1")]
    assert sorted(tokens) == sorted(
        [f"{name} {n}" for name in "ab" for n in range(0, 40, 2)] + [f"shared {n}" for n in range(1, 40, 2)]
    )
    assert len(store.annotations.latest("r1")) == 3


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_label_that_was_acknowledged_survives_a_kill(store: Store) -> None:
    keep(store)
    endless = LABELLER.replace("range(40)", "range(10**9)")
    process = python(endless, store.path, "killed")
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(20)]
    process.kill()
    rest, _ = process.communicate(timeout=10)
    acknowledged += [int(line) for line in rest.splitlines() if line.strip()]
    with Store.open(store.path) as again:
        kept = again.annotations.list("r1")
        assert set(acknowledged) <= {label.id for label in kept}
        assert len(kept) - len(set(acknowledged)) <= 1  # the one that was written and not yet said
        assert all(label.token.endswith(str(number)) for number, label in enumerate(kept))
        again.annotations.add("r1", "correct", True, annotator="next")


def test_a_label_needs_its_run(store: Store) -> None:
    for run_id in ("", "nobody", HOSTILE):
        with pytest.raises(UnknownRun, match="there is no run"):
            store.annotations.add(run_id, "correct", True, annotator="ann")
    assert store.annotations.list() == []


@pytest.mark.parametrize(
    "value", [1, 0, "yes", "", math.nan, math.inf, [True], {"right": True}, object(), b"1", "\ud800" * 999]
)
def test_a_value_of_another_kind_is_refused(store: Store, value: object) -> None:
    keep(store)
    with pytest.raises(
        StorageError, match="a label of kind 'correct' is a bool, or None to take it back; got"
    ) as error:
        store.annotations.add("r1", "correct", value, annotator="ann")
    assert len(str(error.value)) < 200
    with pytest.raises(StorageError, match="no labels of kind 'helpful'; there is: correct"):
        store.annotations.add("r1", "helpful", True, annotator="ann")
    assert store.annotations.list() == []


def test_hostile_texts(store: Store) -> None:
    keep(store)
    for name in ("", "  ", "\x00", "x" * (MAX_NAME + 1)):
        with pytest.raises(StorageError, match="the annotator's name has"):
            store.annotations.add("r1", "correct", True, annotator=name)
    label = store.annotations.add("r1", "correct", True, annotator=f" {HOSTILE} ", token=HOSTILE)
    assert label.annotator == HOSTILE.replace("\x00", "").replace("\ud800", "\ufffd")
    assert store.annotations.add("r1", "correct", True, annotator=HOSTILE, token=HOSTILE) == label
    assert store.annotations.list("r1") == store.annotations.latest("r1") == [label]


def test_the_database_itself_changes_no_label(store: Store) -> None:
    keep(store)
    say(store, "r1", ann=True)
    with pytest.raises(StorageError, match="a label is never changed"), store.write() as db:
        db.execute("update annotations set value = 'false'")
    with pytest.raises(StorageError, match="FOREIGN KEY"), store.write() as db:
        db.execute("delete from runs")
    assert [label.value for label in store.annotations.list()] == [True]


def test_a_run_is_not_deleted_from_under_its_labels(store: Store) -> None:
    keep(store, "r1")
    keep(store, "r2")
    say(store, "r2", ann=True)
    say(store, "r1", ann=True, bob=False)
    with pytest.raises(StorageError, match="'r1' is not deleted: people left 2 labels on it"):
        store.runs.delete("r1")
    assert store.runs.get("r1").answer == "Marie Curie" and len(store.annotations.list("r1")) == 2
    gone = store.annotations.list("r1")
    store.runs.delete("r1", labels=True)
    assert [label.run for label in store.annotations.list()] == ["r2"]
    keep(store, "r1")
    assert store.annotations.list("r1") == []
    assert store.annotations.add("r1", "correct", True, annotator="ann").id > max(label.id for label in gone)
    keep(store, "r3")
    store.runs.delete("r3")


def test_a_block_that_fails_keeps_no_label(store: Store) -> None:
    keep(store)
    with pytest.raises(RuntimeError, match="on purpose"), store.write():
        say(store, "r1", ann=True)
        raise RuntimeError("on purpose")
    assert store.annotations.list() == []


def test_a_question_is_known_by_its_content() -> None:
    item = question()
    plain = tuple(d.model_copy(update={"id": f"x{d.id}", "gold": None}) for d in item.documents)
    same = Question(id="other", question="  Who  found\nradium? ", documents=plain)
    assert question_key(same) == question_key(item)
    swapped = item.with_documents(item.documents[::-1])
    fewer = item.with_documents(item.documents[:-1])
    words = item.model_copy(update={"question": "Who found Radium?"})
    title = item.with_documents((item.documents[0].model_copy(update={"title": "T"}), *item.documents[1:]))
    assert len({question_key(other) for other in (item, swapped, fewer, words, title)}) == 5
    ab, a = (Question(id="q", question="?", documents=(Document(id="d", title=t, text="bc"[-n:]),))
             for t, n in (("ab", 1), ("a", 2)))  # fmt: skip
    assert question_key(ab) != question_key(a)


def test_the_key_of_a_stored_question_is_that_of_the_question(store: Store) -> None:
    hostile = question(text="Who\x00 is \ud800?").with_documents(
        (Document(id="1", title="\ud800", text="a\x00b"), Document(id="2", text=""), Document(id="3", text=""))
    )
    for number, item in enumerate((question(), hostile, Question(id="q", question="Who?"))):
        keep(store, f"r{number}", question=item)
        with store.read() as db:
            stored = db.execute("select question from runs where id = ?", [f"r{number}"]).fetchone()[0]
            assert stored_key(db, stored) == question_key(item) == question_key(store.runs.get(f"r{number}").question)


def test_a_question_is_right_by_majority_and_ties_are_counted(store: Store) -> None:
    items = [question(f"q{n}", f"Who found element {n}?") for n in range(5)]
    for number, item in enumerate(items):
        keep(store, f"r{number}", question=item)
    say(store, "r0", ann=True, bob=True, eve=False)
    say(store, "r1", ann=True, bob=True, eve=True)
    say(store, "r1", ann=False, bob=False)  # changed their minds
    say(store, "r2", ann=True, bob=False)  # a tie
    say(store, "r3", ann=True)
    say(store, "r3", ann=None)  # taken back: nobody says anything
    found = store.annotations.verdicts(method="madara", model="m", treatment="nf")
    assert found.right == {question_key(items[0]): True, question_key(items[1]): False}
    assert found.tied == {question_key(items[2])}
    elsewhere = [item.model_copy(update={"id": f"elsewhere {item.id}", "answers": ()}) for item in items]
    assert found.on(elsewhere) == Judged({"elsewhere q0": True, "elsewhere q1": False}, tied=1)
    assert found.on([items[0], items[1].model_copy(update={"id": "q0"}), items[1]]) == Judged({"q1": False}, tied=0)
    assert found.on([]) == Judged({}, tied=0)


def test_several_runs_of_a_question_have_a_vote_each(store: Store) -> None:
    for run_id in ("r1", "r2", "r3"):
        keep(store, run_id, question=question(run_id))  # another id, the same question
    say(store, "r1", ann=False, bob=False, eve=False)
    say(store, "r2", ann=True)
    key = question_key(question())
    assert right(store) == ({}, 1)
    say(store, "r3", ann=True, bob=False)  # a tie of its own decides nothing
    assert right(store) == ({}, 1)
    say(store, "r3", bob=True)
    assert right(store) == ({key: True}, 0)


def test_only_runs_that_measure_the_same_count(store: Store) -> None:
    keep(store, "nf")
    keep(store, "pde", treatment="pde")
    keep(store, "cut", overflow="shorten")
    keep(store, "failed", status="failed")
    keep(store, "other model", model="n")
    keep(store, "other method", method="direct", routing=None)
    for run_id in ("pde", "cut", "failed", "other model", "other method"):
        say(store, run_id, ann=True)
    assert right(store) == ({}, 0)
    say(store, "nf", ann=False)
    key = question_key(question())
    assert right(store) == ({key: False}, 0)
    assert right(store, "pde") == ({key: True}, 0)
    assert right(store, "") == ({}, 1)
    direct = store.annotations.verdicts(method="direct", model="m")
    assert direct.right == {key: True}


def test_a_run_whose_process_died_at_its_end_can_be_judged_and_does_not_count(store: Store) -> None:
    store.runs.begin(header("r1", method="madara", model="m"))
    with store.write() as db:
        db.execute("update runs set status = 'ok'")
    say(store, "r1", ann=True)
    assert right(store, "") == ({}, 0)


def test_exports_carry_the_labels(store: Store, tmp_path: Path) -> None:
    keep(store, "r1")
    keep(store, "r2", method="cafe")
    say(store, "r1", ann=True)
    say(store, "r2", **{"=cmd()": False})
    say(store, "r1", ann=None)
    export(store, tmp_path / "runs.jsonl")
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()]
    read = [Label(run=line["run"], **label) for line in runs for label in line["annotations"]]
    assert sorted(read, key=lambda label: label.id) == store.annotations.list()
    assert export(store, tmp_path / "labels.jsonl", what="annotations") == 3
    lines = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(line["annotator"], line["value"], line["method"]) for line in lines] == [
        ("ann", True, "madara"), ("=cmd()", False, "cafe"), ("ann", None, "madara"),
    ]  # fmt: skip
    assert tuple(lines[0]) == LABEL_COLUMNS
    assert export(store, tmp_path / "labels.csv", what="annotations", format="csv") == 3
    assert '"\'=cmd()"' in (tmp_path / "labels.csv").read_text(encoding="utf-8")
    assert export(store, tmp_path / "cafe.jsonl", what="annotations", filters=RunFilter(method="cafe")) == 1
    export(store, tmp_path / "copy.db", format="sqlite")
    with Store.open(tmp_path / "copy.db") as copy:
        assert copy.annotations.list() == store.annotations.list()
