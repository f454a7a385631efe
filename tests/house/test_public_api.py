"""What is public stands on one page, docs/reference/api.md, and is there and documented."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import minicluster
import minicluster.protocol
import minicluster.verify
from docs.generate.pages import DOCS
from minicluster import MiniCluster
from minicluster.actors.cluster.app import App
from minicluster.actors.cluster.views import ClientNode, Node, NodeSet, Partition, Topic
from minicluster.fixtures import plugin
from minicluster.scenario import ACTIONS

PAGE = (DOCS / "reference/api.md").read_text(encoding="utf-8")


def directives() -> Iterator[tuple[str, list[str]]]:
    """The full name of each thing on the page, with the members that it lists."""
    module = ""
    for block in re.findall(r"```\{eval-rst\}\n(.*?)```", PAGE, re.S):
        lines = block.splitlines()
        for number, line in enumerate(lines):
            if current := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = current[1]
            elif shown := re.match(r"\.\. auto\w+:: ([\w.]+)", line):
                name = shown[1]
                full = name if name.startswith("minicluster.") else f"{module}.{name}"
                options = "\n".join(lines[number + 1 : number + 3])
                members = re.search(r":members: (.+)", options)
                yield full, members[1].split(", ") if members else []


def resolved(full: str) -> Any:
    """The object of a full name: the longest part that is a module, then attributes."""
    parts = full.split(".")
    for end in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            value = getattr(value, part)
        return value
    raise AssertionError(full)


# Where no test may start Spark, this function is replaced (tests/conftest.py).
REPLACED = {"minicluster.verify.spark_session": [pytest.mark.spark]}
NAMES = dict(directives())
ALL = [*NAMES, *(f"{name}.{member}" for name, members in NAMES.items() for member in members)]


@pytest.mark.parametrize("full", [pytest.param(name, marks=REPLACED.get(name, [])) for name in ALL])
def test_a_public_name_exists_and_is_documented(full: str) -> None:
    value = resolved(full)
    if not isinstance(value, str | bytes | int) and not full.endswith(("ZERO_UUID", "TOPIC_ID")):
        assert inspect.getdoc(value), full


def test_every_action_is_public() -> None:
    methods = {name for name, action in ACTIONS.items() if not action.of_scenarios}
    assert methods and methods <= {name.removeprefix("minicluster.MiniCluster.") for name in NAMES}


@pytest.mark.parametrize("package", [minicluster, minicluster.verify, minicluster.protocol])
def test_the_face_of_a_package_is_public(package: Any) -> None:
    shown = {resolved(name) for name in NAMES if _is_hashable(resolved(name))}
    missing = {
        name
        for name in package.__all__
        if not name.startswith("__")
        and not inspect.ismodule(getattr(package, name))
        and getattr(package, name) not in shown
    }
    assert missing == set()


def _is_hashable(value: Any) -> bool:
    return value.__class__.__hash__ is not None


def test_a_cluster_shows_what_is_public_and_nothing_else() -> None:
    cluster = MiniCluster()
    shown = {name for name in dir(MiniCluster) if not name.startswith("_")}
    assert shown == {name for name in dir(cluster) if not name.startswith("_")}
    face = "minicluster.MiniCluster."
    assert shown == {name.removeprefix(face) for name in NAMES if name.startswith(face)}


@pytest.mark.parametrize("handle", [Topic, Partition, Node, NodeSet, ClientNode, App])
def test_a_handle_shows_what_is_public_and_nothing_else(handle: type) -> None:
    shown = {name for name in dir(handle) if not name.startswith("_")}
    inherited = set(dir(tuple)) if issubclass(handle, tuple) else set()
    assert shown - inherited == set(NAMES[f"{handle.__module__}.{handle.__name__}"])


def test_the_fixtures_are_public_and_nothing_else() -> None:
    shown = {
        name
        for name, value in vars(plugin).items()
        if callable(value) and getattr(value, "__module__", "") == plugin.__name__
        if not name.startswith(("_", "pytest_"))
    }
    of_plugin = f"{plugin.__name__}."
    documented = {name.removeprefix(of_plugin) for name in NAMES if name.startswith(of_plugin)}
    assert shown == documented | {"mini_cluster_fixture"}, "that one is of the package as well"


def test_the_page_names_no_private_thing() -> None:
    assert not [name for name in ALL if re.search(r"\._", name)]
    assert MiniCluster.__doc__
