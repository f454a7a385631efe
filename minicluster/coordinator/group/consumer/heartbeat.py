"""ConsumerGroupHeartbeat (68): a member joins, stays in, or leaves a consumer group (KIP-848).

Versions:  0-1. 1: subscriptions by expression (v1 of KIP-848), and members choose their ids.
Source:    KIP-848; GroupCoordinatorService.consumerGroupHeartbeat,
           GroupMetadataManager.consumerGroupHeartbeat, consumerGroupLeave.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.group.consumer.group import (
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
    PartitionEpochs,
)
from minicluster.coordinator.group.consumer.joining import (
    dynamic_member,
    group_of_heartbeat,
    joining_static_member,
    known_static_member,
    require_room,
    validate_member_epoch,
)
from minicluster.coordinator.group.consumer.leaving import fence_members, schedule_session_timeout
from minicluster.coordinator.group.consumer.rebalance import (
    Rebalance,
    RegexUpdate,
    update_regular_expression,
)
from minicluster.coordinator.group.consumer.records import current_assignment, member_subscription
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.request_context import ClientContext, Context
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.values import replace

_OWN_MEMBER_ID_FROM = 1
_JOINING = 0
_NOT_GIVEN = -1


def handle_consumer_group_heartbeat(
    state: GroupCoordinatorState,
    context: Context,
    request: ConsumerGroupHeartbeatRequest,
    version: int,
    now_ms: int,
) -> None:
    """Take one member a step further.

    Errors:  UNSUPPORTED_VERSION while the protocol is off; INVALID_REQUEST, UNSUPPORTED_ASSIGNOR;
             GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH,
             FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID, INVALID_REGULAR_EXPRESSION.
    """

    def done(response: Any, error: ErrorCode | None, message: str | None) -> None:
        if error is not None:
            response = ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
        state.respond(context.token, response)

    if not state.is_consumer_protocol_enabled:
        done(None, ErrorCode.UNSUPPORTED_VERSION, None)
        return
    try:
        _validate(state, request, version)
    except OperationError as rejection:
        done(None, rejection.error, rejection.message)
        return

    def operation(shard: GroupShard, at_ms: int) -> Result:
        left = (LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH)
        if request.member_epoch in left:
            return _leave(shard, request, at_ms)
        return _heartbeat(shard, request, context.client, at_ms)

    state.write(request.group_id, operation, done, now_ms)


def _validate(
    state: GroupCoordinatorState, request: ConsumerGroupHeartbeatRequest, version: int
) -> None:
    """Source: GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid."""
    epoch = request.member_epoch
    if version >= _OWN_MEMBER_ID_FROM or epoch > 0 or epoch == LEAVE_GROUP_MEMBER_EPOCH:
        _require_text(request.member_id, "MemberId")
    _require_text(request.group_id, "GroupId")
    _require_text(request.instance_id, "InstanceId")
    _require_text(request.rack_id, "RackId")
    if epoch == _JOINING:
        if request.rebalance_timeout_ms == _NOT_GIVEN:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    assignor, known = request.server_assignor, state.config.consumer_assignors
    if assignor is not None and assignor not in known:
        raise OperationError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(known)}.",
        )


def _require_text(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(f"{name} can't be empty.")


def _invalid(message: str) -> OperationError:
    return OperationError(ErrorCode.INVALID_REQUEST, message)


# --- heartbeats -------------------------------------------------------------------------------


def _heartbeat(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, client: ClientContext, now_ms: int
) -> Result:
    records: list[Any] = []
    is_joining = request.member_epoch == _JOINING
    group = group_of_heartbeat(shard, request.group_id, records, now_ms, is_joining=is_joining)
    require_room(shard, group, request.member_id)
    old = _member(shard, group, request, records)
    rebalance = Rebalance(shard, group, old, _updated(old, request, client), records)
    new_topics = _write_member(rebalance)
    expression = update_regular_expression(
        shard, group, old, rebalance.new, records, now_ms, client.may_describe
    )
    # An expression without topics yet raises the group epoch once it is resolved.
    is_raised = new_topics or expression is RegexUpdate.UPDATED_AND_RESOLVED
    if is_raised or group.has_metadata_expired(now_ms):
        rebalance.update_group_epoch(now_ms, is_raised=is_raised)
    target_epoch, target = rebalance.update_target_assignment(now_ms)
    rebalance.reconcile(
        target_epoch,
        target,
        request.topic_partitions,
        now_ms,
        has_subscription_changed=new_topics or expression.is_updated,
    )
    new = rebalance.new
    schedule_session_timeout(shard, group.group_id, new.member_id, now_ms)
    is_full_request = (
        request.rebalance_timeout_ms != _NOT_GIVEN
        and (request.subscribed_topic_names, request.subscribed_topic_regex) != (None, None)
        and request.topic_partitions is not None
    )
    is_assigned = is_joining or is_full_request or old.assigned != new.assigned
    response = ConsumerGroupHeartbeatResponse(
        member_id=new.member_id,
        member_epoch=new.epoch,
        heartbeat_interval_ms=shard.consumer_config(group.group_id).heartbeat_interval_ms,
        assignment=_assignment(new.assigned) if is_assigned else None,
    )
    return Result(records=tuple(records), response=response)


def _member(
    shard: GroupShard,
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    records: list[Any],
) -> ConsumerGroupMember:
    member_id = request.member_id or format_uuid(shard.new_uuid())
    is_joining = request.member_epoch == _JOINING
    instance_id, owned = request.instance_id, request.topic_partitions
    if instance_id is None:
        member = dynamic_member(group, member_id, is_new_allowed=is_joining)
    elif is_joining:
        return joining_static_member(
            group, member_id, instance_id, records, uses_classic_protocol=False
        )
    else:
        member = known_static_member(group, member_id, instance_id)
    validate_member_epoch(member, request.member_epoch, owned)
    return member


def _updated(
    old: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client: ClientContext
) -> ConsumerGroupMember:
    """The member with what the request gives; the rest stays."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return replace(
        old,
        instance_id=_new_or_old(request.instance_id, old.instance_id),
        rack_id=_new_or_old(request.rack_id, old.rack_id),
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == _NOT_GIVEN else timeout_ms,
        server_assignor=_new_or_old(request.server_assignor, old.server_assignor),
        subscribed_topics=old.subscribed_topics if names is None else frozenset(names),
        subscribed_regex=_new_or_old(request.subscribed_topic_regex, old.subscribed_regex),
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _new_or_old(new: str | None, old: str | None) -> str | None:
    return old if new is None else new


def _write_member(rebalance: Rebalance) -> bool:
    """Write a member that has changed; whether it subscribes to other topics by name."""
    if rebalance.new == rebalance.old:
        return False
    group_id = rebalance.group.group_id
    rebalance.records.append(member_subscription(group_id, rebalance.new))
    return rebalance.new.subscribed_topics != rebalance.old.subscribed_topics


def _assignment(partitions: PartitionEpochs) -> Any:
    topic = ConsumerGroupHeartbeatResponse.TopicPartitions
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=tuple(
            topic(topic_id=topic_id, partitions=tuple(indexes))
            for topic_id, indexes in partitions.items()
        )
    )


# --- leaving ----------------------------------------------------------------------------------


def _leave(shard: GroupShard, request: ConsumerGroupHeartbeatRequest, now_ms: int) -> Result:
    """Remove a member; a static one that leaves for a while keeps its place."""
    group = shard.consumer_group(request.group_id)
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = known_static_member(group, request.member_id, request.instance_id)
        if request.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            return _leave_for_a_while(group, member)
    return fence_members(shard, group, [member], now_ms, response)


def _leave_for_a_while(group: ConsumerGroup, member: ConsumerGroupMember) -> Result:
    """Source: GroupMetadataManager.consumerGroupStaticMemberGroupLeave."""
    left = replace(
        member,
        epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        pending_revocation={},
        # Who comes back with another member id has had them from the beginning.
        assigned={t: dict.fromkeys(indexes, 0) for t, indexes in member.assigned.items()},
    )
    response = ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=left.epoch)
    return Result(records=(current_assignment(group.group_id, left),), response=response)
