"""Topics and configs, as the broker that is the controller writes them for clients.

Each write is single, without a check of the controller epoch; the controller finds it by a watch.

Versions: CreateTopics 0-7, DeleteTopics 0-6, CreatePartitions 0-3, IncrementalAlterConfigs 0-1.
Leaves out: policies, quotas, validation of config values, topic names that collide.
Source:   KIP-516; kafka.server.ZkAdminManager, kafka.zk.AdminZkClient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from minicluster.broker.zookeeper.registration import create_recursively
from minicluster.controller.zookeeper.process import Process
from minicluster.controller.zookeeper.state.controller_state import ControllerState
from minicluster.metadata.image.configs import TOPIC
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.operations import (
    Check,
    Code,
    Create,
    Exists,
    GetData,
    Multi,
    SetData,
)
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import (
    ReplicaAssignment,
    TopicAssignment,
    decode_config,
    encode_config,
    encode_config_change,
)

SET, DELETE = 0, 1
NOT_GIVEN = -1
NewId = Callable[[], UUID]


def process_admin(state: ControllerState, request: Any, new_id: NewId) -> Process[Any]:
    """The response to a request of an administrator."""
    match request:
        case m.CreateTopicsRequest():
            created = []
            for topic in request.topics:
                created.append((yield from _create_topic(state, topic, new_id)))
            return m.CreateTopicsResponse(topics=tuple(created))
        case m.DeleteTopicsRequest():
            deleted = []
            named = request.topics or tuple(
                m.DeleteTopicsRequest.DeleteTopicState(name=name) for name in request.topic_names
            )
            for requested in named:
                deleted.append((yield from _delete_topic(state, requested)))
            return m.DeleteTopicsResponse(responses=tuple(deleted))
        case m.CreatePartitionsRequest():
            grown = []
            for more in request.topics:
                grown.append((yield from _create_partitions(state, more)))
            return m.CreatePartitionsResponse(results=tuple(grown))
        case m.IncrementalAlterConfigsRequest():
            altered = []
            for resource in request.resources:
                altered.append((yield from _alter_configs(state, resource)))
            return m.IncrementalAlterConfigsResponse(responses=tuple(altered))
    raise TypeError(f"no admin request: {type(request).__name__}")


ADMIN_REQUESTS = (
    m.CreateTopicsRequest,
    m.DeleteTopicsRequest,
    m.CreatePartitionsRequest,
    m.IncrementalAlterConfigsRequest,
)


def _create_topic(
    state: ControllerState, topic: m.CreateTopicsRequest.CreatableTopic, new_id: NewId
) -> Process[Any]:
    result = m.CreateTopicsResponse.CreatableTopicResult
    (marked, known) = yield (
        Exists(paths.delete_topic(topic.name)),
        Exists(paths.topic(topic.name)),
    )
    if marked.ok or known.ok:
        return result(
            name=topic.name, error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message=None
        )
    live = sorted(state.context.broker_epochs)
    assignment = _given(topic) or _spread(live, topic.num_partitions, topic.replication_factor)
    if not assignment:
        return result(
            name=topic.name, error_code=ErrorCode.INVALID_REPLICATION_FACTOR, error_message=None
        )
    configs = {one.name: one.value for one in topic.configs if one.value is not None}
    code = yield from _set_config(state, topic.name, encode_config(configs))
    topic_id = new_id() if state.settings.protocol.topic_ids_supported else None
    partitions = {number: ReplicaAssignment(replicas) for number, replicas in assignment.items()}
    znode = TopicAssignment(partitions, topic_id)
    if code is Code.OK:
        (created,) = yield (Create(paths.topic(topic.name), znode.encode()),)
        code = created.code
    error = ErrorCode.NONE if code is Code.OK else ErrorCode.UNKNOWN_SERVER_ERROR
    if code is Code.NODEEXISTS:
        error = ErrorCode.TOPIC_ALREADY_EXISTS
    return result(
        name=topic.name,
        topic_id=topic_id or ZERO_UUID,
        error_code=error,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(assignment[min(assignment)]),
        configs=(),
    )


def _given(topic: m.CreateTopicsRequest.CreatableTopic) -> dict[int, tuple[int, ...]]:
    return {one.partition_index: tuple(one.broker_ids) for one in topic.assignments}


def _spread(live: Sequence[int], partitions: int, replicas: int) -> dict[int, tuple[int, ...]]:
    """One leader after the other, the followers behind each; empty if there are too few brokers.

    Source:  AdminUtils.assignReplicasToBrokers, whose first broker is random.
    """
    count = 1 if partitions == NOT_GIVEN else partitions
    factor = 1 if replicas == NOT_GIVEN else replicas
    if factor > len(live) or factor < 1:
        return {}
    return {
        number: tuple(live[(number + place) % len(live)] for place in range(factor))
        for number in range(count)
    }


def _set_config(state: ControllerState, topic: str, data: bytes) -> Process[Code]:
    """Set the configs of a topic, or create them; with a check of /controller since KIP-866."""
    path = paths.topic_config(topic)
    write: Any = SetData(path, data)
    if state.settings.release.controller_checked_for_configs:
        (controller,) = yield (Exists(paths.CONTROLLER),)
        if controller.stat is None:
            return Code.NONODE
        write = Multi((Check(paths.CONTROLLER, controller.stat.version), write))
    (result,) = yield (write,)
    code = result.parts[-1].code if result.parts else result.code
    if code is Code.NONODE:
        yield from create_recursively(path, data)
        return Code.OK
    return code


def _delete_topic(
    state: ControllerState, requested: m.DeleteTopicsRequest.DeleteTopicState
) -> Process[Any]:
    result = m.DeleteTopicsResponse.DeletableTopicResult
    name = requested.name or state.context.topic_names.get(requested.topic_id)
    if name is None:
        return result(
            name=None,
            topic_id=requested.topic_id,
            error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            error_message=None,
        )
    (known,) = yield (Exists(paths.topic(name)),)
    if not known.ok:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return result(name=name, error_code=code, error_message=None)
    yield (Create(paths.delete_topic(name)),)
    topic_id = state.context.topic_ids.get(name, ZERO_UUID)
    return result(name=name, topic_id=topic_id, error_code=ErrorCode.NONE, error_message=None)


def _create_partitions(
    state: ControllerState, more: m.CreatePartitionsRequest.CreatePartitionsTopic
) -> Process[Any]:
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult
    (found,) = yield (GetData(paths.topic(more.name)),)
    if not found.ok:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return result(name=more.name, error_code=code, error_message=None)
    before = TopicAssignment.decode(found.data)
    added = range(len(before.partitions), more.count)
    if not added:
        return result(name=more.name, error_code=ErrorCode.INVALID_PARTITIONS, error_message=None)
    live = sorted(state.context.broker_epochs)
    factor = len(before.partitions[0].replicas)
    spread = _spread(live, more.count, factor)
    if more.assignments is not None:
        given = [tuple(one.broker_ids) for one in more.assignments]
        spread = dict(zip(added, given, strict=False))
    grown = {**before.partitions, **{n: ReplicaAssignment(spread[n]) for n in added}}
    yield (SetData(paths.topic(more.name), replace(before, partitions=grown).encode()),)
    return result(name=more.name, error_code=ErrorCode.NONE, error_message=None)


def _alter_configs(
    state: ControllerState, resource: m.IncrementalAlterConfigsRequest.AlterConfigsResource
) -> Process[Any]:
    name = resource.resource_name
    code = ErrorCode.NONE
    if resource.resource_type != TOPIC:
        code = ErrorCode.INVALID_REQUEST
    else:
        (found,) = yield (GetData(paths.topic_config(name)),)
        configs = decode_config(found.data) if found.ok else {}
        for one in resource.configs:
            if one.config_operation == DELETE:
                configs.pop(one.name, None)
            else:
                configs[one.name] = one.value or ""
        yield from _set_config(state, name, encode_config(configs))
        change = encode_config_change(f"topics/{name}")
        yield (Create(paths.CONFIG_CHANGE_PREFIX, change, sequential=True),)
    return m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=code,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=name,
    )
