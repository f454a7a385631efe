"""The phases of a rebalance: members join again, the leader assigns, the members get it.

Four timers keep a member that does not answer from stopping the others:

===========  ===========================  ======================================================
timer        lasts for                    at its end
===========  ===========================  ======================================================
join, of an  the initial delay; again     the first generation begins. Otherwise, each of some
empty group  after new members, within    consumers that start together would cause a rebalance
             the rebalance timeout
join         the longest rebalance        members that have not joined are removed, but for static
             timeout of the members       ones, and the generation begins; if only static ones are
                                          left, and none has joined, the time begins again
sync         the longest rebalance        members without a SyncGroup are removed, and another
             timeout, from the begin of   rebalance begins. Otherwise, a leader that has joined
             the generation               and is gone would keep its group without assignment
heartbeat,   the session timeout, since   the member is removed; the others rebalance, or if they
one each     its last request             have all joined already, their generation begins
===========  ===========================  ======================================================

A member has two timeouts (KIP-62): the session's, for the heartbeats of its background thread, and
the rebalance's, for the time that it needs to process what it has before it joins again. With one
for both, a slow consumer would need one so long that a crash is noticed late.

Its session does not expire while the coordinator owes it a response to JoinGroup or SyncGroup: it
restarts with that response. But for a new member, which has ``NEW_MEMBER_JOIN_TIMEOUT_MS`` until
its first response. Otherwise, a client that disconnects and joins as another new member, again and
again, would leave members behind for as long as the rebalance takes.

From JoinGroup 4 on, a dynamic member gets its id first, and counts as ``pending_join`` until it
comes with it, or its session timeout has passed (KIP-394). The generation waits for it as well.

A static member stays through a generation that it does not join, and one that has restarted takes
its place under a new member id, in a stable group without a rebalance (KIP-345). What uses the old
member id with the instance id gets FENCED_INSTANCE_ID. Its session, the sync timer or a LeaveGroup
removes it.

Source:  GroupMetadataManager.prepareRebalance, completeClassicGroupJoin, maybeCompleteJoinPhase,
         tryCompleteInitialRebalanceElseSchedule, expirePendingSync,
         expireClassicGroupMemberHeartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping

from minicluster.coordinator.group.classic.group import (
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    GroupState,
    Member,
    complete_join,
    complete_sync,
)
from minicluster.coordinator.group.classic.records import group_metadata
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import JoinGroupResponse, SyncGroupResponse


def join_key(group_id: str) -> str:
    """The timer of the members that have not joined again."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """The timer of the members that have not requested their assignment."""
    return f"sync-{group_id}"


def heartbeat_key(group_id: str, member_id: str) -> str:
    """The timer of a member's session."""
    return f"heartbeat-{group_id}-{member_id}"


# --- begin ------------------------------------------------------------------------------------


def prepare_rebalance_or_complete_join(
    shard: GroupShard, group: ClassicGroup, now_ms: int
) -> Result:
    """Begin a rebalance, or continue the one that has begun.

    Source:  GroupMetadataManager.maybePrepareRebalanceOrCompleteJoin.
    """
    if group.can_rebalance:
        return prepare_rebalance(shard, group, now_ms)
    return maybe_complete_join(shard, group, now_ms)


def prepare_rebalance(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
    """Wait for all members to join again; the first one of an empty group waits for others."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        reset_assignment(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.pending_sync.clear()
    shard.timers.cancel(sync_key(group.group_id))
    was_empty = group.is_empty
    group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
    if not was_empty:
        return _complete_join_or_wait(shard, group, now_ms)
    delay_ms = shard.config.initial_rebalance_delay_ms
    _wait_for_more(
        shard, group.group_id, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now_ms
    )
    return NOTHING


def _wait_for_more(
    shard: GroupShard, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int
) -> None:
    def end(at_ms: int) -> Result:
        group = shard.classic_group(group_id)
        if group is None:
            return NOTHING
        if group.new_member_added and remaining_ms != 0:
            group.new_member_added = False
            longer_ms = min(shard.config.initial_rebalance_delay_ms, remaining_ms)
            _wait_for_more(shard, group_id, longer_ms, max(remaining_ms - delay_ms, 0), at_ms)
            return NOTHING
        return complete_group_join(shard, group, at_ms)

    shard.schedule(join_key(group_id), now_ms + delay_ms, end)


def _complete_join_or_wait(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
    if group.has_all_members_joined:
        return complete_group_join(shard, group, now_ms)
    _wait_for_members(shard, group, now_ms)
    return NOTHING


def _wait_for_members(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    group_id = group.group_id

    def end(at_ms: int) -> Result:
        current = shard.classic_group(group_id)
        return NOTHING if current is None else complete_group_join(shard, current, at_ms)

    shard.schedule(join_key(group_id), now_ms + group.rebalance_timeout_ms, end)


def maybe_complete_join(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
    """Begin the generation if all members are there; the initial delay runs out by itself.

    Source:  GroupMetadataManager.maybeCompleteJoinPhase.
    """
    if group.state is not GroupState.PREPARING_REBALANCE:
        return NOTHING
    if group.previous_state is GroupState.EMPTY or not group.has_all_members_joined:
        return NOTHING
    return complete_group_join(shard, group, now_ms)


# --- the generation ---------------------------------------------------------------------------


def complete_group_join(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
    """Begin the next generation with those who have joined; static members stay (KIP-345).

    Source:  GroupMetadataManager.completeClassicGroupJoin.
    """
    shard.timers.cancel(join_key(group.group_id))
    for member in list(group.members.values()):
        if member.awaiting_join is None and member.instance_id is None:
            group.remove(member.member_id)
            shard.timers.cancel(heartbeat_key(group.group_id, member.member_id))
    if group.state is GroupState.DEAD:
        return NOTHING
    if not group.maybe_elect_joined_leader() and group.members:
        # Static members alone, none of which has joined: their sessions decide.
        _wait_for_members(shard, group, now_ms)
        return NOTHING
    hangs = shard.rules.unreadable_subscription_hangs_group
    group.next_generation(now_ms, hangs_on_unreadable=hangs)
    if group.is_empty:
        return Result(records=(group_metadata(group, {}),), is_applied=True)
    for member in group.members_in_order():
        complete_join(member, generation_of(group, member.member_id))
        reschedule_heartbeat(shard, group, member, now_ms)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    _wait_for_syncs(shard, group, now_ms)
    return NOTHING


def generation_of(
    group: ClassicGroup, member_id: str, leader: str | None = None, *, skip: bool = False
) -> JoinGroupResponse:
    """The response with the generation of a member; the leader gets all members."""
    is_leader = group.leader_id == member_id and leader is None
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader or group.leader_id or "",
        skip_assignment=skip,
        member_id=member_id,
        members=group.joined_members() if is_leader else (),
    )


def _wait_for_syncs(shard: GroupShard, group: ClassicGroup, now_ms: int) -> None:
    group_id, generation_id = group.group_id, group.generation_id

    def end(at_ms: int) -> Result:
        current = shard.classic_group(group_id)
        if current is None or current.generation_id != generation_id or not current.pending_sync:
            return NOTHING
        if current.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return NOTHING
        for member_id in list(current.pending_sync):
            current.remove(member_id)
            shard.timers.cancel(heartbeat_key(group_id, member_id))
        return prepare_rebalance(shard, current, at_ms)

    shard.schedule(sync_key(group_id), now_ms + group.rebalance_timeout_ms, end)


# --- assignments ------------------------------------------------------------------------------


def set_assignment(
    shard: GroupShard, group: ClassicGroup, assignments: Mapping[str, bytes], now_ms: int
) -> None:
    """Give each member what the leader has assigned to it."""
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    _propagate(shard, group, ErrorCode.NONE, now_ms)


def reset_assignment(shard: GroupShard, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
    """Take all assignments back, and give those who wait an error."""
    for member in group.members.values():
        member.assignment = b""
    _propagate(shard, group, error, now_ms)


def _propagate(shard: GroupShard, group: ClassicGroup, error: ErrorCode, now_ms: int) -> None:
    failed = error != ErrorCode.NONE
    for member in group.members_in_order():
        response = SyncGroupResponse(
            error_code=error,
            protocol_type=None if failed else group.protocol_type,
            protocol_name=None if failed else group.protocol_name,
            assignment=member.assignment,
        )
        if complete_sync(member, response):
            reschedule_heartbeat(shard, group, member, now_ms)


# --- sessions ---------------------------------------------------------------------------------


def reschedule_heartbeat(
    shard: GroupShard,
    group: ClassicGroup,
    member: Member,
    now_ms: int,
    timeout_ms: int | None = None,
) -> None:
    """Restart a member's session timeout."""
    lasts_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    schedule_expiry(shard, group.group_id, member.member_id, now_ms + lasts_ms)


def schedule_expiry(shard: GroupShard, group_id: str, member_id: str, at_ms: int) -> None:
    """Remove a member at a time, unless its request comes before.

    Source:  GroupMetadataManager.expireClassicGroupMemberHeartbeat.
    """

    def expire(now_ms: int) -> Result:
        group = shard.classic_group(group_id)
        if group is None or group.state is GroupState.DEAD:
            return NOTHING
        if member_id in group.pending_join:
            group.remove(member_id)
            return _complete_if_all_joined(shard, group, now_ms)
        member = group.members.get(member_id)
        if member is None or member.has_satisfied_heartbeat:
            return NOTHING
        return remove_member(shard, group, member, now_ms)

    shard.schedule(heartbeat_key(group_id, member_id), at_ms, expire)


def remove_member(shard: GroupShard, group: ClassicGroup, member: Member, now_ms: int) -> Result:
    """Remove a member whose session has ended; the others rebalance.

    Source:  GroupMetadataManager.removeMemberAndUpdateClassicGroup.
    """
    drop_member(shard, group, member)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        return prepare_rebalance_or_complete_join(shard, group, now_ms)
    return _complete_if_all_joined(shard, group, now_ms)


def drop_member(shard: GroupShard, group: ClassicGroup, member: Member) -> None:
    """Take a member out of the group; one that waits to join has to join as a new one."""
    shard.timers.cancel(heartbeat_key(group.group_id, member.member_id))
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    complete_join(member, JoinGroupResponse(error_code=unknown, member_id=UNKNOWN_MEMBER_ID))
    group.remove(member.member_id)


def _complete_if_all_joined(shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        return complete_group_join(shard, group, now_ms)
    return NOTHING
