"""The znodes of topics: assignments and configs; a partition's state is ``PartitionState``.

Source:  KIP-455, KIP-516; kafka.zk.TopicZNode, ConfigEntityZNode;
         kafka.controller.ReplicaAssignment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import field

from minicluster.java_order import concurrent_map_order, string_hash
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.uuids import format_uuid, parse_uuid
from minicluster.values import Value
from minicluster.zookeeper.znodes.json_text import decode_object, encode_in_order, hashed


def without(replicas: Sequence[int], removed: Sequence[int]) -> tuple[int, ...]:
    """The replicas that are not removed, in their order."""
    return tuple(replica for replica in replicas if replica not in removed)


class ReplicaAssignment(Value):
    """The replicas of a partition: while it is reassigned, the targets before the others."""

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment."""
        return without(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment."""
        return without(self.replicas, self.removing)

    @property
    def is_being_reassigned(self) -> bool:
        """Replicas are added or removed."""
        return bool(self.adding or self.removing)

    def reassign_to(self, target: Sequence[int]) -> ReplicaAssignment:
        """The assignment on the way to a target; from where it was before, if it is on one."""
        full = tuple(dict.fromkeys((*target, *self.origin)))
        return ReplicaAssignment(full, without(full, self.origin), without(full, target))

    def remove(self, replica: int) -> ReplicaAssignment:
        """The assignment without one replica."""
        gone = (replica,)
        return ReplicaAssignment(
            without(self.replicas, gone), without(self.adding, gone), without(self.removing, gone)
        )


class TopicAssignment(Value):
    """The znode of a topic: version 3; the id is there from IBP 2.8 on (KIP-516)."""

    partitions: Mapping[int, ReplicaAssignment] = field(default_factory=dict)
    topic_id: UUID | None = None

    def encode(self) -> bytes:
        """The text of the znode."""
        partitions, adding, removing = {}, {}, {}
        for partition, assignment in self.partitions.items():
            key = str(partition)
            partitions[key] = list(assignment.replicas)
            if assignment.adding:
                adding[key] = list(assignment.adding)
            if assignment.removing:
                removing[key] = list(assignment.removing)
        value: dict[str, Any] = {
            "version": 3,
            "partitions": hashed(partitions),
            "adding_replicas": hashed(adding),
            "removing_replicas": hashed(removing),
        }
        if self.topic_id is not None:
            value["topic_id"] = format_uuid(self.topic_id)
        return encode_in_order(hashed(value, made_from=4))

    @classmethod
    def decode(cls, data: bytes | None) -> TopicAssignment:
        """Read the text of the znode."""
        value = decode_object(data, "topic assignment")
        adding = value.get("adding_replicas", {})
        removing = value.get("removing_replicas", {})
        topic_id = value.get("topic_id")
        try:
            return cls(
                {
                    int(key): ReplicaAssignment(
                        tuple(replicas), tuple(adding.get(key, ())), tuple(removing.get(key, ()))
                    )
                    for key, replicas in value.get("partitions", {}).items()
                },
                None if topic_id is None else parse_uuid(topic_id),
            )
        except (AttributeError, TypeError, ValueError) as error:
            raise ProtocolError("topic assignment", "", f"bad value: {error!r}") from error


def encode_config(configs: Mapping[str, str]) -> bytes:
    """The configs of a topic, in the order of Java's Properties."""
    names = concurrent_map_order(configs, string_hash)
    return encode_in_order({"version": 1, "config": {name: configs[name] for name in names}})


def decode_config(data: bytes | None) -> dict[str, str]:
    """The configs of a topic; a znode without data has none."""
    if not data:
        return {}
    config = decode_object(data, "configs").get("config")
    if not isinstance(config, dict):
        raise ProtocolError("configs", "config", f"{config!r} is not an object")
    return config


def encode_config_change(entity_path: str) -> bytes:
    """The notification that configs have changed, such as those of topics/orders."""
    return encode_in_order({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """The path of what has other configs."""
    return str(decode_object(data, "config change").get("entity_path", ""))
