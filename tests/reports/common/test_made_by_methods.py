"""Reports over what the methods themselves record: runs with the scripted backend, nothing built by hand."""

from __future__ import annotations

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.methods.base import Tools
from mdqa.methods.cafe.masking import MaskingConfig, probe_question
from mdqa.records import RunResult
from mdqa.registry import method_class
from mdqa.reports.making import make
from mdqa.run import begin, run_one
from tests.methods.madara.helpers import make_profile, run_madara
from tests.ui.helpers import question, scripted_profiles


def ran(method: str, **options: object) -> RunResult:
    profile = next((profile for profile in scripted_profiles() if profile.method == method), None)
    tools = Tools(ScriptedBackend(model="scripted"), profile=profile)
    config = method_class(method).Config.parse(options)
    result = run_one(begin(method, config, question(), tools, seed=0), tools, sink=lambda event: None).result
    assert result.status == "ok", result.error
    return result


@pytest.mark.parametrize(
    "name",
    ["madara_treatments", "madara_isolation", "madara_routing", "madara_no_filter", "madara_coupling_thresholds"],
)
def test_madara(name: str):
    run = run_madara(profile=make_profile(), compare="all").result
    report = make(name, [run])
    assert report.rows and not report.needs and report.n == 1


def test_routers_of_a_run_and_its_profile():
    profile = make_profile(histogram={"0": 3, "4": 3})
    run = run_madara(profile=profile, compare="all").result
    [row] = make("madara_routers", [run], [profile]).rows
    assert row["class"] == "quality-ordered" and row["by_rsc"] == "CoT De-Polarization"


@pytest.mark.parametrize("name", ["cafe_recall", "cafe_heads", "evidence_selection"])
def test_cafe(name: str):
    report = make(name, [ran("cafe", m1=2)])
    assert report.rows and report.n == 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("cafe_ablations", {"order": "random"}),
        ("cafe_granularity", {"granularity": "sentence"}),
        ("cafe_delta", {"delta": 1.0}),
        ("cafe_hyperparameters", {"k1": 1}),
    ],
)
def test_settings_of_cafe(name: str, options: dict[str, object]):
    report = make(name, [ran("cafe", m1=2), ran("cafe", **{"m1": 2, **options})])
    assert len(report.rows) == 2 and report.rows[1]["sub_em_change"] is not None


def test_in_context_retrieval_and_cafe():
    rows = make("evidence_selection", [ran("cafe", m1=2), ran("in_context", top_k=2)]).rows
    assert [str(row["variant"]).split()[0] for row in rows] == ["in_context", "cafe"]
    assert rows[1]["difference"] is not None


def test_masking_probes():
    probed = probe_question(question(), Tools(ScriptedBackend()), MaskingConfig())
    modes = {answer.mask.mode: answer.to_json() for answer in probed.answers}
    report = make("cafe_masking", (), masking=[{"id": "q", "model": "m", "status": "ok", "modes": modes}])
    assert [row["n"] for row in report.rows] == [1] * len(modes)
