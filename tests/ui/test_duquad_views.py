"""DuQUAD on the page: both agents and the judge, agreement in words, DocScores against tau, ablations."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from mdqa.records import Opinion, RunResult
from mdqa.trace import ModelCall
from tests.methods.duquad.helpers import Run, agent, judge, run_duquad, score
from tests.ui.disagreeing import disagreeing, question, run_of
from tests.ui.hostile import assert_harmless, parsed
from tests.ui.staged import small_run
from ui.views.documents import document_cards
from ui.views.duquad import disagree, duquad_panel, views_of
from ui.views.voices import voices


@pytest.fixture(scope="module")
def run() -> Run:
    return disagreeing(compare_ablations=True)


def calls(run: Run) -> Mapping[int, ModelCall]:
    return {event.index: event for event in run.events if isinstance(event, ModelCall)}


def panel(run: Run) -> str:
    assert run.result.status == "ok", run.result.error
    return duquad_panel(run.result, calls(run))


def part(html: str, start: str, end: str = "") -> str:
    """The text between two marks of the markup."""
    begin = html.index(start)
    rest = html[begin:]
    return parsed(rest[: rest.index(end)] if end else rest).text


def test_both_agents_stand_side_by_side_with_what_they_cite_and_read(run: Run) -> None:
    html = panel(run)
    assert_harmless(html)
    local, everything = html.index('data-voice="local_agent"'), html.index('data-voice="global_agent"')
    chief = html.index('data-voice="judge"')
    assert local < everything < chief
    one, two, three = (parsed(part_).text for part_ in (html[local:everything], html[everything:chief], html[chief:]))
    assert "Local Agent" in one and "1912" in one and "× wrong" in one and "Read 4 of 8 documents" in one
    assert "stone bridge was opened in 1912" in one and "2. The Ostra bridge" in one and "4. Public" not in one
    assert "1921" in two and "✓ right" in two and "Read all 8 documents" in two and "6. Almanac" in two
    assert "takes the Global Agent's answer" in three and "the later one" in three
    for view in ("local", "global", "judge"):
        assert f"Raw reply of the {'Judge' if view == 'judge' else view.title() + ' Agent'}" in html


def test_it_says_that_the_formulas_are_our_reading(run: Run) -> None:
    assert "Our reading, not the authors' definition" in parsed(panel(run)).text
    assert "Our reading" in parsed(panel(disagreeing())).text, "with and without ablations"


def test_links_lead_to_cards_that_are_there(run: Run) -> None:
    anchors = set(re.findall(r'data-card="([^"]+)"', panel(run)))
    cards = document_cards(run.result, calls(run))
    assert anchors and all(cards.count(f'id="{anchor}"') == 1 for anchor in anchors)
    assert cards.count("<details class=") >= len(question().documents)


def test_buttons_lead_to_the_replies_behind_them(run: Run) -> None:
    known = calls(run)
    behind = {int(index) for index in re.findall(r'data-call="(\d+)"', panel(run))}
    roles = [known[index].role for index in sorted(behind)]
    assert roles.count("local_agent") == roles.count("global_agent") == roles.count("judge") == 1
    assert roles.count("score") == 4
    assert "data-call" not in duquad_panel(run.result, {})


@pytest.mark.parametrize(
    ("local", "everything", "judged", "words"),
    [
        ("1912", "1921", "1912", "≠ Local and Global disagree “1912” against “1921”. The judge takes the Local Agent"),
        ("1912", "1921", "1950", "The judge answers “1950”, which no agent said."),
        ("The 1921.", "1921", "1921", "✓ Local and Global agree Both answer “The 1921”. The judge keeps it."),
        ("1921", "1921", "1912", "Both answer “1921”. The judge overrules both and answers “1912”."),
        ("", "1921", "1921", "Only the Global Agent gives an answer “1921”. The judge takes the Global Agent"),
        ("", "", "1921", "Neither agent gives an answer The judge answers “1921”, which no agent said."),
        ("", "", "", "Neither agent gives an answer The judge gives no answer."),
    ],
)
def test_agreement_is_said_in_words(run: Run, local: str, everything: str, judged: str, words: str) -> None:
    answers = {"local_agent": local, "global_agent": everything, "judge": judged}
    result = run.result
    said = [o.model_copy(update={"answer": answers[o.role]}) for o in result.opinions if o.role in answers]
    changed = result.model_copy(update={"opinions": tuple(said)})
    assert words in parsed(duquad_panel(changed, {})).text
    assert disagree(changed) is (local[:2] == "19" and local != everything)


def test_an_agent_that_was_left_out_is_said() -> None:
    replies = {"agent": [agent("1921", 4)], "judge": [judge("1921")]}
    options = {"without_local": True, "without_pruning": True, "weight_ppl": 0, "weight_cont": 0}
    made = run_duquad(replies, question(), **options)
    text = parsed(panel(made)).text
    assert "Only the Global Agent spoke" in text and "Left out in this run (ablation)" in text
    assert "Quality pruning was left out" in text and "whole documents of" in text
    assert not disagree(made.result)


def test_docscores_are_drawn_against_tau(run: Run) -> None:
    html = panel(run)
    section = html[html.index('data-testid="docscores"') : html.index('data-testid="ablations"')]
    text = parsed(section).text
    assert "2 of 4 candidates kept" in text and "τ = 0.40" in text
    titles = ("4. Public works", "2. The Ostra bridge", "1. Velden, a history", "6. Almanac")
    assert [text.index(title) for title in titles] == sorted(text.index(title) for title in titles)
    assert re.findall(r'<i style="width:([\d.]+)%">', section) == ["90.0", "50.0", "20.0"]
    assert section.count('<b style="left:40.0%"></b>') == 4
    rows = re.findall(r'<li class="mdqa-docscore (\w+)">', section)
    assert rows == ["kept", "kept", "gone", "gone"]
    assert "cited by Local and Global · 1 key sentence" in text and "cited by Global · 2 key sentences" in text
    assert "reply could not be read" in text and "fallback" not in text


def test_a_fallback_is_marked() -> None:
    made = run_of(agent("a", 2), agent("b", 1), judge("a"), scores=(score(0.1, 1), score(0.3, 1)))
    text = parsed(panel(made)).text
    assert "1 of 2 candidates kept" in text
    assert "Fallback: no DocScore reaches 0.40; the highest, 0.30, is kept." in text
    assert text.count("✓ kept as fallback") == 1
    made = run_of(agent("a", 2), agent("b", 1), judge("a"), scores=("x", "y", "x", "y"))
    text = parsed(panel(made)).text
    assert "Fallback: no candidate has a DocScore" in text and text.count("kept as fallback") == 1


def test_a_reply_that_could_not_be_read_is_marked() -> None:
    made = run_duquad(
        {"agent": ["nothing", "still nothing", agent("1921", 4)], "score": [score(0.9, 1)], "judge": [judge("1921")]},
        question(),
        k=4,
        weight_ppl=0,
        weight_cont=0,
    )
    html = panel(made)
    local = html[html.index('data-voice="local_agent"') : html.index('data-voice="global_agent"')]
    text = parsed(local).text
    assert "reply could not be read: fallback" in text and "Cites no document" in text and "Raw reply" in text


def test_ablations_are_set_against_the_run(run: Run) -> None:
    html = panel(run)
    text = part(html, 'data-testid="ablations"')
    assert "2 of 4 variants give the expected answer; the chosen one is among them." in text
    for title in ("Without the Local Agent", "Without the Global Agent", "Without Quality Pruning"):
        assert title in text
    assert text.index("✓ chosen") < text.index("Without the Local Agent")
    assert "ablations" not in panel(disagreeing())


def test_what_is_known_of_a_run_that_still_works() -> None:
    result = disagreeing().result
    first = result.model_copy(
        update={"status": "running", "stages": result.stages[:2], "opinions": result.opinions[:1], "answer": ""}
    )
    text = parsed(duquad_panel(first, {})).text
    assert "Only the Local Agent spoke" in text and "It has not spoken yet" in text and "Judge" not in text
    assert not disagree(first)


def test_other_methods_have_none() -> None:
    run: RunResult = small_run()
    said = Opinion(role="generator", title="Generator", answer="a", documents=("d2",))
    other = run.model_copy(update={"opinions": (said,)})
    assert views_of(other) is None and duquad_panel(other, {}) == ""
    assert "reads document 2" in parsed(voices(other)).text
