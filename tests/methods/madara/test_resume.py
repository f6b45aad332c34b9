"""A stopped or killed calibration goes on where it was, repeats no finished call and ends with the same profile."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mdqa.backends.scripted import ScriptedBackend
from mdqa.cancellation import CancelToken
from mdqa.errors import Cancelled, OutputError
from mdqa.methods.base import Tools
from mdqa.methods.madara.calibration import calibrate
from mdqa.methods.madara.measuring import BATCH
from mdqa.passes import Passes
from tests.methods.madara.probing import QUESTIONS, Coupled, run, worth

ROOT = Path(__file__).parents[3]

MARKED = [
    q.with_documents(tuple(d.model_copy(update={"gold": worth(d.text) > 3}) for d in q.documents)) for q in QUESTIONS
]


class Mumbling(Coupled):
    """Unreadable on some documents, so that replies are asked for again."""

    def __call__(self, request):
        reply = super().__call__(request)
        return "hm" if "text 3" in request.prompt.turns[-1].text and request.seed % 5 == 0 else reply


class Stopping(Mumbling):
    """Asks for a stop with its n-th call."""

    def __init__(self, after):
        super().__init__()
        self.after, self.token = after, CancelToken()

    def __call__(self, request):
        reply = super().__call__(request)
        if len(self.requests) == self.after:
            self.token.cancel()
        return reply


def values_of(profile):
    """What has to be equal: everything but the time that it took."""
    values = json.loads(profile.model_dump_json())["values"]
    assert values["cost"].pop("seconds") > 0
    return values


def test_stopped_again_and_again(tmp_path):
    whole_model = Mumbling()
    whole = values_of(run(whole_model, MARKED))
    passes, made, stops = Passes(tmp_path / "p"), 0, 0
    for after in (3, 11, 30, 75, 40, 90):
        model = Stopping(after)
        with pytest.raises(Cancelled):
            run(model, MARKED, passes=passes, cancel=model.token)
        made, stops = made + len(model.requests), stops + 1
    last = Mumbling()
    seen = []
    profile = run(last, MARKED, passes=passes, progress=lambda done, total, text: seen.append((done, total)))
    made += len(last.requests)
    assert values_of(profile) == whole
    wasted = made - len(whole_model.requests)
    assert 0 <= wasted <= stops * (BATCH - 1), "only the batch that was being written when the stop came"
    assert seen[-1][0] == seen[-1][1] and [d for d, _ in seen] == sorted(d for d, _ in seen)
    idle = Mumbling()
    assert values_of(run(idle, MARKED, passes=passes)) == whole
    assert idle.requests == []


def test_a_stop_between_batches_repeats_nothing(tmp_path):
    passes, model = Passes(tmp_path / "p"), Coupled()
    token = CancelToken()

    def stop(done, total, text):
        if done == 8 + 2 * BATCH:  # all of No-Filter and two batches of grades
            token.cancel()

    with pytest.raises(Cancelled):
        run(model, passes=passes, cancel=token, progress=stop)
    assert len(model.requests) == 8 + 2 * BATCH
    again = Coupled()
    run(again, passes=passes)
    assert len(model.requests) + len(again.requests) == 248


def test_likelihoods_are_kept_too(tmp_path):
    class Counting(ScriptedBackend):
        passes = 0

        def log_likelihood(self, prompts, **options):
            self.passes += len(prompts)
            return super().log_likelihood(prompts, **options)

    passes = Passes(tmp_path / "p")
    first, second = Counting(Coupled()), Counting(Coupled())
    made = [
        calibrate(MARKED, Tools(backend), name="p", passes=passes, bootstrap=0).values["relevance"]
        for backend in (first, second)
    ]
    assert made[0] == made[1] and first.passes > 0 == second.passes


@pytest.mark.parametrize(
    ("other", "reused"),
    [
        ({"seed": 7}, 0),
        ({"temperature": 0.0}, 0),
        ({"top_p": 0.9}, 0),
        ({"cot_max_tokens": 128}, 8 + 192),  # the grades come out as before, so what is asked after them is known
        ({"bootstrap": 10}, 248),
        ({"control": False}, 8 + 48),  # the levels of a document are one batch, and now it is another one
        ({"name": "q"}, 248),
    ],
    ids=str,
)
def test_other_options_do_not_reuse_what_they_change(tmp_path, other, reused):
    passes = Passes(tmp_path / "p")
    run(passes=passes)
    model = Coupled()
    backend = ScriptedBackend(model)
    profile = calibrate(QUESTIONS, Tools(backend), **{"name": "p", "bootstrap": 0, "passes": passes, **other})
    assert profile.values["cost"]["llm_calls"] - len(model.requests) == reused


def test_another_model_does_not_reuse(tmp_path):
    passes = Passes(tmp_path / "p")
    run(passes=passes)
    model = Coupled()
    calibrate(QUESTIONS, Tools(ScriptedBackend(model, model="other")), name="p", passes=passes)
    assert len(model.requests) == 248


def test_a_damaged_piece_is_made_again(tmp_path):
    passes = Passes(tmp_path / "p")
    whole = values_of(run(passes=passes))
    pieces = sorted((tmp_path / "p").glob("*.npz"))
    pieces[0].write_bytes(pieces[0].read_bytes()[:40])
    other = passes.get(pieces[2].stem)
    passes.put(pieces[1].stem, {"json": other["json"][:-20]})
    passes.put(pieces[3].stem, {"something": other["json"]})
    model = Coupled()
    assert values_of(run(model, passes=passes)) == whole
    assert 3 <= len(model.requests) <= 3 * BATCH


def test_a_full_disk_is_said(tmp_path):
    (tmp_path / "p").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        run(passes=Passes(tmp_path / "p"))


def doomed(folder: str) -> None:
    """In a process of its own: a calibration that is killed with its 100th call."""

    class Killed(Mumbling):
        def __call__(self, request):
            reply = super().__call__(request)
            if len(self.requests) == 100:
                os.kill(os.getpid(), signal.SIGKILL)
            return reply

    run(Killed(), MARKED, passes=Passes(Path(folder)))


def test_killed(tmp_path):
    folder = tmp_path / "p"
    code = f"from tests.methods.madara.test_resume import doomed; doomed({str(folder)!r})"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    passes, model, fresh = Passes(folder), Mumbling(), Mumbling()
    assert passes.count() > 10
    profile = run(model, MARKED, passes=passes)
    assert values_of(profile) == values_of(run(fresh, MARKED))
    assert len(fresh.requests) - 100 <= len(model.requests) <= len(fresh.requests) - 100 + BATCH
