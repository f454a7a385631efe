"""AlterConfigs (33) and IncrementalAlterConfigs (44) of a broker on ZooKeeper: topics.

Versions:  AlterConfigs 0-2, IncrementalAlterConfigs 0-1; the version decides nothing here.
Leaves out: configs of brokers, which no broker here takes from ZooKeeper.
Source:    KIP-133, KIP-339; ZkAdminManager.alterConfigs, incrementalAlterConfigs,
           ConfigAdminManager.preprocess, prepareIncrementalConfigs.
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.api_state import ApiState
from minicluster.broker.requests.alter_configs import Preprocessed, preprocess
from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.definitions import topic_configs
from minicluster.configs.validation import validate_topic_configs
from minicluster.controller.deciding.config_changes import ConfigOperation
from minicluster.controller.errors import Rejected
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import invalid_name_reason
from minicluster.zookeeper.broker.administration.admin_state import AdminState, failed, rejected
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Create, Exists, GetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import decode_config, encode_config_change

Altered = m.AlterConfigsRequest | m.IncrementalAlterConfigsRequest


def preprocessed(state: ApiState, request: Altered) -> Preprocessed:
    """The request without what a broker rejects in any mode; with configs of brokers, all of it."""
    if any(resource.resource_type == BROKER for resource in request.resources):
        return Preprocessed(request, {})
    return preprocess(state, request)


def alter_configs(state: AdminState, request: Altered, version: int) -> Process[Any]:
    """Alter the configs of topics, each by itself; the response has the kind of the request."""
    incremental = isinstance(request, m.IncrementalAlterConfigsRequest)
    response: Any = m.IncrementalAlterConfigsResponse if incremental else m.AlterConfigsResponse
    result = response.AlterConfigsResourceResponse
    results = []
    for resource in request.resources:
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


def _alter(
    state: AdminState, resource: Any, incremental: bool, validate_only: bool
) -> Process[None]:
    name = resource.resource_name
    if resource.resource_type != TOPIC:
        raise Rejected(
            ErrorCode.INVALID_REQUEST, "Only configs of topics can be altered in this mode."
        )
    if not name:
        raise Rejected(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    configs: dict[str, str] = {config.name: config.value for config in resource.configs}
    if incremental:
        (image,) = yield (GetData(paths.topic_config(name)),)
        configs = decode_config(image.data) if image.ok else {}
        for change in resource.configs:
            _apply(configs, change)
    yield from _reject(state, name, configs)
    if validate_only:
        return
    yield from state.set_configs(name, configs)
    change_znode = encode_config_change(f"topics/{name}")
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
        raise rejected(invalid, where) from None


def _apply(configs: dict[str, str], change: Any) -> None:
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
    definitions = topic_configs()
    verb = operation.name.lower()
    if name not in definitions:
        # Kafka looks the name up in a Scala map, which throws before the check of the name.
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown config name: {name}")
    if not definitions.is_list(name):
        raise Rejected(
            ErrorCode.INVALID_CONFIG,
            f"Config value {verb} is not allowed for config key: {name}",
        )
    old = [
        entry
        for entry in configs.get(name, definitions.keys[name].default or "").split(",")
        if entry
    ]
    entries = value.split(",")
    if operation is ConfigOperation.APPEND:
        old += [entry for entry in entries if entry not in old]
    else:
        old = [entry for entry in old if entry not in entries]
    configs[name] = ",".join(old)
