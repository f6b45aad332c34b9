"""The users file: passwords as salted hashes, names as they are stored, damage named by its entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mdqa.errors import ConfigError, InputError, OutputError
from mdqa.users import MAX_NAME, User, clean_name, hashed, matches, read_users, too_open, write_users

KEPT = hashed("correct horse")


def test_a_password_is_kept_as_a_salted_hash() -> None:
    assert "horse" not in KEPT and KEPT.startswith("scrypt$16384$8$1$")
    assert matches(KEPT, "correct horse")
    assert not matches(KEPT, "correct horsf")
    assert not matches(KEPT, "correct horse" + "x" * 2_000)
    assert hashed("correct horse") != KEPT


def test_the_hash_is_that_of_rfc_7914() -> None:
    """Section 12, third vector, its first 32 bytes (n=16384, r=8, p=1)."""
    salt, digest = b"SodiumChloride".hex(), "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
    assert matches(f"scrypt$16384$8$1${salt}${digest}", "pleaseletmein")


@pytest.mark.parametrize("password", ["", "short", "x" * 1_001])
def test_passwords_have_a_length(password: str) -> None:
    with pytest.raises(InputError, match="password: it has"):
        hashed(password)


def test_a_name_has_one_form() -> None:
    assert clean_name("  Zoe\u0308   Müller ") == "Zoë Müller"


@pytest.mark.parametrize("name", ["", "   ", "a\x00b", "a\u200bb", "a\ud800", "\u202eadmin", "x" * (MAX_NAME + 1)])
def test_names_that_cannot_be_told_apart_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="name: "):
        clean_name(name)


@settings(max_examples=40)
@given(st.text(max_size=130))
def test_a_clean_name_stays_as_it_is_and_can_be_stored(text: str) -> None:
    try:
        name = clean_name(text)
    except InputError:
        return
    assert clean_name(name) == name
    name.encode()


def test_what_is_written_is_read_and_belongs_to_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    users = [User("ann", "annotator", KEPT), User("Zoë", "admin", KEPT)]
    write_users(path, users)
    assert list(read_users(path).values()) == users
    assert not too_open(path)
    assert [found.name for found in tmp_path.iterdir()] == ["users.json"]
    write_users(path, users[:1])  # a change is seen, though the file was read a moment ago
    assert list(read_users(path)) == ["ann"]
    path.chmod(0o644)
    assert too_open(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", 'no list "users"'),
        ('{"users": [1]}', "entry 1: it needs the texts"),
        ('{"users": [{"name": "ann", "role": "boss", "password": "x"}]}', "entry 1: there is no role 'boss'"),
        ('{"users": [{"name": "ann", "role": "admin", "password": "secret"}]}', "entry 1: the password is no scrypt"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=reason) as caught:
        read_users(path)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("cost", ["0$8$1", "1$8$1", "3$8$1", "1073741824$8$1", "16384$1000$1", "16384$8$99", "x$8$1"])
def test_a_hash_that_would_take_the_servers_memory_is_refused(tmp_path: Path, cost: str) -> None:
    path = tmp_path / "users.json"
    entry = {"name": "ann", "role": "admin", "password": f"scrypt${cost}${'00' * 16}${'00' * 32}"}
    path.write_text(json.dumps({"users": [entry]}), encoding="utf-8")
    with pytest.raises(ConfigError, match="no scrypt hash"):
        read_users(path)


def test_nobody_is_in_a_file_twice(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    write_users(path, [User("ann", "admin", KEPT), User("ann", "annotator", KEPT)])
    with pytest.raises(ConfigError, match="entry 2: 'ann' is in it twice"):
        read_users(path)


def test_a_file_that_is_not_there_or_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="users add"):
        read_users(tmp_path / "none.json")
    with pytest.raises(OutputError, match="none"):
        write_users(tmp_path / "none" / "users.json", [])
