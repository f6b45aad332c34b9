"""What is run: entries, placements, tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mdqa.commands.entries import parse_entries, read_plan
from mdqa.errors import ConfigError, InputError
from mdqa.evaluation.plan import PRESETS, placed_questions, placements, tasks
from mdqa.registry import method_class
from tests.evaluation.helpers import ENTRIES, QUESTIONS


def test_entries_from_the_command_line() -> None:
    found = parse_entries(["vanilla,bm25:top_k=2", "mine = retrieve_read:ranker=rrf:rrf_k=10, cafe:profile=p"])
    assert [(e.label, e.method, e.profile_name) for e in found] == [
        ("vanilla", "direct", ""),
        ("bm25 top_k=2", "retrieve_read", ""),
        ("mine", "retrieve_read", ""),
        ("cafe", "cafe", "p"),
    ]
    config = found[2].config.model_dump()
    assert (config["ranker"], config["rrf_k"]) == ("rrf", 10.0)
    assert found[1].config.model_dump()["ranker"] == "bm25"


def test_marks_within_brackets_belong_to_the_value() -> None:
    with pytest.raises(ConfigError, match=r"top_k.*\[1, 2\]"):
        parse_entries(["x=bm25:top_k=[1, 2]"])


def test_presets_are_methods_with_options_that_exist() -> None:
    for name, (method, options) in PRESETS.items():
        (entry,) = parse_entries([name])
        assert entry.config == method_class(method).Config.parse(options)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["nothing"], "unknown method 'nothing'.*vanilla"),
        (["vanilla,"], "unknown method ''"),
        (["vanilla,vanilla"], "two entries are called 'vanilla'"),
        (["a=vanilla,a=bm25"], "two entries are called 'a'"),
        (["=vanilla"], "no label"),
        (["vanilla:top_k"], "key=value"),
        (["x=bm25:top=1"], "entry 'x'.*'top'.*top_k"),
        (["vanilla:profile=p"], "uses no profile"),
    ],
)
def test_entries_that_cannot_be(texts: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_entries(texts)


def test_plans_from_files(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps([{"method": "vanilla"}, {"label": "x", "method": "bm25", "set": {"top_k": 2}}]))
    assert read_plan(path) == parse_entries(["vanilla,x=bm25:top_k=2"])
    for broken, words in (
        ("{", "broken JSON"),
        ("{}", "a list of entries"),
        ("[]", "nothing to evaluate"),
        ('[{"label": "x"}]', "entry 1: give an object with a method"),
        ('[{"method": "vanilla", "options": {}}]', "entry 1: unknown field 'options'"),
        ('[{"method": "vanilla", "set": []}]', "'set' is an object"),
        ('[{"method": "vanilla", "label": 3}]', "'label' is a text"),
    ):
        path.write_text(broken)
        with pytest.raises(InputError, match=rf"plan\.json: .*{words}"):
            read_plan(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_plan(tmp_path)


def test_placements_are_all_combinations() -> None:
    assert [p.suffix for p in placements((1, 3), (2, 3))] == ["@p1-n2", "@p3-n2", "@p1-n3", "@p3-n3"]
    assert [p.suffix for p in placements((), ())] == [""]


def test_questions_that_cannot_be_placed_are_said() -> None:
    reasons: list[str] = []
    found = placed_questions(QUESTIONS[:2], placements((2, 4), ()), reasons.append)
    assert [item.id for item in found] == ["q0@p2", "q1@p2"]
    assert [document.id for document in found[0].documents] == ["b", "a", "c"]
    assert len(reasons) == 2
    assert "'q0'" in reasons[0]
    assert placed_questions(QUESTIONS[:1], placements((), ()), reasons.append) == [QUESTIONS[0]]


def test_tasks_are_in_the_order_of_the_finished_file() -> None:
    assert [task.key for task in tasks(ENTRIES, QUESTIONS[:2])] == [
        ("vanilla", "q0"),
        ("vanilla", "q1"),
        ("top1", "q0"),
        ("top1", "q1"),
    ]
