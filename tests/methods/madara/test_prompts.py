"""Every prompt as the model gets it, whole."""

from __future__ import annotations

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.madara.agents import claims, relevance_prompt
from mdqa.methods.madara.measuring import forced_prompt
from mdqa.prompting import load_template

from .helpers import QUESTION, run_madara

CLAIMS = """\
[1] Bridge: The bridge was opened in 1932.
[2] The bridge is made of steel.
[3] News: Some say that the bridge was opened in 1930.
[4] The tower was opened in 1932."""

RELEVANCE = """\
[system]
You grade how much one document helps to answer a question. Only evidence counts; sharing words with the question is no evidence.
Grades: 5 states the answer; 4 almost states it; 3 holds a part of it or an indirect hint; 2 shares words only; 1 touches the topic; 0 is about something else.
Reply with one JSON object and nothing else, in this form:
{"score": grade, "evidence": "words copied from the document", "reasoning": "The document says ..."}
[user]
Question: When was the bridge opened?

Document [1] (Title: News)
Some say that the bridge was opened in 1930.

Grade this document. JSON:
[assistant]
"""  # noqa: E501

CONSISTENCY_USER = f"""\
[user]
Question: When was the bridge opened?

How each document begins:
{CLAIMS}

The document to grade:
Document [3] (Title: News)
Some say that the bridge was opened in 1930.

Grade this document against the others. JSON:
[assistant]
"""

CONFLICT = f"""\
[system]
You look for contradictions between documents that answer the same question. Say which position most documents take, and whether a document is out of date.
For each document that deserves it give an adjustment from -2 (contradicted by better evidence, or out of date) to 2 (confirmed by others); leave out the documents that need none.
Reply with one JSON object and nothing else, in this form:
{{"has_conflict": true or false, "doc_adjustments": {{"document number": adjustment}}, "majority_position": "Most documents say ...", "conflicting_pairs": [{{"doc_a": number, "doc_b": number, "description": "They name different ..."}}]}}
[user]
Question: When was the bridge opened?

How each document begins:
{CLAIMS}

Find the contradictions. JSON:
[assistant]
"""  # noqa: E501

FORCED = """\
[system]
Someone has already analysed how much one document helps to answer a question. Grade the document by that analysis alone; do not analyse it again.
Grades: 5 the analysis finds the answer stated; 4 almost stated; 3 a part of it or an indirect hint; 2 shared words only; 1 the topic only; 0 nothing.
Reply with one JSON object and nothing else, in this form:
{"score": grade, "confidence": 1 to 5}
[user]
Question: When was the bridge opened?

Document [1]
The tower

BEGIN ANALYSIS
- It is another building.
- Not relevant.
END ANALYSIS

Grade by the analysis. JSON:
[assistant]
"""  # noqa: E501

FACTOID = """\
[system]
You answer questions from documents and use nothing else. Reply with the bare answer: a name, a number, a date or a short phrase. Write no sentence and no explanation.
[user]
Document [1] (Title: Bridge)
The bridge was opened in 1932.

Question: When was the bridge opened?
Answer:
[assistant]
"""  # noqa: E501

FEVER_USER = """\
[user]
Document [1] (Title: Bridge)
The bridge was opened in 1932.

Claim: When was the bridge opened?
One word, SUPPORTS or REFUTES:
[assistant]
"""


def prompts(role, **options):
    return [call.prompt for call in run_madara(**options).calls(role)]


def test_relevance():
    assert ScriptedBackend().render(relevance_prompt(QUESTION.question, QUESTION.documents[2], cot=False)) == RELEVANCE
    assert prompts("relevance", treatment="three_agent")[2] == RELEVANCE


def test_consistency():
    assert prompts("consistency", treatment="three_agent")[2].endswith(CONSISTENCY_USER)


def test_conflict():
    assert prompts("conflict", treatment="three_agent") == [CONFLICT]


def test_forced():
    chain = ("It is another building.", "Not relevant.")
    prompt = forced_prompt(QUESTION.question, QUESTION.documents[3], chain, 9)
    assert ScriptedBackend().render(prompt) == FORCED
    empty = forced_prompt(QUESTION.question, QUESTION.documents[3], (), 2000)
    assert "BEGIN ANALYSIS\n- (no reasoning was given)\nEND ANALYSIS" in ScriptedBackend().render(empty)


def test_generators():
    first = [p for p in prompts("extractor", treatment="pde", k=4) if "[1] (Title: Bridge)" in p]
    assert first == [FACTOID]
    fever = [p for p in prompts("extractor", treatment="pde", k=4, task="fever") if "[1] (Title: Bridge)" in p]
    assert len(fever) == 1 and fever[0].endswith(FEVER_USER)


@pytest.mark.parametrize("role", ["relevance", "consistency", "conflict", "conflict_document"])
def test_cot_variants_differ_from_the_base_by_their_steps_and_reply_form(role):
    base, cot = (load_template("mdqa.methods.madara", name) for name in (role, f"{role}_cot"))
    assert base.placeholders == cot.placeholders
    base_lines, cot_lines = (dict(t.sections)["system"].splitlines() for t in (base, cot))
    assert set(base_lines[:-2]) <= set(cot_lines)  # all but how to reply
    steps = [line for line in cot_lines if line[:2] in ("1.", "2.", "3.", "4.", "5.")]
    assert len(steps) == 5
    assert cot_lines[-1].startswith('{"reasoning_steps": [') and cot_lines[-1].endswith('"confidence": 1 to 5}')


@pytest.mark.parametrize("role", ["relevance", "consistency"])
@pytest.mark.parametrize("treatment", ["three_agent", "cot"])
def test_prompts_of_one_role_share_everything_before_the_document(role, treatment):
    found = prompts(role, treatment=treatment)
    heads = {prompt.split("Document [")[0] for prompt in found}
    assert len(found) == 4 and len(heads) == 1


def test_claims_are_cut_and_on_one_line_each():
    document = QUESTION.documents[1].model_copy(update={"text": "a\n b\tc " * 100})
    assert claims([document], 10).text == "[1] a b c a b "
