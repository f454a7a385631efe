"""Heartbeat (12): a member of a classic group is alive, and learns of a rebalance.

Versions:  0-4. 3: static members (KIP-345).
Source:    GroupCoordinatorService.heartbeat, GroupMetadataManager.classicGroupHeartbeat.
"""

from __future__ import annotations

from minicluster.coordinator.group.classic.group import GroupState
from minicluster.coordinator.group.classic.rebalance import reschedule_heartbeat
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.migration.classic_members import heartbeat_of_classic_member
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import HeartbeatRequest, HeartbeatResponse


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
