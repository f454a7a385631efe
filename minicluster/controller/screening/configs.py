"""The checks of AlterConfigs and IncrementalAlterConfigs that any controller does.

Source:  ControllerApis.handleLegacyAlterConfigs, handleIncrementalAlterConfigs,
         authorizeAlterResource.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.loggers import check_logger_changes
from minicluster.controller.errors import ApiError
from minicluster.controller.screening.screened import Screened
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterConfigsResponse, IncrementalAlterConfigsResponse

_KINDS = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
Result = Callable[..., Any]


def screen_alter_configs(state: ClusterState, request: Any) -> Screened:
    """Refuse unknown kinds, resources that come twice, and loggers.

    Errors:  per resource UNSUPPORTED_VERSION, INVALID_REQUEST.
    """
    return _screen(state, request, AlterConfigsResponse.AlterConfigsResourceResponse)


def screen_incremental_alter_configs(state: ClusterState, request: Any) -> Screened:
    """Refuse unknown kinds and resources that come twice; loggers are this node's own.

    Errors:  per resource UNSUPPORTED_VERSION, INVALID_REQUEST, those of ``check_logger_changes``.
    """
    item = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    loggers = [r for r in request.resources if r.resource_type == BROKER_LOGGER]
    others = tuple(r for r in request.resources if r.resource_type != BROKER_LOGGER)
    screened = _screen(state, replace(request, resources=others), item)
    changed = [_result(item, resource, _logger_error(state, resource)) for resource in loggers]

    def complete(made: Any) -> Any:
        whole = screened.complete(made)
        return replace(whole, responses=(*whole.responses, *changed))

    return Screened(screened.request, complete)


def _screen(state: ClusterState, request: Any, item: Result) -> Screened:
    kept: dict[tuple[int, str], Any] = {}
    twice: set[tuple[int, str]] = set()
    refused = []
    for resource in request.resources:
        kind = resource.resource_type
        key = (kind, resource.resource_name)
        if kind not in _KINDS or (kind == GROUP and not state.rules.groups_have_configs):
            message = f"Unknown resource type {kind}."
            unknown = ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
            refused.append(_result(item, resource, unknown))
        elif key in kept:
            twice.add(key)
            del kept[key]
            duplicate = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate resource.")
            refused.append(_result(item, resource, duplicate))
        elif key not in twice:
            kept[key] = replace(resource, configs=_in_java_order(resource.configs))
    for resource in [r for r in kept.values() if r.resource_type == BROKER_LOGGER]:
        message = "Unexpected resource type BROKER_LOGGER."
        refused.append(_result(item, resource, ApiError(ErrorCode.INVALID_REQUEST, message)))
        del kept[BROKER_LOGGER, resource.resource_name]
    left = replace(request, resources=tuple(kept.values()))
    return Screened(left, lambda made: replace(made, responses=(*refused, *made.responses)))


def _in_java_order(configs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The configs of a resource in the order of a hash map; the last one of a name counts."""
    by_name = {config.name: config for config in configs}
    return tuple(by_name[name] for name in hash_map_order(by_name, string_hash))


def _logger_error(state: ClusterState, resource: Any) -> ApiError:
    try:
        check_logger_changes(state.settings.node_id, resource.resource_name, resource.configs)
    except InvalidConfig as refusal:
        return ApiError(refusal.error or ErrorCode.INVALID_REQUEST, refusal.message)
    return ApiError()


def _result(item: Result, resource: Any, error: ApiError) -> Any:
    return item(
        error_code=error.error,
        error_message=error.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
