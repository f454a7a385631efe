"""The lines of the house: who may import whom, and what the machines may not touch."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("minicluster", "actors", "fixtures")

# Every room may import itself, the rooms below it that are named here, and the bottom modules.
BOTTOM = ("durations", "effects", "errors", "faults", "java_order", "planting", "rules", "trace")
MAY_IMPORT = {
    "protocol": (),
    "log": ("protocol",),
    "metadata": ("protocol", "log"),
    "controller": ("protocol", "log", "metadata"),
    "quorum": ("protocol", "log", "metadata"),
    "replica": ("protocol", "log", "metadata"),
    "broker": ("protocol", "log", "metadata", "replica"),
    "scenario": ("protocol", "log", "metadata", "controller", "quorum", "replica"),
    "verify": ("protocol", "log", "metadata"),
    "actors": (
        "protocol", "log", "metadata", "controller", "quorum", "replica", "broker", "scenario",
        "verify",
    ),
    "fixtures": ("protocol", "log", "metadata", "scenario", "verify", "actors"),
}  # fmt: skip

PURE = (
    "protocol", "log", "metadata", "controller", "quorum", "replica", "broker", "scenario",
)  # fmt: skip
CLOCKS_THREADS_SOCKETS_CHANCE = {
    "asyncio", "concurrent", "datetime", "logging", "multiprocessing", "pykka", "random",
    "sched", "secrets", "select", "selectors", "signal", "socket", "socketserver", "structlog",
    "subprocess", "threading", "time", "_thread",
}  # fmt: skip
CHANCE_CALLS = {"uuid1", "uuid4", "urandom", "getrandom"}

LONGEST_FILE = 520
LONGEST_FUNCTION = 70


def sources(*folders: str) -> Iterator[Path]:
    """Python files by their real place (the links inside minicluster are not followed)."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(part.is_symlink() for part in path.parents if part != ROOT):
                yield path


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    if parts[0] in ("actors", "fixtures"):
        return parts[0]
    return parts[1] if len(parts) > 2 else ""


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            assert node.module is not None
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def test_there_is_something_to_look_at() -> None:
    rooms = {room_of(path) for path in sources(*PACKAGES)}
    assert set(MAY_IMPORT) <= rooms


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_run_down_the_list_of_rooms(room: str) -> None:
    allowed = {room, *MAY_IMPORT[room], *BOTTOM}
    wrong = []
    for path in sources(*PACKAGES):
        if room_of(path) != room:
            continue
        for name, line in imports_of(path):
            first, _, rest = name.partition(".")
            if first == "minicluster" and rest and rest.split(".")[0] not in allowed:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_bottom_modules_import_only_each_other() -> None:
    for name in BOTTOM:
        path = ROOT / "minicluster" / f"{name}.py"
        for module, line in imports_of(path):
            first, _, rest = module.partition(".")
            assert first != "minicluster" or rest.split(".")[0] in BOTTOM, f"{path}:{line}"


def test_machines_have_no_clock_thread_socket_or_chance() -> None:
    wrong = []
    for path in sources("minicluster"):
        if room_of(path) not in PURE:
            continue
        for name, line in imports_of(path):
            if name.split(".")[0] in CLOCKS_THREADS_SOCKETS_CHANCE:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node, "attr", None) or getattr(node, "id", None)
            if called in CHANCE_CALLS:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} draws chance: {called}")
    assert not wrong, "\n".join(wrong)


def test_only_verify_and_the_command_line_know_spark() -> None:
    for path in sources(*PACKAGES):
        knows = any(name.split(".")[0] in ("pyspark", "py4j") for name, _ in imports_of(path))
        assert not knows or room_of(path) == "verify" or path.name == "cli.py", path


def test_nobody_imports_the_top_level_folders_by_their_own_names() -> None:
    for path in sources(*PACKAGES, "tests", "examples"):
        for name, line in imports_of(path):
            assert name.split(".")[0] not in ("actors", "fixtures"), f"{path}:{line}: {name}"


def test_nobody_imports_the_command_line() -> None:
    for path in sources(*PACKAGES):
        if path.name in ("cli.py", "__main__.py"):
            continue
        assert all(name != "minicluster.cli" for name, _ in imports_of(path)), path


def test_files_and_functions_stay_small() -> None:
    wrong = []
    for path in sources(*PACKAGES):
        text = path.read_text()
        if len(text.splitlines()) > LONGEST_FILE:
            wrong.append(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    wrong.append(f"{where} {node.name}: {length} lines")
    assert not wrong, "\n".join(wrong)


def test_public_functions_and_classes_say_what_they_are() -> None:
    wrong = []
    for path in sources(*PACKAGES):
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree) and path.name != "__init__.py":
            wrong.append(f"{path.relative_to(ROOT)}: no header")
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_"
            if public and not ast.get_docstring(node):  # type: ignore[arg-type]
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")  # type: ignore[attr-defined]
    assert not wrong, "\n".join(wrong)
