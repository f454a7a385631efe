"""ListGroups (16): the groups whose coordinator is this broker, as they are committed.

Versions:  0-5. 4: filter by state, and the state of each group (KIP-518). 5: filter by type, and
           the type of each group (KIP-848).
Order:     of the shards that of CoordinatorRuntime's ConcurrentHashMap, of the groups of a shard
           that of GroupMetadataManager's TimelineHashMap.
Source:    GroupCoordinatorService.listGroups, GroupMetadataManager.listGroups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import Group, GroupShard
from minicluster.java_order import (
    concurrent_map_order,
    string_hash,
    timeline_order,
    topic_partition_hash,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ListGroupsRequest, ListGroupsResponse
from minicluster.protocol.topics import GROUP_METADATA_TOPIC


def handle_list_groups(
    state: CoordinatorState, context: Context, request: ListGroupsRequest, version: int, now_ms: int
) -> None:
    """List the groups of every shard that is loaded.

    Errors:  COORDINATOR_LOAD_IN_PROGRESS while one is not.
    """

    def state_of(group: Group) -> str:
        if isinstance(group, ConsumerGroup):
            return str(group.committed_state.value)
        return str(group.state.value)

    states = {name.strip().lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    groups: list[Any] = []
    errors: list[ErrorCode] = []

    def operation(shard: GroupShard, _: int) -> list[Any]:
        return [
            ListGroupsResponse.ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=state,
                group_type=group.type,
            )
            for group in _in_order(shard.groups.committed())
            if (state := state_of(group))
            and (not states or state.lower() in states)
            and (not types or group.type.lower() in types)
        ]

    def done(listed: list[Any] | None, error: ErrorCode | None, _: str | None) -> None:
        groups.extend(listed or ())
        if error not in (None, ErrorCode.NOT_COORDINATOR):
            errors.append(error)

    for _, partition in concurrent_map_order(
        [(GROUP_METADATA_TOPIC, partition) for partition in state.runtime.partitions],
        topic_partition_hash,
    ):
        state.runtime.read(partition, operation, done)
    if errors:
        state.respond(context.token, ListGroupsResponse(error_code=errors[0]))
    else:
        state.respond(context.token, ListGroupsResponse(groups=tuple(groups)))


def _in_order(groups: Mapping[str, Group]) -> list[Group]:
    return [groups[group_id] for group_id in timeline_order(groups, string_hash)]
