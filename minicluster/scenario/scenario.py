"""A scenario is data: a header and one flat list of steps.

The runner plays it, a run folder stores it, a shrinker deletes steps of it. Files are YAML (or
JSON, which is YAML); the form is checked when it is read, so that a slip costs no run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from minicluster.durations import format_duration, parse_duration_ms
from minicluster.errors import UserError, instead
from minicluster.faults import Faults
from minicluster.rules import Rules
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.selectors import parse_at
from minicluster.scenario.vocabulary import checked_arguments, written

DEFAULT_WITHIN_MS = 60_000
FIRST_CONTROLLER = 101
QUOTE_HINT = "a value with a bracket or a comma needs quotes"
RUNTIMES = ("simulated", "threaded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: an action, a condition to wait for (until) or one that must hold (expect).

    It fires at a time from the start (``at_ms``), or after the step before it (``after_ms``).
    """

    number: int
    at_ms: int | None = None
    after_ms: int = 0
    action: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    until: str | None = None
    expect: str | None = None
    within_ms: int = DEFAULT_WITHIN_MS

    @property
    def text(self) -> str:
        """The step in one line, for people."""
        if self.until is not None:
            return f"until {self.until} (within {format_duration(self.within_ms)})"
        if self.expect is not None:
            return f"expect {self.expect}"
        assert self.action is not None
        given = written(self.action, self.arguments)
        return " ".join([self.action, *(f"{k}={_short(v)}" for k, v in given.items())])

    def to_dict(self) -> dict[str, Any]:
        """The step as a scenario file has it."""
        when: dict[str, Any] = {}
        if self.at_ms is not None:
            when["at"] = format_duration(self.at_ms)
        elif self.after_ms:
            when["after"] = format_duration(self.after_ms)
        if self.until is not None:
            return {**when, "until": self.until, "within": format_duration(self.within_ms)}
        if self.expect is not None:
            return {**when, "expect": self.expect}
        assert self.action is not None
        return {**when, "do": self.action, **written(self.action, self.arguments)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A header and a flat list of steps."""

    name: str = "scenario"
    description: str = ""
    controllers: int = 3
    brokers: int = 3
    seed: int = 1
    rules: str = "kafka-4.3"
    metadata_version: str | None = None
    runtime: str = "simulated"
    config: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    exercises: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The scenario as a file has it."""
        cluster: dict[str, Any] = {
            "controllers": self.controllers,
            "brokers": self.brokers,
            "seed": self.seed,
            "rules": self.rules,
        }
        if self.metadata_version is not None:
            cluster["metadata_version"] = self.metadata_version
        if self.runtime != "simulated":
            cluster["runtime"] = self.runtime
        if self.config:
            cluster["config"] = dict(self.config)
        whole: dict[str, Any] = {"name": self.name}
        if self.description:
            whole["description"] = self.description
        whole["cluster"] = cluster
        if self.faults:
            whole["faults"] = list(self.faults)
        if self.exercises:
            whole["exercises"] = list(self.exercises)
        whole["steps"] = [step.to_dict() for step in self.steps]
        return whole

    def to_yaml(self) -> str:
        """The scenario as the text of a file."""
        text: str = yaml.safe_dump(self.to_dict(), sort_keys=False, width=100)
        return text


_HEADER = ("name", "description", "cluster", "faults", "exercises", "steps")
_CLUSTER = ("controllers", "brokers", "seed", "rules", "metadata_version", "runtime", "config")


class _Once(yaml.SafeLoader):
    """YAML that refuses a name that is there twice: one of the two values would be lost."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                problem = f"{key.value!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            if isinstance(key.value, str):
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Errors:  ScenarioError: the file, the step, what is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: cannot be read: it is not a text in UTF-8") from None
    return parse_scenario(text, where=str(path), name=path.stem)


def parse_scenario(text: str, *, where: str = "scenario", name: str = "scenario") -> Scenario:
    """Read a scenario from the text of a file."""
    try:
        value = yaml.load(text, _Once)  # the safe loader, and stricter
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be read"
        if "given twice" not in problem:
            problem += f" ({QUOTE_HINT})"
        raise ScenarioError(f"{where}: not YAML{line}: {problem}") from None
    return scenario_of(value, where=where, name=name)


def scenario_of(value: Any, *, where: str, name: str = "scenario") -> Scenario:
    """Check a scenario that has been read already."""
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: a scenario is a mapping with a list of steps")
    _known(value, _HEADER, where)
    cluster = value.get("cluster") or {}
    if not isinstance(cluster, dict):
        raise ScenarioError(f"{where}: cluster is a mapping: {{controllers: 3, brokers: 3}}")
    _known(cluster, _CLUSTER, f"{where}: cluster")
    words = _words(value, "faults", where)
    try:
        rules = Rules.named(str(cluster.get("rules", "kafka-4.3")))
        faults = _switches(words)
    except UserError as error:
        raise ScenarioError(f"{where}: {error}") from None
    runtime = str(cluster.get("runtime", "simulated"))
    if runtime not in RUNTIMES:
        raise ScenarioError(f"{where}: runtime: {runtime!r} is none; {instead(runtime, RUNTIMES)}")
    version = cluster.get("metadata_version")
    steps = value.get("steps")
    if not steps:
        raise ScenarioError(f"{where}: the list of steps is missing or empty")
    if not isinstance(steps, list):
        raise ScenarioError(f"{where}: steps is a list; each begins with a dash: - {{do: heal}}")
    config = cluster.get("config") or {}
    if not isinstance(config, dict):
        raise ScenarioError(f"{where}: cluster config is a mapping of names and values")
    return Scenario(
        name=str(value.get("name") or name),
        description=str(value.get("description") or ""),
        controllers=_count(cluster, "controllers", 3, where),
        brokers=_count(cluster, "brokers", 3, where),
        seed=_count(cluster, "seed", 1, where, least=0),
        rules=rules.name,
        metadata_version=None if version is None else str(version),
        runtime=runtime,
        config=config,
        faults=faults,
        exercises=tuple(_words(value, "exercises", where)),
        steps=steps_of(steps, where),
    )


def steps_of(values: Sequence[Any], where: str) -> tuple[Step, ...]:
    """Check a list of steps."""
    return tuple(step_of(n, value, f"{where}: step {n}") for n, value in enumerate(values, 1))


def step_of(number: int, value: Any, where: str) -> Step:
    """Check one step."""
    if not isinstance(value, dict):
        raise ScenarioError(f"{where}: a step is a mapping such as {{do: heal}}")
    kinds = [word for word in ("do", "until", "expect") if word in value]
    if len(kinds) != 1:
        raise ScenarioError(f"{where}: a step has one of do, until and expect")
    rest = {str(k): v for k, v in value.items() if k not in ("at", "after", "do")}
    if odd := next((name for name in rest if ")" in name or "]" in name), None):
        raise ScenarioError(f"{where}: {odd!r} is the rest of a value: {QUOTE_HINT}")
    at, after = value.get("at"), value.get("after")
    if at is not None and after is not None:
        raise ScenarioError(f"{where}: a step has at or after, not both")
    when: dict[str, Any] = {
        "at_ms": None if at is None else parse_duration_ms(at, what=f"{where}: at"),
        "after_ms": 0 if after is None else parse_duration_ms(after, what=f"{where}: after"),
    }
    if kinds == ["do"]:
        action = str(value["do"])
        arguments = checked_arguments(action, rest, where)
        return Step(number=number, action=action, arguments=arguments, **when)
    _known(rest, (kinds[0], "within") if kinds == ["until"] else (kinds[0],), where)
    condition = str(value[kinds[0]])
    parse_at(condition, where)
    within = rest.get("within")
    within_ms = (
        DEFAULT_WITHIN_MS if within is None else parse_duration_ms(within, what=f"{where}: within")
    )
    if kinds == ["until"]:
        return Step(number=number, until=condition, within_ms=within_ms, **when)
    return Step(number=number, expect=condition, **when)


def _known(value: Mapping[Any, Any], names: Sequence[str], where: str) -> None:
    for name in value:
        if name not in names:
            raise ScenarioError(f"{where}: {name!r} is not known here; {instead(name, names)}")


def _words(value: Mapping[str, Any], name: str, where: str) -> list[str]:
    words = value.get(name) or []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ScenarioError(f"{where}: {name} is a list of names such as [A1, A3]")
    return words


def _switches(ids: Sequence[str]) -> tuple[str, ...]:
    """The zoo ids of a header, in the zoo's order: planted faults, then bugs of Kafka's own.

    Errors:  UserError for an id that is neither.
    """
    bugs = [zoo_id for zoo_id in Rules.zoo() if zoo_id in ids]
    planted = Faults.of(zoo_id for zoo_id in ids if zoo_id not in bugs).on
    return (*planted, *bugs)


def _count(value: Mapping[str, Any], name: str, default: int, where: str, least: int = 1) -> int:
    count = value.get(name, default)
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise ScenarioError(f"{where}: {name}: {count!r} is not a whole number from {least} up")
    return count


def _short(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_short(item) for item in value) + "]"
    return str(value)
