"""CreateTopics (19).

Versions:  2-7 in 4.x, from 0 on in 3.9. 6: a client's quota is strict (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from minicluster.configs.effective import effective_topic_configs
from minicluster.controller.api import ControllerApi, Screened
from minicluster.controller.config_changes import (
    ConfigChange,
    ConfigOperation,
    ConfigurationControl,
    alter_resource,
    broker_levels,
    clear_elr_records,
)
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, Rejected, TooLarge, reject_too_many_records
from minicluster.controller.initial_assignment import (
    NewPartitions,
    validate_assignment,
)
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.placement import Draw, PlacementError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.configs import TOPIC
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import CreateTopicsRequest, CreateTopicsResponse
from minicluster.protocol.records import TopicRecord, VersionedRecord
from minicluster.protocol.topics import (
    METADATA_TOPIC,
    has_collision_chars,
    invalid_name_reason,
)
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.screening import Access
from minicluster.values import replace

CreatableTopic = CreateTopicsRequest.CreatableTopic
TopicResult = CreateTopicsResponse.CreatableTopicResult
DescribedConfig = CreateTopicsResponse.CreatableTopicConfigs

DUPLICATE_TOPIC = "Duplicate topic name."
PARTITIONS_PER_REQUEST_MAX = 10_000


def screen_create_topics(request: CreateTopicsRequest, access: Access) -> Screened:
    """Reject names that come twice, the metadata topic, and what may not be created.

    CREATE of the cluster allows all, else CREATE of each topic. Who lacks DESCRIBE_CONFIGS of one
    creates it and is told neither its counts nor its configs.

    Errors:  INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED per topic, behind the results of all
             others.
    Source:  ControllerApis.createTopics.
    """
    duplicates = duplicate_names(topic.name for topic in request.topics)
    rejected = [_rejected_topic(name, DUPLICATE_TOPIC) for name in duplicates]
    names = {topic.name for topic in request.topics}
    if METADATA_TOPIC in names and METADATA_TOPIC not in duplicates:
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        rejected.append(_rejected_topic(METADATA_TOPIC, message))
    out = {*duplicates, METADATA_TOPIC}
    may_create_all = access.may_on_cluster(Operation.CREATE)
    for name in names - out:
        if not (may_create_all or access.may(Operation.CREATE, ResourceType.TOPIC, name)):
            failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            rejected.append(_rejected_topic(name, "Authorization failed.", failed))
            out.add(name)
    left = replace(request, topics=tuple(t for t in request.topics if t.name not in out))

    def complete(rest: CreateTopicsResponse) -> CreateTopicsResponse:
        shown = (_without_configs(topic, access) for topic in rest.topics)
        return replace(rest, topics=(*shown, *rejected))

    return Screened(left, complete)


def _without_configs(topic: TopicResult, access: Access) -> TopicResult:
    """A created topic as somebody sees it who may not describe its configs."""
    may_describe = access.may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name)
    if topic.error_code != ErrorCode.NONE or may_describe:
        return topic
    return replace(
        topic,
        topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


def duplicate_names(names: Iterable[str]) -> list[str]:
    """The names that come twice, in the order of Kafka's hash set."""
    times = Counter(names)
    return hash_map_order((name for name, count in times.items() if count > 1), string_hash)


def _rejected_topic(
    name: str, message: str, error: ErrorCode = ErrorCode.INVALID_REQUEST
) -> TopicResult:
    return TopicResult(name=name, error_code=error, error_message=message)


@step
def create_topics(
    state: ClusterState,
    request: CreateTopicsRequest,
    version: int,
    draw: Draw,
    new_topic_id: Callable[[], UUID],
    quota: MutationQuota,
    now_ms: int,
) -> Decision:
    """Create topics; each succeeds or fails by itself, all records are one batch.

    Records: per topic TopicRecord, its configs, its partitions in ascending order.
    Chance:  placement draws and one id per topic that succeeds, for validate_only as well.
    Errors:  per topic; the first of: name, collision, existence, configs, placement, quota.
             Rejected with POLICY_VIOLATION when the request is too large as a whole.
    Source:  ReplicationControlManager.createTopics.
    """
    by_name: dict[str, CreatableTopic] = {}
    for topic in request.topics:
        by_name.setdefault(topic.name, topic)
    topics = list(by_name.values())
    _reject_too_many_partitions(state, topics)
    errors = _name_errors(state, topics)
    creation = _Creation(state, draw, new_topic_id, quota)
    records: list[VersionedRecord] = []
    results = []
    for topic in topics:
        error = errors.get(topic.name, ApiError())
        result = None
        if not error:
            try:
                result = _create_topic(creation, topic, records)
            except Rejected as refusal:
                if isinstance(refusal, TooLarge):
                    raise
                error = ApiError.of(refusal)
        if result is None:
            result = TopicResult(
                name=topic.name, error_code=error.error, error_message=error.message
            )
        results.append(result)
    reject_too_many_records(len(records))
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=CreateTopicsResponse(topics=tuple(results)),
        atomic=not request.validate_only,
    )


def _reject_too_many_partitions(state: ClusterState, topics: Sequence[CreatableTopic]) -> None:
    """Reject the request as a whole, before any topic of it is looked at.

    Source:  ReplicationControlManager.validateTotalNumberOfPartitions (4.x, and 3.9.2 already).
    """
    total = 0
    for topic in topics:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += state.settings.default_num_partitions
        elif topic.num_partitions > 0:
            total += topic.num_partitions
    if total > PARTITIONS_PER_REQUEST_MAX:
        raise Rejected(
            ErrorCode.POLICY_VIOLATION,
            "Excessively large number of partitions per request.",
        )


def _name_errors(state: ClusterState, topics: Sequence[CreatableTopic]) -> dict[str, ApiError]:
    """Invalid names, names that differ from a live one only in '.' and '_', names that live.

    Source:  ReplicationControlManager.validateNewTopicNames, computeConfigChanges.
    """
    errors = {}
    for topic in topics:
        name = topic.name
        reason = invalid_name_reason(name)
        if reason is not None:
            errors[name] = ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}"
            )
        other = state.indexes.colliding_name(name) if has_collision_chars(name) else None
        if other is not None:
            errors[name] = ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}",
            )
        if state.image.topics.named(name) is not None:
            errors[name] = ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
            )
        nulls = [config.name for config in topic.configs if config.value is None]
        if nulls and name not in errors:
            errors[name] = ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Null value not supported for topic configs: {','.join(nulls)}",
            )
    return errors


class _Creation:
    """Values that the topics of a request share. There may be thousands, most of them alike."""

    def __init__(
        self,
        state: ClusterState,
        draw: Draw,
        new_topic_id: Callable[[], UUID],
        quota: MutationQuota,
    ) -> None:
        self.state, self.draw, self.new_topic_id, self.quota = state, draw, new_topic_id, quota
        self.control = ConfigurationControl(state)
        self.partitions = NewPartitions(state)
        self._broker_levels = broker_levels(state)
        self._described: dict[tuple[tuple[str, str], ...], tuple[DescribedConfig, ...]] = {}

    def described_configs(self, topic: CreatableTopic) -> tuple[DescribedConfig, ...]:
        """Every config of a new topic with where its value comes from (KIP-525)."""
        own = tuple((each.name, each.value) for each in topic.configs if each.value is not None)
        described = self._described.get(own)
        if described is None:
            described = self._described[own] = tuple(
                DescribedConfig(
                    name=config.key.name,
                    value=config.value,
                    config_source=config.source,
                    is_sensitive=config.key.is_sensitive,
                )
                for config in effective_topic_configs(dict(own), self._broker_levels)
            )
        return described


def _create_topic(
    creation: _Creation, topic: CreatableTopic, records: list[VersionedRecord]
) -> TopicResult:
    state = creation.state
    configs = _config_records(creation.control, topic)
    replicas = _assigned if topic.assignments else _placed
    partitions = replicas(creation, topic)
    policy = state.settings.topic_policy
    named = {config.name: config.value or "" for config in topic.configs}
    refusal = policy(topic.name, len(partitions), named) if policy is not None else None
    if refusal is not None:
        raise Rejected(ErrorCode.POLICY_VIOLATION, refusal)
    # Last of all that can fail: a topic that is rejected must not use up the client's quota.
    creation.quota.record(len(partitions))
    topic_id = creation.new_topic_id()
    gates = state.gates
    records.append(VersionedRecord(TopicRecord(name=topic.name, topic_id=topic_id), 0))
    records += configs
    for index in sorted(partitions):
        records.append(
            partitions[index].to_record(
                topic_id, index, gates.metadata_version, gates.elr_enabled, gates.rules
            )
        )
    return TopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=creation.described_configs(topic),
    )


def _config_records(control: ConfigurationControl, topic: CreatableTopic) -> list[VersionedRecord]:
    # Conflicting configs of the brokers do not keep a topic from being created that has none of its
    # own.
    if not topic.configs:
        return []
    values = {config.name: config.value for config in topic.configs}
    changes = [
        ConfigChange(name, ConfigOperation.SET, values[name])
        for name in hash_map_order(values, string_hash)
    ]
    error, records = alter_resource(control, (TOPIC, topic.name), changes, newly_created=True)
    if error:
        raise Rejected(error.error, error.message or "")
    return records + clear_elr_records(control.state, records)  # of no partition yet


def _assigned(creation: _Creation, topic: CreatableTopic) -> dict[int, PartitionRegistration]:
    if topic.replication_factor != -1:
        raise Rejected(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not set to "
            "-1.",
        )
    if topic.num_partitions != -1:
        raise Rejected(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    partitions: dict[int, PartitionRegistration] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in partitions:
            raise Rejected(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        validate_assignment(creation.state, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        partition = creation.partitions.with_replicas(assignment.broker_ids)
        if partition is None:
            raise Rejected(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "All brokers specified in the manual partition assignment for partition "
                f"{index} are fenced or in controlled shutdown.",
            )
        partitions[index] = partition
    if sorted(partitions) != list(range(len(partitions))):
        raise Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return partitions


def _placed(creation: _Creation, topic: CreatableTopic) -> dict[int, PartitionRegistration]:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise Rejected(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        raise Rejected(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    count, factor = topic.num_partitions, topic.replication_factor
    settings = creation.state.settings
    count = settings.default_num_partitions if count == -1 else count
    factor = settings.default_replication_factor if factor == -1 else factor
    reject_too_many_records(count)
    prefix = f"Unable to replicate the partition {factor} time(s): "
    try:
        placed = creation.partitions.place(count, factor, creation.draw)
    except PlacementError as error:
        raise Rejected(ErrorCode.INVALID_REPLICATION_FACTOR, prefix + str(error)) from error
    partitions = {}
    for index, replicas in enumerate(placed):
        partition = creation.partitions.with_replicas(replicas)
        if partition is None:
            raise Rejected(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                prefix + "All brokers are currently fenced or in controlled shutdown.",
            )
        partitions[index] = partition
    return partitions


API = ControllerApi(
    CreateTopicsRequest,
    lambda call: create_topics(
        call.state,
        call.request,
        call.version,
        call.draw,
        call.new_topic_id,
        call.quota,
        call.now_ms,
    ),
    screen=lambda call: screen_create_topics(call.request, call.access),
    items=("topics",),
    has_deadline=True,
    nothing=CreateTopicsResponse(),
    quota_strict_since=6,
)
