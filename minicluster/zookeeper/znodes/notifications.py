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
    listed = _listed(decode_object(data, "partitions"))
    if not all(_is_partition(entry) for entry in listed):
        raise ProtocolError("partitions", "partitions", f"{listed!r} is no list of partitions")
    return tuple(TopicPartition(entry["topic"], entry["partition"]) for entry in listed)


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
    """The target of each partition; a text of another shape has none.

    Errors:  ProtocolError where Kafka's class has a null: no partitions, or none of their replicas.
    """
    try:
        value = decode_object(data, "reassignment")
    except ProtocolError:
        return {}
    listed = value.get("partitions")
    if listed is None:
        raise ProtocolError("reassignment", "partitions", "there is none")
    if not isinstance(listed, list) or not all(_is_target(entry) for entry in listed):
        return {}
    if not all(entry.get("replicas") is not None for entry in listed):
        raise ProtocolError("reassignment", "replicas", "there are none")
    return {
        TopicPartition(entry.get("topic") or "", entry.get("partition") or 0): tuple(
            entry["replicas"]
        )
        for entry in listed
    }


def _listed(value: Mapping[str, Any]) -> list[Any]:
    partitions = value.get("partitions")
    if not isinstance(partitions, list):
        raise ProtocolError("partitions", "partitions", f"{partitions!r} is not a list")
    return partitions


def _is_partition(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("topic"), str)
        and type(entry.get("partition")) is int
    )


def _is_target(entry: Any) -> bool:
    if not isinstance(entry, dict) or not entry.keys() <= {"topic", "partition", "replicas"}:
        return False
    replicas = entry.get("replicas")
    return (
        isinstance(entry.get("topic"), str | None)
        and type(entry.get("partition")) in (int, type(None))
        and (replicas is None or isinstance(replicas, list))
        and all(type(replica) is int for replica in replicas or ())
    )
