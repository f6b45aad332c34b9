"""Addresses that cannot be listened on are said in words, before a database is opened or a model loaded."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from mdqa.errors import ConfigError
from mdqa.settings import Settings
from mdqa.users import User, hashed, write_users
from ui.launching import (
    blocked_paths,
    check_address,
    check_people,
    check_storage,
    file_system,
    launch_options,
    placed,
    read_settings,
)


def test_a_port_in_use_is_named_with_the_way_out() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = replace(Settings(), host="127.0.0.1", port=port)
        with pytest.raises(ConfigError, match=f"port {port} is in use.*--port"):
            check_address(settings)
    check_address(settings)  # free again


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on 192\.0\.2\.1:7860"):
        check_address(replace(Settings(), host="192.0.2.1", port=7860))


@pytest.mark.parametrize("port", ["0", "65536", "x", "-1", "1.5", "²"])
def test_a_port_is_a_number_within_its_limits(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(["--port", port])
    assert "is not a number between 1 and 65535" in capsys.readouterr().err


def test_the_folder_of_the_database_is_never_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    settings = replace(Settings(), database=tmp_path / "data" / "mdqa.db", users=tmp_path / "users.json")
    assert {str(tmp_path / "data"), str(tmp_path / "users.json")} <= set(blocked_paths(settings))
    beside = replace(settings, database=tmp_path / "mdqa.db")  # uploads lie below the database's folder
    assert str(tmp_path) not in blocked_paths(beside)
    assert {str(tmp_path / f"mdqa.db{end}") for end in ("", "-wal", "-shm")} <= set(blocked_paths(beside))
    assert str(tmp_path / "bucket") in blocked_paths(replace(settings, snapshots=str(tmp_path / "bucket")))


def test_nobody_is_let_in_by_mistake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "users.json"
    settings = replace(Settings(), users=path)
    with pytest.raises(ConfigError, match="users add"):
        check_people(settings)
    write_users(path, [])
    with pytest.raises(ConfigError, match="is empty"):
        check_people(settings)
    write_users(path, [User("ann", "annotator", hashed("correct horse"))])
    with caplog.at_level(logging.WARNING):
        check_people(settings)
        assert "nobody who may sign in is an admin" in caplog.text
        caplog.clear()
        check_people(replace(settings, user="ada", password="correct horse"))
        assert not caplog.text, "whom the settings name is one"
    assert callable(launch_options(settings)["auth"]) and launch_options(Settings())["auth"] is None
    with caplog.at_level(logging.WARNING):
        check_people(Settings())
        assert not caplog.text
        check_people(replace(Settings(), host="0.0.0.0"))
    assert "everybody who can reach 0.0.0.0:7860" in caplog.text


def test_a_space_whose_home_cannot_be_written_keeps_its_data_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    settings = replace(Settings(), space=True, database=tmp_path / "file" / "mdqa.db", cache=tmp_path / "cache")
    moved = placed(settings, {})
    assert moved.database.name == "mdqa.db" and moved.database != settings.database
    assert moved.cache == settings.cache
    assert placed(settings, {"MDQA_DATABASE": "named"}) == settings, "what somebody named stays"
    assert placed(replace(settings, space=False), {}).database == settings.database


def test_what_an_owner_should_know_of_the_storage(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text("overlay / overlay rw 0 0\nhf /mnt/my\\040bucket fuse.hf rw 0 0\n")
    assert file_system(Path("/mnt/my bucket/mdqa.db"), mounts) == "fuse.hf"
    assert file_system(Path("/mnt/mdqa.db"), mounts) == "overlay"
    assert file_system(Path("/mnt/mdqa.db"), tmp_path / "none") == ""
    with caplog.at_level(logging.WARNING):
        check_storage(replace(Settings(), database=tmp_path / "mdqa.db"))
        assert not caplog.text
        check_storage(replace(Settings(), database=tmp_path / "mdqa.db", space=True, zero_gpu=True))
    assert "MDQA_SNAPSHOTS" in caplog.text and "300 seconds" in caplog.text
