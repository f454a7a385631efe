"""SyncGroup (14): the leader gives the assignment of a generation, and members fetch theirs.

Versions:  0-5. 3: static members (KIP-345). 5: protocol type and name (KIP-559).
Source:    KafkaApis.handleSyncGroupRequest, GroupCoordinatorService.syncGroup,
           GroupMetadataManager.classicGroupSync.
"""

from __future__ import annotations

from functools import partial

from minicluster.coordinator.group.classic.group import ClassicGroup, GroupState, RespondSync
from minicluster.coordinator.group.classic.rebalance import (
    prepare_rebalance_or_complete_join,
    reset_assignment,
    set_assignment,
    sync_key,
)
from minicluster.coordinator.group.classic.records import group_metadata
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.migration.classic_members import sync_with_consumer_group
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import SyncGroupRequest, SyncGroupResponse

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
    given: dict[str, bytes],
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
    assignments = {**dict.fromkeys(group.members, b""), **given}
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
