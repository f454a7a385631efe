"""The life of a member of a classic group, from top to bottom: join, sync, heartbeat, leave.

    join --> (all have joined: a generation begins) --> sync --> heartbeat ... --> leave
      ^                                                             |
      '------------------ REBALANCE_IN_PROGRESS --------------------'

The coordinator only passes the assignment on: the leader of the group, one of its members, gets
all subscriptions with its JoinGroup response and sends the assignment with SyncGroup. So a join
and a sync end together for all members, and what a member is given depends on all others: the code
of the two is in one file, in the order of the events. ``group`` has the states.

Four timers keep a member that does not answer from stopping the others:

===========  ===========================  ======================================================
timer        lasts for                    at its end
===========  ===========================  ======================================================
join, of an  the initial delay; again     the first generation begins: one rebalance for some
empty group  after new members, within    consumers that start together, and not one for each
             the rebalance timeout
join         the longest rebalance        members that have not joined are removed, but for static
             timeout of the members       ones, and the generation begins; if only static ones are
                                          left, and none has joined, the time begins again
sync         the longest rebalance        members without a SyncGroup are removed, and another
             timeout, from the begin of   rebalance begins, since a leader that has joined and is
             the generation               gone would keep its group without assignment
heartbeat,   the session timeout, since   the member is removed; the others rebalance, or if they
one each     its last request             have all joined already, their generation begins
===========  ===========================  ======================================================

A member has two timeouts (KIP-62): the session's, for the heartbeats of its background thread, and
the rebalance's, for the time that it needs to process what it has before it joins again. With one
for both, a slow consumer would need one so long that a crash is noticed late.

Its session does not expire while the coordinator owes it a response to JoinGroup or SyncGroup: it
restarts with that response. But for a new member, which has ``NEW_MEMBER_JOIN_TIMEOUT_MS`` until
its first response: a client that disconnects and joins as another new member, again and again,
would leave members behind for as long as the rebalance takes.

From JoinGroup 4 on, a dynamic member gets its id first, and counts as ``pending_join`` until it
comes with it, or its session timeout has passed (KIP-394). The generation waits for it as well.

A static member stays through a generation that it does not join, and one that has restarted takes
its place under a new member id, in a stable group without a rebalance (KIP-345). What uses the old
member id with the instance id gets FENCED_INSTANCE_ID. Its session, the sync timer or a LeaveGroup
removes it.

Source:  GroupMetadataManager.classicGroupJoin, prepareRebalance, completeClassicGroupJoin,
         maybeCompleteJoinPhase, tryCompleteInitialRebalanceElseSchedule, classicGroupSync,
         expirePendingSync, classicGroupHeartbeat, expireClassicGroupMemberHeartbeat,
         classicGroupLeave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from minicluster.coordinator.group.classic.group import (
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    GroupState,
    Member,
    RespondJoin,
    RespondSync,
    complete_join,
    complete_sync,
)
from minicluster.coordinator.group.classic.records import empty_group, group_metadata
from minicluster.coordinator.group.group_shard import Group, GroupShard
from minicluster.coordinator.group.request_context import ClientContext
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from minicluster.values import replace

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000  # group.new.member.join.timeout.ms, an internal config
_KNOWN_MEMBER_ID_FROM = 4
_SKIPS_ASSIGNMENT_FROM = 9


# --- JoinGroup ------------------------------------------------------------------------------------


class Join:
    """One JoinGroup, on its way through the group."""

    def __init__(
        self,
        request: JoinGroupRequest,
        version: int,
        client: ClientContext,
        respond: RespondJoin,
    ) -> None:
        self.request = request
        self.version = version
        self.client = client
        self.respond = respond

    def run(self, shard: GroupShard, group: Group | None, now_ms: int) -> Result:
        """Join; a group that is new is written, so that it is there after a fail-over.

        Shapes:  group: a classic one, or a consumer group without members, which ends.
        Source:  GroupMetadataManager.classicGroupJoinToClassicGroup.
        """
        if isinstance(group, ClassicGroup):
            return self._join(shard, group, now_ms)
        return self._join_new_group(shard, group, now_ms)

    def _join_new_group(self, shard: GroupShard, ended: Group | None, now_ms: int) -> Result:
        """Join a group that is made for this request, maybe in the place of one that is empty."""
        request = self.request
        tombstones: tuple[CoordinatorRecord, ...] = ()
        if request.member_id != UNKNOWN_MEMBER_ID:
            if ended is not None and shard.rules.refused_join_forgets_empty_group:
                shard.groups.pop(request.group_id)
            return self._reject(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        if ended is not None:
            tombstones = tuple(shard.tombstones_of(ended))
            shard.groups.pop(request.group_id)
        group = shard.new_classic_group(request.group_id, now_ms)
        result = self._join(shard, group, now_ms)
        if result is not NOTHING:
            return result
        return Result(
            records=(*tombstones, empty_group(group)),
            is_applied=True,
            on_append=self._after_new_group,
            on_rejected=partial(self._take_back, shard, ended),
        )

    def _after_new_group(self, error: ErrorCode | None, _: int) -> None:
        if error is not None:
            self.respond(JoinGroupResponse(error_code=error))

    def _take_back(self, shard: GroupShard, ended: Group | None) -> None:
        shard.groups.pop(self.request.group_id)
        if ended is not None:
            shard.groups[self.request.group_id] = ended

    def _join(self, shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
        member_id = self.request.member_id
        if not _accepts(shard, group, member_id):
            group.remove(member_id)
            return self._reject(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_as_new(shard, group, now_ms)
        return self._join_again(shard, group, now_ms)

    def _reject(self, error: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> Result:
        self.respond(JoinGroupResponse(error_code=error, member_id=member_id))
        return NOTHING

    # --- new members --------------------------------------------------------------------------

    def _join_as_new(self, shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
        request = self.request
        if group.state is GroupState.DEAD:
            return self._reject(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not group.supports(request.protocol_type, request.protocols):
            return self._reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        instance_id = request.group_instance_id
        prefix = self.client.client_id if instance_id is None else instance_id
        member_id = f"{prefix}-{shard.new_uuid()}"
        if instance_id is not None:
            existing = group.static_members.get(instance_id)
            if existing is not None:
                return self._replace_static_member(shard, group, existing, member_id, now_ms)
        elif self.version >= _KNOWN_MEMBER_ID_FROM:
            # A member that dies before it gets its id must not stay in the group (KIP-394).
            group.pending_join.add(member_id)
            at_ms = now_ms + request.session_timeout_ms
            schedule_expiry(shard, group.group_id, member_id, at_ms)
            return self._reject(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(shard, group, member_id, now_ms)

    def _add(self, shard: GroupShard, group: ClassicGroup, member_id: str, now_ms: int) -> Result:
        request = self.request
        member = Member(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=self.client.client_id,
            client_host=self.client.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=request.protocol_type,
            protocols=request.protocols,
            is_new=True,
        )
        initial = group.previous_state is GroupState.EMPTY
        if group.state is GroupState.PREPARING_REBALANCE and initial:
            group.new_member_added = True
        group.add(member, self.respond)
        reschedule_heartbeat(shard, group, member, now_ms, NEW_MEMBER_JOIN_TIMEOUT_MS)
        return prepare_rebalance_or_complete_join(shard, group, now_ms)

    # --- members that are there ---------------------------------------------------------------

    def _join_again(self, shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
        """Source: GroupMetadataManager.classicGroupJoinExistingMember."""
        request, member_id = self.request, self.request.member_id
        if group.state is GroupState.DEAD:
            return self._reject(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        if not group.supports(request.protocol_type, request.protocols):
            return self._reject(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if member_id in group.pending_join:
            if request.group_instance_id is not None:
                # Kafka raises an IllegalStateException here.
                raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(shard, group, member_id, now_ms)
        try:
            group.validate_member(member_id, request.group_instance_id)
        except OperationError as rejection:
            return self._reject(rejection.error, member_id)
        member = group.members[member_id]
        unchanged = member.protocols == request.protocols
        if group.state is GroupState.PREPARING_REBALANCE:
            return self._update(shard, group, member, now_ms)
        if group.state is GroupState.COMPLETING_REBALANCE:
            if unchanged:  # its first response was lost
                self.respond(generation_of(group, member_id))
                return NOTHING
            return self._update(shard, group, member, now_ms)
        if group.state is GroupState.STABLE:
            # A leader that joins again has seen what changes the assignment, such as partitions.
            if group.leader_id == member_id or not unchanged:
                return self._update(shard, group, member, now_ms)
            self.respond(replace(generation_of(group, member_id), members=()))
            return NOTHING
        return self._reject(ErrorCode.UNKNOWN_MEMBER_ID, member_id)

    def _update(
        self, shard: GroupShard, group: ClassicGroup, member: Member, now_ms: int
    ) -> Result:
        self._take_over(member)
        return prepare_rebalance_or_complete_join(shard, group, now_ms)

    def _take_over(self, member: Member) -> None:
        member.protocols = self.request.protocols
        member.rebalance_timeout_ms = self.request.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms
        member.awaiting_join = self.respond

    # --- static members -----------------------------------------------------------------------

    def _replace_static_member(
        self, shard: GroupShard, group: ClassicGroup, old_id: str, new_id: str, now_ms: int
    ) -> Result:
        """Give a static member that has restarted its place again, without a rebalance (KIP-345).

        Source:  GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin.
        """
        instance_id = self.request.group_instance_id
        assert instance_id is not None
        leader = group.leader_id
        member = group.replace_static_member(instance_id, old_id, new_id)
        reschedule_heartbeat(shard, group, member, now_ms)
        before = replace(member)
        self._take_over(member)
        if group.state is GroupState.STABLE:
            if group.protocol_name != group.select_protocol():
                return prepare_rebalance_or_complete_join(shard, group, now_ms)
            record = group_metadata(
                group, {m.member_id: m.assignment for m in group.members.values()}
            )
            on_append = partial(self._after_replacement, shard, group, before, old_id, leader)
            return Result(records=(record,), is_applied=True, on_append=on_append)
        if group.state is GroupState.COMPLETING_REBALANCE:
            return prepare_rebalance(shard, group, now_ms)
        if group.state is not GroupState.PREPARING_REBALANCE:
            raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return maybe_complete_join(shard, group, now_ms)

    def _after_replacement(
        self,
        shard: GroupShard,
        group: ClassicGroup,
        before: Member,
        old_id: str,
        leader: str | None,
        error: ErrorCode | None,
        now_ms: int,
    ) -> None:
        member = group.members.get(before.member_id)
        if member is None:
            return
        instance_id = before.instance_id
        assert instance_id is not None
        if error is not None:
            member.protocols = before.protocols
            member.rebalance_timeout_ms = before.rebalance_timeout_ms
            member.session_timeout_ms = before.session_timeout_ms
            member.awaiting_join = None
            old = group.replace_static_member(instance_id, member.member_id, old_id)
            reschedule_heartbeat(shard, group, old, now_ms)
            rejection = generation_of(group, UNKNOWN_MEMBER_ID, leader=leader)
            self.respond(replace(rejection, error_code=error))
        elif self.version >= _SKIPS_ASSIGNMENT_FROM:
            is_leader = group.leader_id == member.member_id
            complete_join(member, generation_of(group, member.member_id, skip=is_leader))
        else:
            # An older leader would assign again, so the response names another one.
            complete_join(member, generation_of(group, member.member_id, leader=leader))


def _accepts(shard: GroupShard, group: ClassicGroup, member_id: str) -> bool:
    """The group is not full.

    Source:  GroupMetadataManager.acceptJoiningMember.
    """
    member = group.members.get(member_id)
    highest = shard.config.group_max_size
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        waits = member is not None and member.awaiting_join is not None
        return waits or group.awaiting_join < highest
    return member is not None or len(group.members) < highest


# --- a rebalance begins ---------------------------------------------------------------------------


def join_key(group_id: str) -> str:
    """The timer of the members that have not joined again."""
    return f"join-{group_id}"


def sync_key(group_id: str) -> str:
    """The timer of the members that have not requested their assignment."""
    return f"sync-{group_id}"


def heartbeat_key(group_id: str, member_id: str) -> str:
    """The timer of a member's session."""
    return f"heartbeat-{group_id}-{member_id}"


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


# --- all have joined, or the time for it is over: the next generation -----------------------------


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


# --- SyncGroup: the leader's assignment -----------------------------------------------------------


def sync_group(
    shard: GroupShard,
    group: ClassicGroup,
    request: SyncGroupRequest,
    assigned: Mapping[str, bytes],
    respond: RespondSync,
    now_ms: int,
) -> Result:
    """Give the member its assignment, now or once the leader has written it."""
    _validate_sync(group, request)
    member = group.members[request.member_id]
    if group.state is GroupState.PREPARING_REBALANCE:
        raise OperationError(ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        shard.timers.cancel(sync_key(group.group_id))
    if group.state is GroupState.STABLE:
        respond(
            SyncGroupResponse(
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                assignment=member.assignment,
            )
        )
        return NOTHING
    member.awaiting_sync = respond
    if group.leader_id != member.member_id:
        return NOTHING
    assignments = {**dict.fromkeys(group.members, b""), **assigned}
    on_append = partial(_after_sync, shard, group, group.generation_id, assignments)
    record = group_metadata(group, assignments)
    return Result(records=(record,), is_applied=True, on_append=on_append)


def _validate_sync(group: ClassicGroup, request: SyncGroupRequest) -> None:
    if group.state is GroupState.DEAD:
        raise OperationError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise OperationError(ErrorCode.ILLEGAL_GENERATION)
    differs = (
        request.protocol_type not in (None, group.protocol_type)
        or request.protocol_name not in (None, group.protocol_name)
    )  # fmt: skip
    if differs:
        raise OperationError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _after_sync(
    shard: GroupShard,
    group: ClassicGroup,
    generation_id: int,
    assignments: dict[str, bytes],
    error: ErrorCode | None,
    now_ms: int,
) -> None:
    """Give all members their assignment, unless another rebalance has begun meanwhile."""
    if group.state is not GroupState.COMPLETING_REBALANCE or group.generation_id != generation_id:
        return
    if error is not None:
        reset_assignment(shard, group, error, now_ms)
        prepare_rebalance_or_complete_join(shard, group, now_ms)
        return
    set_assignment(shard, group, assignments, now_ms)
    group.transition_to(GroupState.STABLE, now_ms)


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


# --- Heartbeat, and the end of a session ----------------------------------------------------------


def heartbeat(
    shard: GroupShard, group: ClassicGroup, request: HeartbeatRequest, now_ms: int
) -> ErrorCode:
    """Restart the session of a member; REBALANCE_IN_PROGRESS where it has to join again."""
    if group.state is GroupState.DEAD:
        raise OperationError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation_id:
        raise OperationError(ErrorCode.ILLEGAL_GENERATION)
    if group.is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    reschedule_heartbeat(shard, group, group.members[request.member_id], now_ms)
    preparing = group.state is GroupState.PREPARING_REBALANCE
    return ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE


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


# --- LeaveGroup -----------------------------------------------------------------------------------


def leave_group(
    shard: GroupShard, group: ClassicGroup, members: Sequence[Any], now_ms: int
) -> Result:
    """Remove members; the others rebalance."""
    if group.state is GroupState.DEAD:
        raise OperationError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    responses = [left(member, _leave_one(shard, group, member)) for member in members]
    result = NOTHING
    if any(response.error_code == ErrorCode.NONE for response in responses):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            result = prepare_rebalance_or_complete_join(shard, group, now_ms)
        elif group.state is GroupState.PREPARING_REBALANCE:
            result = maybe_complete_join(shard, group, now_ms)
    return replace(result, response=responses)


def _leave_one(shard: GroupShard, group: ClassicGroup, member: Any) -> ErrorCode:
    member_id, instance_id = member.member_id, member.group_instance_id
    if member_id == UNKNOWN_MEMBER_ID:  # an administrator removes a static member
        static_id = None if instance_id is None else group.static_members.get(instance_id)
        if static_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        drop_member(shard, group, group.members[static_id])
    elif member_id in group.pending_join:
        group.remove(member_id)
        shard.timers.cancel(heartbeat_key(group.group_id, member_id))
    else:
        try:
            group.validate_member(member_id, instance_id)
        except OperationError as rejection:
            return rejection.error
        drop_member(shard, group, group.members[member_id])
    return ErrorCode.NONE


def left(member: Any, error: ErrorCode) -> LeaveGroupResponse.MemberResponse:
    """The outcome of one member of a LeaveGroup."""
    return LeaveGroupResponse.MemberResponse(
        member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error
    )


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
