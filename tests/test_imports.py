"""Who may import whom, what importing a module may do, and how long a module may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

ORDER = (
    ("records", "trace", "errors", "cancellation", "users", "ports"),
    ("prompting", "registry", "settings", "passes", "scoring", "statistics", "benchmarks"),
    ("interventions",),
    ("attention",),
    ("backends",),
    ("retrieval",),
    ("methods",),
    ("run", "calibration"),
    ("evaluation", "performance"),
    ("result_lines",),
    ("reporting", "candidates", "agreement", "diagnosis", "reports", "comparison", "studies", "differences"),
    ("commands",),
    ("__main__",),
)
"""The parts of mdqa from left to right: a part imports only what stands left of it, or beside it in the same place."""

RANK = {part: place for place, parts in enumerate(ORDER) for part in parts}

ONLY = {
    "scoring": {"records", "errors", "scoring"},
    "statistics": {"records", "errors", "statistics"},
    "benchmarks": {"records", "errors", "registry", "benchmarks"},
    "registry": {"errors"},
}
"""Parts that see even less than what stands left of them."""

STORAGE_SEES = {"mdqa.records", "mdqa.trace", "mdqa.errors"}

GRADIO = {"components", "guard", "launching", "layout", "page", "people", "shield", "tabs", "theme"}
"""The parts of ui that may use Gradio: what is laid out, and what stands between the browser and the handlers."""

LONG_MODULES: dict[str, str] = {}
"""Modules above 350 lines, each with the reason why it stays whole."""


def modules(*folders: str) -> list[Path]:
    """All modules in these folders, relative to the root."""
    return sorted(path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py"))


def dotted(path: Path) -> str:
    """A module's name for import."""
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(source: str, package: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, at any depth; ``from a import b`` gives a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            yield node.lineno, origin
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def breach(importer: str, imported: str) -> str:
    """Why ``importer`` must not import ``imported``; empty if it may."""
    me, other = importer.split("."), imported.split(".")
    if other[0] not in ("mdqa", "storage", "ui", "app"):
        if me[0] == "ui" and other[0] == "gradio" and not GRADIO & set(me[1:2]):
            return "views and verbs are without Gradio"
        forbidden = {"mdqa": {"gradio", "sqlite3", "sqlite_utils"}, "storage": {"gradio", "torch"}, "ui": set()}
        return f"{me[0]} does not use {other[0]}" if other[0] in forbidden.get(me[0], set()) else ""
    if me[0] == "storage" and other[0] != "storage":
        known = imported == "mdqa" or ".".join(other[:2]) in STORAGE_SEES
        return "" if known else "storage sees records, trace and errors only"
    if me[0] == "mdqa" and other[0] != "mdqa":
        return "the research core knows no database and no screen"
    if other[0] == "app" or (other[0] == "ui" and me[0] not in ("ui", "app")):
        return "only app.py imports ui, and nothing imports app.py"
    return _within_core(me[1:], other[1:]) if me[0] == other[0] == "mdqa" else ""


def _within_core(me: list[str], other: list[str]) -> str:
    if not me or not other:
        return ""
    mine, theirs = me[0], other[0]
    if theirs not in RANK:
        return f"{theirs} has no place in the order; add it to ORDER"
    if mine in ONLY and theirs not in ONLY[mine]:
        return f"{mine} sees {', '.join(sorted(ONLY[mine]))} only"
    if RANK[theirs] > RANK[mine]:
        return f"{theirs} stands right of {mine}"
    folders = [parts[1] for parts in (me, other) if len(parts) > 1 and _is_method(parts[1])]
    if mine == theirs == "methods" and len(folders) == 2 and folders[0] != folders[1]:
        return "methods never import each other"
    return ""


def _is_method(name: str) -> bool:
    return (ROOT / "mdqa" / "methods" / name).is_dir()


@pytest.mark.parametrize("path", modules("mdqa", "storage", "ui"), ids=str)
def test_imports_go_one_way(path: Path) -> None:
    name = dotted(path)
    package = path.parent.parts
    found = {
        f"{path}:{line}: {name} imports {imported}: {why}"
        for line, imported in imports((ROOT / path).read_text(encoding="utf-8"), package)
        if (why := breach(name, imported))
    }
    assert not found, "\n".join(sorted(found))


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("mdqa.records", "mdqa.trace.Event.x"),
        ("mdqa.backends.hf", "mdqa.methods.base"),
        ("mdqa.scoring.answers", "mdqa.prompting"),
        ("mdqa.statistics.bootstrap", "mdqa.scoring.answers"),
        ("mdqa.methods.cafe.method", "mdqa.methods.duquad.fusion"),
        ("mdqa.methods.cafe.method", "mdqa.methods.duquad"),
        ("mdqa.methods.base", "mdqa.run"),
        ("mdqa.run", "storage.store"),
        ("mdqa.run", "gradio"),
        ("mdqa.newpart", "mdqa.newpart2"),
        ("storage.runs", "mdqa.run"),
        ("storage.runs", "ui.actions"),
        ("mdqa.run", "ui"),
        ("ui.actions", "app"),
        ("ui.actions", "gradio"),
        ("ui.views.heads", "gradio"),
    ],
)
def test_breaches_are_seen(importer: str, imported: str) -> None:
    if importer == "mdqa.records":
        assert not breach("mdqa.records", "mdqa.trace.Event"), "neighbours in the order may see each other"
        return
    assert breach(importer, imported)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("mdqa.methods.cafe.method", "mdqa.methods.base.Method"),
        ("mdqa.methods.cafe.method", "mdqa.methods.cafe.heads"),
        ("mdqa.methods.asking", "mdqa.backends.base"),
        ("storage.runs", "mdqa.records.RunResult"),
        ("ui.actions", "storage.store"),
        ("app", "ui.layout"),
        ("mdqa.run", "torch"),
        ("ui.tabs.ask", "gradio"),
    ],
)
def test_allowed_imports_are_allowed(importer: str, imported: str) -> None:
    assert not breach(importer, imported)


def test_relative_imports_are_resolved() -> None:
    source = "from . import b\nfrom ..run import x\nimport torch"
    names = {name for _, name in imports(source, ("mdqa", "methods"))}
    assert {"mdqa.methods.b", "mdqa.run", "mdqa.run.x", "torch"} <= names


HEAVY = ("torch", "transformers", "sentence_transformers", "gradio", "plotly", "scipy", "gguf", "llguidance")


def _light() -> list[str]:
    """Modules that must be importable without the heavy packages: everything but models, attention and the screen."""
    heavy_parts = ("mdqa.attention", "mdqa.backends", "mdqa.retrieval")
    names = [dotted(path) for path in modules("mdqa", "storage")]
    light = [name for name in names if not name.startswith(heavy_parts) and name != "mdqa.__main__"]
    return [*light, "mdqa.backends.base", "mdqa.backends.scripted"]


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_core_is_light() -> None:
    code = f"""
import importlib, sys
loaded = {{}}
for name in {_light()!r}:
    importlib.import_module(name)
    for heavy in {HEAVY!r}:
        if heavy in sys.modules and heavy not in loaded:
            loaded[heavy] = name
for heavy, name in loaded.items():
    print(heavy, "is imported by", name)
"""
    assert _python(code) == ""


WATCHER = """
import importlib, os, sys, sysconfig
root, stdlib = {root!r}, sysconfig.get_path("stdlib")

def culprit(skip):
    "The repository's file that did this itself, if one did: the nearest frame outside the standard library."
    frame = sys._getframe(skip)
    while frame:
        name = frame.f_code.co_filename
        if name.startswith("<frozen importlib"):
            return ""  # the import itself, which opens the module's file
        if name.startswith("<frozen") or (name.startswith(stdlib) and "site-packages" not in name):
            frame = frame.f_back
            continue
        return name if name.startswith(root) else ""
    return ""

class Watched(type(os.environ)):
    def __getitem__(self, key):
        if who := culprit(2):
            print(who, "reads the variable", key)
        return super().__getitem__(key)

os.environ.__class__ = Watched

def hook(event, args):
    if event == "open" and not str(args[0]).endswith((".py", ".pyc")) and (who := culprit(2)):
        print(who, "opens", args[0])
    if event in ("socket.connect", "subprocess.Popen", "os.mkdir") and (who := culprit(2)):
        print(who, "does", event)

sys.addaudithook(hook)
for name in {names!r}:
    importlib.import_module(name)
"""


def test_importing_does_nothing() -> None:
    """No module opens a file, reads the environment, starts a program or connects while it is imported."""
    names = [name for path in modules("mdqa", "storage", "ui") if (name := dotted(path)) != "mdqa.__main__"]
    code = WATCHER.format(root=str(ROOT / ""), names=names)
    assert _python(code) == ""


def test_the_watcher_sees_what_it_should(tmp_path: Path) -> None:
    (tmp_path / "guilty.py").write_text("import os, pathlib\nos.environ.get('HOME')\nopen(os.devnull).close()\n")
    code = WATCHER.format(root=str(tmp_path), names=["guilty"])
    seen = _python(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{code}")
    assert "reads the variable HOME" in seen
    assert "opens" in seen


@pytest.mark.parametrize("path", modules("mdqa", "storage", "ui"), ids=str)
def test_modules_stay_small(path: Path) -> None:
    lines = len((ROOT / path).read_text(encoding="utf-8").splitlines())
    assert lines <= 350 or str(path) in LONG_MODULES, f"{path} has {lines} lines: split it, or list it with a reason"


def test_the_list_of_long_modules_is_true() -> None:
    for path in LONG_MODULES:
        assert len((ROOT / path).read_text(encoding="utf-8").splitlines()) > 350, (
            f"{path} is short: take it off the list"
        )


def test_app_is_thin() -> None:
    lines = (ROOT / "app.py").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 80
