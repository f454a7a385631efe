"""AlterConfigs (33) and IncrementalAlterConfigs (44): the configs of topics, brokers and others.

Versions:  33: 0-2, 44: 0-1; the version decides nothing.
           AlterConfigs replaces all configs of a resource; IncrementalAlterConfigs sets, deletes,
           appends to or subtracts from single ones (KIP-339).

Both are screened by any controller first: a resource of an unknown kind or that comes twice is
rejected there. What a change means and may be: ``config_changes.py``.

Source:  ControllerApis; ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.loggers import check_logger_changes
from minicluster.controller.api import ControllerApi, Screened
from minicluster.controller.config_changes import (
    ConfigChange,
    ConfigOperation,
    ConfigurationControl,
    alter_resource,
    clear_elr_records,
)
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, reject_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, timeline_order
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.security.acls import CLUSTER_NAME, Operation, ResourceType
from minicluster.security.screening import FAILED, Access
from minicluster.values import replace

_KINDS = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
_RESOURCE_TYPES = {TOPIC: ResourceType.TOPIC, GROUP: ResourceType.GROUP}
Result = Callable[..., Any]


def screen_alter_configs(state: ClusterState, request: Any, access: Access) -> Screened:
    """Reject unknown kinds, resources that come twice, what may not be altered, and loggers.

    Errors:  per resource UNSUPPORTED_VERSION, INVALID_REQUEST, those of a missing right.
    Source:  ControllerApis.handleLegacyAlterConfigs.
    """
    return _screen(state, request, access, AlterConfigsResponse.AlterConfigsResourceResponse)


def alter_configs(
    state: ClusterState, request: AlterConfigsRequest, version: int, forwarded: bool, now_ms: int
) -> Decision:
    """Replace all configs of resources: what the request does not name is deleted.

    Shapes:  forwarded: a broker passed the request on, and has checked its own directories.
    Errors:  per resource. Rejected with POLICY_VIOLATION for too many changes.
    Source:  ConfigurationControlManager.legacyAlterConfigs.
    """

    def changes(resource: AlterConfigsRequest.AlterConfigsResource) -> list[ConfigChange]:
        wanted = {config.name: config.value for config in resource.configs}
        current = state.image.configs.of(resource.resource_type, resource.resource_name)
        gone = [n for n in timeline_order(current, string_hash) if n not in wanted]
        return [
            *(ConfigChange(name, ConfigOperation.SET, value) for name, value in wanted.items()),
            *(ConfigChange(name, ConfigOperation.DELETE, None) for name in gone),
        ]

    return _altered(state, request, AlterConfigsResponse, changes, forwarded)


def screen_incremental_alter_configs(state: ClusterState, request: Any, access: Access) -> Screened:
    """Reject unknown kinds and resources that come twice; loggers are this node's own.

    Errors:  per resource UNSUPPORTED_VERSION, INVALID_REQUEST, those of ``check_logger_changes``.
    Source:  ControllerApis.handleIncrementalAlterConfigs.
    """
    item = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    loggers = [r for r in request.resources if r.resource_type == BROKER_LOGGER]
    others = tuple(r for r in request.resources if r.resource_type != BROKER_LOGGER)
    screened = _screen(state, replace(request, resources=others), access, item)
    changed = [_result(item, resource, _logger_error(state, resource)) for resource in loggers]

    def complete(rest: Any) -> Any:
        whole = screened.complete(rest)
        return replace(whole, responses=(*whole.responses, *changed))

    return Screened(screened.request, complete)


def incremental_alter_configs(
    state: ClusterState,
    request: IncrementalAlterConfigsRequest,
    version: int,
    forwarded: bool,
    now_ms: int,
) -> Decision:
    """Change single configs; a resource is changed as a whole or not at all.

    Shapes:  forwarded: a broker passed the request on, and has checked its own directories.
    Errors:  per resource. Rejected with POLICY_VIOLATION for too many changes, and with
             UNKNOWN_SERVER_ERROR for an unknown operation (ControllerFault where
             ``Rules.malformed_config_change_is_fatal``).
    Source:  KIP-339; ConfigurationControlManager.incrementalAlterConfigs.
    """

    def changes(
        resource: IncrementalAlterConfigsRequest.AlterConfigsResource,
    ) -> list[ConfigChange]:
        return [
            ConfigChange(config.name, _operation(config.config_operation), config.value)
            for config in resource.configs
        ]

    return _altered(state, request, IncrementalAlterConfigsResponse, changes, forwarded)


def _altered(
    state: ClusterState,
    request: Any,
    kind: Any,
    changes_of: Callable[[Any], list[ConfigChange]],
    forwarded: bool,
) -> Decision:
    control = ConfigurationControl(state)
    records: list[VersionedRecord] = []
    responses = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        error, new = alter_resource(control, key, changes_of(resource), forwarded=forwarded)
        records += new
        responses.append(_result(kind.AlterConfigsResourceResponse, resource, error))
    records += clear_elr_records(state, records)
    reject_too_many_records(len(records))
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=kind(responses=tuple(responses)),
        atomic=True,
    )


def _operation(number: int) -> ConfigOperation | None:
    """The operation of a number; None for an unknown one (AlterConfigOp.OpType.forId)."""
    try:
        return ConfigOperation(number)
    except ValueError:
        return None


def _screen(state: ClusterState, request: Any, access: Access, item: Result) -> Screened:
    kept: dict[tuple[int, str], Any] = {}
    twice: set[tuple[int, str]] = set()
    rejected = []
    for resource in request.resources:
        kind = resource.resource_type
        key = (kind, resource.resource_name)
        if kind not in _KINDS or (kind == GROUP and not state.rules.groups_have_configs):
            message = f"Unknown resource type {kind}."
            unknown = ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
            rejected.append(_result(item, resource, unknown))
        elif key in kept:
            twice.add(key)
            del kept[key]
            duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            rejected.append(_result(item, resource, duplicate))
        elif key not in twice:
            kept[key] = resource if len(resource.configs) < 2 else _in_java_order(resource)
    for resource in [r for r in kept.values() if r.resource_type == BROKER_LOGGER]:
        message = "Unexpected resource type BROKER_LOGGER."
        rejected.append(_result(item, resource, ApiError(ErrorCode.INVALID_REQUEST, message)))
        del kept[BROKER_LOGGER, resource.resource_name]
    for key, resource in list(kept.items()):
        error = _missing_right(access, *key)
        if error is not None:
            rejected.append(_result(item, resource, ApiError.of_code(error)))
            del kept[key]
    left = replace(request, resources=tuple(kept.values()))
    return Screened(left, lambda rest: replace(rest, responses=(*rejected, *rest.responses)))


def _missing_right(access: Access, kind: int, name: str) -> ErrorCode | None:
    """The error of who may not alter the configs of a resource; the cluster has the brokers'.

    Source:  ControllerApis.authorizeAlterResource.
    """
    resource_type = _RESOURCE_TYPES.get(kind, ResourceType.CLUSTER)
    named = CLUSTER_NAME if resource_type is ResourceType.CLUSTER else name
    allowed = access.may(Operation.ALTER_CONFIGS, resource_type, named)
    return None if allowed else FAILED[resource_type]


def _in_java_order(resource: Any) -> Any:
    """A resource with its configs in the order of a hash map; the last one of a name counts."""
    by_name = {config.name: config for config in resource.configs}
    in_order = tuple(by_name[name] for name in hash_map_order(by_name, string_hash))
    return replace(resource, configs=in_order)


def _logger_error(state: ClusterState, resource: Any) -> ApiError:
    try:
        check_logger_changes(state.settings.node_id, resource.resource_name, resource.configs)
    except InvalidConfig as refusal:
        error = refusal.error or ErrorCode.INVALID_REQUEST
        return ApiError(error, refusal.message) if refusal.message else ApiError.of_code(error)
    return ApiError()


def _result(item: Result, resource: Any, error: ApiError) -> Any:
    return item(
        error_code=error.error,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


INCREMENTAL_ALTER_CONFIGS = ControllerApi(
    IncrementalAlterConfigsRequest,
    lambda call: incremental_alter_configs(
        call.state, call.request, call.version, call.forwarded, call.now_ms
    ),
    screen=lambda call: screen_incremental_alter_configs(call.state, call.request, call.access),
    items=("resources",),
    nothing=IncrementalAlterConfigsResponse(),
)

ALTER_CONFIGS = ControllerApi(
    AlterConfigsRequest,
    lambda call: alter_configs(call.state, call.request, call.version, call.forwarded, call.now_ms),
    screen=lambda call: screen_alter_configs(call.state, call.request, call.access),
    items=("resources",),
    nothing=AlterConfigsResponse(),
)
