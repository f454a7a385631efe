"""DeleteGroups (42): groups without members end, and their offsets with them.

Versions:  0-2; the version decides nothing.
Source:    GroupCoordinatorService.deleteGroups, GroupCoordinatorShard.deleteGroups.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.group.state.coordinator_state import Context, CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.group.state.offsets import offset_record
from minicluster.coordinator.runtime.shard import OperationError, Result
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
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        by_partition.setdefault(state.partition_of(group_id), []).append(group_id)
    results: list[Any] = []
    left = len(by_partition)

    def finish(part: list[Any]) -> None:
        nonlocal left
        results.extend(part)
        left -= 1
        if left == 0:
            state.respond(context.token, DeleteGroupsResponse(results=tuple(results)))

    if not by_partition:
        state.respond(context.token, DeleteGroupsResponse())
    for partition, group_ids in by_partition.items():
        _delete_of_partition(state, partition, group_ids, finish, now_ms)


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
