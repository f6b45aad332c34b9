"""Every prompt as the model gets it, whole."""

from __future__ import annotations

from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.duquad.agents import (
    Statement,
    agent_prompt,
    agent_schema,
    judge_prompt,
    judge_schema,
    likelihood_prompt,
    score_prompt,
    score_schema,
    yes_no_prompt,
)
from mdqa.prompting import Prompt

from .helpers import QUESTION

AGENT = """\
[system]
You answer a question from numbered documents. Many documents do not help. Reply with one JSON object and nothing else.
[user]
Document [2] (Title: Vienna)
The Danube flows through Vienna. The city is old. It has many parks.

Document [1]
Graz lies on the Mur. It is old.

Answer the question below from these documents only. Reply with a JSON object with three keys: \
"reasoning" (one short sentence), "answer" (the exact answer in a few words, or "unknown" if the documents do not say) \
and "important_documents" (the numbers of at most 5 documents that support the answer):
{"reasoning": "...", "answer": "...", "important_documents": [...]}

Question: Which river flows through Vienna?
[assistant]
"""

SCORE = """\
[system]
You rate how much one document helps to answer a question. Reply with one JSON object and nothing else. \
It has two keys: "score", a number from 0.0 (the document says nothing about the question) to 1.0 \
(it states the answer), and "key_sentences", the numbers of at most 4 sentences that help most:
{"score": ..., "key_sentences": [...]}
[user]
Document [2] (Title: Vienna)
(1) The Danube flows through Vienna.
(2) The city is old.
(3) It has many parks.

Question: Which river flows through Vienna?
[assistant]
"""

YES_NO = """\
[system]
You decide whether a document helps to answer a question. Reply with yes or no.
[user]
Document [3]
Bread is baked from flour.

Question: Which river flows through Vienna?

Does the document help to answer the question? Reply with yes or no.
[assistant]
yes"""

LIKELIHOOD = """\
[user]
Document [1] (Title: Vienna)
The Danube flows through Vienna. The city is old. It has many parks.

Question: Which river flows through Vienna?
[assistant]
"""

JUDGE = """\
[system]
You give the final answer to a question. Others have answered it before you, and they may be wrong. \
Reply with one JSON object and nothing else.
[user]
Evidence from the documents:

Document [2] (Title: Vienna)
- The Danube flows through Vienna.
- It has many parks.

Document [3]
Bread is baked from flour.

What the others say:

Local Agent (read the documents 2, 1)
Reasoning: It is named.
Answer: Danube
Cited documents: 2

Global Agent (read all documents)
Reasoning: not given
Answer: not given
Cited documents: none

Check what they say against the evidence, then give your own answer. Reply with a JSON object with two keys: \
"reasoning" (one or two sentences) and "answer" (the exact answer in a few words, or "unknown" \
if nothing here answers the question):
{"reasoning": "...", "answer": "..."}

Question: Which river flows through Vienna?
[assistant]
"""


def rendered(prompt: Prompt) -> str:
    return ScriptedBackend().render(prompt)


def test_agent() -> None:
    prompt = agent_prompt(QUESTION, (QUESTION.documents[1], QUESTION.documents[0]), 5)
    assert rendered(prompt) == AGENT
    assert prompt.document_ids == ("d2", "d1")


def test_content_free_prompt_differs_in_the_question_alone() -> None:
    prompt = agent_prompt(QUESTION, (QUESTION.documents[1], QUESTION.documents[0]), 5, question="N/A")
    assert rendered(prompt) == AGENT.replace("Which river flows through Vienna?\n[", "N/A\n[")


def test_score() -> None:
    assert rendered(score_prompt(QUESTION, QUESTION.documents[1], 4)) == SCORE


def test_yes_no() -> None:
    assert rendered(yes_no_prompt(QUESTION, QUESTION.documents[2], "yes")) == YES_NO


def test_likelihood() -> None:
    assert rendered(likelihood_prompt(QUESTION, QUESTION.documents[1])) == LIKELIHOOD


def test_judge() -> None:
    prompt = judge_prompt(
        QUESTION,
        {"d2": ("The Danube flows through Vienna.", "It has many parks."), "d3": None},
        (
            Statement("local", "Danube", "It is named.", ("d2",), ("d2", "d1")),
            Statement("global", "", "", (), QUESTION.document_ids),
        ),
    )
    assert rendered(prompt) == JUDGE
    assert prompt.document_ids == ("d2", "d3")


def test_schemas_allow_only_what_exists() -> None:
    agent = agent_schema([7, 2], 5, 256)
    assert agent["properties"]["important_documents"]["items"]["enum"] == [2, 7]
    assert agent["properties"]["reasoning"]["maxLength"] == 512
    assert agent["required"] == ["reasoning", "answer", "important_documents"]
    scores = score_schema(3, 5)["properties"]
    assert scores["score"]["enum"] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert (scores["key_sentences"]["items"]["minimum"], scores["key_sentences"]["items"]["maximum"]) == (1, 3)
    assert judge_schema(64)["required"] == ["reasoning", "answer"]
