"""Reading scenarios: a file, a text, or values; a slip costs no run.

Every error is one line: the file with line and column, the step, what is wrong, what to write.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from minicluster.durations import parse_duration_ms
from minicluster.errors import UserError, instead
from minicluster.faults import Faults
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.rules import Rules
from minicluster.scenario.checks.limits import (
    BROKERS_MAX,
    CONTROLLERS_MAX,
    FILE_BYTES_MAX,
    LEVELS_MAX,
    NAME_MAX,
    SEED_MAX,
    STEPS_MAX,
    checked_pace,
    checked_text,
    shown,
    whole_number,
)
from minicluster.scenario.document import QUOTE_HINT, Document
from minicluster.scenario.errors import NoScenarioFile, ScenarioError
from minicluster.scenario.scenario import (
    DEFAULT_WITHIN_MS,
    Condition,
    Scenario,
    Step,
    default_runtime,
)
from minicluster.scenario.selectors import parse_condition
from minicluster.scenario.vocabulary import ACTIONS, action_of

RUNTIMES = ("simulated", "threaded")
MODES = ("kraft", "zookeeper")
NO_STEPS = "the list of steps is missing or empty"
_HEADER = ("name", "description", "cluster", "faults", "exercises", "steps")
_CLUSTER = (
    "controllers",
    "brokers",
    "seed",
    "rules",
    "metadata_version",
    "mode",
    "inter_broker_protocol",
    "runtime",
    "listeners",
    "pace",
    "config",
)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Errors:  ScenarioError: the file, the step, what is wrong.
    """
    return parse_scenario(scenario_text(path), where=str(path), name=path.stem)


def scenario_text(path: Path) -> str:
    """The text of a scenario file.

    Errors:  NoScenarioFile for what is not a file; ScenarioError for what is not text, or too long.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise NoScenarioFile(f"{path}: is not a file; give a scenario as a YAML file")
        if status.st_size > FILE_BYTES_MAX:
            raise ScenarioError(
                f"{path}: has {status.st_size:,} bytes; a scenario has at most {FILE_BYTES_MAX:,}"
            )
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NoScenarioFile(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: cannot be read: it is not a text in UTF-8") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{path}: cannot be read: {why}") from None


def parse_scenario(text: str, *, where: str = "scenario", name: str = "scenario") -> Scenario:
    """Read a scenario from the text of a file."""
    from minicluster.scenario.yaml_text import read_yaml  # a cluster starts without PyYAML

    return scenario_from(read_yaml(text, where), name)


def scenario_of(value: Any, *, where: str, name: str = "scenario") -> Scenario:
    """Check a scenario that has been read already, as plain values."""
    _check_plain(value, where)
    return scenario_from(Document(where, value), name)


def scenario_from(read: Document, name: str) -> Scenario:
    """Check the values of a file."""
    value, where = read.value, read.where
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: a scenario is a mapping with a list of steps")
    _known(read, value, _HEADER)
    cluster = value.get("cluster") or {}
    if not isinstance(cluster, dict):
        raise ScenarioError(
            f"{read.at('cluster')}: cluster is a mapping: {{controllers: 3, brokers: 3}}"
        )
    _known(read, cluster, _CLUSTER, "cluster")
    faults = _words(read, "faults")
    try:
        rules = Rules.named(str(cluster.get("rules", "kafka-4.3")))
        switches = _switches(faults)
        checked_name = checked_text(str(value.get("name") or name), "name", NAME_MAX)
    except UserError as error:
        raise ScenarioError(f"{where}: {error}") from None
    version = cluster.get("metadata_version")
    config = cluster.get("config") or {}
    if not isinstance(config, dict):
        place = read.at("cluster", "config")
        raise ScenarioError(f"{place}: cluster config is a mapping of names and values")
    return Scenario(
        name=checked_name,
        description=str(value.get("description") or ""),
        controllers=_count(read, cluster, "controllers", 3, 1, CONTROLLERS_MAX),
        brokers=_count(read, cluster, "brokers", 3, 1, BROKERS_MAX),
        seed=_count(read, cluster, "seed", 1, 0, SEED_MAX),
        rules=rules.name,
        metadata_version=None if version is None else str(version),
        mode=_word(read, cluster, "mode", MODES),
        inter_broker_protocol=_level(read, cluster),
        **_runtime(read, cluster),
        config=config,
        faults=switches,
        exercises=tuple(_words(read, "exercises")),
        steps=_steps(read),
    )


def _word(read: Document, cluster: Mapping[str, Any], name: str, words: tuple[str, ...]) -> str:
    """One of some words, the first of them by default."""
    word = cluster.get(name, words[0])
    if word not in words:
        place = read.at("cluster", name)
        raise ScenarioError(f"{place}: cluster {name}: {word!r} is not one of {', '.join(words)}")
    return str(word)


def _level(read: Document, cluster: Mapping[str, Any]) -> str | None:
    """inter.broker.protocol.version, only with brokers on ZooKeeper."""
    level = cluster.get("inter_broker_protocol")
    if level is None:
        return None
    place = read.at("cluster", "inter_broker_protocol")
    if cluster.get("mode") != "zookeeper":
        raise ScenarioError(f"{place}: inter_broker_protocol goes with mode: zookeeper")
    try:
        return str(InterBrokerProtocol.parse(str(level)))
    except UserError as error:
        raise ScenarioError(f"{place}: {error}") from None


def _runtime(read: Document, cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The runtime, and the ports and the pace that it may have."""
    listeners, pace = cluster.get("listeners", False), cluster.get("pace")
    if not isinstance(listeners, bool):
        place = read.at("cluster", "listeners")
        raise ScenarioError(f"{place}: listeners: {shown(listeners)} is not true or false")
    runtime = str(cluster.get("runtime", default_runtime(listeners=listeners, pace=pace)))
    if runtime not in RUNTIMES:
        place = read.at("cluster", "runtime")
        raise ScenarioError(
            f"{place}: runtime: {shown(runtime)} is none; {instead(runtime, RUNTIMES)}"
        )
    place = read.at("cluster", "pace")
    if pace is not None and runtime == "threaded":
        raise ScenarioError(f"{place}: pace: threads run in real time; take runtime: simulated")
    try:
        pace = None if pace is None else checked_pace(pace)
    except UserError as error:
        raise ScenarioError(f"{place}: {error}") from None
    return {"runtime": runtime, "listeners": listeners, "pace": pace}


def _steps(read: Document) -> tuple[Step, ...]:
    values = read.value.get("steps")
    if not values:
        raise ScenarioError(f"{read.where}: {NO_STEPS}")
    place = read.at("steps")
    if not isinstance(values, list):
        raise ScenarioError(f"{place}: steps is a list; each begins with a dash: - {{do: heal}}")
    if len(values) > STEPS_MAX:
        raise ScenarioError(f"{place}: {len(values)} steps; at most {STEPS_MAX} are allowed")
    return steps_of(values, read.where, read)


def steps_of(values: Sequence[Any], where: str, read: Document | None = None) -> tuple[Step, ...]:
    """Check a list of steps."""
    places = read or Document(where, values)
    return tuple(
        step_of(number, value, f"{places.at('steps', number - 1)}: step {number}")
        for number, value in enumerate(values, 1)
    )


def step_of(number: int, value: Any, where: str) -> Step:
    """Check one step, a mapping as a scenario file has it."""
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: a step is a mapping such as {{do: heal}}")
    kinds = [word for word in ("do", "until", "expect") if word in value]
    if len(kinds) != 1:
        raise ScenarioError(f"{where}: a step has one of do, until and expect{_meant_do(value)}")
    [kind] = kinds
    rest = {name: item for name, item in value.items() if name not in ("at", "after", kind)}
    if odd := next((name for name in rest if ")" in name or "]" in name), None):
        raise ScenarioError(f"{where}: {shown(odd)} is the rest of a value: {QUOTE_HINT}")
    at, after = value.get("at"), value.get("after")
    if at is not None and after is not None:
        raise ScenarioError(f"{where}: a step has at or after, not both")
    when: dict[str, Any] = {
        "at_ms": None if at is None else _duration_ms(at, f"{where}: at"),
        "after_ms": 0 if after is None else _duration_ms(after, f"{where}: after"),
    }
    if kind == "do":
        return _action_step(number, str(value["do"]), rest, where, when)
    names = ("until", "within") if kind == "until" else ("expect",)
    for name in rest:
        if name not in names:
            raise ScenarioError(f"{where}: {shown(name)} is not known here; {instead(name, names)}")
    text = value[kind]
    if not isinstance(text, str):
        raise ScenarioError(f"{where}: {shown(text)} is not a condition; write isr(orders-0) == 2")
    condition = Condition(text, parse_condition(text, where))
    if kind == "expect":
        return Step(number=number, expect=condition, **when)
    within = rest.get("within")
    within_ms = DEFAULT_WITHIN_MS if within is None else _duration_ms(within, f"{where}: within")
    return Step(number=number, until=condition, within_ms=within_ms, **when)


def _meant_do(value: Mapping[Any, Any]) -> str:
    """The hint for a step that begins with the name of its action."""
    for name in value:
        if isinstance(name, str) and (near := get_close_matches(name, ACTIONS, 1, 0.75)):
            return f"; write do: {near[0]}"
    return ""


def _action_step(
    number: int, method: str, arguments: dict[str, Any], where: str, when: Mapping[str, Any]
) -> Step:
    return Step(number=number, action=action_of(method, arguments, where), **when)


def _duration_ms(value: Any, where: str) -> int:
    try:
        return parse_duration_ms(value, what=where)
    except UserError as error:
        raise ScenarioError(str(error)) from None


def _known(read: Document, value: Mapping[Any, Any], names: Sequence[str], *path: str) -> None:
    for name in value:
        if name not in names:
            place = ": ".join([read.at(*path, name), *path])
            if not path and name in _CLUSTER:
                raise ScenarioError(f"{place}: {name} belongs below cluster")
            raise ScenarioError(f"{place}: {shown(name)} is not known here; {instead(name, names)}")


def _words(read: Document, name: str) -> list[str]:
    words = read.value.get(name) or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ScenarioError(f"{read.at(name)}: {name} is a list of names such as [A1, A3]")
    return words


def _switches(ids: Sequence[str]) -> tuple[str, ...]:
    """The zoo ids of a header, in the zoo's order: planted faults, then bugs of Kafka's own.

    Errors:  UserError for an id that is neither.
    """
    bugs = [zoo_id for zoo_id in Rules.zoo() if zoo_id in ids]
    planted = Faults.of(zoo_id for zoo_id in ids if zoo_id not in bugs).on
    return (*planted, *bugs)


def _count(
    read: Document, value: Mapping[str, Any], name: str, default: int, low: int, high: int
) -> int:
    try:
        return whole_number(value.get(name, default), name, low, high)
    except UserError as error:
        raise ScenarioError(f"{read.at('cluster', name)}: {error}") from None


def _check_plain(value: Any, where: str) -> None:
    """Reject what no scenario file can hold, in values that were read from elsewhere."""
    to_check: list[tuple[Any, int]] = [(value, 0)]
    while to_check:
        item, level = to_check.pop()
        if level > LEVELS_MAX:
            raise ScenarioError(f"{where}: lists and mappings nest deeper than {LEVELS_MAX} levels")
        if isinstance(item, dict):
            to_check += [(each, level + 1) for pair in item.items() for each in pair]
        elif isinstance(item, list):
            to_check += [(each, level + 1) for each in item]
        elif isinstance(item, str):
            try:
                checked_text(item, where)
            except UserError as error:
                raise ScenarioError(str(error)) from None
