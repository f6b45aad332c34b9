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
from mdqa.methods.madara.calibration import calibrate
from mdqa.methods.madara.config import MADARAConfig
from mdqa.methods.madara.method import route_profile
from mdqa.records import Document, Profile, Question

QUESTIONS = [
    Question(
        id=f"q{q}",
        question=f"What is the number of item {q}?",
        answers=(f"{q}{q}",),
        documents=tuple(
            Document(id=f"d{d}", text=f"Worth {(q * 7 + d * 3) % 6}. Item {q}, text {d}.") for d in range(6)
        ),
        meta={"dataset": "made-up"},
    )
    for q in range(8)
]


def worth(text):
    return int(re.search(r"Worth (\d)", text)[1])


class Coupled:
    """A model whose scores follow the analysis it is given: its own says the document's worth in words."""

    def __init__(self):
        self.requests = []

    def __call__(self, request):
        self.requests.append(request)
        template, text = request.prompt.template, request.prompt.turns[-1].text
        if template == "madara/relevance_cot":
            steps = [f"It is relevant to {worth(text)}.", "It is consistent.", f"So a score of {worth(text)}."]
            return json.dumps({"reasoning_steps": steps, "score": worth(text), "evidence": "", "confidence": 5})
        if template == "madara/forced":
            analysis = text.split("BEGIN ANALYSIS")[1]
            return json.dumps({"score": int(re.search(r"score of (\d)", analysis)[1]), "confidence": 3})
        number = re.search(r"item (\d)", text)[1]
        return f"{number}{number}" if int(number) < 2 else "unknown"


def run(model=None, questions=QUESTIONS, **options):
    backend = ScriptedBackend(model or Coupled())
    return calibrate(questions, Tools(backend), name="p", **{"bootstrap": 50, **options})


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
            if request.prompt.template.startswith("madara/generator"):
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
