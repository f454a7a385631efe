"""The JSON Schema of scenario files, from the declared actions, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.faults import Faults
from minicluster.rules import Rules
from minicluster.scenario.actions.action import Action, Argument, arguments_of
from minicluster.scenario.actions.arguments import (
    APIS,
    ASSIGNMENT,
    CLIENT,
    DRIFT,
    DURATION,
    ERRORS,
    FAULT,
    FLAG,
    FUNCTION,
    GROUPS,
    HOSTS,
    MAPPING,
    NAMES,
    NODES,
    PARTITIONS,
    PROBABILITY,
    PROGRAM,
    RATE,
    TEXT,
    TOPIC_ID,
    VALUE,
    VERSIONS,
    Kind,
)
from minicluster.scenario.actions.record_contents import HEADERS, KEYS, TIMESTAMPS, VALUES
from minicluster.scenario.checks.limits import (
    BROKERS_MAX,
    CONTROLLERS_MAX,
    DRIFT_MAX,
    DRIFT_MIN,
    NAME_MAX,
    PACE_MAX,
    PACE_MIN,
    RATE_MAX,
    SEED_MAX,
    STEPS_MAX,
)
from minicluster.scenario.reading import MODES, RUNTIMES
from minicluster.scenario.vocabulary import ACTIONS

Schema = dict[str, Any]

_TEXT: Schema = {"type": ["string", "integer"]}
_DURATION: Schema = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^([0-9.]+(ms|s|m|h))+$"},
    ]
}
_NODE: Schema = {"type": ["string", "integer"]}
_SOME_NODES: Schema = {"anyOf": [_NODE, {"type": "array", "items": _NODE, "minItems": 1}]}
_WORDS: Schema = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_CONTENT: Schema = {"type": ["string", "number", "object", "null"]}
_ONE_OR_LIST: Schema = {"anyOf": [_CONTENT, {"type": "array", "items": _CONTENT}]}
_TIME: Schema = {"type": "integer", "minimum": 0}
_KINDS: Mapping[str, Schema] = {
    TEXT.name: _TEXT,
    DURATION.name: _DURATION,
    NAMES.name: {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]},
    NODES.name: _SOME_NODES,
    GROUPS.name: {"type": "array", "items": _SOME_NODES, "minItems": 2},
    APIS.name: _WORDS,
    FLAG.name: {"type": "boolean"},
    PROBABILITY.name: {"type": "number", "minimum": 0, "maximum": 1},
    DRIFT.name: {"type": "number", "minimum": DRIFT_MIN, "maximum": DRIFT_MAX},
    RATE.name: {"type": "number", "exclusiveMinimum": 0, "maximum": RATE_MAX},
    VALUE.name: _SCALAR,
    MAPPING.name: {"type": "object", "additionalProperties": _SCALAR},
    PARTITIONS.name: _WORDS,
    ASSIGNMENT.name: {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    FAULT.name: {"enum": list(Faults.switches())},
    ERRORS.name: _WORDS,
    VERSIONS.name: {"anyOf": [_TEXT, {"type": "integer", "minimum": 0}]},
    CLIENT.name: _TEXT,
    PROGRAM.name: {"type": "string", "pattern": "^[^:]+:[^:]+$"},
    HOSTS.name: _WORDS,
    TOPIC_ID.name: _TEXT,
    VALUES.name: _ONE_OR_LIST,
    KEYS.name: _ONE_OR_LIST,
    HEADERS.name: {"type": ["object", "array"]},
    TIMESTAMPS.name: {"anyOf": [_TIME, {"type": "array", "items": _TIME}]},
    FUNCTION.name: {"not": {}},  # a test gives one; a file cannot
}


def scenario_schema() -> Schema:
    """The schema of a scenario file."""
    zoo = [*Faults.switches(), *Rules.zoo()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A scenario of minicluster",
        "type": "object",
        "required": ["steps"],
        "additionalProperties": False,
        "properties": {
            "name": {**_TEXT, "maxLength": NAME_MAX, "description": "names the run folder"},
            "description": {**_TEXT, "description": "shown before it runs"},
            "cluster": _cluster(),
            "faults": {
                "description": "planted from the start",
                "type": "array",
                "items": {"enum": zoo},
            },
            "exercises": {
                "description": "rules that must have had a case, or the run is unknown",
                "type": "array",
                "items": {"type": "string"},
            },
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": STEPS_MAX,
                "items": {"oneOf": [_until(), _expect(), *map(_step, ACTIONS.values())]},
            },
        },
    }


def _cluster() -> Schema:
    releases = [rules.name for rules in (Rules.KAFKA_4_3, Rules.KAFKA_3_9)]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "controllers": _whole(1, CONTROLLERS_MAX),
            "brokers": _whole(1, BROKERS_MAX),
            "seed": _whole(0, SEED_MAX),
            "rules": {"type": "string", "examples": releases},
            "metadata_version": {"type": ["string", "number"]},
            "mode": {"enum": list(MODES)},
            "inter_broker_protocol": {"type": "string"},
            "runtime": {"enum": list(RUNTIMES)},
            "listeners": {"type": "boolean"},
            "pace": {"type": "number", "minimum": PACE_MIN, "maximum": PACE_MAX},
            "config": {
                "description": "configs of brokers and controllers, by Kafka's names",
                "type": "object",
                "additionalProperties": _SCALAR,
            },
        },
    }


def _whole(low: int, high: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def _object(required: list[str], properties: Mapping[str, Schema], description: str) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": required,
        "additionalProperties": False,
        "properties": {
            "at": {**_DURATION, "description": "from the start of the scenario"},
            "after": {**_DURATION, "description": "after the step before"},
            **properties,
        },
    }


def _until() -> Schema:
    condition = {"type": "string", "description": "condition to wait for"}
    return _object(["until"], {"until": condition, "within": _DURATION}, "Wait for a condition.")


def _expect() -> Schema:
    condition = {"type": "string", "description": "condition that must hold now"}
    return _object(["expect"], {"expect": condition}, "Demand a condition.")


def _step(action: type[Action]) -> Schema:
    properties: dict[str, Schema] = {"do": {"const": action.method}}
    for name, argument in arguments_of(action).items():
        properties[name] = _argument(argument)
    needed = [name for name, argument in arguments_of(action).items() if argument.required]
    text = (action.__doc__ or "").strip().splitlines()[0]
    return _object(["do", *needed], properties, text)


def _argument(argument: Argument) -> Schema:
    schema = _of_kind(argument.kind)
    if argument.may_be_none:
        schema = {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}
    described = {**schema, "description": argument.kind.text}
    if argument.default is not None:
        described["default"] = argument.kind.written(argument.default)
    return described


def _of_kind(kind: Kind) -> Schema:
    if kind.name in _KINDS:
        return dict(_KINDS[kind.name])
    if kind.choices:
        return {
            "enum": [*kind.choices, *(int(choice) for choice in kind.choices if choice.isdecimal())]
        }
    assert kind.bounds is not None
    return _whole(*kind.bounds)
