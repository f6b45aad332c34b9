"""The calibration on scripted models whose coupling is known."""

from __future__ import annotations

import json
import re

import pytest
from scipy import stats

from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, ConfigError, InputError
from mdqa.methods.base import Tools
from mdqa.methods.madara.calibration import calibrate, planned
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.deciding import route_profile
from mdqa.records import Profile
from tests.methods.madara.probing import QUESTIONS, Coupled, run, worth


def test_a_coupled_model():
    profile = run()
    values = profile.values
    assert values["control"] == pytest.approx(1.0) and values["rho"][0] == pytest.approx(1.0)
    assert values["rho"][1] == pytest.approx(-1.0)  # every score is inverted
    assert abs(values["rho"][2]) < 0.6
    assert values["model_class"] == "stochastic" and not values["degenerate"]
    assert values["nf"] == {"em_squad": 0.25, "em_strict": 0.25, "n": 8}
    assert values["parse_failures"] == dict.fromkeys(("normal", "control", "shuffled", "contradicted", "random"), 0.0)
    assert (profile.model, profile.method, profile.data, profile.n, profile.seed) == (
        "scripted", "madara", "made-up", 8, 42,
    )  # fmt: skip
    assert Profile.model_validate_json(profile.model_dump_json()) == profile
    assert route_profile(profile, MADARAConfig().thresholds).treatment == "pde"


def test_values_follow_from_the_pairs_in_the_profile():
    values = run().values
    assert len(values["pairs"]) == 48
    columns = list(zip(*values["pairs"], strict=True))
    for level, rho in zip(columns[3:], [values["control"], *values["rho"]], strict=True):
        assert rho == pytest.approx(stats.spearmanr(columns[2], level).statistic)
    assert sum(values["histogram"].values()) == 48


def test_the_calls():
    model = Coupled()
    seen = []
    run(model, progress=lambda done, total, text: seen.append((done, total, text)))
    forced = [r for r in model.requests if r.prompt.template == "madara/forced"]
    assert len(model.requests) == 8 + 48 + 4 * 48 and len(forced) == 4 * 48
    dones = [done for done, _, _ in seen]
    assert dones == sorted(dones) and seen[-1][:2] == (248, 248) and all(d <= t for d, t, _ in seen)
    assert len({text for _, _, text in seen}) == 3
    for request in forced[3::4]:  # random: the analysis of another question
        assert request.prompt.turns[-1].text.count("BEGIN ANALYSIS") == 1


def test_random_reasoning_comes_from_another_question():
    class Naming(Coupled):
        def __call__(self, request):
            text = request.prompt.turns[-1].text
            if request.prompt.template == "madara/relevance_cot":
                self.requests.append(request)
                number = re.search(r"item (\d)", text)[1]
                steps = [f"About item {number}.", f"score of {worth(text)}"]
                return json.dumps({"reasoning_steps": steps, "score": worth(text)})
            return super().__call__(request)

    model = Naming()
    run(model)
    forced = [r.prompt.turns[-1].text for r in model.requests if r.prompt.template == "madara/forced"]
    asked, given = ([int(re.search(p, t)[1]) for t in forced] for p in (r"number of item (\d)", r"About item (\d)"))
    levels = [[a == g for a, g in zip(asked[k::4], given[k::4], strict=True)] for k in range(4)]
    assert all(levels[0]) and all(levels[1]) and all(levels[2]) and not any(levels[3])


def test_without_gold_answers_accuracy_is_unknown():
    profile = run(questions=[q.model_copy(update={"answers": ()}) for q in QUESTIONS])
    assert profile.values["nf"] is None and "unknown" in profile.note
    routing = route_profile(profile, MADARAConfig().thresholds)
    assert "unknown" in routing.note and routing.treatment == "sda"
    assert run(measure_nf=False).values["nf"] is None


def test_degenerate_scores_are_named():
    class Floor(Coupled):
        def __call__(self, request):
            if request.prompt.template.startswith("mdqa.methods/generator"):
                return "unknown"
            return '{"reasoning_steps": ["Nothing."], "score": 0, "confidence": 5}'

    profile = run(Floor())
    assert profile.values["degenerate"] and profile.values["rho"] == [0.0, 0.0, 0.0]
    assert profile.values["unchanged_shuffles"] == 1.0
    assert "Degenerate" in profile.note and "100%" in profile.note


def test_unreadable_grades_are_counted_not_zeroed():
    class Mumbling(Coupled):
        def __call__(self, request):
            if request.prompt.template == "madara/relevance_cot" and "text 0" in request.prompt.turns[-1].text:
                return "I would say 4"
            return super().__call__(request)

    profile = run(Mumbling())
    assert profile.values["parse_failures"]["normal"] == pytest.approx(1 / 6)
    assert profile.values["pairs_used"] == [40] * 4
    assert [row[2] for row in profile.values["pairs"]].count(None) == 8
    assert "could not be read" in profile.note


def test_a_model_that_never_replies_in_form():
    profile = run(lambda request: "hm")
    assert profile.values["rho"] == [0.0, 0.0, 0.0] and profile.values["parse_failures"]["normal"] == 1.0
    assert not profile.values["degenerate"]


def test_limits_draw_by_the_seed():
    first, again, other = (run(max_questions=3, max_documents_per_question=2, seed=s) for s in (1, 1, 2))
    assert first.n == 3 and len(first.values["pairs"]) == 6
    assert first.values["pairs"] == again.values["pairs"] != other.values["pairs"]


def test_without_control():
    model = Coupled()
    values = run(model, control=False).values
    assert values["control"] is None and len(model.requests) == 8 + 48 + 3 * 48
    assert values["pairs_used"][0] == 0 and "control" not in values["parse_failures"]


def test_too_few_questions_and_bad_options():
    with pytest.raises(InputError, match="at least two"):
        run(questions=QUESTIONS[:1])
    with pytest.raises(InputError, match="got 1"):
        run(questions=[QUESTIONS[0], QUESTIONS[1].model_copy(update={"documents": ()})])
    with pytest.raises(ConfigError, match="max_questions"):
        run(max_questions=1)
    with pytest.raises(ConfigError, match="Known options"):
        run(maximum=1)


def test_stop():
    token = CancelToken()

    class Stopping(Coupled):
        def __call__(self, request):
            if request.prompt.template == "madara/forced":
                token.cancel()
            return super().__call__(request)

    model = Stopping()
    with pytest.raises(Cancelled):
        run(model, cancel=token)
    assert len([r for r in model.requests if r.prompt.template == "madara/forced"]) == 1


def test_everything_about_stability_is_in_the_profile():
    many = [q.model_copy(update={"id": f"{q.id}-{n}"}) for q in QUESTIONS for n in range(4)]
    values = run(questions=many, bootstrap=0).values
    assert set(values["per_query"]) == {"control", "shuffled", "contradicted", "random"}
    assert values["per_query"]["contradicted"] == {"mean": pytest.approx(-1.0), "sd": pytest.approx(0.0), "n": 32}
    halves = values["split_half"]
    assert [halves[half]["queries"] for half in ("first", "second")] == [16, 16]
    assert all(half["model_class"] == values["model_class"] == "stochastic" for half in halves.values())
    assert values["subsets"] == {"size": 30, "draws": 100, "quality_ordered": 0.0, "status": "ok", "detail": ""}
    histogram = values["histogram"]
    shares = [n / sum(histogram.values()) for n in histogram.values()]
    assert values["entropy"]["bits"] == pytest.approx(stats.entropy(shares, base=2))
    assert values["entropy"]["normalised"] == pytest.approx(stats.entropy(shares, base=6))


def test_people_s_verdicts_stand_in_for_gold_answers():
    unanswered = [q.model_copy(update={"answers": ()}) for q in QUESTIONS]
    verdicts = {"q0": True, "q1": False, "q2": False, "elsewhere": True}
    profile = run(questions=unanswered, verdicts=verdicts, bootstrap=0)
    third = pytest.approx(1 / 3)
    assert profile.values["nf"] == {"em_squad": third, "em_strict": third, "n": 3, "labels": 3}
    assert profile.values["nf_source"] == "labels" and "judged by people" in profile.note
    routing = route_profile(profile, MADARAConfig().thresholds)
    assert routing.treatment == "sda" and "people judged" in routing.note and "unknown" not in routing.note
    gold = run(verdicts=dict.fromkeys(("q0", "q7"), True), bootstrap=0)
    assert gold.values["nf"] == {"em_squad": 0.25, "em_strict": 0.25, "n": 8} and gold.values["nf_source"] == "gold"
    mixed = run(questions=[*QUESTIONS[:4], *unanswered[4:]], verdicts={"q4": True, "q0": False}, bootstrap=0)
    assert mixed.values["nf"] == {"em_squad": 0.6, "em_strict": 0.6, "n": 5, "labels": 1}
    assert run(questions=unanswered, verdicts={}, max_questions=2, bootstrap=0).values["nf_source"] is None


def test_verdicts_count_for_questions_that_were_not_drawn():
    unanswered = [q.model_copy(update={"answers": ()}) for q in QUESTIONS]
    profile = run(questions=unanswered, verdicts=dict.fromkeys([q.id for q in QUESTIONS], True), max_questions=2)
    assert profile.n == 2 and profile.values["nf"]["n"] == 8


def test_relevance_is_fitted_where_evidence_is_marked():
    marked = [
        q.with_documents(tuple(d.model_copy(update={"gold": worth(d.text) == 5}) for d in q.documents))
        for q in QUESTIONS
    ]
    model = Coupled()
    seen = []
    profile = run(model, marked, progress=lambda done, total, text: seen.append((done, total)))
    assert set(profile.values["relevance"]) == {"likelihood"}  # these tools have no sentence encoder
    assert profile.values["relevance"]["likelihood"]["documents"] == 12  # two questions have a document worth 5
    assert profile.values["cost"]["llm_calls"] == seen[-1][0] == seen[-1][1] == planned(marked)[1] == 248 + 12
    without = run(questions=marked, measure_relevance=False, bootstrap=0)
    assert "relevance" not in without.values and without.values["cost"]["llm_calls"] == 248


def test_a_question_that_is_too_long_is_named_before_any_call():
    model = Coupled()
    long = QUESTIONS[5].with_documents(
        tuple(d.model_copy(update={"text": f"{d.text} {'word ' * 300}"}) for d in QUESTIONS[5].documents)
    )
    backend = ScriptedBackend(model, window=1000)
    questions = [*QUESTIONS[:5], long]
    with pytest.raises(InputError, match=r"question 'q5'.*holds 1,000.*measure_nf=false"):
        calibrate(questions, Tools(backend), name="p")
    assert not model.requests
    assert calibrate(questions, Tools(backend), name="p", measure_nf=False, bootstrap=0).n == 6


def test_levels_that_could_not_be_read_are_named():
    class Mumbling(Coupled):
        def __call__(self, request):
            lost = request.prompt.template == "madara/forced" and "text 0" in request.prompt.turns[-1].text
            return "hm" if lost else super().__call__(request)

    profile = run(Mumbling(), bootstrap=0)
    levels = ("control", "shuffled", "contradicted", "random")
    assert profile.values["parse_failures"] == {"normal": 0.0, **dict.fromkeys(levels, pytest.approx(1 / 6))}
    assert f"could not be read: {', '.join(f'17% {level}' for level in levels)}." in profile.note
    assert profile.values["per_query"]["random"]["n"] == 8
