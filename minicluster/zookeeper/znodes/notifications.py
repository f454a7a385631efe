"""The znodes by which brokers and tools notify the controller.

Source:  kafka.zk.IsrChangeNotificationSequenceZNode, LogDirEventNotificationSequenceZNode,
         ReassignPartitionsZNode, PreferredReplicaElectionZNode.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.errors import ProtocolError
from minicluster.zookeeper.znodes.json_text import decode_object, encode_in_order

LOG_DIR_FAILURE = 1
"""The only event of a log directory."""


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Partitions whose ISR a leader has written, or that need a preferred election."""
    listed = [
        {"topic": partition.topic, "partition": partition.partition} for partition in partitions
    ]
    return encode_in_order({"version": 1, "partitions": listed})


def decode_partitions(data: bytes | None) -> tuple[TopicPartition, ...]:
    """The partitions of an ISR change, or of a preferred election."""
    return tuple(
        TopicPartition(str(entry["topic"]), int(entry["partition"]))
        for entry in _listed(decode_object(data, "partitions"))
    )


def encode_log_dir_event(broker: int) -> bytes:
    """A broker has lost a log directory (KIP-112)."""
    return encode_in_order({"version": 1, "broker": broker, "event": LOG_DIR_FAILURE})


def decode_log_dir_event(data: bytes | None) -> int:
    """The broker that has lost a log directory."""
    broker = decode_object(data, "log dir event").get("broker")
    if not isinstance(broker, int):
        raise ProtocolError("log dir event", "broker", f"{broker!r} is not a number")
    return broker


def encode_reassignment(targets: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    """The reassignments that a tool requests by a znode."""
    listed = [
        {"topic": partition.topic, "partition": partition.partition, "replicas": list(replicas)}
        for partition, replicas in targets.items()
    ]
    return encode_in_order({"version": 1, "partitions": listed})


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    """The target of each partition."""
    return {
        TopicPartition(str(entry["topic"]), int(entry["partition"])): tuple(entry["replicas"])
        for entry in _listed(decode_object(data, "reassignment"))
    }


def _listed(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    partitions = value.get("partitions")
    wanted = {"topic", "partition"}
    if not isinstance(partitions, list) or not all(
        isinstance(entry, dict) and wanted <= entry.keys() for entry in partitions
    ):
        raise ProtocolError(
            "partitions", "partitions", f"{partitions!r} is not a list of partitions"
        )
    return partitions
