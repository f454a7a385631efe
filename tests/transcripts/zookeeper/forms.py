"""The JSON of recorded requests as messages, and messages in a form that can be compared.

Releases before 3.2 name some fields differently (before 3.0 also those of ElectLeaders); texts of
errors, and the order of topics and partitions in a message, are no part of what is compared.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from minicluster.protocol import messages
from minicluster.protocol.json_form import from_json, to_json

NAMES = {
    "ALTER_ISR": "AlterPartition",
    "ALTER_PARTITION": "AlterPartition",
    "LEADER_AND_ISR": "LeaderAndIsr",
    "STOP_REPLICA": "StopReplica",
    "UPDATE_METADATA": "UpdateMetadata",
    "CONTROLLED_SHUTDOWN": "ControlledShutdown",
    "ELECT_LEADERS": "ElectLeaders",
    "ALTER_PARTITION_REASSIGNMENTS": "AlterPartitionReassignments",
    "ALLOCATE_PRODUCER_IDS": "AllocateProducerIds",
    "CREATE_TOPICS": "CreateTopics",
    "DELETE_TOPICS": "DeleteTopics",
    "CREATE_PARTITIONS": "CreatePartitions",
    "ALTER_CONFIGS": "AlterConfigs",
    "INCREMENTAL_ALTER_CONFIGS": "IncrementalAlterConfigs",
    "LIST_PARTITION_REASSIGNMENTS": "ListPartitionReassignments",
}
_OLD_NAMES = {"currentIsrVersion": "partitionEpoch"}
_LEFT_OUT = {"errorMessage", "throttleTimeMs", "allowReplicationFactorChange"}


def read_message(api: str, kind: str, version: int, body: dict[str, Any]) -> Any:
    """The request or response (``kind``) of a recorded body."""
    return from_json(getattr(messages, NAMES[api] + kind), _renamed(api, body), version)


def comparable(message: Any, version: int) -> Any:
    """A message as JSON, with its lists of structures in order and without texts of errors."""
    return _ordered(to_json(message, version))


def _renamed(api: str, body: Any) -> Any:
    if isinstance(body, list):
        return [_renamed(api, one) for one in body]
    if not isinstance(body, dict):
        return body
    renamed = {}
    for key, value in body.items():
        if key == "zkVersion" and api == "LEADER_AND_ISR":
            key = "partitionEpoch"
        if key == "partitionId" and isinstance(value, list):
            key = "partitions"
        if key == "name" and api in ("ALTER_ISR", "ALTER_PARTITION"):
            key = "topicName"
        renamed[_OLD_NAMES.get(key, key)] = _renamed(api, value)
    return renamed


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _ordered(one) for key, one in value.items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        ordered = [_ordered(one) for one in value]
        if ordered and isinstance(ordered[0], dict):
            ordered.sort(key=repr)
        return ordered
    return int(value) if isinstance(value, IntEnum) else value
