"""DescribeGroups (15): the state and the members of classic groups.

Versions:  0-6. 3: authorized operations. 4: instance ids (KIP-345). 6: GROUP_ID_NOT_FOUND and an
           error message (KIP-1043).
Source:    KafkaApis.handleDescribeGroupsRequest, GroupMetadataManager.describeGroups.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

from minicluster.coordinator.group.classic.group import ClassicGroup, GroupState
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.metadata.authorized_operations import ON_GROUP
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

_NOT_FOUND_FROM = 6

Described = DescribeGroupsResponse.DescribedGroup


def handle_describe_groups(
    state: CoordinatorState,
    context: Context,
    request: DescribeGroupsRequest,
    version: int,
    now_ms: int,
) -> None:
    """Describe each group; one that is not there is Dead."""
    described = []
    for group_id in chain(*state.by_partition(request.groups).values()):
        group = _describe(state, group_id, version)
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group = replace(group, authorized_operations=ON_GROUP)
        described.append(group)
    state.respond(context.token, DescribeGroupsResponse(groups=tuple(described)))


def _describe(state: CoordinatorState, group_id: str, version: int) -> Any:
    found: list[Any] = []

    def operation(shard: GroupShard, _: int) -> Any:
        group = shard.groups.committed_value(group_id)
        if isinstance(group, ClassicGroup):
            return _described(group)
        dead = Described(group_id=group_id, group_state=GroupState.DEAD.value)
        if version < _NOT_FOUND_FROM:
            return dead
        what = "not found" if group is None else "is not a classic group"
        message = f"Group {group_id} {what}."
        return replace(dead, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)

    def done(group: Any, error: ErrorCode | None, _: str | None) -> None:
        found.append(Described(group_id=group_id, error_code=error) if error is not None else group)

    state.read(group_id, operation, done)
    return found[0]


def _described(group: ClassicGroup) -> Any:
    stable = group.state is GroupState.STABLE
    return Described(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=tuple(
            DescribeGroupsResponse.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members_in_order()
        ),
    )
