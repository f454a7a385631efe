"""A scenario is data: a header and one flat list of steps.

The player plays it, a run folder stores it, a shrinker deletes steps of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import field

from minicluster.durations import format_duration
from minicluster.scenario.actions.action import Action, Refusable
from minicluster.scenario.expression import Expression
from minicluster.values import Value

DEFAULT_WITHIN_MS = 60_000
# What YAML would read as something else than text, so that it needs quotes: by its characters, and
# as a whole.
_NOT_PLAIN = r"""\A\Z|\A[^A-Za-z0-9_./-]|[]["'{}#&*!|>%@`\\]|:$|: |[\s,=](?![^(]*\))"""
_NOT_TEXT = r"(?i:[-+]?[0-9.][0-9._]*[.e_].*|-|true|false|null|yes|no|on|off|~)"
FIRST_CONTROLLER = 101


class Condition(Value):
    """A condition as it was written, and parsed."""

    text: str
    expression: Expression

    def __str__(self) -> str:
        return self.text


class Step(Value, kw_only=True):
    """One step: an action, a condition to wait for (until) or one that must hold (expect).

    It fires at a time from the start (``at_ms``), or after the step before it (``after_ms``).
    """

    number: int
    at_ms: int | None = None
    after_ms: int = 0
    action: Action | None = None
    until: Condition | None = None
    expect: Condition | None = None
    within_ms: int = DEFAULT_WITHIN_MS

    @property
    def may_fail(self) -> bool:
        """The cluster may reject its action."""
        return isinstance(self.action, Refusable) and self.action.may_fail

    @property
    def text(self) -> str:
        """The step in one line, for people."""
        if self.until is not None:
            return f"until {self.until} (within {format_duration(self.within_ms)})"
        if self.expect is not None:
            return f"expect {self.expect}"
        assert self.action is not None
        arguments = self.action.given
        return " ".join(
            [self.action.method, *(f"{name}={_short(value)}" for name, value in arguments.items())]
        )

    def to_dict(self) -> dict[str, Any]:
        """The step as a scenario file has it."""
        when: dict[str, Any] = {}
        if self.at_ms is not None:
            when["at"] = format_duration(self.at_ms)
        elif self.after_ms:
            when["after"] = format_duration(self.after_ms)
        if self.until is not None:
            return {**when, "until": str(self.until), "within": format_duration(self.within_ms)}
        if self.expect is not None:
            return {**when, "expect": str(self.expect)}
        assert self.action is not None
        return {**when, "do": self.action.method, **self.action.given}


class Scenario(Value, kw_only=True):
    """A header and a flat list of steps."""

    name: str = "scenario"
    description: str = ""
    controllers: int = 3
    brokers: int = 3
    seed: int = 1
    rules: str = "kafka-4.3"
    metadata_version: str | None = None
    mode: str = "kraft"
    inter_broker_protocol: str | None = None
    runtime: str = "simulated"
    listeners: bool = False
    pace: float | None = None
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
        if self.mode != "kraft":
            cluster["mode"] = self.mode
        if self.inter_broker_protocol is not None:
            cluster["inter_broker_protocol"] = self.inter_broker_protocol
        if self.runtime != default_runtime(listeners=self.listeners, pace=self.pace):
            cluster["runtime"] = self.runtime
        if self.listeners:
            cluster["listeners"] = True
        if self.pace is not None:
            cluster["pace"] = self.pace
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


def default_runtime(*, listeners: bool, pace: object) -> str:
    """The runtime of a cluster that names none: clients take threads, unless there is a pace."""
    return "threaded" if listeners and pace is None else "simulated"


def to_yaml(scenario: Mapping[str, Any]) -> str:
    """A scenario as a file has it, as the text of the file."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

    text: str = yaml.dump(dict(scenario), Dumper=Dumper, sort_keys=False, width=100)
    return text


def _short(value: Any) -> str:
    """A value as ``step_text`` reads it."""
    if isinstance(value, list):
        return "[" + ",".join(_short(item) for item in value) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{_short(name)}: {_short(inner)}" for name, inner in value.items())
        return "{" + ", ".join(pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, str) and (re.search(_NOT_PLAIN, value) or re.fullmatch(_NOT_TEXT, value)):
        return "'" + value.replace("'", "''") + "'"
    return str(value)
