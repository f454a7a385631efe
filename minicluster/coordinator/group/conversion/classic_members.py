"""Members of the classic protocol in a consumer group, while an application migrates (KIP-848).

They join, sync, send heartbeats and leave as before. A join is a full heartbeat of the group, its
response has the member epoch as generation, and the assignment comes with the sync. The response to
a heartbeat is REBALANCE_IN_PROGRESS while there is a newer target, a partition to give up, or a
partition to get.

Source:  GroupMetadataManager.classicGroupJoinToConsumerGroup, classicGroupSyncToConsumerGroup,
         classicGroupHeartbeatToConsumerGroup, classicGroupLeaveToConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicluster.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL_TYPE,
    UNKNOWN_MEMBER_ID,
    RespondJoin,
    RespondSync,
)
from minicluster.coordinator.group.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    classic_metadata,
)
from minicluster.coordinator.group.consumer.joining import (
    dynamic_member,
    joining_static_member,
    known_static_member,
    require_room,
    require_same_member,
)
from minicluster.coordinator.group.consumer.leaving import (
    cancel_join_timeout,
    cancel_sync_timeout,
    fence_members,
    schedule_join_timeout_if_absent,
    schedule_session_timeout,
    schedule_sync_timeout,
)
from minicluster.coordinator.group.consumer.rebalance import Rebalance, update_regular_expression
from minicluster.coordinator.group.consumer.records import member_subscription
from minicluster.coordinator.group.conversion.downgrade import (
    can_downgrade_with_replaced,
    convert_to_classic_group,
)
from minicluster.coordinator.group.conversion.embedded import (
    assignment_bytes,
    owned_topics,
    subscription_of,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.request_context import ClientContext
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.values import replace

_KNOWN_MEMBER_ID_FROM = 4


# --- JoinGroup --------------------------------------------------------------------------------


def join_consumer_group(
    shard: GroupShard,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    version: int,
    client: ClientContext,
    respond: RespondJoin,
    now_ms: int,
) -> Result:
    """Join, or join again; the response comes once the records are committed.

    Errors:  GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
             FENCED_INSTANCE_ID; UNKNOWN_SERVER_ERROR for metadata that cannot be read.
    """
    is_new = request.member_id == UNKNOWN_MEMBER_ID
    member_id = format_uuid(shard.new_uuid()) if is_new else request.member_id
    require_room(shard, group, member_id)
    names = [protocol.name for protocol in request.protocols]
    if not group.supports_classic_protocols(request.protocol_type, names):
        message = f"Member {member_id}'s protocols are not supported."
        raise OperationError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    if is_new and version >= _KNOWN_MEMBER_ID_FROM and request.group_instance_id is None:
        required = ErrorCode.MEMBER_ID_REQUIRED
        respond(JoinGroupResponse(member_id=member_id, error_code=required))
        return NOTHING
    records: list[Any] = []
    old = _joining_member(group, member_id, request.group_instance_id, records, is_new=is_new)
    subscription = _subscription(request)
    new = _updated(old, request, subscription, client)
    rebalance = Rebalance(shard, group, old, new, records)
    is_changed = new.subscribed_topics != old.subscribed_topics
    if new != old:
        records.append(member_subscription(group.group_id, new))
    expression = update_regular_expression(
        shard, group, old, new, records, now_ms, client.may_describe
    )
    is_changed |= expression.is_updated
    if is_changed or group.has_metadata_expired(now_ms):
        rebalance.update_group_epoch(now_ms, is_raised=is_changed)
    return _JoinResult(request, subscription, respond, rebalance).decide(
        now_ms, is_changed=is_changed
    )


class _JoinResult:
    """The end of a join: within the consumer group, or with the group converted."""

    def __init__(
        self,
        request: JoinGroupRequest,
        subscription: ConsumerProtocolSubscription,
        respond: RespondJoin,
        rebalance: Rebalance,
    ) -> None:
        self.request = request
        self.subscription = subscription
        self.respond = respond
        self.rebalance = rebalance

    def decide(self, now_ms: int, *, is_changed: bool) -> Result:
        """Take the member a step, and end the consumer group if it has only classic members."""
        rebalance, shard = self.rebalance, self.rebalance.shard
        group = rebalance.group
        existing = group.static_member(self.request.group_instance_id)
        owned = owned_topics(self.subscription.owned_partitions, shard.image)
        if existing is not None and can_downgrade_with_replaced(shard, group, existing):
            is_stale = group.assignment_epoch < rebalance.epoch
            if not is_stale:
                rebalance.reconcile(
                    group.assignment_epoch,
                    group.target_of_instance(rebalance.new),
                    owned,
                    now_ms,
                    has_subscription_changed=is_changed,
                )
            return convert_to_classic_group(
                shard,
                group,
                now_ms,
                rebalance=is_stale,
                joining=rebalance.new,
                records=rebalance.records,
                on_append=self._after_append,
            )
        target_epoch, target = rebalance.update_target_assignment(now_ms)
        rebalance.reconcile(
            target_epoch, target, owned, now_ms, has_subscription_changed=is_changed
        )
        return Result(records=tuple(rebalance.records), on_append=self._after_append)

    def _after_append(self, error: ErrorCode | None, now_ms: int) -> None:
        if error is not None:
            return
        shard, group_id = self.rebalance.shard, self.request.group_id
        new = self.rebalance.new
        cancel_join_timeout(shard, group_id, new.member_id)
        if isinstance(shard.groups.get(group_id), ConsumerGroup):
            session_ms = self.request.session_timeout_ms
            schedule_session_timeout(shard, group_id, new.member_id, now_ms, session_ms)
            timeout_ms = self.request.rebalance_timeout_ms
            schedule_sync_timeout(shard, group_id, new.member_id, timeout_ms, now_ms)
        self.respond(
            JoinGroupResponse(
                member_id=new.member_id,
                generation_id=new.epoch,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=new.classic_protocols[0].name,
            )
        )


def _joining_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    records: list[Any],
    *,
    is_new: bool,
) -> ConsumerGroupMember:
    if instance_id is None:
        return dynamic_member(group, member_id, is_new_allowed=True)
    if is_new:
        return joining_static_member(
            group, member_id, instance_id, records, uses_classic_protocol=True
        )
    return known_static_member(group, member_id, instance_id)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return subscription_of(request.protocols[0].metadata)
    except ProtocolError as error:
        # Kafka raises an IllegalStateException here.
        message = "Malformed embedded consumer protocol in subscription deserialization."
        raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def _updated(
    old: ConsumerGroupMember,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
    client: ClientContext,
) -> ConsumerGroupMember:
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        old,
        instance_id=request.group_instance_id or old.instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        subscribed_regex="",  # members of the classic protocol match by themselves
        client_id=client.client_id,
        client_host=client.client_host,
        classic=classic_metadata(request),
    )


# --- SyncGroup and Heartbeat ------------------------------------------------------------------


def _classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int
) -> ConsumerGroupMember:
    """The member of a request, in its own epoch.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_static_member(group, member_id, instance_id)
    if not member.uses_classic_protocol:
        message = f"Member {member_id} does not use the classic protocol."
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    if member.epoch != generation_id:
        raise OperationError(ErrorCode.ILLEGAL_GENERATION)
    return member


def sync_with_consumer_group(
    shard: GroupShard,
    group: ConsumerGroup,
    request: SyncGroupRequest,
    respond: RespondSync,
    now_ms: int,
) -> Result:
    """Give a member its assignment.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION,
             INCONSISTENT_GROUP_PROTOCOL; REBALANCE_IN_PROGRESS: join again.
    """
    member = _classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    named = (request.protocol_type, request.protocol_name)
    expected = (CONSUMER_PROTOCOL_TYPE, member.classic_protocols[0].name)
    if any(name not in (None, known) for name, known in zip(named, expected, strict=True)):
        raise OperationError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    unrevoked = MemberState.UNREVOKED_PARTITIONS
    if group.assignment_epoch > member.epoch and member.state is not unrevoked:
        schedule_join_timeout_if_absent(shard, group.group_id, member, now_ms)
        raise OperationError(ErrorCode.REBALANCE_IN_PROGRESS)

    def after_append(error: ErrorCode | None, at_ms: int) -> None:
        if error is not None:
            return
        group_id, member_id = group.group_id, member.member_id
        cancel_sync_timeout(shard, group_id, member_id)
        session_ms = member.classic.session_timeout_ms
        schedule_session_timeout(shard, group_id, member_id, at_ms, session_ms)
        metadata = member.classic_protocols[0].metadata
        respond(
            SyncGroupResponse(
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignment=assignment_bytes(member.assigned, metadata, shard.image),
            )
        )

    return Result(on_append=after_append)


def heartbeat_of_classic_member(
    shard: GroupShard, group: ConsumerGroup, request: HeartbeatRequest, now_ms: int
) -> ErrorCode:
    """Restart the session; REBALANCE_IN_PROGRESS where the member has to join again.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    """
    member = _classic_member(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    session_ms = member.classic.session_timeout_ms
    schedule_session_timeout(shard, group.group_id, member.member_id, now_ms, session_ms)
    is_released = member.state is MemberState.UNRELEASED_PARTITIONS and (
        not group.is_waiting_for_partitions(member)
    )
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    if member.epoch >= group.assignment_epoch and not is_revoking and not is_released:
        return ErrorCode.NONE
    schedule_join_timeout_if_absent(shard, group.group_id, member, now_ms)
    return ErrorCode.REBALANCE_IN_PROGRESS


# --- LeaveGroup -------------------------------------------------------------------------------


def leave_consumer_group(
    shard: GroupShard,
    group: ConsumerGroup,
    identities: Sequence[Any],
    response_of: Callable[[Any, ErrorCode], Any],
    now_ms: int,
) -> Result:
    """Remove members, of either protocol.

    Errors:  by member UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    leaving: dict[str, ConsumerGroupMember] = {}
    responses = []
    for identity in identities:
        try:
            member = _leaving_member(group, identity)
        except OperationError as rejection:
            responses.append(response_of(identity, rejection.error))
            continue
        leaving[member.member_id] = member
        responses.append(response_of(identity, ErrorCode.NONE))
    return fence_members(shard, group, list(leaving.values()), now_ms, responses)


def _leaving_member(group: ConsumerGroup, identity: Any) -> ConsumerGroupMember:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID)
    if identity.member_id != UNKNOWN_MEMBER_ID:  # else an administrator removes it
        require_same_member(member, identity.member_id, identity.group_instance_id)
    return member
