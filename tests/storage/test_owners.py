"""Processes: alive, dead, dead but not waited for, and an id that was used again."""

import os
import signal
from dataclasses import replace

import pytest

from storage.owners import Owner, process_start
from tests.storage.builders import python


def test_this_process_is_alive() -> None:
    assert Owner.current().pid == os.getpid()
    assert Owner.current().alive() is True


def test_reused_process_id_is_another_process() -> None:
    assert replace(Owner.current(), started="long ago").alive() is False


def test_other_host_cannot_be_asked() -> None:
    assert replace(Owner.current(), host="elsewhere.invalid").alive() is None


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_killed_process_is_dead_even_before_it_is_waited_for() -> None:
    process = python("import time; print('ready', flush=True); time.sleep(60)")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    owner = replace(Owner.current(), pid=process.pid, started=process_start(process.pid) or "")
    assert owner.alive() is True
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # wait until it is a zombie, and leave it one
    assert owner.alive() is False
    process.communicate(timeout=10)
    assert owner.alive() is False
    assert process_start(process.pid) is None
