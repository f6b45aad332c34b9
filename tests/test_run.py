"""What stands around every method: input checks, documents that do not fit, failures as data."""

from __future__ import annotations

import pytest

from mdqa.cancellation import CancelToken
from mdqa.errors import LoanError, PromptTooLong
from mdqa.methods.base import Tools
from mdqa.methods.direct.method import DirectConfig
from mdqa.methods.recorder import Recorder
from mdqa.prompting import document_segment
from mdqa.records import Document, Question
from mdqa.run import INSTRUCTION_TOKENS, Collector, begin, broken_off, fit_documents, run_one
from mdqa.trace import BaseEvent, ModelCall, Notice, RunFinished
from tests.tiny import tiny_backend


@pytest.fixture(scope="module")
def tools() -> Tools:
    return Tools(tiny_backend("llama"))  # a window of 4,096 tokens


def item(*texts: str) -> Question:
    documents = tuple(Document(id=f"d{i}", text=text) for i, text in enumerate(texts))
    return Question(id="q", question="Where is it?", documents=documents)


def fit(question: Question, tools: Tools, overflow: str) -> tuple[Question, list[str]]:
    events: list[BaseEvent] = []
    run = Recorder(tools, sink=events.append, cancel=CancelToken())
    fitted = fit_documents(question, run, overflow)  # type: ignore[arg-type]
    return fitted, [event.message for event in events if isinstance(event, Notice)]


def tokens(question: Question, tools: Tools) -> list[int]:
    documents = enumerate(question.documents, 1)
    return [tools.backend.count_tokens(document_segment(i, d).text) + 2 for i, d in documents]


def test_documents_that_fit_are_left_alone(tools: Tools) -> None:
    for overflow in ("refuse", "shorten", "drop_last"):
        assert fit(item("Here.", "There."), tools, overflow) == (item("Here.", "There."), [])


def test_refusal_gives_the_numbers(tools: Tools) -> None:
    with pytest.raises(PromptTooLong, match=r"window holds 4,096"):
        fit(item("word " * 5000), tools, "refuse")


def test_documents_are_left_out_from_the_end(tools: Tools) -> None:
    fitted, notices = fit(item("Here.", "There.", "word " * 5000, "Behind."), tools, "drop_last")
    assert fitted.document_ids == ("d0", "d1")
    assert notices[0].startswith("2 of 4 documents were left out")


@pytest.mark.parametrize(
    "long",
    [
        "word " * 4000,
        "題名 " + "川は北へ流れる。" * 400,  # the only space stands at the beginning
        "日本の川" * 300 + "a" * 6000,  # many tokens per character at first, few later
        " \n " + "word " * 4000,
    ],
)
def test_shortened_documents_fit_and_keep_what_there_is_room_for(tools: Tools, long: str) -> None:
    question = item("Here.", long, "There.")
    fitted, notices = fit(question, tools, "shorten")
    budget = tools.backend.window - INSTRUCTION_TOKENS - 256 - tools.backend.count_tokens(question.question)
    assert 0.6 * budget < sum(tokens(fitted, tools)) <= budget
    assert fitted.document_ids == question.document_ids
    assert [d.text for d in fitted.documents[::2]] == ["Here.", "There."]
    cut = fitted.documents[1].text
    assert cut.endswith(" …")
    assert long.strip().startswith(cut.removesuffix(" …"))
    assert notices[0].startswith("1 of 3 documents were cut")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (item("Here.").model_copy(update={"question": " "}), "question 'q': there is no question"),
        (item(), "there are no documents"),
        (item("Here.", " \n"), "document 2: the document is empty"),
        (item("Here.").with_documents(item("Here.").documents * 2), "document 2: the id 'd0' is used twice"),
    ],
)
def test_unusable_questions_are_failed_runs_that_say_where(tools: Tools, question: Question, message: str) -> None:
    result = run_one(begin("direct", DirectConfig(), question, tools), tools).result
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.type == "InputError"
    assert message in result.error.message
    assert result.cost.llm_calls == 0


@pytest.mark.parametrize("overflow", ["refuse", "shorten", "drop_last"])
def test_a_question_that_leaves_no_room_is_what_is_named(tools: Tools, overflow: str) -> None:
    long = item("Here.").model_copy(update={"question": "why " * 20_000})
    with pytest.raises(PromptTooLong, match="The question has"):
        fit(long, tools, overflow)


@pytest.mark.parametrize(("problem", "status"), [(LoanError("taken back"), "failed"), (None, "cancelled")])
def test_a_run_whose_process_is_gone_keeps_what_it_told(tools: Tools, problem: LoanError | None, status: str) -> None:
    header = begin("direct", DirectConfig(), item("Here.", "There."), tools)
    events: list[BaseEvent] = []
    whole = run_one(header, tools, sink=events.append)
    told, collector = events[: next(i for i, e in enumerate(events) if isinstance(e, ModelCall)) + 1], Collector()
    for event in told:
        collector.take(event)
    rest: list[BaseEvent] = []
    cut = broken_off(header, collector, problem, rest.append).result
    assert cut.status == status and cut.answer == "" and (cut.error is None) == (problem is None)
    assert cut.stages == whole.result.stages[: len(cut.stages)] and len(cut.stages) < len(whole.result.stages)
    assert cut.cost.llm_calls == 1 and cut.cost.prompt_tokens == whole.result.cost.prompt_tokens
    assert cut.cost.seconds == told[-1].at and [type(event) for event in rest] == [RunFinished]
