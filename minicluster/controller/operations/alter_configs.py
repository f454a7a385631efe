"""IncrementalAlterConfigs (44) and AlterConfigs (33): dynamic configs and what they set off.

Versions:  0-1 and 0-2.
Leaves out: checking values of names that the controller does not use itself; alter policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from minicluster.controller.deciding.decision import ApiError, Decision
from minicluster.controller.settings import CORDONED_LOG_DIRS, MIN_ISR, UNCLEAN_ELECTION
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    GROUP,
    TOPIC,
)
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.protocol.records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    VersionedRecord,
)

Resource = tuple[int, str]

LIST_CONFIGS = frozenset(
    {
        "cleanup.policy",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        CORDONED_LOG_DIRS,
    }
)

LIST_DEFAULTS = {"cleanup.policy": "delete"}  # of the others: empty

RESOURCE_TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


class ConfigOperation(IntEnum):
    """What to do with a value."""

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


def incremental_alter_configs(
    state: ClusterState,
    request: IncrementalAlterConfigsRequest,
    version: int,
    now_ms: int,
    *,
    forwarded: bool = True,
) -> Decision:
    """Change single configs; a resource is changed as a whole or not at all.

    Shapes:  forwarded says that a broker passed the request on (it knows its own directories).
    Source:  KIP-339; ConfigurationControlManager.incrementalAlterConfigs.
    """
    records: list[VersionedRecord] = []
    answers = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        changes = _changes(resource.configs)
        new: list[VersionedRecord] = []
        if changes is None:
            error = ApiError(ErrorCode.INVALID_REQUEST, "Unknown config operation.")
        else:
            error, new = alter_resource(state, key, changes, forwarded=forwarded)
        records += new
        answers.append(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.error,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    records += clear_elr_records(state, records)
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=IncrementalAlterConfigsResponse(responses=tuple(answers)),
        atomic=True,
    )


def alter_configs(
    state: ClusterState, request: AlterConfigsRequest, version: int, now_ms: int
) -> Decision:
    """Replace all configs of resources: what the request does not name is deleted.

    Source:  ConfigurationControlManager.legacyAlterConfigs.
    """
    records: list[VersionedRecord] = []
    answers = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        wanted = {config.name: config.value for config in resource.configs}
        changes = [ConfigChange(n, ConfigOperation.SET, value) for n, value in wanted.items()]
        changes += [
            ConfigChange(name, ConfigOperation.DELETE, None)
            for name in state.image.configs.of(*key)
            if name not in wanted
        ]
        error, new = alter_resource(state, key, changes)
        records += new
        answers.append(
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=error.error,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    records += clear_elr_records(state, records)
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=AlterConfigsResponse(responses=tuple(answers)),
        atomic=True,
    )


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
        elif change.name not in LIST_CONFIGS:
            verb = change.operation.name
            return ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {verb} to key {change.name} because its type is not LIST.",
            ), []
        else:
            value = _changed_list(old, change)
        if value != old or resource[0] == BROKER:
            new[change.name] = value
    error = _validate(state, resource, current, new, newly_created, forwarded)
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


def _changes(
    configs: Sequence[IncrementalAlterConfigsRequest.AlterableConfig],
) -> list[ConfigChange] | None:
    try:
        return [
            ConfigChange(config.name, ConfigOperation(config.config_operation), config.value)
            for config in configs
        ]
    except ValueError:
        return None


def _changed_list(old: str | None, change: ConfigChange) -> str:
    """A list with entries more or fewer; one that was not set begins with its default.

    Source:  ConfigurationControlManager.getParts.
    """
    told = LIST_DEFAULTS.get(change.name, "") if old is None else old
    parts = [part for part in told.split(",") if part]
    for part in _java_split(change.value or ""):
        if change.operation is ConfigOperation.APPEND and part not in parts:
            parts.append(part)
        elif change.operation is ConfigOperation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _java_split(value: str) -> list[str]:
    """The entries between commas; empty ones at the end do not count, but in an empty text."""
    return value.rstrip(",").split(",") if value.strip(",") or not value else []


def _validate(
    state: ClusterState,
    resource: Resource,
    current: Mapping[str, str],
    new: Mapping[str, str | None],
    newly_created: bool,
    forwarded: bool,
) -> ApiError:
    """Each new value first, then what it means for this kind of resource, then whether that exists.

    Source:  ConfigurationControlManager.validateAlterConfig, ControllerConfigurationValidator.
    """
    for name, value in new.items():
        problem = _value_problem(state, resource, current, name, value, forwarded)
        if problem:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
    error = _name_error(resource)
    if error:
        return error
    for name, value in new.items():
        problem = _meaning_problem(name, value)
        if problem:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
    return ApiError() if newly_created else _existence(state, resource)


def _value_problem(
    state: ClusterState,
    resource: Resource,
    current: Mapping[str, str],
    name: str,
    value: str | None,
    forwarded: bool,
) -> str:
    kind, owner = resource
    guarded = state.gates.elr_enabled and state.rules.min_isr_clears_elr
    if guarded and kind == BROKER and name == MIN_ISR:
        if owner != CLUSTER_DEFAULT:
            return "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        if value is None:
            return "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    if kind == BROKER and name == CORDONED_LOG_DIRS:
        if not state.gates.metadata_version.cordoned_log_dirs_supported:
            return f"{name} needs metadata.version 4.3-IV0 or later."
        old = set((current.get(name) or "").split(","))
        if value and not forwarded and not set(value.split(",")) <= old:
            return f"{name}: a request to a controller may only remove entries."
    limit = state.rules.config_value_length_max
    if limit and value is not None and len(value) > limit:
        return f"The value of {name} is longer than {limit} characters."
    return ""


def _meaning_problem(name: str, value: str | None) -> str:
    if value is None:
        return ""
    if name == MIN_ISR and not (value.strip().isdecimal() and int(value) >= 1):
        return f"Invalid value {value} for configuration {name}: a number of at least 1 is needed"
    if name == UNCLEAN_ELECTION and value.strip().lower() not in ("true", "false"):
        return f"Invalid value {value} for configuration {name}: true or false is needed"
    return ""


def _name_error(resource: Resource) -> ApiError:
    kind, name = resource
    if kind not in RESOURCE_TYPES:
        return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
    if kind == BROKER and name != CLUSTER_DEFAULT and not name.isdecimal():
        return ApiError(ErrorCode.INVALID_REQUEST, f"Invalid broker name {name}")
    return ApiError()


def _existence(state: ClusterState, resource: Resource) -> ApiError:
    kind, name = resource
    if kind == TOPIC and state.image.topics.named(name) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == BROKER and name != CLUSTER_DEFAULT:
        known = (
            state.broker(int(name)) is not None
            or state.image.cluster.controllers.get(int(name)) is not None
        )
        if state.settings.brokers_with_configs_exist and not known:
            return ApiError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} is registered."
            )
    return ApiError()
