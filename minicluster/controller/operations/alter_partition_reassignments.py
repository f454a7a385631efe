"""AlterPartitionReassignments (45): start, replace or cancel the reassignment of partitions.

Versions:  0-1; AllowReplicationFactorChange from 1 on (KIP-860).
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import MAX_RECORDS_PER_USER_OP, ApiError, Rejected
from minicluster.controller.initial_assignment import validate_assignment
from minicluster.controller.leader_election import Election
from minicluster.controller.partition_change import Targets, change_partition
from minicluster.controller.reassignment import (
    Reassignment,
    revert_reassignment,
    start_reassignment,
    without,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.security.acls import Operation

PartitionResponse = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse
TopicResponse = AlterPartitionReassignmentsResponse.ReassignableTopicResponse


def alter_partition_reassignments(
    state: ClusterState,
    request: AlterPartitionReassignmentsRequest,
    version: int,
    now_ms: int,
) -> Decision:
    """Start, replace or (replicas null) cancel reassignments; all records are one batch.

    Errors:  per partition; UNKNOWN_SERVER_ERROR for those that the batch has no room for.
    Source:  KIP-455, KIP-860; ReplicationControlManager.alterPartitionReassignments.
    """
    records: list[VersionedRecord] = []
    topics = []
    allow_change = request.allow_replication_factor_change
    for topic in request.topics:
        results = []
        for requested in topic.partitions:
            error = ApiError()
            try:
                record = _alter(state, topic.name, requested, allow_change)
                if record is not None and len(records) == MAX_RECORDS_PER_USER_OP:
                    error = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
                elif record is not None:
                    records.append(record)
            except Rejected as rejected:
                error = ApiError.of(rejected)
            results.append(
                PartitionResponse(
                    partition_index=requested.partition_index,
                    error_code=error.error,
                    error_message=error.message,
                )
            )
        topics.append(TopicResponse(name=topic.name, partitions=tuple(results)))
    return Decision(
        records=tuple(records),
        response=AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=allow_change,
            error_message=None,
            responses=tuple(topics),
        ),
        atomic=True,
    )


def _alter(
    state: ClusterState,
    name: str,
    requested: AlterPartitionReassignmentsRequest.ReassignablePartition,
    allow_change: bool,
) -> VersionedRecord | None:
    topic = state.image.topics.named(name)
    if topic is None:
        raise Rejected(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
        )
    partition = topic.partitions.get(requested.partition_index)
    if partition is None:
        raise Rejected(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"Unable to find partition {name}:{requested.partition_index}.",
        )
    if requested.replicas is None:
        targets = _cancel(state, topic, requested.partition_index, partition)
        unclean = state.unclean_election_allowed(name)
    else:
        targets = _start(state, partition, requested.replicas, allow_change)
        unclean = False  # the topic's config does not count here
    return reassigned(state, topic, requested.partition_index, partition, targets, unclean)


@step
def reassigned(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    targets: Targets,
    unclean: bool,
) -> VersionedRecord | None:
    """The record that moves a partition towards its targets, or None."""
    return change_partition(
        topic.id,
        index,
        partition,
        targets,
        gates=state.gates,
        acceptable=state.acceptor(partition, key=(topic.id, index)),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=Election.UNCLEAN if unclean else Election.ONLINE,
    )


def _cancel(
    state: ClusterState, topic: TopicImage, index: int, partition: PartitionRegistration
) -> Targets:
    if not partition.is_reassigning:
        raise Rejected(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    # The replicas that were being added go, though some may be in the ISR by now. If only such are,
    # the old ones lack committed records: that is an unclean election by another name.
    revert = revert_reassignment(
        Reassignment(
            replicas=partition.replicas,
            adding=partition.adding_replicas,
            removing=partition.removing_replicas,
        ),
        partition.isr,
    )
    if revert.unclean and not state.unclean_election_allowed(topic.name):
        raise Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {topic.name}:{index} because it would "
            "require an unclean leader election.",
        )
    return Targets(isr=revert.isr, replicas=revert.replicas, removing=(), adding=())


def _start(
    state: ClusterState,
    partition: PartitionRegistration,
    target: tuple[int, ...],
    allow_change: bool,
) -> Targets:
    validate_assignment(state, target, None)
    if not allow_change:
        assigned = dict.fromkeys((*partition.replicas, *partition.adding_replicas))
        size = len(without(tuple(assigned), partition.removing_replicas))
        if len(target) != size:
            raise Rejected(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"The replication factor is changed from {size} to {len(target)}",
            )
    started = start_reassignment(partition.replicas, target)
    if state.rules.reassignment_keeps_old_lists:
        return Targets(
            replicas=started.replicas,
            adding=started.adding or None,
            removing=started.removing or None,
        )
    # What was being added and stays is still to be waited for, but nothing that goes.
    waited_for = tuple(r for r in partition.adding_replicas if r in target)
    return Targets(
        replicas=started.replicas,
        adding=started.adding or waited_for,
        removing=started.removing,
    )


API = ControllerApi(
    AlterPartitionReassignmentsRequest,
    lambda call: alter_partition_reassignments(*call.plain),
    items=("topics",),
    has_deadline=True,
    nothing=AlterPartitionReassignmentsResponse(),
    right=Operation.ALTER,
)
