"""The last member of the consumer protocol has left: the group is a classic one again.

Source:  GroupMetadataManager.convertToClassicGroup, validateOnlineDowngradeWithFencedMembers,
         validateOnlineDowngradeWithReplacedMember; ClassicGroup.fromConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minicluster.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroup,
    GroupState,
    Member,
)
from minicluster.coordinator.group.classic.members import (
    heartbeat_key,
    join_key,
    prepare_rebalance,
    reschedule_heartbeat,
)
from minicluster.coordinator.group.classic.records import group_metadata
from minicluster.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupMember
from minicluster.coordinator.group.consumer.records import group_tombstones
from minicluster.coordinator.group.conversion.embedded import assignment_bytes
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import JoinGroupRequest

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
    for member in classic.members_in_order():
        reschedule_heartbeat(shard, classic, member, now_ms)
    if rebalance:
        prepare_rebalance(shard, classic, now_ms)
    return Result(
        records=all_records,
        response=response,
        is_applied=True,
        on_append=on_append,
        on_rejected=partial(_take_back, shard, group, classic),
    )


def _take_back(shard: GroupShard, group: ConsumerGroup, classic: ClassicGroup) -> None:
    shard.groups[group.group_id] = group
    shard.timers.cancel(join_key(group.group_id))
    for member_id in classic.members:
        shard.timers.cancel(heartbeat_key(group.group_id, member_id))


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
