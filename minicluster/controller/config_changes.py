"""The records of changed configs, their checks, and the ELRs that min.insync.replicas clears.

A change is checked in Kafka's order: the operation, each new value, what the value means for this
kind of resource, and whether the resource exists.

Leaves out: alter policies.
Source:  KIP-339, KIP-966; ConfigurationControlManager, ControllerConfigurationValidator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from operator import attrgetter

from minicluster.configs.config_def import ConfigDef, InvalidConfig, java_int, java_split
from minicluster.configs.definitions import broker_configs, topic_configs
from minicluster.configs.effective import BrokerLevels
from minicluster.configs.validation import (
    TopicConfigChecks,
    validate_client_metrics_configs,
    validate_group_configs,
)
from minicluster.controller.errors import ApiError, ControllerFault, Rejected
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    CLUSTER_DEFAULT,
    CORDONED_LOG_DIRS,
    GROUP,
    MIN_ISR,
    TOPIC,
)
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol import ErrorCode
from minicluster.protocol.records import (
    ClearElrRecord,
    ConfigRecord,
    PartitionChangeRecord,
    VersionedRecord,
)
from minicluster.protocol.topics import invalid_name_reason
from minicluster.values import Value

Resource = tuple[int, str]

RESOURCE_TYPES = (TOPIC, BROKER, CLIENT_METRICS, GROUP)
_COMMA = re.compile(r"\s*,\s*")


class ConfigOperation(IntEnum):
    """The operation on a value."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(Value):
    """One config of one resource.

    Shapes:  operation: None for a number that names none.
    """

    name: str
    operation: ConfigOperation | None
    value: str | None


class ConfigurationControl:
    """A state as one request changes its configs, with what is read once for all its resources."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    @cached_property
    def topic_checks(self) -> TopicConfigChecks:
        """The checks of topics' configs, by the levels of this controller's node."""
        return TopicConfigChecks(broker_levels(self.state))


def alter_resource(
    control: ConfigurationControl,
    resource: Resource,
    changes: Sequence[ConfigChange],
    *,
    newly_created: bool = False,
    forwarded: bool = True,
) -> tuple[ApiError, list[VersionedRecord]]:
    """The records of one resource's changes, or why there are none.

    A broker's config is written even when it does not change, so that the broker reads files
    again that it names (KAFKA-14136).

    Errors:  Rejected with UNKNOWN_SERVER_ERROR for an unknown operation, or ControllerFault where
             ``Rules.malformed_config_change_is_fatal``.
    """
    state = control.state
    current = state.image.configs.of(*resource)
    new: dict[str, str | None] = {}
    for change in changes:
        old = current.get(change.name)
        if change.operation is ConfigOperation.SET:
            value = change.value
        elif change.operation is ConfigOperation.DELETE:
            value = None
        elif change.operation is None:
            raise _malformed(state)
        elif not _is_list(resource[0], change.name):
            verb = change.operation.name
            return ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Can't {verb} to key {change.name} because its type is not LIST.",
            ), []
        elif change.value is None:
            raise _malformed(state)
        else:
            value = _changed_list(resource[0], old, change)
        if value != old or resource[0] == BROKER:
            new[change.name] = value
    error = check_config_changes(control, resource, current, new, newly_created, forwarded)
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


def _malformed(state: ClusterState) -> Exception:
    """The end of a request with an unknown operation, or with a list's without entries.

    Kafka runs into a null pointer, so the request fails as a whole and its client reads no text,
    only UNKNOWN_SERVER_ERROR. That the controller resigns over it is the bug of the releases.
    """
    if state.rules.malformed_config_change_is_fatal:
        return ControllerFault("an unknown config operation, or one without a value")
    return Rejected(ErrorCode.UNKNOWN_SERVER_ERROR)


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


def check_config_changes(
    control: ConfigurationControl,
    resource: Resource,
    current: Mapping[str, str],
    new: Mapping[str, str | None],
    newly_created: bool,
    forwarded: bool,
) -> ApiError:
    """Each new value first, then what it means for this kind of resource, then whether that exists.

    Source:  ConfigurationControlManager.validateAlterConfig, ControllerConfigurationValidator.
    """
    state = control.state
    for name, value in new.items():
        problem = _value_problem(state, resource, current, name, value, forwarded)
        if problem:
            return ApiError(ErrorCode.INVALID_CONFIG, problem)
    error = _name_error(resource)
    if error:
        return error
    if state.settings.validates_configs:
        error = _validate(control, resource, current, new)
        if error:
            return error
    return ApiError() if newly_created else _existence(state, resource)


def broker_levels(state: ClusterState) -> BrokerLevels:
    """The broker configs that hold on this controller's own node."""
    configs = state.image.configs
    return BrokerLevels(
        configs.of(BROKER, str(state.settings.node_id)),
        configs.of(BROKER, CLUSTER_DEFAULT),
        state.settings.static_config,
    )


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
            return (
                f"The {name} configuration value cannot be set because it requires "
                f"metadata.version >= {MetadataVersion.V4_3_IV0}"
            )
        if not forwarded and not _names_no_more_dirs(current.get(name), value):
            return (
                f"When updating {name} via controllers,  the new value must be a subset of the "
                "current configuration value."
            )
    limit = state.rules.config_value_length_max
    if limit and value is not None and len(value) > limit:
        return (
            "The configuration value cannot be added because it exceeds the maximum value size "
            f"of {limit} bytes."
        )
    return ""


def _names_no_more_dirs(old: str | None, new: str | None) -> bool:
    """True where cordoned.log.dirs only loses entries.

    Source:  ConfigurationControlManager.isCordonedLogDirsInvalid.
    """
    if new is None or not new.strip():
        return True
    known = set() if old is None else set(_COMMA.split(old.strip()))
    return set(_COMMA.split(new.strip())) <= known


def _validate(
    control: ConfigurationControl,
    resource: Resource,
    current: Mapping[str, str],
    new: Mapping[str, str | None],
) -> ApiError:
    """All values that the resource is to have, by the definitions of its kind."""
    kind, name = resource
    kept = {key: value for key, value in {**current, **new}.items() if value is not None}
    wanted = {key: kept[key] for key in hash_map_order(kept, string_hash)}
    try:
        if kind == TOPIC:
            control.topic_checks.validate(wanted, current)
        elif kind == CLIENT_METRICS:
            validate_client_metrics_configs(name, wanted)
        elif kind == GROUP:
            validate_group_configs(wanted, broker_levels(control.state))
    except InvalidConfig as refusal:
        return ApiError(refusal.error or ErrorCode.INVALID_CONFIG, refusal.message)
    return ApiError()


def _name_error(resource: Resource) -> ApiError:
    kind, name = resource
    if kind == TOPIC:
        if not name:
            return ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        reason = invalid_name_reason(name)
        if reason is not None:
            problem = f"Topic name is invalid: {reason}"
            return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if kind == BROKER and name != CLUSTER_DEFAULT:
        node_id = java_int(name)
        if node_id is None:
            return ApiError(
                ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number."
            )
        if node_id < 0:
            return ApiError(ErrorCode.INVALID_REQUEST, "Invalid negative broker ID.")
    if kind == GROUP and not name:
        return ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if kind not in RESOURCE_TYPES:
        type_name = "BROKER_LOGGER" if kind == BROKER_LOGGER else "UNKNOWN"
        return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {type_name}")
    return ApiError()


def _existence(state: ClusterState, resource: Resource) -> ApiError:
    kind, name = resource
    if kind == TOPIC and state.image.topics.named(name) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == BROKER and name != CLUSTER_DEFAULT:
        node_id, cluster = int(name), state.image.cluster
        exists = (
            cluster.broker(node_id) is not None
            or node_id in state.settings.static_voters
            or (
                state.rules.registered_controllers_have_configs
                and cluster.controllers.get(node_id) is not None
            )
        )
        if state.settings.brokers_with_configs_exist and not exists:
            return ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")
    return ApiError()


def clear_elr_records(
    state: ClusterState, records: Iterable[VersionedRecord]
) -> list[VersionedRecord]:
    """Forget the ELRs that another min.insync.replicas puts in doubt (KIP-966).

    A replica is eligible because nothing could be committed without it while the ISR was below the
    minimum. Under another minimum that no longer holds.

    A ClearElrRecord would also strike a partition whose ISR is empty and leave it without any
    candidate (Z54); unless that bug is wanted, such partitions keep their ELR.
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
        if not state.rules.clear_elr_ignores_empty_isr and _has_elr_without_isr(state, name):
            out += _clear_one_by_one(state, name)
        else:
            out.append(VersionedRecord(ClearElrRecord(topic_name=name), 0))
    return out


def _has_elr_without_isr(state: ClusterState, topic_name: str) -> bool:
    return any(
        not partition.isr and (partition.elr or partition.last_known_elr)
        for topic in state.image.topics.chosen(topic_name)
        for partition in topic.partitions.values()
    )


def _clear_one_by_one(state: ClusterState, topic_name: str) -> Iterator[VersionedRecord]:
    version = state.gates.metadata_version.partition_change_record_version(state.rules)
    chosen = state.image.topics.chosen(topic_name)
    for topic in sorted(chosen, key=attrgetter("name")):
        for index, partition in topic.items():
            if partition.isr and (partition.elr or partition.last_known_elr):
                change = PartitionChangeRecord(
                    topic_id=topic.id,
                    partition_id=index,
                    eligible_leader_replicas=() if partition.elr else None,
                    last_known_elr=() if partition.last_known_elr else None,
                )
                yield VersionedRecord(change, version)
