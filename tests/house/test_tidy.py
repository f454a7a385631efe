"""The lines of the house: who may import whom, and what the machines may not touch."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Any

import pytest

from tests.house.sources import (
    PACKAGES,
    ROOT,
    circles,
    import_graph,
    imports_of,
    nodes_of,
    room_of,
    sources,
)

# Every room may import itself, the rooms below it that are named here, and the bottom modules.
BOTTOM = (
    "durations",
    "effects",
    "errors",
    "faults",
    "files",
    "java_order",
    "lazy_dataclass",
    "own_folders",
    "planting",
    "rules",
    "trace",
    "uncollected",
    "version",
)
MAY_IMPORT = {
    "protocol": (),
    "log": ("protocol",),
    "metadata": ("protocol", "log"),
    "configs": ("protocol",),
    "zookeeper": ("protocol", "metadata"),
    "controller": ("protocol", "log", "metadata", "configs", "zookeeper"),
    "quorum": ("protocol", "log", "metadata"),
    "replica": ("protocol", "log", "metadata", "configs"),
    "coordinator": ("protocol", "log", "metadata", "configs", "replica"),
    "broker": (
        "protocol", "log", "metadata", "configs", "zookeeper", "controller", "quorum", "replica",
        "coordinator",
    ),
    "clients": ("protocol", "log"),
    "scenario": ("protocol", "log", "metadata", "controller", "quorum", "replica"),
    "verify": ("protocol", "log", "metadata", "zookeeper"),
    "actors": (
        "protocol", "log", "metadata", "configs", "zookeeper", "controller", "quorum", "replica",
        "coordinator", "broker", "clients", "scenario", "verify",
    ),
    "fixtures": ("protocol", "log", "metadata", "scenario", "verify", "actors"),
}  # fmt: skip

PURE = (
    "protocol", "log", "metadata", "configs", "zookeeper", "controller", "quorum", "replica",
    "coordinator", "broker", "clients", "scenario",
)  # fmt: skip
CLOCKS_THREADS_SOCKETS_CHANCE = {
    "asyncio", "concurrent", "datetime", "logging", "multiprocessing", "pykka", "random",
    "sched", "secrets", "select", "selectors", "signal", "socket", "socketserver", "structlog",
    "subprocess", "threading", "time", "_thread",
}  # fmt: skip
CHANCE_CALLS = {"uuid1", "uuid4", "urandom", "getrandom"}

OF_SPARK_WORKERS = "minicluster/verify/spark/data_source.py"
"""Travels to Spark's workers by pickle, with dictionaries in place of slots."""

LONGEST_FILE = 500
LONGEST_FUNCTION = 70
MOST_MODULES = 16
TABLES = {"minicluster/protocol/messages"}
"""Folders with one file for each thing that Kafka declares."""


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
        node: Any
        for node in nodes_of(path):
            called = getattr(node, "attr", None) or getattr(node, "id", None)
            if called in CHANCE_CALLS:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} draws chance: {called}")
    assert not wrong, "\n".join(wrong)


def test_dataclasses_compile_their_methods_at_first_use() -> None:
    wrong = []
    for path in sources(*PACKAGES):
        for node in nodes_of(path):
            match node:
                case ast.ImportFrom(module="dataclasses", names=names, lineno=line) if any(
                    alias.name == "dataclass" for alias in names
                ):
                    wrong.append(f"{path.relative_to(ROOT)}:{line}")
    wrong = [where for where in wrong if not where.startswith(OF_SPARK_WORKERS)]
    fix = "write: from minicluster.lazy_dataclass import dataclass (imports take half of the time)"
    assert not wrong, "\n".join([fix, *wrong])


def test_only_verify_and_the_command_line_import_spark() -> None:
    for path in sources(*PACKAGES):
        imports_spark = any(
            name.split(".")[0] in ("pyspark", "py4j") for name, _ in imports_of(path)
        )
        assert not imports_spark or room_of(path) == "verify" or room_of(path) == "cli", path


def test_nobody_imports_the_top_level_folders_by_their_own_names() -> None:
    for path in sources(*PACKAGES, "tests", "examples"):
        for name, line in imports_of(path):
            assert name.split(".")[0] not in ("actors", "fixtures"), f"{path}:{line}: {name}"


def test_nobody_imports_the_command_line() -> None:
    for path in sources(*PACKAGES):
        if room_of(path) == "cli" or path.name == "__main__.py":
            continue
        assert all(name.split(".")[:2] != ["minicluster", "cli"] for name, _ in imports_of(path)), (
            path
        )


def test_files_stay_small() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for path in sources(*PACKAGES, "tests", "examples")
    }
    assert {file: n for file, n in lengths.items() if n > LONGEST_FILE} == {}


def test_functions_stay_small() -> None:
    wrong = []
    for path in sources(*PACKAGES):
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    wrong.append(f"{where} {node.name}: {length} lines")
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count: a circle is one file in several pieces."""
    assert circles(import_graph()) == []


def test_no_folder_has_more_modules_than_one_can_look_over() -> None:
    modules = Counter(path.parent for path in sources() if path.name != "__init__.py")
    sizes = {folder.relative_to(ROOT).as_posix(): n for folder, n in modules.items()}
    assert {f: n for f, n in sizes.items() if n > MOST_MODULES and f not in TABLES} == {}


OF_CONTAINERS = {"add", "append", "discard", "extend", "get", "pop", "remove", "update"}
"""Methods of lists, sets and dicts: a class that holds one gives them a name of its own."""


def test_no_function_and_no_method_only_forwards() -> None:
    """A function that only hands its arguments on, as they are, is a second name of another."""
    found = []
    for path in sources():
        for scope in nodes_of(path):
            if isinstance(scope, ast.Module | ast.ClassDef):
                is_method = isinstance(scope, ast.ClassDef)
                for node in scope.body:
                    if isinstance(node, ast.FunctionDef) and _forwards(node, is_method):
                        found.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert found == []


def _forwards(node: ast.FunctionDef, is_method: bool) -> bool:
    """A body of one call with the parameters as its arguments, or a method of no parameters that
    calls one of the same name.
    """
    body = [line for line in node.body if not _is_docstring(line)]
    if node.decorator_list or len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    call = body[0].value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    if name[0].isupper() or name == "format" or (is_method and name in OF_CONTAINERS):
        return False
    given = [ast.unparse(one) for one in call.args]
    given += [ast.unparse(keyword.value) for keyword in call.keywords]
    arguments = node.args
    own = [one.arg for one in (*arguments.posonlyargs, *arguments.args)][is_method:]
    own += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
    own += [one.arg for one in arguments.kwonlyargs]
    own += [arguments.kwarg.arg] if arguments.kwarg else []
    return given == own and (bool(own) or name == node.name)


def _is_docstring(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
