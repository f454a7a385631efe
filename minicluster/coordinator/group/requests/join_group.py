"""JoinGroup (11): a member joins a classic group, or joins its next generation.

Versions:  0-9; 4.x serves 2-9. 1: rebalance time-out. 4: a new member gets its id first and joins
           again with it (KIP-394). 5: static members (KIP-345). 7: protocol type. 8: reason. 9:
           skip_assignment (KIP-814).
Source:    KIP-62, KIP-345, KIP-394, KIP-814; GroupCoordinatorService.joinGroup,
           GroupMetadataManager.classicGroupJoin.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from minicluster.coordinator.group.classic.group import (
    UNKNOWN_MEMBER_ID,
    ClassicGroup,
    GroupState,
    Member,
    RespondJoin,
    complete_join,
)
from minicluster.coordinator.group.classic.rebalance import (
    generation_of,
    maybe_complete_join,
    prepare_rebalance,
    prepare_rebalance_or_complete_join,
    reschedule_heartbeat,
    schedule_expiry,
)
from minicluster.coordinator.group.classic.records import empty_group, group_metadata
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.records import group_tombstones
from minicluster.coordinator.group.migration.classic_members import join_consumer_group
from minicluster.coordinator.group.state.coordinator_state import (
    ClientContext,
    Context,
    CoordinatorState,
)
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.messages import JoinGroupRequest, JoinGroupResponse

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

    def refuse(error: ErrorCode) -> None:
        respond(JoinGroupResponse(error_code=error, member_id=request.member_id))

    config = state.config
    lowest, highest = config.min_session_timeout_ms, config.max_session_timeout_ms
    if not request.group_id:
        refuse(ErrorCode.INVALID_GROUP_ID)
    elif not lowest <= request.session_timeout_ms <= highest:
        refuse(ErrorCode.INVALID_SESSION_TIMEOUT)
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
        found = shard.groups.get(request.group_id)
        if isinstance(found, ConsumerGroup):
            if not found.is_empty:
                return join_consumer_group(
                    shard, found, request, self.version, self.client, self.respond, now_ms
                )
        elif found is not None:
            return self._join(shard, found, now_ms)
        return self._join_new_group(shard, found, now_ms)

    def _join_new_group(
        self, shard: GroupShard, ended: ConsumerGroup | None, now_ms: int
    ) -> Result:
        """Join a group that is made for this request, maybe in the place of one that is empty."""
        request = self.request
        tombstones: tuple[CoordinatorRecord, ...] = ()
        if request.member_id != UNKNOWN_MEMBER_ID:
            if ended is not None and shard.rules.refused_join_forgets_empty_group:
                shard.groups.pop(request.group_id)
            return self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
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
            return self._refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if member_id == UNKNOWN_MEMBER_ID:
            return self._join_as_new(shard, group, now_ms)
        return self._join_again(shard, group, now_ms)

    def _refuse(self, error: ErrorCode, member_id: str = UNKNOWN_MEMBER_ID) -> Result:
        self.respond(JoinGroupResponse(error_code=error, member_id=member_id))
        return NOTHING

    # --- new members --------------------------------------------------------------------------

    def _join_as_new(self, shard: GroupShard, group: ClassicGroup, now_ms: int) -> Result:
        request = self.request
        if group.state is GroupState.DEAD:
            return self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if not group.supports(request.protocol_type, request.protocols):
            return self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
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
            return self._refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
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
            return self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
        if not group.supports(request.protocol_type, request.protocols):
            return self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if member_id in group.pending_join:
            if request.group_instance_id is not None:
                # Kafka raises an IllegalStateException here.
                raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return self._add(shard, group, member_id, now_ms)
        try:
            group.validate_member(member_id, request.group_instance_id)
        except OperationError as refusal:
            return self._refuse(refusal.error, member_id)
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
        return self._refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id)

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
            refused = generation_of(group, UNKNOWN_MEMBER_ID, leader=leader)
            self.respond(replace(refused, error_code=error))
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
