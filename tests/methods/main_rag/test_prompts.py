"""Every prompt as the model gets it, whole."""

from __future__ import annotations

from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.main_rag.method import judge_prompt
from mdqa.methods.tasks import generator_prompt

from .helpers import QUESTION, run_main_rag

JUDGE = """\
[system]
You check answers against documents. Reply with Yes or No.
[user]
Document [1] (Title: News)
Some say that the bridge was opened in 1930.

Question: When was the bridge opened?
Proposed answer: 1930

Does the document hold what the question asks for, and does the proposed answer follow from it? Yes or No:
[assistant]
"""

JUDGE_CLAIM = """\
[system]
You check verdicts on claims against documents. Reply with Yes or No.
[user]
Document [1] (Title: News)
Some say that the bridge was opened in 1930.

Claim: When was the bridge opened?
Proposed verdict: REFUTES

Does the document hold what the claim is about, and does the proposed verdict follow from it? Yes or No:
[assistant]
"""


def test_judges() -> None:
    news, render = QUESTION.documents[2], ScriptedBackend().render
    assert render(judge_prompt(QUESTION.question, news, "1930", "factoid")) == JUDGE
    assert render(judge_prompt(QUESTION.question, news, "REFUTES", "fever")) == JUDGE_CLAIM


def test_the_judge_is_asked_twice_and_only_the_begun_reply_differs() -> None:
    found = [call.prompt for call in run_main_rag().calls("judge")]
    assert found[4:6] == [JUDGE + "Yes", JUDGE + "No"]


def test_both_predictors_get_the_generator_prompt() -> None:
    run, render = run_main_rag(), ScriptedBackend().render
    for call, document in zip(run.calls("predictor"), QUESTION.documents, strict=True):
        assert call.prompt == render(generator_prompt(QUESTION.question, [document], "factoid"))
    a, _, c, d = QUESTION.documents
    assert run.calls("final_predictor")[0].prompt == render(generator_prompt(QUESTION.question, [a, c, d], "factoid"))
