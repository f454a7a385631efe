"""The requests of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

They are for a classic group (``classic.members``), or, while an application migrates, for members
of a consumer group that still have the classic protocol (``conversion.classic_members``).

Versions:  JoinGroup (11) 0-9; 4.x serves 2-9. 1: rebalance time-out. 4: a new member gets its id
           first and joins again with it (KIP-394). 5: static members (KIP-345). 7: protocol type.
           8: reason. 9: skip_assignment (KIP-814).
           SyncGroup (14) 0-5. 3: static members. 5: protocol type and name (KIP-559).
           Heartbeat (12) 0-4. 3: static members.
           LeaveGroup (13) 0-5. 3: several members, static ones by their instance id. 5: a reason
           (KIP-800).
Source:    KIP-62, KIP-345, KIP-394, KIP-814; GroupCoordinatorService.joinGroup, syncGroup,
           heartbeat, leaveGroup; KafkaApis.handleSyncGroupRequest; LeaveGroupResponse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.coordinator.group.classic.members import (
    Join,
    heartbeat,
    leave_group,
    left,
    sync_group,
)
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.conversion.classic_members import (
    heartbeat_of_classic_member,
    join_consumer_group,
    leave_consumer_group,
    sync_with_consumer_group,
)
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.request_context import Context
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
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
from minicluster.values import replace

_NULLABLE_PROTOCOL_FROM = 7  # of JoinGroup
_PROTOCOL_FROM = 5  # of SyncGroup
_SEVERAL_MEMBERS_FROM = 3  # of LeaveGroup


def handle_join_group(
    state: GroupCoordinatorState,
    context: Context,
    request: JoinGroupRequest,
    version: int,
    now_ms: int,
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
        client, join = context.client, Join(request, version, context.client, respond)

        def operation(shard: GroupShard, at_ms: int) -> Result:
            group = shard.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup) and not group.is_empty:
                return join_consumer_group(shard, group, request, version, client, respond, at_ms)
            return join.run(shard, group, at_ms)

        def done(_: object, error: ErrorCode | None, __: str | None) -> None:
            if error is not None:
                respond(JoinGroupResponse(error_code=error))

        state.write(request.group_id, operation, done, now_ms)


def handle_sync_group(
    state: GroupCoordinatorState,
    context: Context,
    request: SyncGroupRequest,
    version: int,
    now_ms: int,
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
        group = shard.groups.get(request.group_id)
        if group is None or group.is_empty:
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            return sync_with_consumer_group(shard, group, request, respond, at_ms)
        return sync_group(shard, group, request, distributed(state, request), respond, at_ms)

    state.write(request.group_id, operation, done, now_ms)


@step
def distributed(state: GroupCoordinatorState, request: SyncGroupRequest) -> dict[str, bytes]:
    """The assignments that the leader of a group sends, by member."""
    return {item.member_id: item.assignment for item in request.assignments}


def handle_heartbeat(
    state: GroupCoordinatorState,
    context: Context,
    request: HeartbeatRequest,
    version: int,
    now_ms: int,
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
        group = shard.groups.get(request.group_id)
        if group is None:
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            return Result(response=heartbeat_of_classic_member(shard, group, request, at_ms))
        return Result(response=heartbeat(shard, group, request, at_ms))

    state.write(request.group_id, operation, done, now_ms)


def handle_leave_group(
    state: GroupCoordinatorState,
    context: Context,
    request: LeaveGroupRequest,
    version: int,
    now_ms: int,
) -> None:
    """Remove members; the others rebalance.

    Errors:  INVALID_GROUP_ID; by member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    several = version >= _SEVERAL_MEMBERS_FROM
    first = LeaveGroupRequest.MemberIdentity(member_id=request.member_id)
    members = request.members if several else (first,)

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
            respond(ErrorCode.NONE, [left(member, error) for member in members])
        else:
            respond(error)

    def operation(shard: GroupShard, at_ms: int) -> Result:
        group = shard.groups.get(request.group_id)
        if group is None:
            raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            return leave_consumer_group(shard, group, members, left, at_ms)
        return leave_group(shard, group, members, at_ms)

    state.write(request.group_id, operation, done, now_ms)
