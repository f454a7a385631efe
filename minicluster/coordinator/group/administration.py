"""Groups as administrators see them: ListGroups, the two describes, and DeleteGroups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.classic.group import ClassicGroup, GroupState
from minicluster.coordinator.group.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    Partitions,
)
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import Group, GroupShard
from minicluster.coordinator.group.offsets.committed import offset_record
from minicluster.coordinator.group.request_context import Context
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.java_order import (
    concurrent_map_order,
    hash_map_order,
    hash_set_order,
    java_set_order,
    string_hash,
    timeline_order,
    topic_partition_hash,
)
from minicluster.metadata.authorized_operations import ON_GROUP
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.values import replace

# ListGroups (16): the groups whose coordinator is this broker, as they are committed.
#
# Versions:  0-5. 4: filter by state, and the state of each group (KIP-518). 5: filter by type, and
#            the type of each group (KIP-848).
# Order:     of the shards that of CoordinatorRuntime's ConcurrentHashMap, of the groups of a shard
#            that of GroupMetadataManager's TimelineHashMap.
# Source:    GroupCoordinatorService.listGroups, GroupMetadataManager.listGroups.


def handle_list_groups(
    state: GroupCoordinatorState,
    context: Context,
    request: ListGroupsRequest,
    version: int,
    now_ms: int,
) -> None:
    """List the groups of every shard that is loaded.

    Errors:  COORDINATOR_LOAD_IN_PROGRESS while one is not.
    """

    def state_of(group: Group) -> str:
        if isinstance(group, ConsumerGroup):
            return str(group.committed_state.value)
        return str(group.state.value)

    states = {name.strip().lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    partitions = concurrent_map_order(
        [(GROUP_METADATA_TOPIC, partition) for partition in state.runtime.partitions],
        topic_partition_hash,
    )

    def operation(shard: GroupShard, _: int) -> list[Any]:
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=state,
                group_type=group.type,
            )
            for group in shard.groups.values_in_order(string_hash, committed=True)
            if (state := state_of(group))
            and (not states or state.lower() in states)
            and (not types or group.type.lower() in types)
        ]

    groups: list[Any] = []
    for _, partition in partitions:
        try:
            groups += state.runtime.read(partition, operation)
        except OperationError as rejection:
            if rejection.error != ErrorCode.NOT_COORDINATOR:  # a shard that has failed has none
                state.respond(context.token, ListGroupsResponse(error_code=rejection.error))
                return
    state.respond(context.token, ListGroupsResponse(groups=tuple(groups)))


# DescribeGroups (15): the state and the members of classic groups.
#
# Versions:  0-6. 3: authorized operations. 4: instance ids (KIP-345). 6: GROUP_ID_NOT_FOUND and an
#            error message (KIP-1043).
# Source:    KafkaApis.handleDescribeGroupsRequest, GroupMetadataManager.describeGroups.


_NOT_FOUND_FROM = 6

Described = DescribeGroupsResponse.DescribedGroup


def handle_describe_groups(
    state: GroupCoordinatorState,
    context: Context,
    request: DescribeGroupsRequest,
    version: int,
    now_ms: int,
) -> None:
    """Describe each group; one that is not there is Dead."""
    group_ids = chain(*state.by_partition(request.groups).values())
    described = [_describe(state, group_id, version) for group_id in group_ids]
    if request.include_authorized_operations:
        described = [_with_operations(group) for group in described]
    state.respond(context.token, DescribeGroupsResponse(groups=tuple(described)))


def _with_operations(group: Any) -> Any:
    if group.error_code == ErrorCode.NONE:
        return replace(group, authorized_operations=ON_GROUP)
    return group


def _describe(state: GroupCoordinatorState, group_id: str, version: int) -> Described:
    try:
        group = state.read(group_id, lambda shard, _: shard.groups.committed_value(group_id))
    except OperationError as rejection:
        return Described(group_id=group_id, error_code=rejection.error)
    if isinstance(group, ClassicGroup):
        return _described(group)
    dead = Described(group_id=group_id, group_state=GroupState.DEAD.value)
    if version < _NOT_FOUND_FROM:
        return dead
    what = "not found" if group is None else "is not a classic group"
    message = f"Group {group_id} {what}."
    return replace(dead, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)


def _described(group: ClassicGroup) -> Described:
    stable = group.state is GroupState.STABLE
    return Described(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members_in_order()
        ),
    )


# ConsumerGroupDescribe (69): the state and the members of consumer groups, as committed (KIP-848).
#
# Versions:  0-1. 1: the type of each member.
# Source:    KafkaApis.handleConsumerGroupDescribe, ConsumerGroup.asDescribedGroup,
#            ConsumerGroupMember.asConsumerGroupDescribeMember.


_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
DescribedConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup


def handle_consumer_group_describe(
    state: GroupCoordinatorState,
    context: Context,
    request: ConsumerGroupDescribeRequest,
    version: int,
    now_ms: int,
) -> None:
    """Describe each group.

    Errors:  by group UNSUPPORTED_VERSION while the protocol is off, INVALID_GROUP_ID,
             GROUP_ID_NOT_FOUND.
    """
    group_ids = list(request.group_ids)
    if state.is_consumer_protocol_enabled:
        named = state.by_partition(group_id for group_id in group_ids if group_id)
        group_ids = [*(i for i in group_ids if not i), *chain(*named.values())]
    described = [_describe_consumer_group(state, group_id) for group_id in group_ids]
    if request.include_authorized_operations:
        described = [_with_operations(group) for group in described]
    state.respond(context.token, ConsumerGroupDescribeResponse(groups=tuple(described)))


def _describe_consumer_group(state: GroupCoordinatorState, group_id: str) -> Any:
    def operation(shard: GroupShard, _: int) -> Any:
        return _described_consumer_group(shard, shard.consumer_group(group_id, committed=True))

    try:
        if not state.is_consumer_protocol_enabled:
            raise OperationError(ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            raise OperationError(ErrorCode.INVALID_GROUP_ID)
        return state.read(group_id, operation)
    except OperationError as rejection:
        return DescribedConsumerGroup(
            group_id=group_id, error_code=rejection.error, error_message=rejection.message
        )


def _described_consumer_group(shard: GroupShard, group: ConsumerGroup) -> Any:
    group_epoch, assignment_epoch = group.committed_epochs()
    members, target = group.members.committed(), group.target.committed()
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.committed_state.value,
        group_epoch=group_epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=_assignor(members) or shard.config.consumer_assignors[0],
        members=tuple(
            _member(members[member_id], target.get(member_id, {}), shard)
            for member_id in timeline_order(members, string_hash)
        ),
    )


def _assignor(members: Mapping[str, ConsumerGroupMember]) -> str | None:
    """The assignor with most votes; of two, the first in Kafka's table."""
    votes: dict[str, int] = {}
    for member in members.values():
        if member.server_assignor is not None:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
    return max(timeline_order(votes, string_hash), key=lambda name: votes[name], default=None)


def _member(member: ConsumerGroupMember, target: Partitions, shard: GroupShard) -> Any:
    # Until it has given them up, a member is responsible for what it is to give up.
    assigned: dict[UUID, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, indexes in partitions.items():
            assigned.setdefault(topic_id, []).extend(indexes)
    order = hash_map_order(assigned, shard.topic_hash)
    ordered = {topic_id: java_set_order(sorted(indexes)) for topic_id, indexes in target.items()}
    return ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(
            hash_set_order(sorted(member.subscribed_topics), (), string_hash)
        ),
        subscribed_topic_regex=member.subscribed_regex,
        assignment=_assignment({t: assigned[t] for t in order}, shard.image),
        target_assignment=_assignment(ordered, shard.image),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[UUID, Iterable[int]], image: MetadataImage) -> Any:
    topics = ((image.topics.get(topic_id), indexes) for topic_id, indexes in partitions.items())
    return ConsumerGroupDescribeResponse.Assignment(
        topic_partitions=tuple(
            ConsumerGroupDescribeResponse.TopicPartitions(
                topic_id=topic.id, topic_name=topic.name, partitions=tuple(indexes)
            )
            for topic, indexes in topics
            if topic is not None
        )
    )


# DeleteGroups (42): groups without members end, and their offsets with them.
#
# Versions:  0-2; the version decides nothing.
# Source:    GroupCoordinatorService.deleteGroups, GroupCoordinatorShard.deleteGroups.


Deleted = DeleteGroupsResponse.DeletableGroupResult


def handle_delete_groups(
    state: GroupCoordinatorState,
    context: Context,
    request: DeleteGroupsRequest,
    version: int,
    now_ms: int,
) -> None:
    """Delete each group, with one write for those of one partition.

    Errors:  by group GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    by_partition = state.by_partition(dict.fromkeys(request.groups_names))
    results: dict[int, list[Any]] = {}

    def finish(partition: int, deleted: list[Any]) -> None:
        results[partition] = deleted
        if len(results) == len(by_partition):
            in_order = chain.from_iterable(results[i] for i in by_partition)
            state.respond(context.token, DeleteGroupsResponse(results=tuple(in_order)))

    if not by_partition:
        state.respond(context.token, DeleteGroupsResponse())
    for partition, group_ids in by_partition.items():
        in_order = hash_map_order(group_ids, string_hash)
        _delete_of_partition(state, partition, in_order, partial(finish, partition), now_ms)


def _delete_of_partition(
    state: GroupCoordinatorState,
    partition: int,
    group_ids: list[str],
    finish: Callable[[list[Any]], None],
    now_ms: int,
) -> None:
    def done(deleted: list[Any], error: ErrorCode | None, _: str | None) -> None:
        if error is not None:
            deleted = [Deleted(group_id=group_id, error_code=error) for group_id in group_ids]
        finish(deleted)

    state.runtime.write(partition, lambda shard, _: _delete(shard, group_ids), done, now_ms)


def _delete(shard: GroupShard, group_ids: list[str]) -> Result:
    records = []
    results = []
    for group_id in group_ids:
        try:
            group = shard.group(group_id)
            group.validate_delete()
        except OperationError as rejection:
            results.append(Deleted(group_id=group_id, error_code=rejection.error))
            continue
        records += [offset_record(key, None) for key in shard.offsets.keys_of_group(group_id)]
        records += shard.tombstones_of(group)
        results.append(Deleted(group_id=group_id))
    return Result(records=tuple(records), response=results)
