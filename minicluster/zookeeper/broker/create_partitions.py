"""CreatePartitions (37) of a broker on ZooKeeper.

Versions:  0-3; the version decides nothing here.
Source:    KIP-195; ZkAdminManager.createPartitions, AdminZkClient.createNewPartitionsAssignment,
           KafkaApis.handleCreatePartitionsRequest.
"""

from __future__ import annotations

from minicluster.controller.errors import Rejected
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import CreatePartitionsRequest, CreatePartitionsResponse
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_state import AdminState, failed
from minicluster.zookeeper.broker.replica_assignment import Racks, assign_replicas
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import GetData, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment

Wanted = CreatePartitionsRequest.CreatePartitionsTopic
Response = CreatePartitionsResponse
Result = CreatePartitionsResponse.CreatePartitionsTopicResult


def create_partitions(
    state: AdminState, request: CreatePartitionsRequest, version: int
) -> Process[CreatePartitionsResponse]:
    """Add partitions to topics, each by itself.

    Errors:  per topic; a topic that is reassigned is rejected, since the controller would write
             the same znode. UNKNOWN_SERVER_ERROR for all from a name on that is not a path.
    """
    racks = yield from state.registered_racks()
    names = [topic.name for topic in request.topics]
    results = {}
    for topic in request.topics:
        try:
            if names.count(topic.name) > 1:
                raise Rejected(ErrorCode.INVALID_REQUEST, "Duplicate topic in request.")
            if not paths.is_valid(paths.topic(topic.name)):
                failed: Response = error_response(
                    request, ErrorCode.UNKNOWN_SERVER_ERROR, version=version
                )
                return failed
            yield from _create(state, topic, racks, request.validate_only)
            results[topic.name] = Result(name=topic.name, error_message=None)
        except Rejected as refusal:
            results[topic.name] = Result(
                name=topic.name, error_code=refusal.error, error_message=refusal.message
            )
    return CreatePartitionsResponse(results=tuple(results.values()))


def _create(state: AdminState, topic: Wanted, racks: Racks, validate_only: bool) -> Process[None]:
    name = topic.name
    if state.controller.context.is_queued_for_deletion(name):
        raise Rejected(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    (existing,) = yield (GetData(paths.topic(name)),)
    if not existing.ok:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    before = TopicAssignment.decode(existing.data)
    if any(assignment.is_being_reassigned for assignment in before.partitions.values()):
        raise Rejected(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"A partition reassignment is in progress for the topic '{name}'.",
        )
    new = _new_partitions(topic, before, racks)
    if not validate_only:
        added = {index: ReplicaAssignment(replicas) for index, replicas in new.items()}
        grown = replace(before, partitions={**before.partitions, **added})
        (written,) = yield (SetData(paths.topic(name), grown.encode()),)
        if not written.ok:
            raise failed(written.code)


def _new_partitions(
    topic: Wanted, before: TopicAssignment, racks: Racks
) -> dict[int, tuple[int, ...]]:
    count = len(before.partitions)
    more = topic.count - count
    if more < 0:
        raise Rejected(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {count} partitions, which is higher than the requested "
            f"{topic.count}.",
        )
    if more == 0:
        raise Rejected(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partitions.")
    if 0 not in before.partitions:
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR, "partition 0 is missing")
    first = before.partitions[0].replicas
    if topic.assignments is None:
        at_or_after = [index for index, broker in enumerate(racks) if broker >= first[0]]
        start = at_or_after[0] if at_or_after else 0
        return assign_replicas(racks, more, len(first), start_index=start, first_partition=count)
    assignments = [tuple(assignment.broker_ids) for assignment in topic.assignments]
    unknown = dict.fromkeys(id_ for replicas in assignments for id_ in replicas if id_ not in racks)
    problem = None
    if unknown:
        problem = f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    elif len(assignments) != more:
        provided = len(assignments)
        problem = (
            f"Increasing the number of partitions by {more} but {provided} assignments provided."
        )
    if problem is not None:
        raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    new = {count + place: replicas for place, replicas in enumerate(assignments)}
    _reject_replicas(new, len(first))
    return new


def _reject_replicas(new: dict[int, tuple[int, ...]], replication_factor: int) -> None:
    """Reject what AdminZkClient.validateReplicaAssignment rejects."""
    problem = None
    for partition, replicas in new.items():
        if not replicas:
            problem = f"Cannot have replication factor of 0 for partition id {partition}."
        elif len(set(replicas)) != len(replicas):
            problem = (
                "Duplicate brokers not allowed in replica assignment: "
                f"{', '.join(map(str, replicas))} for partition id {partition}."
            )
        if problem is not None:
            raise Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    other = {p: len(replicas) for p, replicas in new.items() if len(replicas) != replication_factor}
    if other:
        raise Rejected(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Inconsistent replication factor between partitions, partition 0 has "
            f"{replication_factor} while partitions [{', '.join(map(str, other))}] have "
            f"replication factors [{', '.join(map(str, other.values()))}], respectively.",
        )
