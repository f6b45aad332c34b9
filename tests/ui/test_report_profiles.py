"""Reports from profiles on the page: the stored ones and those of the package, of one model or of all."""

from __future__ import annotations

from pathlib import Path

from mdqa.reports.base import Report
from tests.ui.helpers import SCRIPTED, open_scripted
from ui.context import Context
from ui.reporting import Wish, make, offered_reports
from ui.views.reports import report_head


def made(context: Context, wish: Wish) -> Report:
    *_, last = make(context, wish)
    assert isinstance(last, Report)
    return last


def test_profiles_reach_the_report_without_any_run(tmp_path: Path):
    context = open_scripted(tmp_path, start=False)
    try:
        every = made(context, Wish("madara_coupling"))
        assert [str(row["case"]).split(":")[0] for row in every.rows] == ["hand", "madara-builtin"]
        one = made(context, Wish("madara_coupling", model=SCRIPTED))
        assert [row["shuffled"] for row in one.rows] == [0.28]
        assert "1 profile." in report_head(one)
        assert made(context, Wish("accuracy")).needs
    finally:
        context.store.close()


def test_every_listed_report_says_what_it_needs():
    assert all(report.needs and report.title for report in offered_reports())
