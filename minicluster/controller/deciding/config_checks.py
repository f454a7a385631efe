"""The checks of changed configs: the values, the kind of resource, and that it exists.

Leaves out: alter policies.
Source:  ConfigurationControlManager.validateAlterConfig, ControllerConfigurationValidator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from minicluster.configs.config_def import InvalidConfig, java_int
from minicluster.configs.effective import BrokerLevels
from minicluster.configs.validation import (
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from minicluster.controller.errors import ApiError
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
from minicluster.protocol.topics import invalid_name_reason

Resource = tuple[int, str]

RESOURCE_TYPES = (TOPIC, BROKER, CLIENT_METRICS, GROUP)
_COMMA = re.compile(r"\s*,\s*")


def check_config_changes(
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
    if state.settings.validates_configs:
        error = _validate(state, resource, current, new)
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
    state: ClusterState,
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
            validate_topic_configs(wanted, current, broker_levels(state))
        elif kind == CLIENT_METRICS:
            validate_client_metrics_configs(name, wanted)
        elif kind == GROUP:
            validate_group_configs(wanted, broker_levels(state))
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
        known = "BROKER_LOGGER" if kind == BROKER_LOGGER else "UNKNOWN"
        return ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {known}")
    return ApiError()


def _existence(state: ClusterState, resource: Resource) -> ApiError:
    kind, name = resource
    if kind == TOPIC and state.image.topics.named(name) is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == BROKER and name != CLUSTER_DEFAULT:
        node_id, cluster = int(name), state.image.cluster
        known = (
            cluster.broker(node_id) is not None
            or node_id in state.settings.static_voters
            or (
                state.rules.registered_controllers_have_configs
                and cluster.controllers.get(node_id) is not None
            )
        )
        if state.settings.brokers_with_configs_exist and not known:
            return ApiError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {node_id} found.")
    return ApiError()
