"""The lines of the house: who may import whom, and what the machines may not touch."""

from __future__ import annotations

import re
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
    "moments",
    "own_command",
    "own_folders",
    "planting",
    "rules",
    "trace",
    "values",
    "version",
)
MAY_IMPORT = {
    "protocol": (),
    "log": ("protocol",),
    "metadata": ("protocol", "log"),
    "configs": ("protocol",),
    "security": ("protocol", "metadata"),
    "channel": ("protocol", "configs"),
    "controller": ("protocol", "log", "metadata", "configs", "security"),
    "quorum": ("protocol", "log", "metadata", "configs"),
    "replica": ("protocol", "log", "metadata", "configs", "channel", "security"),
    "coordinator": ("protocol", "log", "metadata", "configs", "channel", "replica"),
    "broker": (
        "protocol", "log", "metadata", "configs", "security", "channel", "controller", "quorum",
        "replica", "coordinator",
    ),
    "server": ("protocol", "metadata", "security", "channel", "controller", "quorum", "broker"),
    "clients": ("protocol", "log"),
    "scenario": (
        "protocol", "log", "metadata", "configs", "security", "controller", "quorum", "replica",
    ),
    "zookeeper": ("protocol", "log", "metadata", "configs", "controller", "broker", "scenario"),
    "zoo": (
        "protocol", "log", "metadata", "controller", "quorum", "replica", "coordinator",
        "zookeeper", "security", "scenario",  # what a fault needs of one that is drawn
    ),
    "verify": ("protocol", "log", "metadata", "configs", "zookeeper"),
    "what_if": ("protocol", "log", "metadata", "configs", "verify"),
    "actors": (
        "protocol", "log", "metadata", "configs", "security", "channel", "zookeeper",
        "controller", "quorum", "replica", "coordinator", "broker", "server", "clients",
        "scenario", "zoo", "verify", "what_if",
    ),
    "fixtures": ("protocol", "log", "metadata", "scenario", "verify", "actors"),
}  # fmt: skip

PURE = (
    "protocol", "log", "metadata", "configs", "security", "channel", "zookeeper", "controller",
    "quorum", "replica", "coordinator", "broker", "server", "clients", "scenario", "zoo",
)  # fmt: skip
CLOCKS_THREADS_SOCKETS_CHANCE = {
    "asyncio", "concurrent", "datetime", "logging", "multiprocessing", "pykka", "random",
    "sched", "secrets", "select", "selectors", "signal", "socket", "socketserver", "structlog",
    "subprocess", "threading", "time", "_thread",
}  # fmt: skip
CHANCE_CALLS = {"uuid1", "uuid4", "urandom", "getrandom"}


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


def test_frozen_values_are_declared_by_the_decorator_of_the_house() -> None:
    """One that is frozen at run time costs a call for each field of each instance."""
    wrong = []
    for path in sources(*PACKAGES):
        if path.name == "values.py" or "@dataclass(frozen=True" not in path.read_text():
            continue
        if any(name == "dataclasses.dataclass" for name, _ in imports_of(path)):
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong, "\n".join(wrong)


def test_values_are_copied_by_the_function_of_the_house() -> None:
    """That of ``dataclasses`` fails on a struct when it is called, and a type checker cannot see
    it."""
    wrong = []
    for path in sources(*PACKAGES):
        names = {name for name, _ in imports_of(path)}
        calls = re.search(r"\b(dataclasses|structs)\.replace\(", path.read_text())
        if path.name != "values.py" and (
            calls or names & {"dataclasses.replace", "msgspec.structs.replace"}
        ):
            wrong.append(str(path.relative_to(ROOT)))
    assert not wrong, "\n".join(wrong)


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


NAMES_A_SESSION = {  # for type checkers
    ROOT / "minicluster/verify/verifying.py",
    ROOT / "minicluster/cli/querying.py",
}


def test_spark_is_imported_only_where_it_drives_the_judge_and_by_views() -> None:
    """The judge itself, its histories and its rules run without it, live and in this process."""
    for path in sources(*PACKAGES):
        of_spark = path.relative_to(ROOT).parts[:3] in {
            ("minicluster", "verify", "spark"),
            ("minicluster", "verify", "shown"),
        }
        for name, line in imports_of(path):
            if name.split(".")[0] in ("pyspark", "py4j"):
                assert of_spark or path in NAMES_A_SESSION, f"{path}:{line}: {name}"


ROOMS = ("partition", "quorum", "exchange", "images", "group", "producers", "waits", "programs")
FOLDS = [f"minicluster/verify/{room}" for room in ROOMS]
DRIVE = {"driver.py", "setting.py", "topic_names.py"}


def test_a_fold_sees_one_subject_and_its_driver_reads_each_table_once() -> None:
    """Rows come one by one, from a running cluster as well; only a driver knows the run."""
    for path in sources(*FOLDS):
        text = path.read_text()
        assert "TracedRun" not in text or path.name in DRIVE, path
        read = re.findall(r"run\.(?:rows|by_record)\((\"\w+\"(?:, by=\"\w+\")?)", text)
        assert len(read) == len({*read}), f"{path}: {read}"


def test_the_judge_knows_no_actors() -> None:
    for path in sources("minicluster/verify"):
        for name, line in imports_of(path):
            assert name.split(".")[0] != "pykka", f"{path}:{line}: {name}"


def test_nobody_imports_the_top_level_folders_by_their_own_names() -> None:
    by_its_own_name = re.compile(r"^\s*(?:from|import) (?:actors|fixtures)\b", re.M)
    for path in sources(*PACKAGES, "tests", "examples"):
        assert not by_its_own_name.search(path.read_text()), path


def test_nobody_imports_the_command_line() -> None:
    for path in sources(*PACKAGES):
        if room_of(path) == "cli" or path.name == "__main__.py":
            continue
        assert all(name.split(".")[:2] != ["minicluster", "cli"] for name, _ in imports_of(path)), (
            path
        )


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count: a circle is one file in several pieces."""
    assert circles(import_graph()) == []
