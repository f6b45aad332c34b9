"""The line of jobs by itself: what happens between two steps of the worker."""

from __future__ import annotations

from tests.ui.helpers import question
from ui.following import LiveRun, Order
from ui.line import REMEMBERED, Line
from ui.study_jobs import LiveStudy, StudyOrder


def order(name: str) -> Order:
    return Order(name, "direct", "Direct", None, question(2), "scripted")


def study(name: str = "study") -> LiveStudy:
    return LiveStudy(StudyOrder(name, "Leave one out", "base", (order("member"),), total=1))


def test_a_study_may_be_gone_on_with_as_soon_as_it_has_ended() -> None:
    line, first, again = Line(4), study(), study()
    line.put(first)
    assert line.take() is not None
    first.end("cancelled")  # the worker does not come back for the next job before ...
    line.put(again)
    taken = line.take()
    assert taken is not None and taken[0] is again


def test_the_run_of_a_study_may_be_forgotten_before_it_is_let_go_of() -> None:
    line = Line(4)
    member = LiveRun(order("member"))
    with line.beside(member):
        for number in range(REMEMBERED):
            line.put(LiveRun(order(str(number))))
            job, waited = line.stop(str(number))
            assert job is not None and waited
            job.end("cancelled")
        member.end("ok")
        line.put(LiveRun(order("last")))
        assert line.find("member") is None


def test_the_closing_cuts_off_a_run_that_its_study_has_just_begun() -> None:
    line, working = Line(4), study()
    line.put(working)
    assert line.take() is not None
    member = working.next_run()
    assert member is not None
    line.close()
    with line.beside(member):
        assert member.cancel.cancelled and line.cut_off(member.cancel)


def test_whoever_was_stopped_by_a_person_is_not_cut_off() -> None:
    line, run = Line(4), LiveRun(order("run"))
    line.put(run)
    assert line.take() is not None
    assert line.stop("run") == (run, False)
    line.close()
    assert not line.cut_off(run.cancel)
