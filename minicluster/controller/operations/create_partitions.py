"""CreatePartitions (37): more partitions for topics that exist.

Versions:  0-3. 3: a client's quota is strict (KIP-599).
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.controller.api import ControllerApi, Screened
from minicluster.controller.decision import Decision
from minicluster.controller.errors import MAX_RECORDS_PER_USER_OP, ApiError, Rejected
from minicluster.controller.initial_assignment import (
    NewPartitions,
    active_replicas,
    validate_assignment,
)
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.operations.create_topics import DUPLICATE_TOPIC, duplicate_names
from minicluster.controller.placement import Draw, PlacementError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, timeline_order
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse
from minicluster.protocol.records import VersionedRecord
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.screening import Access
from minicluster.values import replace

TopicResult = CreatePartitionsResponse.CreatePartitionsTopicResult


def screen_create_partitions(request: CreatePartitionsRequest, access: Access) -> Screened:
    """Reject names that come twice or need ALTER; the others come in a hash set's order.

    Errors:  INVALID_REQUEST, TOPIC_AUTHORIZATION_FAILED per topic, ahead of the results of all
             others.
    Source:  ControllerApis.createPartitions.
    """
    duplicates = duplicate_names(topic.name for topic in request.topics)
    rejected = [
        TopicResult(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=DUPLICATE_TOPIC)
        for name in duplicates
    ]
    by_name = {topic.name: topic for topic in request.topics}
    order = hash_map_order(by_name, string_hash)
    failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    left_names = []
    for name in order:
        if name in duplicates:
            continue
        if access.may(Operation.ALTER, ResourceType.TOPIC, name):
            left_names.append(name)
        else:
            rejected.append(TopicResult(name=name, error_code=failed, error_message=None))
    left = replace(request, topics=tuple(by_name[name] for name in left_names))
    return Screened(left, lambda rest: replace(rest, results=(*rejected, *rest.results)))


def create_partitions(
    state: ClusterState,
    request: CreatePartitionsRequest,
    version: int,
    draw: Draw,
    quota: MutationQuota,
    now_ms: int,
) -> Decision:
    """Add partitions; each topic succeeds or fails by itself, all records are one batch.

    Chance:  placement draws.
    Errors:  per topic; UNKNOWN_SERVER_ERROR for one that the batch has no room for.
    Source:  KIP-195; ReplicationControlManager.createPartitions.
    """
    records: list[VersionedRecord] = []
    results = []
    new = NewPartitions(state)
    for topic in request.topics:
        added: list[VersionedRecord] = []
        error = ApiError()
        try:
            _add_partitions(state, topic, new, added, draw, quota)
        except Rejected as rejected:
            error = ApiError.of(rejected)
        room = MAX_RECORDS_PER_USER_OP - len(records)
        if len(added) > room:
            error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if not error or state.rules.refused_create_partitions_writes:
            records += added[:room]
        results.append(
            TopicResult(name=topic.name, error_code=error.error, error_message=error.message)
        )
    return Decision(
        records=() if request.validate_only else tuple(records),
        response=CreatePartitionsResponse(results=tuple(results)),
        atomic=True,
    )


def _add_partitions(
    state: ClusterState,
    requested: CreatePartitionsRequest.CreatePartitionsTopic,
    new: NewPartitions,
    records: list[VersionedRecord],
    draw: Draw,
    quota: MutationQuota,
) -> None:
    topic = state.image.topics.named(requested.name)
    if topic is None:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    start = len(topic)
    if requested.count == start:
        raise Rejected(ErrorCode.INVALID_PARTITIONS, f"Topic already has {start} partition(s).")
    if requested.count < start:
        raise Rejected(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {start} partition(s); {requested.count} would "
            "not be an increase.",
        )
    _check_assignments(requested, requested.count - start)
    quota.record(requested.count - start)
    # As many replicas as the partition that Kafka's hash map yields first, whichever that is.
    first = timeline_order(sorted(topic.partitions), int, put_again=True)[0]
    factor = len(topic.partitions[first].replicas)
    chosen = _chosen_replicas(state, topic, requested, new, factor, draw)
    gates = state.gates
    for index, replicas in enumerate(chosen, start):
        partition = new.with_replicas(replicas)
        if partition is None:
            raise Rejected(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"Unable to replicate the partition {factor} time(s): All brokers are currently "
                "fenced or in controlled shutdown.",
            )
        records.append(
            partition.to_record(
                topic.id, index, gates.metadata_version, gates.elr_enabled, gates.rules
            )
        )


def _check_assignments(
    requested: CreatePartitionsRequest.CreatePartitionsTopic, additional: int
) -> None:
    if requested.assignments is not None and len(requested.assignments) != additional:
        raise Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(requested.assignments)} assignment(s) were specified.",
        )


def _chosen_replicas(
    state: ClusterState,
    topic: TopicImage,
    requested: CreatePartitionsRequest.CreatePartitionsTopic,
    new: NewPartitions,
    factor: int,
    draw: Draw,
) -> Sequence[tuple[int, ...]]:
    start = len(topic)
    additional = requested.count - start
    if requested.assignments is None:
        try:
            # One more than a batch holds is rejected; Kafka would place all of them before that.
            count = min(additional, MAX_RECORDS_PER_USER_OP + 1)
            return new.place(count, factor, draw)
        except PlacementError as error:
            raise Rejected(ErrorCode.INVALID_REPLICATION_FACTOR, str(error)) from error
    for index, assignment in enumerate(requested.assignments, start):
        validate_assignment(state, assignment.broker_ids, factor)
        if not active_replicas(state, assignment.broker_ids):
            raise Rejected(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "All brokers specified in the manual partition assignment for partition "
                f"{index} are fenced or in controlled shutdown.",
            )
    return [assignment.broker_ids for assignment in requested.assignments]


API = ControllerApi(
    CreatePartitionsRequest,
    lambda call: create_partitions(
        call.state, call.request, call.version, call.draw, call.quota, call.now_ms
    ),
    screen=lambda call: screen_create_partitions(call.request, call.access),
    items=("topics",),
    has_deadline=True,
    nothing=CreatePartitionsResponse(),
    quota_strict_since=3,
)
