"""A member's life in a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

    join --> (all have joined: a generation begins) --> sync --> heartbeat ... --> leave
      ^                                                             |
      '------------------ REBALANCE_IN_PROGRESS --------------------'

The coordinator only passes the assignment on: the leader of the group, one of its members, gets
all subscriptions with its JoinGroup response and sends the assignment with SyncGroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
)
from minicluster.coordinator.group.classic.rebalance import (
    drop_member,
    generation_of,
    heartbeat_key,
    maybe_complete_join,
    prepare_rebalance,
    prepare_rebalance_or_complete_join,
    reschedule_heartbeat,
    reset_assignment,
    schedule_expiry,
    set_assignment,
    sync_key,
)
from minicluster.coordinator.group.classic.records import empty_group, group_metadata
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.records import group_tombstones
from minicluster.coordinator.group.migration.classic_members import (
    heartbeat_of_classic_member,
    join_consumer_group,
    leave_consumer_group,
    sync_with_consumer_group,
)
from minicluster.coordinator.group.state.coordinator_state import (
    ClientContext,
    Context,
    CoordinatorState,
)
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

# JoinGroup (11): a member joins a classic group, or joins its next generation.
#
# Versions:  0-9; 4.x serves 2-9. 1: rebalance time-out. 4: a new member gets its id first and joins
#            again with it (KIP-394). 5: static members (KIP-345). 7: protocol type. 8: reason. 9:
#            skip_assignment (KIP-814).
# Source:    KIP-62, KIP-345, KIP-394, KIP-814; GroupCoordinatorService.joinGroup,
#            GroupMetadataManager.classicGroupJoin.

NEW_MEMBER_JOIN_TIMEOUT_MS = 5 * 60 * 1000  # group.new.member.join.timeout.ms, an internal config
_KNOWN_MEMBER_ID_FROM = 4
_NULLABLE_PROTOCOL_FROM = 7
_SKIPS_ASSIGNMENT_FROM = 9


def handle_join_group(
    state: CoordinatorState, context: Context, request: JoinGroupRequest, version: int, now_ms: int
) -> None:
    """Add the member; its response comes when the generation begins.

    Errors:  INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, and those of the group.
    """
    is_open = True

    def respond(response: JoinGroupResponse) -> None:
        nonlocal is_open
        if is_open:
            is_open = False
            name = response.protocol_name or None
            if version < _NULLABLE_PROTOCOL_FROM:
                name = name or ""
            state.respond(context.token, replace(response, protocol_name=name))

    def reject(error: ErrorCode) -> None:
        respond(JoinGroupResponse(error_code=error, member_id=request.member_id))

    config = state.config
    lowest, highest = config.min_session_timeout_ms, config.max_session_timeout_ms
    if not request.group_id:
        reject(ErrorCode.INVALID_GROUP_ID)
    elif not lowest <= request.session_timeout_ms <= highest:
        reject(ErrorCode.INVALID_SESSION_TIMEOUT)
    else:
        if version == 0:  # it has no rebalance time-out: that of the session
            request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
        join = Join(request, version, context.client, respond)

        def done(_: object, error: ErrorCode | None, __: str | None) -> None:
            if error is not None:
                respond(JoinGroupResponse(error_code=error))

        state.write(request.group_id, join.run, done, now_ms)


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

    def run(self, shard: GroupShard, now_ms: int) -> Result:
        """Join; a group that is new is written, so that it is there after a fail-over.

        Source:  GroupMetadataManager.classicGroupJoinToClassicGroup.
        """
        request = self.request
        group = shard.groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                return join_consumer_group(
                    shard, group, request, self.version, self.client, self.respond, now_ms
                )
        elif group is not None:
            return self._join(shard, group, now_ms)
        return self._join_new_group(shard, group, now_ms)

    def _join_new_group(
        self, shard: GroupShard, ended: ConsumerGroup | None, now_ms: int
    ) -> Result:
        """Join a group that is made for this request, maybe in the place of one that is empty."""
        request = self.request
        tombstones: tuple[CoordinatorRecord, ...] = ()
        if request.member_id != UNKNOWN_MEMBER_ID:
            if ended is not None and shard.rules.refused_join_forgets_empty_group:
                shard.groups.pop(request.group_id)
            return self._reject(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        if ended is not None:
            tombstones = tuple(group_tombstones(ended, ended.member_ids))
            shard.groups.pop(request.group_id)
        group = shard.new_classic_group(request.group_id, now_ms)
        result = self._join(shard, group, now_ms)
        if result is not NOTHING:
            return result
        return Result(
            records=(*tombstones, empty_group(group)),
            is_applied=True,
            on_append=partial(self._after_new_group, shard, ended),
        )

    def _after_new_group(
        self, shard: GroupShard, ended: ConsumerGroup | None, error: ErrorCode | None, _: int
    ) -> None:
        if error is None:
            return
        shard.groups.pop(self.request.group_id)
        if ended is not None:
            shard.groups[self.request.group_id] = ended
        self.respond(JoinGroupResponse(error_code=error))

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


# SyncGroup (14): the leader gives the assignment of a generation, and members fetch theirs.
#
# Versions:  0-5. 3: static members (KIP-345). 5: protocol type and name (KIP-559).
# Source:    KafkaApis.handleSyncGroupRequest, GroupCoordinatorService.syncGroup,
#            GroupMetadataManager.classicGroupSync.


_PROTOCOL_FROM = 5


def handle_sync_group(
    state: CoordinatorState, context: Context, request: SyncGroupRequest, version: int, now_ms: int
) -> None:
    """Give the member its assignment, now or once the leader has written it.

    Errors:  INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
             INCONSISTENT_GROUP_PROTOCOL, REBALANCE_IN_PROGRESS.
    """
    is_open = True

    def respond(response: SyncGroupResponse) -> None:
        nonlocal is_open
        if is_open:
            is_open = False
            state.respond(context.token, response)

    named = None not in (request.protocol_type, request.protocol_name)
    if version >= _PROTOCOL_FROM and not named:
        respond(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    if not request.group_id:
        respond(SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return

    def done(_: object, error: ErrorCode | None, __: str | None) -> None:
        if error is not None:
            respond(SyncGroupResponse(error_code=error))

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return _sync(shard, request, distributed(state, request), respond, at_ms)

    state.write(request.group_id, operation, done, now_ms)


@step
def distributed(state: CoordinatorState, request: SyncGroupRequest) -> dict[str, bytes]:
    """The assignments that the leader of a group sends, by member."""
    return {item.member_id: item.assignment for item in request.assignments}


def _sync(
    shard: GroupShard,
    request: SyncGroupRequest,
    assigned: dict[str, bytes],
    respond: RespondSync,
    now_ms: int,
) -> Result:
    group = shard.groups.get(request.group_id)
    if group is None or group.is_empty:
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        return sync_with_consumer_group(shard, group, request, respond, now_ms)
    _validate(group, request)
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
    on_append = partial(_after_append, shard, group, group.generation_id, assignments)
    record = group_metadata(group, assignments)
    return Result(records=(record,), is_applied=True, on_append=on_append)


def _validate(group: ClassicGroup, request: SyncGroupRequest) -> None:
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


def _after_append(
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


# Heartbeat (12): a member of a classic group is alive, and learns of a rebalance.
#
# Versions:  0-4. 3: static members (KIP-345).
# Source:    GroupCoordinatorService.heartbeat, GroupMetadataManager.classicGroupHeartbeat.


def handle_heartbeat(
    state: CoordinatorState, context: Context, request: HeartbeatRequest, version: int, now_ms: int
) -> None:
    """Restart the session timeout.

    Errors:  INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION;
             REBALANCE_IN_PROGRESS: join again.
    """

    def respond(error: ErrorCode) -> None:
        state.respond(context.token, HeartbeatResponse(error_code=error))

    if not request.group_id:
        respond(ErrorCode.INVALID_GROUP_ID)
        return

    def done(response: ErrorCode, error: ErrorCode | None, _: str | None) -> None:
        # A coordinator that still loads keeps the session alive.
        loading = error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        respond(response if error is None else ErrorCode.NONE if loading else error)

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return Result(response=_heartbeat(shard, request, at_ms))

    state.write(request.group_id, operation, done, now_ms)


def _heartbeat(shard: GroupShard, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
    group = shard.groups.get(request.group_id)
    if group is None:
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        return heartbeat_of_classic_member(shard, group, request, now_ms)
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


# LeaveGroup (13): members leave a classic group.
#
# Versions:  0-5. 3: several members, static ones by their instance id (KIP-345). 5: a reason
#            (KIP-800).
# Source:    GroupCoordinatorService.leaveGroup, GroupMetadataManager.classicGroupLeave,
#            LeaveGroupResponse.


_SEVERAL_MEMBERS_FROM = 3
Identity = LeaveGroupRequest.MemberIdentity
MemberResponse = LeaveGroupResponse.MemberResponse


def handle_leave_group(
    state: CoordinatorState, context: Context, request: LeaveGroupRequest, version: int, now_ms: int
) -> None:
    """Remove members; the others rebalance.

    Errors:  INVALID_GROUP_ID; by member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    several = version >= _SEVERAL_MEMBERS_FROM
    members = request.members if several else (Identity(member_id=request.member_id),)

    def respond(error: ErrorCode, responses: Sequence[Any] = ()) -> None:
        if not several and error == ErrorCode.NONE:
            error, responses = ErrorCode(responses[0].error_code), ()
        response = LeaveGroupResponse(error_code=error, members=tuple(responses))
        state.respond(context.token, response)

    if not request.group_id:
        respond(ErrorCode.INVALID_GROUP_ID)
        return

    def done(responses: Sequence[Any], error: ErrorCode | None, _: str | None) -> None:
        if error is None:
            respond(ErrorCode.NONE, responses)
        elif error == ErrorCode.UNKNOWN_MEMBER_ID:  # there is no such group
            respond(ErrorCode.NONE, [_response(member, error) for member in members])
        else:
            respond(error)

    def operation(shard: GroupShard, at_ms: int) -> Result:
        return _leave(shard, request.group_id, members, at_ms)

    state.write(request.group_id, operation, done, now_ms)


def _leave(shard: GroupShard, group_id: str, members: Sequence[Any], now_ms: int) -> Result:
    group = shard.groups.get(group_id)
    if group is None:
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, ConsumerGroup):
        return leave_consumer_group(shard, group, members, _response, now_ms)
    if group.state is GroupState.DEAD:
        raise OperationError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    responses = [_response(member, _leave_one(shard, group, member)) for member in members]
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


def _response(member: Any, error: ErrorCode) -> Any:
    return MemberResponse(
        member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error
    )
