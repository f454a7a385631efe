"""ConsumerGroupDescribe (69): the state and the members of consumer groups, as committed (KIP-848).

Versions:  0-1. 1: the type of each member.
Source:    KafkaApis.handleConsumerGroupDescribe, ConsumerGroup.asDescribedGroup,
           ConsumerGroupMember.asConsumerGroupDescribeMember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember, Partitions
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import (
    TimelineHashOrder,
    hash_map_order,
    hash_set_order,
    java_set_order,
    string_hash,
    timeline_order,
)
from minicluster.metadata.authorized_operations import ON_GROUP
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1
Described = ConsumerGroupDescribeResponse.DescribedGroup


def handle_consumer_group_describe(
    state: CoordinatorState,
    context: Context,
    request: ConsumerGroupDescribeRequest,
    version: int,
    now_ms: int,
) -> None:
    """Describe each group.

    Errors:  by group UNSUPPORTED_VERSION while the protocol is off, INVALID_GROUP_ID,
             GROUP_ID_NOT_FOUND.
    """
    described = []
    group_ids: Iterable[str] = request.group_ids
    if state.is_consumer_protocol_enabled:
        named = state.by_partition(group_id for group_id in group_ids if group_id)
        group_ids = chain((i for i in group_ids if not i), *named.values())
    for group_id in group_ids:
        if not state.is_consumer_protocol_enabled:
            group = Described(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
        elif not group_id:
            group = Described(error_code=ErrorCode.INVALID_GROUP_ID)
        else:
            group = _describe(state, group_id)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group = replace(group, authorized_operations=ON_GROUP)
        described.append(group)
    state.respond(context.token, ConsumerGroupDescribeResponse(groups=tuple(described)))


def _describe(state: CoordinatorState, group_id: str) -> Any:
    found: list[Any] = []

    def operation(shard: GroupShard, _: int) -> Any:
        try:
            return _described(shard, shard.consumer_group(group_id, committed=True))
        except OperationError as refusal:
            return Described(
                group_id=group_id, error_code=refusal.error, error_message=refusal.message
            )

    def done(group: Any, error: ErrorCode | None, _: str | None) -> None:
        found.append(group if error is None else Described(group_id=group_id, error_code=error))

    state.read(group_id, operation, done)
    return found[0]


def _described(shard: GroupShard, group: ConsumerGroup) -> Any:
    group_epoch, assignment_epoch = group.committed_epochs()
    members, target = group.members.committed(), group.target.committed()
    return Described(
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
    order: TimelineHashOrder[str] = TimelineHashOrder(string_hash)
    for member in members.values():
        if member.server_assignor is not None:
            votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
            order.put(member.server_assignor)
    return max(order, key=lambda name: votes[name], default=None)


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
