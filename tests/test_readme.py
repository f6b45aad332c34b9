"""The README is true: its commands, tree, settings and versions are those of the code."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from mdqa.__main__ import COMMANDS, build_parser
from mdqa.registry import METHODS
from mdqa.settings import OF_THE_HOST, Settings

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
IGNORED = {"__init__.py", "__pycache__"}


def requirements() -> dict[str, str]:
    """Pinned version by package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line.partition("#")[0].strip() for line in lines]
    pairs = (line.split("==") for line in wanted if line)
    return {name.strip(): version.strip() for name, version in pairs}


def tree() -> dict[str, dict[str, str]]:
    """The annotated tree: per top-level entry its children, each with everything that is said about it."""
    match = re.search(r"^```\n(app\.py.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert match, "the README has no annotated tree"
    found: dict[str, dict[str, str]] = {}
    top = child = ""
    for line in match[1].splitlines():
        name, _, text = line.strip().partition(" ")
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            top, child = name.rstrip("/"), ""
            found[top] = {}
        elif indent == 2:
            child = name.rstrip("/")
            found[top][child] = text
        else:
            found[top][child] += " " + line.strip()
    return found


def real(folder: Path) -> set[str]:
    """What is in a folder, without what Python and git leave there."""
    return {path.name for path in folder.iterdir() if path.name not in IGNORED and not path.name.startswith(".")}


def test_front_matter_fits_the_pins() -> None:
    front = yaml.safe_load(README.split("---\n")[1])
    assert README.startswith("---\n")
    assert (front["sdk"], front["app_file"], front["python_version"]) == ("gradio", "app.py", "3.11")
    assert str(front["sdk_version"]).startswith(requirements()["gradio"].removesuffix("*"))
    assert front["license"] == "apache-2.0"
    assert len(front["short_description"]) <= 60
    assert {"title", "emoji", "colorFrom", "colorTo"} <= set(front)


def test_versions_stay_in_the_tested_family() -> None:
    pins = requirements()
    assert pins["torch"] == "2.13.0"
    assert pins["gradio"].split(".")[0] == "6"
    assert all(re.fullmatch(r"\d+\.\d+\.(\d+|\*)", version) for version in pins.values()), pins
    assert "vllm" not in pins


def test_the_two_commands_stand_at_the_top() -> None:
    top = README[: README.index("## A walk")]
    assert "pip install -r requirements.txt && python app.py\n" in top
    assert "pip install -r requirements.txt && pytest\n" in top


def test_top_level_is_in_the_tree() -> None:
    listed = set(tree())
    assert {name for name in listed if not (ROOT / name).exists()} == set()
    assert real(ROOT) - listed - {"README.md", "LICENSE"} == set()


@pytest.mark.parametrize("folder", ["mdqa", "storage", "ui"])
def test_tree_is_the_real_tree(folder: str) -> None:
    children = tree()[folder]
    assert set(children) == real(ROOT / folder)
    for child, text in children.items():
        path = ROOT / folder / child
        assert text.strip(), f"{folder}/{child} needs a word of explanation"
        if not path.is_dir():
            continue
        named = set(re.findall(r"\b\w+\.py\b", text))
        files = {name for name in real(path) if name.endswith(".py")}
        assert named == files, f"{folder}/{child}: said but not there {named - files}, not said {files - named}"


def test_methods_are_in_the_tree() -> None:
    assert set(METHODS) <= set(re.findall(r"\w+", tree()["mdqa"]["methods"]))


def test_every_command_is_documented_and_works() -> None:
    documented = re.findall(r"^\| `python -m mdqa (.+?)`", README, re.MULTILINE)
    assert {command.split()[0] for command in documented} == set(COMMANDS)
    for command in documented:
        arguments = command.replace("--method M", "--method direct").split()
        build_parser().parse_args(arguments)


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(MDQA_\w+)` \| (.+?) \|", README, re.MULTILINE))
    assert set(rows) == {f"MDQA_{field.name.upper()}" for field in fields(Settings) if field.metadata != OF_THE_HOST}
    settings = Settings.from_environment({})
    for name, said in rows.items():
        value = getattr(settings, name.removeprefix("MDQA_").lower())
        if said.startswith("`"):
            text = said.strip("`")
            assert str(value) == str(Path(text).expanduser() if text.startswith("~") else text), name
        else:
            assert value in ("", (), None), f"{name}: the README gives no value, the default is {value!r}"


def test_places_to_edit_exist() -> None:
    section = README[README.index("### To add") : README.index("## Tests")]
    places = {place for place in re.findall(r"`([\w./]+\.py)`", section) if "<" not in place}
    assert places
    assert {place for place in places if not (ROOT / place).is_file()} == set()
    for table, place in re.findall(r"`([A-Z]+)` in `([\w./]+\.py)`", section):
        assert re.search(rf"^{table}\b", (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE), (
            f"{table} in {place}"
        )


def test_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text
