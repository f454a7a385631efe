"""The records of changed configs, and of the ELRs that a changed min.insync.replicas clears.

Source:  KIP-339, KIP-966; ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from minicluster.configs.config_def import ConfigDef, java_split
from minicluster.configs.definitions import broker_configs, topic_configs
from minicluster.controller.deciding.config_checks import Resource, check_config_changes
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.configs import BROKER, MIN_ISR, TOPIC
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    VersionedRecord,
)


class ConfigOperation(IntEnum):
    """The operation on a value."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One config of one resource."""

    name: str
    operation: ConfigOperation
    value: str | None


def alter_resource(
    state: ClusterState,
    resource: Resource,
    changes: Sequence[ConfigChange],
    *,
    newly_created: bool = False,
    forwarded: bool = True,
) -> tuple[ApiError, list[VersionedRecord]]:
    """The records of one resource's changes, or why there are none.

    A broker's config is written even when it does not change, so that the broker reads files
    again that it names (KAFKA-14136).
    """
    current = state.image.configs.of(*resource)
    new: dict[str, str | None] = {}
    for change in changes:
        old = current.get(change.name)
        if change.operation is ConfigOperation.SET:
            value = change.value
        elif change.operation is ConfigOperation.DELETE:
            value = None
        elif not _is_list(resource[0], change.name):
            verb = change.operation.name
            return ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {verb} to key {change.name} because its type is not LIST.",
            ), []
        else:
            value = _changed_list(resource[0], old, change)
        if value != old or resource[0] == BROKER:
            new[change.name] = value
    error = check_config_changes(state, resource, current, new, newly_created, forwarded)
    if error:
        return error, []
    return error, [
        VersionedRecord(
            ConfigRecord(
                resource_type=resource[0], resource_name=resource[1], name=name, value=value
            ),
            0,
        )
        for name, value in new.items()
    ]


def clear_elr_records(
    state: ClusterState, records: Iterable[VersionedRecord]
) -> list[VersionedRecord]:
    """Forget the ELRs that another min.insync.replicas puts in doubt (KIP-966).

    A ClearElrRecord would also strike a partition whose ISR is empty and leave it without any
    candidate; unless that bug is wanted, such partitions keep their ELR.
    Source:  ConfigurationControlManager.createClearElrRecordsAsNeeded.
    """
    if not (state.gates.elr_enabled and state.rules.min_isr_clears_elr):
        return []
    out: list[VersionedRecord] = []
    for record in records:
        config = record.record
        if not isinstance(config, ConfigRecord) or config.name != MIN_ISR:
            continue
        name = config.resource_name if config.resource_type == TOPIC else ""
        spared = [] if state.rules.clear_elr_ignores_empty_isr else _elr_partitions(state, name)
        if any(not partition.isr for _, _, partition in spared):
            out += _clear_one_by_one(state, spared)
        else:
            out.append(VersionedRecord(ClearElrRecord(topic_name=name), 0))
    return out


def _elr_partitions(
    state: ClusterState, topic_name: str
) -> list[tuple[TopicImage, int, PartitionRegistration]]:
    topics = state.image.topics
    one = topics.named(topic_name) if topic_name else None
    chosen = list(topics) if not topic_name else [one] if one is not None else []
    return [
        (topic, index, partition)
        for topic in chosen
        for index, partition in topic.items()
        if partition.elr or partition.last_known_elr
    ]


def _clear_one_by_one(
    state: ClusterState, partitions: list[tuple[TopicImage, int, PartitionRegistration]]
) -> list[VersionedRecord]:
    version = state.gates.metadata_version.partition_change_record_version
    return [
        VersionedRecord(
            PartitionChangeRecord(
                topic_id=topic.id,
                partition_id=index,
                eligible_leader_replicas=() if partition.elr else None,
                last_known_elr=() if partition.last_known_elr else None,
            ),
            version,
        )
        for topic, index, partition in partitions
        if partition.isr
    ]


def _definitions(resource_type: int) -> ConfigDef | None:
    """The definitions that a controller has (KafkaRaftServer.configSchema)."""
    if resource_type == TOPIC:
        return topic_configs()
    return broker_configs() if resource_type == BROKER else None


def _is_list(resource_type: int, name: str) -> bool:
    """True for a list: entries can be appended and subtracted (KafkaConfigSchema.isSplittable)."""
    definitions = _definitions(resource_type)
    return definitions is not None and definitions.is_list(name)


def _changed_list(resource_type: int, old: str | None, change: ConfigChange) -> str:
    """A list with entries more or fewer; one that was not set begins with its default.

    Source:  ConfigurationControlManager.getParts.
    """
    definitions = _definitions(resource_type)
    assert definitions is not None and change.value is not None
    text = definitions.keys[change.name].default if old is None else old
    parts = [part for part in (text or "").split(",") if part]
    for part in java_split(change.value):
        if change.operation is ConfigOperation.APPEND and part not in parts:
            parts.append(part)
        elif change.operation is ConfigOperation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)
