"""LeaveGroup (13): members leave a classic group.

Versions:  0-5. 3: several members, static ones by their instance id (KIP-345). 5: reason (KIP-800).
Source:    GroupCoordinatorService.leaveGroup, GroupMetadataManager.classicGroupLeave,
           LeaveGroupResponse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from minicluster.coordinator.group.classic.group import (
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    GroupState,
)
from minicluster.coordinator.group.classic.rebalance import (
    drop_member,
    heartbeat_key,
    maybe_complete_join,
    prepare_rebalance_or_complete_join,
)
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.migration.classic_members import leave_consumer_group
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import LeaveGroupRequest, LeaveGroupResponse

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
        except OperationError as refusal:
            return refusal.error
        drop_member(shard, group, group.members[member_id])
    return ErrorCode.NONE


def _response(member: Any, error: ErrorCode) -> Any:
    return MemberResponse(
        member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error
    )
