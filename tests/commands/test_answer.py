"""``python -m mdqa answer`` in processes of its own, with the scripted backend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COUNT = 4


def questions(path: Path, count: int = COUNT) -> Path:
    lines = []
    for number in range(count):
        documents = [
            {"id": "a", "title": "Velden", "text": f"The river Ostra{number} flows through Velden.", "gold": True},
            {"id": "b", "title": "Bread", "text": "Rye bread keeps for a week.", "gold": False},
        ]
        question = "Which river flows through Velden?"
        lines.append(
            {
                "id": f"q{number}",
                "question": question,
                "answers": [f"Ostra{number}"],
                "documents": documents,
                "meta": {},
            }
        )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "mdqa", *map(str, arguments)]


def environment(folder: Path) -> dict[str, str]:
    own = {"MDQA_DATABASE": str(folder / "mdqa.db"), "MDQA_CACHE": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **own}


def mdqa(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), cwd=ROOT, env=environment(folder), capture_output=True, text=True, timeout=120
    )


def answer(folder: Path, *more: object, output: object = None, source: Path | None = None):
    source = source or questions(folder / "in.jsonl")
    target = output or folder / "out.jsonl"
    fixed = ("--method", "direct", "--model", "scripted", "--input", source, "--output", target)
    return mdqa(folder, "answer", *fixed, *more)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_writes_complete_lines(tmp_path: Path) -> None:
    done = answer(tmp_path, "--seed", 3)
    assert done.returncode == 0, done.stderr
    rows = lines(tmp_path / "out.jsonl")
    assert [row["id"] for row in rows] == [f"q{i}" for i in range(COUNT)]
    fields = "id method answer status stages routing attention_summary cost config seed model"
    assert all(set(fields.split()) <= set(row) for row in rows)
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["seed"] for row in rows} == {3}
    assert rows[2]["answer"].startswith("The river Ostra2")
    assert rows[0]["cost"]["llm_calls"] == 1
    assert f"{COUNT}/{COUNT}" in done.stderr  # the progress bar
    assert done.stdout == ""


def test_limit_and_standard_output(tmp_path: Path) -> None:
    done = answer(tmp_path, "--limit", 2, "--quiet", output="-")
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["q0", "q1"]
    assert not (tmp_path / "-").exists()


def test_a_finished_file_needs_no_model(tmp_path: Path) -> None:
    assert answer(tmp_path).returncode == 0
    out = tmp_path / "out.jsonl"
    gone = str(tmp_path / "gone")
    out.write_text(
        out.read_text(encoding="utf-8").replace('"model": "scripted"', f'"model": "{gone}"'), encoding="utf-8"
    )
    done = answer(tmp_path, "--model", gone)
    assert done.returncode == 0 and f"{COUNT} of {COUNT} questions are done already" in done.stderr
    out.write_text("".join(out.read_text(encoding="utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    more = answer(tmp_path, "--model", gone)
    assert more.returncode != 0 and "gone" in more.stderr, "there is work, and no such model"


def test_goes_on_after_a_torn_line_and_repeats_nothing(tmp_path: Path) -> None:
    assert answer(tmp_path).returncode == 0
    out = tmp_path / "out.jsonl"
    whole = out.read_bytes()
    first_two = b"".join(whole.splitlines(keepends=True)[:2])
    out.write_bytes(first_two + whole.splitlines()[2][:57])
    done = answer(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "torn last line of 57 bytes" in done.stderr
    assert out.read_bytes().startswith(first_two), "finished lines stay as they are"
    assert [row["id"] for row in lines(out)] == [f"q{i}" for i in range(COUNT)]
    unchanged = out.read_bytes()
    assert answer(tmp_path).returncode == 0
    assert out.read_bytes() == unchanged


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    answer(tmp_path, "--limit", 1)
    out = tmp_path / "out.jsonl"
    out.write_bytes(out.read_bytes().removesuffix(b"\n"))
    run = lines(out)[0]["run"]
    assert answer(tmp_path).returncode == 0
    assert [row["id"] for row in lines(out)] == [f"q{i}" for i in range(COUNT)]
    assert lines(out)[0]["run"] == run


def test_another_question_of_the_same_id_is_refused(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl", 1)
    assert answer(tmp_path, source=source).returncode == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    source.write_text(source.read_text().replace("Which river", "What river"))
    done = answer(tmp_path, source=source)
    assert done.returncode == 2
    assert "'q0'" in done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize("change", [("--seed", 1), ("--set", "max_new_tokens=7")])
def test_other_settings_are_refused(tmp_path: Path, change: tuple[object, ...]) -> None:
    assert answer(tmp_path).returncode == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    done = answer(tmp_path, *change)
    assert done.returncode == 2
    assert "other settings" in done.stderr
    assert "out.jsonl, line 1" in done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text('{"note": "mine"}\n')
    done = answer(tmp_path)
    assert done.returncode == 2
    assert "line 1" in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == '{"note": "mine"}\n'


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_nothing_is_cut_off_a_file_that_is_not_ours(tmp_path: Path, end: bytes) -> None:
    source = questions(tmp_path / "in.jsonl", 1)
    for content in (b"my notes", source.read_bytes().strip(), b"[" * 100_000, b'{"id": "q0", "question": "cut'):
        (tmp_path / "out.jsonl").write_bytes(content + end)
        done = answer(tmp_path, source=source)
        assert done.returncode == 2
        assert "out.jsonl, line 1" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert (tmp_path / "out.jsonl").read_bytes() == content + end


@pytest.mark.parametrize(
    "torn", [b'{"i', b'{"id": "q\\', b'{"id": "q2", "ru', b'{"id": "q2", "run": "ab\0\0', b"\0\0\0"]
)
def test_every_beginning_of_a_line_is_taken_for_torn(tmp_path: Path, torn: bytes) -> None:
    assert answer(tmp_path, "--limit", 1).returncode == 0
    out = tmp_path / "out.jsonl"
    out.write_bytes(out.read_bytes() + torn)
    done = answer(tmp_path, "--limit", 2)
    assert done.returncode == 0, done.stderr
    assert f"torn last line of {len(torn)} bytes" in done.stderr
    assert [row["id"] for row in lines(out)] == ["q0", "q1"]


def test_other_documents_of_a_question_are_refused(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl", 1)
    assert answer(tmp_path, source=source).returncode == 0
    before = (tmp_path / "out.jsonl").read_bytes()
    source.write_text(source.read_text().replace("Rye bread", "White bread"))
    done = answer(tmp_path, source=source)
    assert done.returncode == 2
    assert "documents of question 'q0'" in done.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    process, out = _started(tmp_path, 1500)
    try:
        done = answer(tmp_path, "--quiet", "--retry-failed", source=tmp_path / "in.jsonl")
        assert done.returncode == 2
        assert "another process" in done.stderr
        assert process.poll() is None, "the first one goes on"
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert all(row["status"] == "ok" for row in lines(out))


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    source, out = questions(tmp_path / "in.jsonl", 30), tmp_path / "out.jsonl"
    arguments = command("answer", "--method", "direct", "--model", "scripted", "--input", source, "--output", out)
    limited = subprocess.run(
        ["bash", "-c", 'trap "" XFSZ; ulimit -f 12; exec "$@"', "bash", *arguments, "--quiet"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert limited.returncode == 1
    assert "out.jsonl: cannot be written" in limited.stderr
    assert len(limited.stderr.splitlines()) == 1
    assert 2 <= len(lines(out)) < 30
    assert out.read_bytes().endswith(b"\n")
    assert answer(tmp_path, source=source).returncode == 0
    assert [row["id"] for row in lines(out)] == [f"q{i}" for i in range(30)]


def test_the_input_may_be_a_pipe_and_is_never_the_output(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl", 1)
    before = source.read_bytes()
    (tmp_path / "same.jsonl").hardlink_to(source)
    done = answer(tmp_path, source=source, output=tmp_path / "same.jsonl")
    assert done.returncode == 2
    assert "the same file" in done.stderr
    assert source.read_bytes() == before
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = answer(tmp_path, source=source, output=pipe)
    assert done.returncode == 2
    assert "device or a pipe" in done.stderr
    with subprocess.Popen(["bash", "-c", 'cat "$0" > "$1"', source, pipe]):
        done = answer(tmp_path, source=pipe)
    assert done.returncode == 0, done.stderr
    assert len(lines(tmp_path / "out.jsonl")) == 1


def test_a_limit_beyond_all_slices(tmp_path: Path) -> None:
    assert answer(tmp_path, "--limit", 10**30).returncode == 0
    assert len(lines(tmp_path / "out.jsonl")) == COUNT


def _with_streams(tmp_path: Path, redirection: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    shell = ["bash", "-c", f'exec "$@" {redirection}', "bash", *command(*arguments)]
    return subprocess.run(shell, cwd=ROOT, env=environment(tmp_path), capture_output=True, timeout=120)


def test_streams_that_are_closed(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl", 2)
    fixed = ("answer", "--method", "direct", "--model", "scripted", "--input", source, "--output", "-")
    done = _with_streams(tmp_path, "2>&-", *fixed)
    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["q0", "q1"], "no message among the data"
    done = _with_streams(tmp_path, ">&-", *fixed, "--quiet")
    assert done.returncode == 1
    assert b"standard output: cannot be written" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    done = _with_streams(tmp_path, "> >(exit)", *fixed, "--quiet")  # a reader that goes away
    assert done.stderr == b""


def test_failures_are_recorded_and_can_be_retried(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl", 2)
    rows = lines(source)
    rows[0]["documents"] = [{"id": "a", "title": "", "text": "word " * 9000}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = answer(tmp_path, source=source)
    assert done.returncode == 1
    assert "1 of 2 questions failed" in done.stderr
    out = lines(tmp_path / "out.jsonl")
    assert [row["status"] for row in out] == ["failed", "ok"]
    assert "8,192" in out[0]["error"]["message"]
    kept = answer(tmp_path, source=source)
    assert kept.returncode == 1
    assert lines(tmp_path / "out.jsonl") == out
    retried = answer(tmp_path, "--retry-failed", "--overflow", "shorten", source=source)
    assert retried.returncode == 0, retried.stderr
    out = lines(tmp_path / "out.jsonl")
    assert sorted(row["id"] for row in out) == ["q0", "q1"]
    assert {row["status"] for row in out} == {"ok"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "nothing"), "invalid choice"),
        (("--set", "max_new_tokens"), "key=value"),
        (("--set", "nothing=1"), "max_new_tokens"),
        (("--set", "max_new_tokens=-5"), "max_new_tokens"),
        (("--input", "/nothing/here.jsonl"), "no such file"),
        (("--output", "/nothing/here.jsonl"), "no folder"),
        (("--limit", "0"), "above zero"),
        (("--profile", "mine"), "profile"),
    ],
)
def test_bad_arguments(tmp_path: Path, arguments: tuple[str, str], words: str) -> None:
    source = questions(tmp_path / "in.jsonl")
    given = {
        "--method": "direct",
        "--model": "scripted",
        "--input": str(source),
        "--output": str(tmp_path / "out.jsonl"),
        arguments[0]: arguments[1],
    }
    done = mdqa(tmp_path, "answer", *[part for pair in given.items() for part in pair])
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_broken_input_names_the_line(tmp_path: Path) -> None:
    source = questions(tmp_path / "in.jsonl")
    source.write_text(source.read_text() + "{broken\n")
    done = answer(tmp_path, source=source)
    assert done.returncode == 2
    assert f"line {COUNT + 1}" in done.stderr


def _started(tmp_path: Path, count: int) -> tuple[subprocess.Popen[str], Path]:
    """A long run that has written at least two lines."""
    source, out = questions(tmp_path / "in.jsonl", count), tmp_path / "out.jsonl"
    process = subprocess.Popen(
        command("answer", "--method", "direct", "--model", "scripted", "--input", source, "--output", out),
        cwd=ROOT,
        env=environment(tmp_path),
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < 2:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process, out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_and_killed_runs_go_on(tmp_path: Path, number: signal.Signals) -> None:
    count = 1500
    process, out = _started(tmp_path, count)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 1)
    if number != signal.SIGKILL:
        assert "stopped" in messages
        assert "Traceback" not in messages
        assert out.read_bytes().endswith(b"\n")
    written = out.read_bytes()[: out.read_bytes().rfind(b"\n") + 1]
    assert 2 <= written.count(b"\n") < count
    done = answer(tmp_path, "--quiet", source=tmp_path / "in.jsonl")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes().startswith(written)
    assert [row["id"] for row in lines(out)] == [f"q{i}" for i in range(count)]
