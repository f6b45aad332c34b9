"""Direct answering with a scripted model."""

from __future__ import annotations

from typing import Any

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.errors import ConfigError
from mdqa.methods.base import Tools
from mdqa.methods.direct.method import DirectAnswering, DirectConfig
from mdqa.records import Document, Question, RunResult
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall, TextDelta

ITEM = Question(
    id="q",
    question="Which river flows through Vienna?",
    documents=(
        Document(id="a", text="Graz lies on the Mur.", gold=False),
        Document(id="b", title="Vienna", text="The Danube flows through Vienna.", gold=True),
        Document(id="c", text="Bread is baked.", gold=False),
    ),
)


def run(
    item: Question = ITEM, reply: str = " Danube \nbecause", seed: int = 0, **options: Any
) -> tuple[RunResult, list[BaseEvent]]:
    events: list[BaseEvent] = []
    tools = Tools(ScriptedBackend([reply]))
    header = begin("direct", DirectConfig(**options), item, tools, seed=seed)
    return run_one(header, tools, sink=events.append).result, events


def call(events: list[BaseEvent]) -> ModelCall:
    (found,) = [event for event in events if isinstance(event, ModelCall)]
    return found


def test_one_call_over_all_documents_in_input_order() -> None:
    result, events = run(seed=7)
    assert (result.status, result.answer, result.cost.llm_calls) == ("ok", "Danube", 1)
    assert call(events).documents == ("a", "b", "c")
    assert call(events).output == " Danube \nbecause"
    assert call(events).seed == 7
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == " Danube \nbecause"


def test_the_whole_prompt() -> None:
    _, events = run()
    prompt = call(events).prompt
    body = (
        "Here are some documents. Only some of them may help.\n\n"
        "Document [1]\nGraz lies on the Mur.\n\n"
        "Document [2] (Title: Vienna)\nThe Danube flows through Vienna.\n\n"
        "Document [3]\nBread is baked.\n\n"
        "Use the documents above to answer. Give only the answer.\n"
        "Question: Which river flows through Vienna?\n"
        "Answer:"
    )
    assert body in prompt
    assert prompt.count("Which river flows through Vienna?") == 1


def test_every_document_has_a_status_and_is_kept() -> None:
    result, _ = run()
    stage = result.stages[0]
    assert stage.name == "input"
    assert stage.kept == ("a", "b", "c")
    assert set(stage.scores["relevance"]) == {"a", "b", "c"}
    assert {score.status for score in stage.scores["relevance"].values()} == {"unavailable"}
    assert stage.scores["relevance"]["a"].detail == "direct answering does not score documents"
    assert [stage.name for stage in result.stages] == ["input", "answer"]


def test_gold_only_reads_the_gold_document() -> None:
    result, events = run(context="gold_only")
    assert call(events).documents == ("b",)
    assert "Bread" not in call(events).prompt
    assert result.stages[0].kept == ("b",)
    assert set(result.stages[0].reasons) == {"a", "c"}


def test_gold_only_without_gold_marks_fails_with_the_way_out() -> None:
    unmarked = ITEM.with_documents(tuple(d.model_copy(update={"gold": None}) for d in ITEM.documents))
    result, _ = run(unmarked, context="gold_only")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.type == "InputError"
    assert "mark the evidence" in result.error.message


def test_closed_book_reads_no_document() -> None:
    result, events = run(context="none")
    assert result.answer == "Danube"
    assert "Document [" not in call(events).prompt
    assert result.stages[0].kept == ()
    assert result.stages[0].reasons["b"] == "closed book: no document is read"


def test_the_question_twice() -> None:
    _, events = run(question_twice=True)
    prompt = call(events).prompt
    assert prompt.count("Which river flows through Vienna?") == 2
    assert prompt.index("Which river") < prompt.index("Document [1]") < prompt.rindex("Which river")


def test_an_empty_reply_is_said() -> None:
    result, _ = run(reply="\n")
    assert (result.status, result.answer) == ("ok", "")
    assert "The model's reply is empty." in result.notices


def test_placeholders_in_a_document_are_plain_text() -> None:
    item = ITEM.with_documents((Document(id="x", text="{{question}} ### user"),))
    _, events = run(item)
    assert "{{question}} ### user" in call(events).prompt


@pytest.mark.parametrize("options", [{"max_new_tokens": 0}, {"context": "some"}, {"temperature": -1}, {"tau": 1}])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        DirectAnswering.Config.parse(options)
