"""Rooms see Kafka's configs by typed views, and a default stands in Kafka's table alone."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from minicluster.configs.config_def import ConfigKey, parse_type
from minicluster.configs.definitions import broker_configs, group_configs, topic_configs
from minicluster.configs.views import given_values, viewed_configs
from minicluster.configs.without_effect import reason_without_effect
from minicluster.replica.config import FetcherConfig, LogConfig, ReplicaManagerConfig
from tests.house.sources import ROOT, module_of, nodes_of, sources, tree_of

# Numbers under a config's name that are not Kafka's default of that config, with the reason.
OTHERS = {
    ("minicluster/clients/client.py", "REQUEST_TIMEOUT_MS"): "a client's config of that name",
}
MAKERS = ("broker_config", "topic_config", "older_config")


def views() -> Iterator[type[Any]]:
    """Every dataclass of the packages with a field that shows a config."""
    for path in sources():
        text = path.read_text()
        if path.name == "views.py" or not any(f" = {maker}(" in text for maker in MAKERS):
            continue
        module = importlib.import_module(module_of(path))
        for value in list(vars(module).values()):
            is_own = isinstance(value, type) and value.__module__ == module.__name__
            if is_own and is_dataclass(value) and viewed_configs(value):
                yield value


def test_the_views_are_those_of_the_rooms() -> None:
    assert {view.__name__ for view in views()} == {
        "ClusterConfig",
        "ControllerSettings",
        "FetcherConfig",
        "GroupCoordinatorConfig",
        "LifecycleConfig",
        "LogConfig",
        "QuorumSettings",
        "ReplicaManagerConfig",
        "TransactionCoordinatorConfig",
        "World",
    }


def test_a_views_default_is_that_of_kafkas_table() -> None:
    tables = {key.name: key for table in (broker_configs(), topic_configs()) for key in table}
    for view in views():
        shown = viewed_configs(view)
        for field in fields(view):
            if field.name not in shown:
                continue
            config = shown[field.name]
            key = tables.get(config.name)
            if key is None:
                # Kafka 4.3.0 does not have it, so that its table cannot.
                assert config.default is None, f"{view.__name__}.{field.name}"
                continue
            assert field.default is not MISSING
            assert field.default == config.read(key.default), f"{view.__name__}.{field.name}"


def test_a_view_takes_what_a_properties_file_has_and_leaves_the_rest() -> None:
    given = {"replica.fetch.min.bytes": " 7 ", "log.cleaner.enable": "false", "num.partitions": "9"}
    assert given_values(FetcherConfig, given) == {"min_bytes": 7}
    assert given_values(ReplicaManagerConfig, given) == {"cleans": False}
    assert LogConfig().segment_bytes == 1 << 30  # Kafka's, read here from its documentation


# --- no other module repeats a default --------------------------------------------------------


def number_in(node: ast.expr | None) -> int | None:
    """A number that is written as such, or as a product or power of numbers."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.BinOp):
        left, right = number_in(node.left), number_in(node.right)
        if left is not None and right is not None:
            match node.op:
                case ast.Mult():
                    return left * right
                case ast.LShift():
                    return left << right
    return None


def written_numbers(path: Path) -> Iterator[tuple[str, int]]:
    """The names to which a file gives numbers: variables, fields and defaults of parameters."""
    for node in nodes_of(path):
        pairs: list[tuple[str, ast.expr | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(t.id, node.value) for t in node.targets if isinstance(t, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.arguments):
            places = [*node.posonlyargs, *node.args]
            given = places[len(places) - len(node.defaults) :]
            pairs = [(a.arg, d) for a, d in zip(given, node.defaults, strict=True)]
            pairs += [(a.arg, d) for a, d in zip(node.kwonlyargs, node.kw_defaults, strict=True)]
        for name, value in pairs:
            number = number_in(value)
            if number is not None:
                yield name, number


def is_name_of(name: str, key: ConfigKey) -> bool:
    """A name has the last words of a config's, at least two of them beside the unit."""
    words = name.strip("_").lower().split("_")
    config = key.name.replace(".", " ").split()
    return len(words) >= 3 and config[-len(words) :] == words


def test_no_other_module_gives_a_configs_default_under_its_name() -> None:
    numbers: dict[int, list[ConfigKey]] = {}
    for table in (broker_configs(), topic_configs(), group_configs()):
        for key in table:
            # A config without effect is about what is not here; something else may have its name.
            acts = reason_without_effect(key.name) is None
            if acts and key.type_ in ("INT", "LONG") and key.default is not None:
                value = parse_type(key.name, key.default, key.type_)
                assert isinstance(value, int)
                numbers.setdefault(value, []).append(key)
    repeated = {}
    for path in sources():
        for name, number in written_numbers(path):
            for key in numbers.get(number, ()):
                if is_name_of(name, key):
                    repeated[str(path.relative_to(ROOT)), name] = key.name
    assert set(repeated) == set(OTHERS), repeated


def test_a_comment_does_not_say_which_config_a_number_is() -> None:
    """``TIMEOUT_MS = 30_000  # request.timeout.ms`` is a default that stands twice."""
    defaults: dict[str, set[str | None]] = {}
    for table in (broker_configs(), topic_configs()):
        for key in table:
            defaults.setdefault(key.name, set()).add(key.default)
    wrong = []
    for path in sources():
        lines = path.read_text().splitlines()
        for node in tree_of(path).body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                comment = lines[node.lineno - 1].partition("#")[2].replace(",", " ").split()
                number = str(number_in(node.value))
                if any(number in defaults.get(word, ()) for word in comment):
                    wrong.append(
                        f"{path.relative_to(ROOT)}:{node.lineno}: {lines[node.lineno - 1]}"
                    )
    assert not wrong, "\n".join(wrong)
