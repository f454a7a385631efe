"""A member of the consumer protocol joins a classic group: it is a consumer group from now on.

Source:  GroupMetadataManager.validateOnlineUpgrade, convertToConsumerGroup;
         ConsumerGroup.fromClassicGroup.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    Member,
    complete_join,
    complete_sync,
)
from minicluster.coordinator.group.classic.records import tombstone
from minicluster.coordinator.group.consumer.group import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroup,
    ConsumerGroupMember,
    Partitions,
    StillOwned,
)
from minicluster.coordinator.group.consumer.leaving import schedule_session_timeout
from minicluster.coordinator.group.consumer.records import whole_group
from minicluster.coordinator.group.conversion.embedded import (
    assignment_of,
    partitions_by_id,
    subscription_of,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.protocol import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import JoinGroupResponse, SyncGroupResponse


def validate_upgrade(shard: GroupShard, group: ClassicGroup) -> None:
    """Reject the upgrade of a group that cannot become a consumer group.

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
    raise _cannot_upgrade(group, f"because {why}.")


def convert_to_consumer_group(
    shard: GroupShard, group: ClassicGroup, records: list[Any], now_ms: int
) -> ConsumerGroup:
    """End the classic group, and make a consumer group of its last generation.

    Shapes:  the records make the new group; the one that is returned is as it will be.
    Errors:  GROUP_ID_NOT_FOUND.
    """
    # A member that waits for a generation has to join the rebalance that follows.
    again = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members_in_order():
        complete_join(member, JoinGroupResponse(error_code=again, member_id=member.member_id))
        complete_sync(member, SyncGroupResponse(error_code=again))
    records.append(tombstone(group.group_id))
    try:
        upgraded = _consumer_group(shard, group)
    except StillOwned as error:  # the leader has assigned a partition twice
        raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR) from error
    except ProtocolError as error:
        why = "because the embedded consumer protocol is malformed."
        raise _cannot_upgrade(group, why) from error
    records += whole_group(upgraded)
    for member_id in upgraded.member_ids:
        session_ms = upgraded.members[member_id].classic.session_timeout_ms
        schedule_session_timeout(shard, group.group_id, member_id, now_ms, session_ms)
    return upgraded


def _cannot_upgrade(group: ClassicGroup, why: str) -> OperationError:
    what = f"Cannot upgrade classic group {group.group_id} to consumer group"
    return OperationError(ErrorCode.GROUP_ID_NOT_FOUND, f"{what} {why}")


def _consumer_group(shard: GroupShard, group: ClassicGroup) -> ConsumerGroup:
    upgraded = ConsumerGroup(group.group_id, shard.timeline, shard.topic_hash)
    upgraded.set_group_epoch(group.generation_id)
    upgraded.set_assignment_epoch(group.generation_id, 0)
    for member_id in shard.order(list(group.members)):
        member = group.members[member_id]
        partitions = _assigned(shard, group, member)
        subscription = subscription_of(member.metadata(group.protocol_name))
        upgraded.set_target(member.member_id, partitions)
        upgraded.update_member(
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
    upgraded.metadata_hash = shard.topic_hashes.of_group(upgraded.subscribed_topics, shard.image)
    return upgraded


def _assigned(shard: GroupShard, group: ClassicGroup, member: Member) -> Partitions:
    if not member.assignment:  # it has joined, and not synced yet
        return {}
    assignment = assignment_of(member.assignment)
    if assignment.user_data:
        raise _cannot_upgrade(
            group,
            "because an unsupported custom assignor is in use. Please refer to the documentation "
            "or switch to a default assignor before re-attempting the upgrade.",
        )
    return partitions_by_id(assignment, shard.image, shard.topic_hash)
