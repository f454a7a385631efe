"""DeleteGroups (42): groups without members end, and their offsets with them.

Versions:  0-2; the version decides nothing.
Source:    GroupCoordinatorService.deleteGroups, GroupCoordinatorShard.deleteGroups.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.group.state.offsets import offset_record
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse

Deleted = DeleteGroupsResponse.DeletableGroupResult


def handle_delete_groups(
    state: CoordinatorState,
    context: Context,
    request: DeleteGroupsRequest,
    version: int,
    now_ms: int,
) -> None:
    """Delete each group, with one write for those of one partition.

    Errors:  by group GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    by_partition = state.by_partition(dict.fromkeys(request.groups_names))
    parts: dict[int, list[Any]] = {}

    def finish(partition: int, part: list[Any]) -> None:
        parts[partition] = part
        if len(parts) == len(by_partition):
            results = [result for partition in by_partition for result in parts[partition]]
            state.respond(context.token, DeleteGroupsResponse(results=tuple(results)))

    if not by_partition:
        state.respond(context.token, DeleteGroupsResponse())
    for partition, group_ids in by_partition.items():
        in_order = hash_map_order(group_ids, string_hash)
        _delete_of_partition(state, partition, in_order, partial(finish, partition), now_ms)


def _delete_of_partition(
    state: CoordinatorState, partition: int, group_ids: list[str], finish: Any, now_ms: int
) -> None:
    def done(part: list[Any], error: ErrorCode | None, _: str | None) -> None:
        if error is not None:
            part = [Deleted(group_id=group_id, error_code=error) for group_id in group_ids]
        finish(part)

    state.runtime.write(partition, lambda shard, _: _delete(shard, group_ids), done, now_ms)


def _delete(shard: GroupShard, group_ids: list[str]) -> Result:
    records = []
    results = []
    for group_id in group_ids:
        try:
            group = shard.group(group_id)
            group.validate_delete()
        except OperationError as refusal:
            results.append(Deleted(group_id=group_id, error_code=refusal.error))
            continue
        keys = dict.fromkeys(shard.offsets.of_group(group_id))
        keys |= dict.fromkeys(shard.offsets.pending_of_group(group_id))
        records += [offset_record(key, None) for key in keys]
        records += shard.tombstones_of(group)
        results.append(Deleted(group_id=group_id))
    return Result(records=tuple(records), response=results)
