"""Faults of the group coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.coordinator.group import classic_protocol
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.offsets import commit, fetch
from minicluster.coordinator.group.offsets.committed import OffsetAndMetadata, OffsetKey
from minicluster.coordinator.runtime.shard import Result
from minicluster.planting import plant
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import SyncGroupRequest
from minicluster.values import replace

Original = Callable[..., Any]


@plant(commit.commit_offsets, "s51_commit_forgotten")
def _s51(original: Original, state: GroupCoordinatorState, *args: Any) -> Result:
    result: Result = original(state, *args)
    if not result.records:
        return result
    state.hit("S51")
    return replace(result, records=())


@plant(commit.commit_transactional_offsets, "s54_offset_of_transaction_forgotten")
def _s54(original: Original, state: GroupCoordinatorState, *args: Any) -> Result:
    result: Result = original(state, *args)
    if not result.records:
        return result
    state.hit("S54")
    return replace(result, records=())


@plant(classic_protocol.distributed, "s52_two_owners")
def _s52(
    original: Original, state: GroupCoordinatorState, request: SyncGroupRequest
) -> dict[str, bytes]:
    assignments: dict[str, bytes] = original(state, request)
    if len(assignments) < 2:
        return assignments
    state.hit("S52")
    return dict.fromkeys(assignments, next(iter(assignments.values())))


@plant(classic_protocol.distributed, "s58_member_without_partitions")
def _s58(
    original: Original, state: GroupCoordinatorState, request: SyncGroupRequest
) -> dict[str, bytes]:
    assignments: dict[str, bytes] = original(state, request)
    if len(assignments) < 2:
        return assignments
    state.hit("S58")
    return assignments | {next(iter(assignments)): b""}


@plant(fetch.fetched_offset, "s53_offset_too_high")
def _s53(
    original: Original,
    state: GroupCoordinatorState,
    shard: GroupShard,
    key: OffsetKey,
    value: OffsetAndMetadata | None,
    stable: bool,
) -> Any:
    fetched = original(state, shard, key, value, stable)
    if value is None or fetched.error_code != ErrorCode.NONE:
        return fetched
    state.hit("S53")
    return replace(fetched, committed_offset=value.offset + 1)
