"""Addresses that cannot be listened on are said in words, before a database is opened or a model loaded."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from mdqa.errors import ConfigError
from mdqa.settings import Settings
from ui.launching import check_address, read_settings


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
