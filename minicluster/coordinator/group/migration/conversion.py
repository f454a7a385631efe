"""A group changes its protocol while its members live: classic to consumer, and back (KIP-848).

The first member of the consumer protocol that joins turns a classic group into a consumer group;
when the last one leaves, the group is classic again. Members of the classic protocol stay
meanwhile, and their subscriptions and assignments are translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    GroupState,
    Member,
    complete_join,
    complete_sync,
)
from minicluster.coordinator.group.classic.rebalance import (
    heartbeat_key,
    join_key,
    prepare_rebalance,
    reschedule_heartbeat,
)
from minicluster.coordinator.group.classic.records import group_metadata, tombstone
from minicluster.coordinator.group.consumer.group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroup,
    ConsumerGroupMember,
    Partitions,
    TopicHash,
)
from minicluster.coordinator.group.consumer.leaving import schedule_session_timeout
from minicluster.coordinator.group.consumer.records import group_tombstones, whole_group
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.java_order import hash_map_order
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.codec import decode_prefix, encode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupResponse,
)

# The bytes in which members of the classic protocol subscribe, and get their assignment.
#
# Source:  ConsumerProtocol; Utils.toConsumerProtocolAssignment, toTopicPartitionMap,
#          toTopicPartitions.

_LATEST = 3


@dataclass(frozen=True, slots=True)
class OwnedTopic:
    """The partitions that a member reports of a topic."""

    topic_id: UUID
    partitions: tuple[int, ...]


def _version(metadata: bytes, kind: str) -> int:
    if len(metadata) < 2:
        raise ProtocolError(kind, "version", "too short", offset=0)
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if version < 0:
        raise ProtocolError(kind, "version", f"{version} is no version", offset=0)
    # A newer version only adds fields, so it is read as the newest that is known.
    return min(version, _LATEST)


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription:
    """The subscription of a member.

    Errors:  ProtocolError.
    """
    version = _version(metadata, "ConsumerProtocolSubscription")
    return decode_prefix(ConsumerProtocolSubscription, metadata, version, 2)[0]


def assignment_of(data: bytes) -> ConsumerProtocolAssignment:
    """The assignment of a member.

    Errors:  ProtocolError.
    """
    version = _version(data, "ConsumerProtocolAssignment")
    return decode_prefix(ConsumerProtocolAssignment, data, version, 2)[0]


def assignment_bytes(
    partitions: Mapping[UUID, Iterable[int]], metadata: bytes, image: MetadataImage
) -> bytes:
    """An assignment in the version of a member's own metadata.

    Errors:  ProtocolError.
    """
    version = _version(metadata, "ConsumerProtocolSubscription")
    topics = ((image.topics.get(topic_id), indexes) for topic_id, indexes in partitions.items())
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            ConsumerProtocolAssignment.TopicPartition(
                topic=topic.name, partitions=tuple(sorted(indexes))
            )
            for topic, indexes in topics
            if topic is not None
        )
    )
    return version.to_bytes(2, "big") + encode(assignment, version)


def partitions_by_id(
    assignment: ConsumerProtocolAssignment, image: MetadataImage, topic_hash: TopicHash
) -> Partitions:
    """The partitions of an assignment whose topics exist."""
    found = {
        topic.id: frozenset(item.partitions)
        for item in assignment.assigned_partitions
        if (topic := image.topics.named(item.topic)) is not None
    }
    return {topic_id: found[topic_id] for topic_id in hash_map_order(found, topic_hash)}


def owned_topics(topics: Iterable[Any], image: MetadataImage) -> list[OwnedTopic]:
    """The owned partitions of a subscription whose topics exist."""
    return [
        OwnedTopic(topic.id, tuple(item.partitions))
        for item in topics
        if (topic := image.topics.named(item.topic)) is not None
    ]


# A member of the consumer protocol joins a classic group: it is a consumer group from now on.
#
# Source:  GroupMetadataManager.validateOnlineUpgrade, convertToConsumerGroup;
#          ConsumerGroup.fromClassicGroup.


def validate_upgrade(shard: GroupShard, group: ClassicGroup) -> None:
    """Raise the refusal of an upgrade.

    Errors:  GROUP_ID_NOT_FOUND.
    """
    if not shard.config.migration_policy.is_upgrade_enabled:
        why = "online upgrade is disabled"
    elif group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        why = "the group does not use the consumer embedded protocol"
    elif len(group.members) > shard.config.consumer_max_size:
        why = "the group size exceeds the consumer group maximum size"
    else:
        return
    raise _refusal(group, f"because {why}.")


def convert_to_consumer_group(
    shard: GroupShard, group: ClassicGroup, records: list[Any], now_ms: int
) -> ConsumerGroup:
    """End the classic group, and make a consumer group of its last generation.

    Shapes:  the records make the new group; the one that is returned is as it will be.
    Errors:  GROUP_ID_NOT_FOUND.
    """
    # A member that waits for a generation has to join the rebalance that follows.
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        complete_join(member, JoinGroupResponse(error_code=again, member_id=member.member_id))
        complete_sync(member, SyncGroupResponse(error_code=again))
    records.append(tombstone(group.group_id))
    try:
        made = _consumer_group(shard, group)
    except ProtocolError as error:
        why = "because the embedded consumer protocol is malformed."
        raise _refusal(group, why) from error
    records += whole_group(made)
    for member_id in made.member_ids:
        session_ms = made.members[member_id].classic.session_timeout_ms
        schedule_session_timeout(shard, group.group_id, member_id, now_ms, session_ms)
    return made


def _refusal(group: ClassicGroup, why: str) -> OperationError:
    what = f"Cannot upgrade classic group {group.group_id} to consumer group"
    return OperationError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {why}")


def _consumer_group(shard: GroupShard, group: ClassicGroup) -> ConsumerGroup:
    made = ConsumerGroup(group.group_id, shard.timeline, shard.topic_hash)
    made.set_group_epoch(group.generation_id)
    made.set_assignment_epoch(group.generation_id, 0)
    for member in group.members.values():
        partitions = _assigned(shard, group, member)
        subscription = subscription_of(member.metadata(group.protocol_name))
        made.set_target(member.member_id, partitions)
        made.update_member(
            ConsumerGroupMember(
                member_id=member.member_id,
                epoch=group.generation_id,
                previous_epoch=group.generation_id,
                instance_id=member.instance_id,
                rack_id=subscription.rack_id or None,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topics=frozenset(subscription.topics),
                assigned={
                    topic_id: dict.fromkeys(sorted(indexes), group.generation_id)
                    for topic_id, indexes in partitions.items()
                },
                classic=ClassicMemberMetadata(
                    session_timeout_ms=member.session_timeout_ms,
                    supported_protocols=tuple(
                        ClassicProtocol(name=p.name, metadata=p.metadata) for p in member.protocols
                    ),
                ),
            )
        )
    made.metadata_hash = shard.topic_hashes.of_group(made.subscribed_topics, shard.image)
    return made


def _assigned(shard: GroupShard, group: ClassicGroup, member: Member) -> Partitions:
    if not member.assignment:  # it has joined, and not synced yet
        return {}
    assignment = assignment_of(member.assignment)
    if assignment.user_data:
        raise _refusal(
            group,
            "because an unsupported custom assignor is in use. Please refer to the documentation "
            "or switch to a default assignor before re-attempting the upgrade.",
        )
    return partitions_by_id(assignment, shard.image, shard.topic_hash)


# The last member of the consumer protocol has left: the group is a classic one again.
#
# Source:  GroupMetadataManager.convertToClassicGroup, validateOnlineDowngradeWithFencedMembers,
#          validateOnlineDowngradeWithReplacedMember; ClassicGroup.fromConsumerGroup.


OnAppend = Callable[[ErrorCode | None, int], None]


def can_downgrade_without(
    shard: GroupShard, group: ConsumerGroup, leaving: Sequence[ConsumerGroupMember]
) -> bool:
    """All members that stay use the classic protocol, and there are some."""
    staying = len(group.members) - len(leaving)
    classic = group.classic_members - sum(member.uses_classic_protocol for member in leaving)
    return (
        classic == staying
        and staying > 0
        and shard.config.migration_policy.is_downgrade_enabled
        and staying <= shard.config.group_max_size
    )


def can_downgrade_with_replaced(
    shard: GroupShard, group: ConsumerGroup, replaced: ConsumerGroupMember
) -> bool:
    """The static member that a classic one replaces was the last of the consumer protocol."""
    return (
        group.classic_members == len(group.members) - 1
        and not replaced.uses_classic_protocol
        and shard.config.migration_policy.is_downgrade_enabled
        and len(group.members) <= shard.config.group_max_size
    )


def convert_to_classic_group(
    shard: GroupShard,
    group: ConsumerGroup,
    now_ms: int,
    *,
    rebalance: bool,
    leaving: Sequence[ConsumerGroupMember] = (),
    joining: ConsumerGroupMember | None = None,
    response: Any = None,
    records: Sequence[Any] = (),
    on_append: OnAppend | None = None,
) -> Result:
    """End the consumer group, and continue with a classic one of the same members.

    Shapes:  ``joining`` replaces a static member, and ``records`` have done so already. The new
             group holds the result at once, for it waits for its members.
    Errors:  GROUP_ID_NOT_FOUND where a member's metadata cannot be read.
    """
    replaced = None if joining is None else group.static_member(joining.instance_id)
    try:
        classic = _classic_group(shard, group, leaving, joining, replaced, now_ms)
    except ProtocolError as error:
        message = f"Cannot downgrade the classic group {group.group_id}: {error}."
        raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, message) from error
    ended = [
        joining.member_id if joining and replaced and i == replaced.member_id else i
        for i in group.member_ids
    ]
    assignments = {m.member_id: m.assignment for m in classic.members.values()}
    all_records = (
        *records,
        *group_tombstones(group, ended),
        group_metadata(classic, assignments),
    )
    shard.groups[group.group_id] = classic
    for member in classic.members.values():
        reschedule_heartbeat(shard, classic, member, now_ms)
    if rebalance:
        prepare_rebalance(shard, classic, now_ms)
    return Result(
        records=all_records,
        response=response,
        is_applied=True,
        on_append=partial(_after_append, shard, group, classic, on_append),
    )


def _after_append(
    shard: GroupShard,
    group: ConsumerGroup,
    classic: ClassicGroup,
    on_append: OnAppend | None,
    error: ErrorCode | None,
    now_ms: int,
) -> None:
    if error is not None and shard.groups.get(group.group_id) is classic:
        shard.groups[group.group_id] = group
        shard.timers.cancel(join_key(group.group_id))
        for member_id in classic.members:
            shard.timers.cancel(heartbeat_key(group.group_id, member_id))
    if on_append is not None:
        on_append(error, now_ms)


def _classic_group(
    shard: GroupShard,
    group: ConsumerGroup,
    leaving: Sequence[ConsumerGroupMember],
    joining: ConsumerGroupMember | None,
    replaced: ConsumerGroupMember | None,
    now_ms: int,
) -> ClassicGroup:
    classic = ClassicGroup(group.group_id, now_ms, shard.order)
    classic.state = GroupState.STABLE
    classic.generation_id = group.group_epoch
    gone = {member.member_id for member in leaving}
    if replaced is not None:
        gone.add(replaced.member_id)
    staying = [group.members[i] for i in group.member_ids if i not in gone]
    for member in (*staying, *(() if joining is None else (joining,))):
        classic.add(_classic_member(member))
    classic.protocol_type = CONSUMER_PROTOCOL_TYPE
    classic.protocol_name = classic.select_protocol()
    classic.compute_subscribed_topics()
    for item in classic.members.values():
        from_id = item.member_id
        if joining is not None and replaced is not None and from_id == joining.member_id:
            from_id = replaced.member_id
        item.assignment = assignment_bytes(
            group.target_of(from_id), item.metadata(classic.protocol_name), shard.image
        )
    return classic


def _classic_member(member: ConsumerGroupMember) -> Member:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=tuple(
            protocol(name=each.name, metadata=each.metadata) for each in member.classic_protocols
        ),
    )
