"""The model asked for an order: prompt, schema, and what becomes of replies good and bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mdqa.backends.base import GenerationRequest
from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.asking import Unreadable
from mdqa.methods.base import Tools
from mdqa.methods.retrieve_read.config import RetrieveReadConfig
from mdqa.methods.retrieve_read.listwise import BEGUN, listwise_prompt, order_parser, order_schema
from mdqa.records import Document, Question, RunResult
from mdqa.run import begin, run_one
from mdqa.trace import BaseEvent, ModelCall
from tests.tiny import tiny_backend

ITEM = Question(
    id="q",
    question="Which river flows through Vienna?",
    documents=(
        Document(id="a", text="Graz lies on the Mur."),
        Document(id="b", title="Vienna", text="The Danube flows through Vienna."),
        Document(id="c", text="Bread is baked."),
        Document(id="d", text="Vienna has parks."),
    ),
)

PROMPT = """\
[system]
You sort documents by how much they help to answer a question. Reply with one JSON object and nothing else.
[user]
Here are 2 documents.

Document [1]
Graz lies on the Mur.

Document [2] (Title: Vienna)
The Danube flows through Vienna.

Question: Which river flows through Vienna?
Put all 2 documents in order, the one that helps most with this question first. Reply with all of their numbers, \
each of them once:
{"ranking": [...]}
[assistant]
"""


class Unheld(ScriptedBackend):
    """A backend that cannot be held to a schema."""

    capabilities = frozenset({"generate"})


def run(*replies: Any, kind: type[ScriptedBackend] = ScriptedBackend, **options: Any) -> tuple[RunResult, list[Any]]:
    """``replies`` to the requests for an order; then the answer."""
    said = [reply if isinstance(reply, str) else json.dumps({"ranking": reply}) for reply in replies]
    events: list[BaseEvent] = []
    tools = Tools(kind([*said, "Danube"]))
    config = RetrieveReadConfig(ranker="listwise", **options)
    result = run_one(begin("retrieve_read", config, ITEM, tools), tools, sink=events.append).result
    assert result.error is None
    return result, [event for event in events if isinstance(event, ModelCall)]


def places(result: RunResult) -> list[float | None]:
    return [result.stages[0].scores["listwise"][document].value for document in "abcd"]


def test_the_prompt_as_the_model_gets_it() -> None:
    assert ScriptedBackend().render(listwise_prompt(ITEM.question, ITEM.documents[:2])) == PROMPT


def test_a_good_order_is_taken_in_one_call() -> None:
    result, calls = run([2, 4, 1, 3])
    stage = result.stages[0]
    assert stage.kept == ("b", "d", "a", "c")
    assert places(result) == [1 / 3, 1.0, 1 / 4, 1 / 2]
    assert stage.calls["listwise"] == dict.fromkeys("abcd", 0)
    assert stage.reasons["b"] == "rank 1 of 4 by listwise"
    assert [(call.role, call.parse) for call in calls] == [("listwise", "ok"), ("answer", "ok")]
    assert calls[1].documents == stage.kept
    assert (result.answer, result.notices, result.fallbacks) == ("Danube", (), 0)


def test_left_out_documents_follow_and_what_is_no_document_is_dropped() -> None:
    result, _ = run([4, 4, 9, 0, "2", True, 1])
    assert result.stages[0].kept == ("d", "a", "b", "c")
    assert result.fallbacks == 0
    dropped, rest = result.notices
    assert dropped == (
        "Left out of the model's order: 4 (named before), 9 (there is no such document), 0 (there is no such "
        'document), "2" (there is no such document), true (there is no such document).'
    )
    assert rest == "The model put 2 of 4 documents in order; the others follow in the order they had."


def test_one_retry_then_the_input_order_as_a_stated_fallback() -> None:
    result, calls = run("no idea", [3, 1, 2, 4])
    assert result.stages[0].kept == ("c", "a", "b", "d")
    assert [call.parse for call in calls] == ["parse_error", "ok", "ok"]
    assert result.fallbacks == 0
    result, calls = run("no idea", [17])
    stage = result.stages[0]
    assert stage.kept == ("a", "b", "c", "d")
    assert [call.parse for call in calls] == ["parse_error", "out_of_range", "ok"]
    assert (result.fallbacks, result.parse_failures) == (1, 2)
    assert "could not be read (no document from 1 to 4 is named: [17])" in result.notices[0]
    assert {score.status for score in stage.scores["listwise"].values()} == {"out_of_range"}
    assert places(result) == [None] * 4
    assert stage.reasons["a"] == "rank 1 of 4 by input order, since the model's could not be read"


def test_a_window_slides_from_the_end() -> None:
    # places c, d; then b with the better of them; then a with the best
    result, calls = run([2, 1], [2, 1], [2, 1], listwise_window=2)
    assert [call.documents for call in calls[:3]] == [("c", "d"), ("b", "d"), ("a", "d")]
    assert result.stages[0].kept == ("d", "a", "b", "c")
    assert result.stages[0].calls["listwise"] == {"a": 2, "b": 1, "c": 0, "d": 2}


def test_one_unread_window_keeps_its_order_and_the_others_count() -> None:
    result, _ = run("?", "?", [2, 1], [2, 1], listwise_window=2)
    assert result.stages[0].kept == ("c", "a", "b", "d")
    assert result.fallbacks == 1
    assert places(result) == [1 / 2, 1 / 3, 1.0, 1 / 4]


def test_one_document_is_not_asked_about() -> None:
    events: list[BaseEvent] = []
    tools, one = Tools(ScriptedBackend(["Danube"])), ITEM.with_documents(ITEM.documents[1:2])
    header = begin("retrieve_read", RetrieveReadConfig(ranker="listwise"), one, tools)
    result = run_one(header, tools, sink=events.append).result
    assert (result.status, result.cost.llm_calls) == ("ok", 1)
    assert result.stages[0].note == "One document needs no order: the model is not asked."


def test_a_backend_without_structured_replies_gets_the_beginning() -> None:
    result, calls = run("2, 4, 1, 3]}", kind=Unheld)
    assert calls[0].prompt.endswith(BEGUN)
    assert result.stages[0].kept == ("b", "d", "a", "c")


def test_the_request_carries_the_schema_and_the_options() -> None:
    requests: list[GenerationRequest] = []

    def reply(request: GenerationRequest) -> str:
        requests.append(request)
        return '{"ranking": [1, 2, 3, 4]}'

    tools = Tools(ScriptedBackend(reply))
    config = RetrieveReadConfig(ranker="listwise", listwise_max_tokens=100)
    run_one(begin("retrieve_read", config, ITEM, tools, seed=3), tools)
    assert (requests[0].max_new_tokens, requests[0].seed, requests[0].schema) == (100, 3, order_schema(4))
    assert requests[1].schema is None
    assert (config.reply_tokens, RetrieveReadConfig().reply_tokens) == (100, 32)


def test_a_real_model_is_held_to_the_schema() -> None:
    """A tiny model with random weights writes nonsense, but numbers of documents."""
    tools = Tools(tiny_backend("llama"))
    config = RetrieveReadConfig(ranker="listwise", max_new_tokens=4)
    result = run_one(begin("retrieve_read", config, ITEM, tools), tools).result
    assert result.error is None
    assert (result.parse_failures, result.fallbacks) == (0, 0)
    assert sorted(result.stages[0].kept) == list("abcd")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("1, 2", "parse_error"),
        ('{"ranking": "1"}', "parse_error"),
        ('{"ranking": []}', "parse_error"),
        ('{"order": [1]}', "parse_error"),
        ('{"ranking": [0, 5, null]}', "out_of_range"),
    ],
)
def test_what_cannot_be_read(text: str, status: str) -> None:
    with pytest.raises(Unreadable) as problem:
        order_parser(4)(text)
    assert problem.value.status == status
