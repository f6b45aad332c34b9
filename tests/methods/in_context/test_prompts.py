"""Every prompt as the model gets it, whole."""

from __future__ import annotations

from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods import answers
from mdqa.methods.in_context.method import answer_prompt, numbers_prompt, passages_prompt
from mdqa.prompting import Prompt
from mdqa.records import Document, Question

ITEM = Question(
    id="q",
    question="Which river flows through Vienna?",
    documents=(
        Document(id="a", text="Graz lies on the Mur."),
        Document(id="b", title="Vienna", text="The Danube flows through Vienna."),
    ),
)

NUMBERS = """\
[system]
You choose the documents that help to answer a question. Reply with one JSON object and nothing else.
[user]
Here are some documents. Only some of them may help.

Document [1]
Graz lies on the Mur.

Document [2] (Title: Vienna)
The Danube flows through Vienna.

Question: Which river flows through Vienna?
Which 5 documents are most relevant to this question? Reply with their numbers, the most relevant first:
{"documents": [...]}
[assistant]
"""

PASSAGES = """\
[system]
You answer questions from documents. Reply with the answer only, in as few words as possible, without a sentence \
around it.
[user]
Here are some documents. Only some of them may help.

Document [1]
Graz lies on the Mur.

Document [2] (Title: Vienna)
The Danube flows through Vienna.

Question: Which river flows through Vienna?
Do not answer yet. Copy, word for word, the passages that support the answer, from no more than 5 of the documents, \
and write nothing else.
[assistant]
"""

APPENDED = """\
[system]
You answer questions from documents. Reply with the answer only, in as few words as possible, without a sentence \
around it.
[user]
Here are some documents. Only some of them may help.

Document [1]
Graz lies on the Mur.

Document [2] (Title: Vienna)
The Danube flows through Vienna.

These passages were picked out of the documents because they support the answer:
Document [2] (Title: Vienna)
The Danube.

Use the documents above to answer. Give only the answer.
Question: Which river flows through Vienna?
Answer:
[assistant]
"""


def rendered(prompt: Prompt) -> str:
    return ScriptedBackend().render(prompt)


def test_numbers() -> None:
    assert rendered(numbers_prompt(ITEM, 5)) == NUMBERS


def test_passages() -> None:
    assert rendered(passages_prompt(ITEM, 5)) == PASSAGES


def test_answer_with_passages() -> None:
    prompt = answer_prompt(ITEM.question, ITEM.documents, "Document [2] (Title: Vienna)\nThe Danube.")
    assert rendered(prompt) == APPENDED
    assert prompt.document_ids == ("a", "b"), "what the model wrote is no document"
    written = [s for turn in prompt.turns for s in turn.segments if s.text.endswith("The Danube.")]
    assert [(s.kind, s.document_id) for s in written] == [("text", None)]


def test_the_answer_is_asked_for_as_in_direct_answering() -> None:
    """Else a difference between the methods could come from the words of the prompt."""
    direct = answers.answer_prompt(ITEM.question, ITEM.documents)
    mine = answer_prompt(ITEM.question, ITEM.documents)
    assert rendered(mine) == rendered(direct)
    appended = rendered(answer_prompt(ITEM.question, ITEM.documents, "PASSAGES"))
    block = "These passages were picked out of the documents because they support the answer:\nPASSAGES\n\n"
    assert appended.replace(block, "") == rendered(direct)


def test_both_prompts_with_passages_begin_with_all_documents() -> None:
    first, second = rendered(passages_prompt(ITEM, 5)), rendered(answer_prompt(ITEM.question, ITEM.documents, "x"))
    shared = first[: first.index("Question:")]
    assert "The Danube flows through Vienna." in shared
    assert second.startswith(shared)


def test_passages_are_plain_text() -> None:
    hostile = "{{question}} ### system [user] %s {count}"
    assert hostile in rendered(answer_prompt(ITEM.question, ITEM.documents, hostile))
    assert hostile in rendered(passages_prompt(ITEM.model_copy(update={"question": hostile}), 2))
