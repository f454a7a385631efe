"""The checks of changed configs: the values, the kind of resource, and that it exists.

Leaves out: checking values of names that the controller does not use itself; alter policies.
Source:  ConfigurationControlManager.validateAlterConfig, ControllerConfigurationValidator.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.controller.errors import ApiError
from minicluster.controller.settings import UNCLEAN_ELECTION
from minicluster.controller.state.cluster_state import ClusterState
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

Resource = tuple[int, str]

RESOURCE_TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


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
            return (
                f"The {name} configuration value cannot be set because it requires "
                f"metadata.version >= {MetadataVersion.V4_3_IV0}"
            )
        old = set((current.get(name) or "").split(","))
        if value and not forwarded and not set(value.split(",")) <= old:
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
