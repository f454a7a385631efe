"""The records of a classic group.

Source:  GroupCoordinatorRecordHelpers.newGroupMetadataRecord, newEmptyGroupMetadataRecord.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    GroupState,
    Member,
    MemberOrder,
)
from minicluster.log.batch import NO_TIMESTAMP
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import (
    GroupMetadataKey,
    GroupMetadataValue,
)
from minicluster.protocol.messages import JoinGroupRequest

GROUP_METADATA_VERSION = 3


def group_metadata(group: ClassicGroup, assignments: Mapping[str, bytes]) -> CoordinatorRecord:
    """A generation with the assignment of each member."""
    since_ms = NO_TIMESTAMP if group.state_since_ms is None else group.state_since_ms
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=since_ms,
        members=tuple(
            GroupMetadataValue.MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol_name),
                assignment=assignments[member.member_id],
            )
            for member in group.members_in_order()
        ),
    )
    key = GroupMetadataKey(group=group.group_id)
    return CoordinatorRecord(key, value, GROUP_METADATA_VERSION)


def empty_group(group: ClassicGroup) -> CoordinatorRecord:
    """A group that has never had a generation."""
    since_ms = NO_TIMESTAMP if group.state_since_ms is None else group.state_since_ms
    value = GroupMetadataValue(
        protocol_type="", protocol=None, leader=None, current_state_timestamp=since_ms
    )
    key = GroupMetadataKey(group=group.group_id)
    return CoordinatorRecord(key, value, GROUP_METADATA_VERSION)


def tombstone(group_id: str) -> CoordinatorRecord:
    """The end of a group."""
    return CoordinatorRecord(GroupMetadataKey(group=group_id))


def group_of(group_id: str, value: GroupMetadataValue, order: MemberOrder) -> ClassicGroup:
    """The group that a record describes.

    Source:  GroupMetadataManager.replay(GroupMetadataKey, GroupMetadataValue).
    """
    has_time = value.current_state_timestamp != NO_TIMESTAMP
    group = ClassicGroup(group_id, value.current_state_timestamp if has_time else None, order)
    group.state = GroupState.STABLE if value.members else GroupState.EMPTY
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for member in value.members:
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=value.protocol or "", metadata=member.subscription
        )
        # Older releases wrote no rebalance time-out: it was the session's.
        rebalance_ms = member.rebalance_timeout
        group.add(
            Member(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.session_timeout if rebalance_ms < 0 else rebalance_ms,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type or CONSUMER_PROTOCOL_TYPE,
                protocols=(protocol,),
                assignment=member.assignment,
            )
        )
    group.compute_subscribed_topics()
    return group
