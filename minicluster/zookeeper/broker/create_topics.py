"""CreateTopics (19) of a broker on ZooKeeper.

Versions:  0-7; the version decides nothing here.
Source:    ZkAdminManager.createTopics, AdminZkClient.validateTopicCreate,
           KafkaApis.handleCreateTopicsRequest.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.configs.config_def import InvalidConfig
from minicluster.configs.effective import effective_topic_configs
from minicluster.configs.validation import validate_topic_configs
from minicluster.controller.errors import Rejected
from minicluster.java_order import scala_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from minicluster.protocol.topics import (
    METADATA_TOPIC,
    has_collision_chars,
    invalid_name_reason,
    unify_collision_chars,
)
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.broker.admin_state import AdminState, failed, rejected
from minicluster.zookeeper.broker.replica_assignment import assign_replicas
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, Exists, GetChildren
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment

CreatableTopic = CreateTopicsRequest.CreatableTopic
TopicResult = CreateTopicsResponse.CreatableTopicResult
NOT_GIVEN = -1


def create_topics(
    state: AdminState, request: CreateTopicsRequest, version: int
) -> Process[CreateTopicsResponse]:
    """Create topics, each by itself: the configs first, then the assignment.

    Topics are created in the order of the Scala map that holds them by name.

    Errors:  per topic; the first of: sizes and assignment, name, existence, collision, configs.
    """
    names = [topic.name for topic in request.topics]
    results = {name: _refused(name, names.count(name)) for name in names}
    topics = {topic.name: topic for topic in request.topics if results[topic.name] is None}
    for name in scala_map_order(topics, string_hash):
        try:
            results[name] = yield from _create(state, topics[name], request.validate_only)
        except Rejected as refusal:
            results[name] = _failed(name, refusal.error, refusal.message)
    return CreateTopicsResponse(
        topics=tuple(result for name in names if (result := results[name]) is not None)
    )


def _refused(name: str, times: int) -> TopicResult | None:
    """The result of a topic that is rejected by its name alone."""
    if name == METADATA_TOPIC:
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
    elif times > 1:
        message = "Found multiple entries for this topic."
    else:
        return None
    return _failed(name, ErrorCode.INVALID_REQUEST, message)


def _failed(name: str, error: ErrorCode, message: str | None) -> TopicResult:
    return TopicResult(name=name, error_code=error, error_message=message)


def _create(state: AdminState, topic: CreatableTopic, validate_only: bool) -> Process[TopicResult]:
    name = topic.name
    if state.image.topics.named(name) is not None:
        raise Rejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        is_config_error = state.controller.settings.release.wrong_config_is_invalid_config
        raise Rejected(
            ErrorCode.INVALID_CONFIG if is_config_error else ErrorCode.INVALID_REQUEST,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    assignment = _assignment(state, topic)
    configs = {config.name: config.value or "" for config in topic.configs}
    yield from _reject_name(state, name)
    _reject_assignment(assignment)
    try:
        validate_topic_configs(configs, {}, state.broker)
    except InvalidConfig as invalid:
        raise rejected(invalid) from None
    if 0 not in assignment:  # with a negative index the sum may be right, and Kafka fails
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "partition 0 is missing")
    topic_id = None
    if not validate_only:
        topic_id = yield from _write(state, name, configs, assignment)
    return TopicResult(
        name=name,
        topic_id=topic_id or ZERO_UUID,
        error_message=None,
        num_partitions=len(assignment),
        replication_factor=len(assignment[0]),
        configs=_described_configs(state, configs),
    )


def _write(
    state: AdminState, name: str, configs: dict[str, str], assignment: dict[int, tuple[int, ...]]
) -> Process[UUID | None]:
    """Write the znodes; returns the topic's id, None below IBP 2.8."""
    yield from state.set_configs(paths.topic_config(name), configs)
    uses_ids = state.controller.settings.protocol.topic_ids_supported
    topic_id = state.new_topic_id() if uses_ids else None
    partitions = {index: ReplicaAssignment(ids) for index, ids in assignment.items()}
    znode = TopicAssignment(partitions, topic_id)
    (created,) = yield (Create(paths.topic(name), znode.encode()),)
    if created.code is Code.NODEEXISTS:
        raise Rejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if not created.ok:
        raise failed(created.code)
    return topic_id


def _assignment(state: AdminState, topic: CreatableTopic) -> dict[int, tuple[int, ...]]:
    """The replicas that the request gives, or those that are placed.

    A broker that does not exist may be given: it may come later.
    """
    sizes = (topic.num_partitions, topic.replication_factor)
    if topic.assignments:
        if sizes != (NOT_GIVEN, NOT_GIVEN):
            raise Rejected(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        return {
            assigned.partition_index: tuple(assigned.broker_ids) for assigned in topic.assignments
        }
    partitions, factor = sizes
    if partitions == NOT_GIVEN:
        partitions = state.count("num.partitions")
    if factor == NOT_GIVEN:
        factor = state.count("default.replication.factor")
    return assign_replicas(state.racks(), partitions, factor)


def _reject_name(state: AdminState, name: str) -> Process[None]:
    reason = invalid_name_reason(name)
    if reason is not None:
        raise Rejected(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")
    (marked, existing) = yield (Exists(paths.delete_topic(name)), Exists(paths.topic(name)))
    if marked.ok and state.controller.settings.release.marked_topics_rejected:
        raise Rejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    if existing.ok:
        raise Rejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if has_collision_chars(name):
        (topics,) = yield (GetChildren(paths.TOPICS),)
        unified = unify_collision_chars(name)
        colliding = [other for other in topics.children if unify_collision_chars(other) == unified]
        if colliding:
            raise Rejected(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
            )


def _reject_assignment(assignment: dict[int, tuple[int, ...]]) -> None:
    problem = None
    if len({len(replicas) for replicas in assignment.values()}) != 1:
        problem = "All partitions should have the same number of replicas"
    elif any(len(set(replicas)) != len(replicas) for replicas in assignment.values()):
        problem = f"Duplicate replica assignment found: {assignment}"
    elif sum(index for index in assignment if index >= 0) != sum(range(len(assignment))):
        problem = "partitions should be a consecutive 0-based integer sequence"
    if problem is not None:
        raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _described_configs(
    state: AdminState, configs: dict[str, str]
) -> tuple[CreateTopicsResponse.CreatableTopicConfigs, ...]:
    """Every config of the new topic with where its value comes from (KIP-525)."""
    return tuple(
        CreateTopicsResponse.CreatableTopicConfigs(
            name=config.key.name,
            value=config.value,
            config_source=config.source,
            is_sensitive=config.key.is_sensitive,
        )
        for config in effective_topic_configs(configs, state.broker)
    )
