"""The part of AlterConfigs (33) and IncrementalAlterConfigs (44) that a broker does itself.

Versions:  0-2 and 0-1; the version decides nothing.

A broker rejects what it can see to be wrong, above all about its own configs, forwards the rest
to the controller and puts both results together in the order of the request.

Source:  ConfigAdminManager.preprocess, reassembleIncrementalResponse, reassembleLegacyResponse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.configs.config_def import InvalidConfig, java_int, java_split
from minicluster.configs.definitions import broker_configs
from minicluster.configs.dynamic_broker import validate_broker_configs
from minicluster.configs.loggers import check_logger_changes
from minicluster.metadata.image.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages import (
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.values import Value, replace

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPERATIONS = {APPEND: "append", SUBTRACT: "subtract"}


class Preprocessed(Value):
    """A request without what this broker rejects, and the results of that by place."""

    request: Any
    rejected: Mapping[int, Any]

    def whole_response(self, response: Any | None) -> Any:
        """The controller's response with the rejected resources in their places."""
        responses = () if response is None else response.responses
        results = {(result.resource_type, result.resource_name): result for result in responses}
        forwarded = iter(self.request.resources)
        count = len(self.rejected) + len(self.request.resources)
        kind = _response_type(self.request)

        def result(place: int) -> Any:
            if place in self.rejected:
                return self.rejected[place]
            resource = next(forwarded)
            key = resource.resource_type, resource.resource_name
            missing = ErrorCode.UNKNOWN_SERVER_ERROR
            return results.get(key) or _result(kind, resource, missing, TEXTS[missing])

        return kind(responses=tuple(result(place) for place in range(count)))


def preprocess(state: ApiState, request: Any) -> Preprocessed:
    """Check each resource by itself.

    Errors:  per resource INVALID_REQUEST for one that comes twice, for a config that comes twice,
             for a null value, for another broker, for a kind that there is not; for this broker
             what ``validate_broker_configs`` rejects.
    """
    incremental = isinstance(request, IncrementalAlterConfigsRequest)
    times = Counter((r.resource_type, r.resource_name) for r in request.resources)
    kind = _response_type(request)
    to_forward: list[Any] = []
    rejected: dict[int, Any] = {}
    for place, resource in enumerate(request.resources):
        error, message = ErrorCode.NONE, None
        is_decided = incremental and resource.resource_type == BROKER_LOGGER
        try:
            if times[resource.resource_type, resource.resource_name] > 1:
                raise InvalidConfig("Each resource must appear at most once.")
            _check(state, resource, incremental)
        except InvalidConfig as rejection:
            is_decided = True
            error, message = rejection.error or ErrorCode.INVALID_REQUEST, rejection.message or None
        if not is_decided:
            to_forward.append(resource)
            continue
        rejected[place] = _result(kind, resource, error, message)
    return Preprocessed(replace(request, resources=tuple(to_forward)), rejected)


def _response_type(request: Any) -> Any:
    if isinstance(request, IncrementalAlterConfigsRequest):
        return IncrementalAlterConfigsResponse
    return AlterConfigsResponse


def _result(kind: Any, resource: Any, error: ErrorCode, message: str | None) -> Any:
    return kind.AlterConfigsResourceResponse(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _check(state: ApiState, resource: Any, incremental: bool) -> None:
    kind, name, configs = resource.resource_type, resource.resource_name, resource.configs
    if len({config.name for config in configs}) < len(configs):
        raise InvalidConfig("Error due to duplicate config keys")
    null = [
        config.name
        for config in configs
        if config.value is None and not (incremental and config.config_operation == DELETE)
    ]
    if null:
        raise InvalidConfig(f"Null value not supported for : {', '.join(null)}")
    if kind == BROKER_LOGGER and incremental:
        check_logger_changes(state.config.broker_id, name, configs)
    elif kind == BROKER:
        if name:
            _check_node_id(state, name)
        new = {config.name: config.value for config in configs}
        if incremental:
            new = _changed(state, name, configs)
        validate_broker_configs(
            new,
            state.broker_levels,
            per_broker=bool(name),
            cordoned_dirs_must_exist=state.rules.cordoned_dirs_must_exist,
        )
    elif kind not in (TOPIC, CLIENT_METRICS) and not (
        kind == GROUP and state.rules.groups_have_configs
    ):
        raise InvalidConfig(f"Unknown resource type {kind}")


def _check_node_id(state: ApiState, name: str) -> None:
    node_id = java_int(name)
    if node_id is None:
        raise InvalidConfig(f"Node id must be an integer, but it is: {name}")
    own = state.config.broker_id
    if node_id != own:
        raise InvalidConfig(f"Unexpected broker id, expected {own}, but received {name}")


def _changed(state: ApiState, name: str, configs: Sequence[Any]) -> dict[str, str]:
    """All dynamic configs of this broker, or of all, after the changes.

    Source:  ConfigAdminManager.prepareIncrementalConfigs.
    """
    levels = state.broker_levels
    new = dict(levels.dynamic if name else levels.dynamic_default)
    for config in configs:
        if config.config_operation not in (SET, DELETE, APPEND, SUBTRACT):
            raise InvalidConfig(f"Unknown operations type {config.config_operation}")
    for config in configs:
        if config.config_operation == SET:
            new[config.name] = config.value
        elif config.config_operation == DELETE:
            new.pop(config.name, None)
        else:
            new[config.name] = _changed_list(config, new.get(config.name))
    return new


def _changed_list(config: Any, old: str | None) -> str:
    rejected = ErrorCode.INVALID_CONFIG
    key = broker_configs().keys.get(config.name)
    if key is None:
        raise InvalidConfig(f"Unknown config name: {config.name}", rejected)
    if key.type_ != "LIST":
        verb = _OPERATIONS[config.config_operation]
        raise InvalidConfig(
            f"Config value {verb} is not allowed for config key: {config.name}", rejected
        )
    text = key.default if old is None else old
    entries = java_split(text) if text else []
    changes = java_split(config.value)
    if config.config_operation == APPEND:
        return ",".join([*entries, *(entry for entry in changes if entry not in entries)])
    for change in changes:  # an entry that is there twice stays once
        if change in entries:
            entries.remove(change)
    return ",".join(entries)
