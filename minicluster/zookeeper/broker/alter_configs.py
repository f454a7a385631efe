"""AlterConfigs (33) and IncrementalAlterConfigs (44) of a broker on ZooKeeper: topics and brokers.

Whichever broker gets the request checks what it can by itself (``preprocess``, as with KRaft) and
writes the rest: the configs into the znode of the topic, the broker or all brokers, and a
notification that every broker reads.

Versions:  AlterConfigs 0-2, IncrementalAlterConfigs 0-1; the version decides nothing here.
Source:    KIP-133, KIP-226, KIP-339; ZkAdminManager.alterConfigs, incrementalAlterConfigs,
           ConfigAdminManager.preprocess, prepareIncrementalConfigs.
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.broker.requests.alter_configs import Preprocessed, preprocess
from minicluster.configs.config_def import ConfigDef, InvalidConfig, java_int
from minicluster.configs.definitions import broker_configs, topic_configs
from minicluster.configs.dynamic_broker import validate_broker_configs
from minicluster.configs.validation import validate_topic_configs
from minicluster.controller.config_changes import ConfigOperation
from minicluster.controller.errors import Rejected
from minicluster.java_order import scala_copy_order, string_hash
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import invalid_name_reason
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_state import AdminState, failed, rejected
from minicluster.zookeeper.controller.settings import ReleaseRules
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Create, Exists, GetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import decode_config, encode_config_change

Altered = m.AlterConfigsRequest | m.IncrementalAlterConfigsRequest


def preprocessed(state: ApiState, request: Altered, release: ReleaseRules) -> Preprocessed:
    """The request without what a broker rejects in any mode.

    Before 3.2 all of it is left; of a resource that comes twice the last one counts.
    """
    if release.config_requests_preprocessed:
        return preprocess(state, request)
    last: Any = tuple(_by_name(request).values())
    return Preprocessed(replace(request, resources=last), {})


def _by_name(request: Altered) -> dict[tuple[int, str], Any]:
    """The resources by type and name; of one that comes twice the last counts."""
    return {
        (resource.resource_type, resource.resource_name): resource for resource in request.resources
    }


def alter_configs(state: AdminState, request: Altered, version: int) -> Process[Any]:
    """Alter configs, each resource by itself; the response has the kind of the request.

    Resources are altered in the order of the Scala map that holds them.
    """
    incremental = isinstance(request, m.IncrementalAlterConfigsRequest)
    response: Any = m.IncrementalAlterConfigsResponse if incremental else m.AlterConfigsResponse
    result = response.AlterConfigsResourceResponse
    resources = _by_name(request)
    results = []
    for resource in map(resources.__getitem__, scala_copy_order(list(resources), _resource_hash)):
        code, message = ErrorCode.NONE, None
        try:
            yield from _alter(state, resource, incremental, request.validate_only)
        except Rejected as refusal:
            code, message = refusal.error, refusal.message
        results.append(
            result(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return response(responses=tuple(results))


def _resource_hash(resource: tuple[int, str]) -> int:
    """The hash code of Kafka's ConfigResource, but for the enum, whose code is not the same twice.

    More than four resources come in an order that no two processes of Kafka share.
    """
    return string_hash(resource[1])


def _alter(
    state: AdminState, resource: Any, incremental: bool, validate_only: bool
) -> Process[None]:
    name, definitions = resource.resource_name, topic_configs()
    release = state.controller.settings.release
    if not release.config_requests_preprocessed:
        _reject_malformed(state, resource, incremental)
    if resource.resource_type == TOPIC and not name:
        raise Rejected(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if resource.resource_type == TOPIC:
        path, entity = paths.topic_config(name), f"topics/{name}"
    elif resource.resource_type == BROKER:
        path, entity = paths.broker_config(name), f"brokers/{name or paths.DEFAULT_ENTITY}"
        definitions = broker_configs()
    else:
        raise Rejected(
            ErrorCode.INVALID_REQUEST, "AlterConfigs is only supported for topics and brokers."
        )
    configs: dict[str, str] = {config.name: config.value for config in resource.configs}
    if incremental and not paths.is_valid(path):
        raise Rejected(_config_error(state), f"Invalid path string {path}")
    if incremental:
        (image,) = yield (GetData(path),)
        configs = decode_config(image.data) if image.ok else {}
        for change in resource.configs:
            _apply(state, configs, change, definitions)
    if resource.resource_type == TOPIC:
        yield from _reject(state, name, configs)
    elif not release.config_requests_preprocessed:
        _reject_of_broker(state, name, configs)
    if validate_only:
        return
    yield from state.set_configs(path, configs)
    change_znode = encode_config_change(entity)
    (notified,) = yield (Create(paths.CONFIG_CHANGE_PREFIX, change_znode, sequential=True),)
    if not notified.ok:
        raise failed(notified.code)


def _reject(state: AdminState, name: str, configs: dict[str, str]) -> Process[None]:
    if state.image.topics.named(name) is None:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    reason = invalid_name_reason(name)
    if reason is not None:
        raise Rejected(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    (existing,) = yield (Exists(paths.topic(name)),)
    if not existing.ok:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
    try:
        validate_topic_configs(configs, {}, state.broker)
    except InvalidConfig as invalid:
        where = f"Invalid config value for resource ConfigResource(type=TOPIC, name='{name}'): "
        refusal = rejected(invalid, where)
        if refusal.error == ErrorCode.INVALID_CONFIG:
            refusal = Rejected(_config_error(state), where + invalid.message)
        raise refusal from None


def _reject_malformed(state: AdminState, resource: Any, incremental: bool) -> None:
    """Reject what ``preprocess`` does from 3.2 on."""
    names = [config.name for config in resource.configs]
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None
        and not (incremental and config.config_operation == ConfigOperation.DELETE)
    ]
    problem = None
    if len(set(names)) < len(names):
        problem = "Error due to duplicate config keys"
    elif nulls:
        problem = f"Null value not supported for : {','.join(nulls)}"
    elif resource.resource_type == BROKER and resource.resource_name:
        own = state.controller.settings.broker_id
        if java_int(resource.resource_name) != own:
            problem = f"Unexpected broker id, expected {own}, but received {resource.resource_name}"
    if problem is not None:
        raise Rejected(ErrorCode.INVALID_REQUEST, problem)


def _reject_of_broker(state: AdminState, name: str, configs: dict[str, str]) -> None:
    try:
        validate_broker_configs(configs, state.broker, per_broker=bool(name))
    except InvalidConfig as invalid:
        raise Rejected(ErrorCode.INVALID_REQUEST, invalid.message) from None


def _config_error(state: AdminState) -> ErrorCode:
    is_config_error = state.controller.settings.release.wrong_config_is_invalid_config
    return ErrorCode.INVALID_CONFIG if is_config_error else ErrorCode.INVALID_REQUEST


def _apply(state: AdminState, configs: dict[str, str], change: Any, definitions: ConfigDef) -> None:
    """Apply one change; a list that is not set begins with its default."""
    name, value = change.name, change.value or ""
    if change.config_operation not in list(ConfigOperation):
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "There is no such operation.")
    operation = ConfigOperation(change.config_operation)
    if operation is ConfigOperation.SET:
        configs[name] = value
        return
    if operation is ConfigOperation.DELETE:
        configs.pop(name, None)
        return
    verb = operation.name.lower()
    if name not in definitions:
        # Kafka looks the name up in a Scala map, which throws before the check of the name.
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown config name: {name}")
    if not definitions.is_list(name):
        raise Rejected(
            _config_error(state),
            f"Config value {verb} is not allowed for config key: {name}",
        )
    old = [
        entry
        for entry in configs.get(name, definitions.keys[name].default or "").split(",")
        if entry
    ]
    entries = value.split(",")
    if operation is ConfigOperation.APPEND:
        again = state.controller.settings.release.appends_again
        old += [entry for entry in entries if entry not in old or again]
    else:
        old = [entry for entry in old if entry not in entries]
    configs[name] = ",".join(old)
