"""OffsetFetch (9): the committed offsets of groups.

Versions:  0-10; 4.x serves 1-10. 2: all topics, and an error of the whole. 5: leader epoch
           (KIP-320). 7: require_stable (KIP-447). 8: several groups (KIP-709). 9: member id and
           epoch (KIP-848). 10: topics by id.
Source:    KafkaApis.handleOffsetFetchRequest, GroupCoordinatorService.fetchOffsets,
           OffsetMetadataManager.fetchOffsets, fetchAllOffsets; OffsetFetchResponse.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from minicluster.coordinator.group.classic.group import GroupState
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.group.offsets.committed import OffsetAndMetadata, OffsetKey, OfGroup
from minicluster.coordinator.group.offsets.validation import validate_offset_fetch
from minicluster.coordinator.group.request_context import Context
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import OffsetFetchRequest, OffsetFetchResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import Value

_GROUP_ERROR_FROM = 2
_SEVERAL_GROUPS_FROM = 8
_TOPIC_IDS_FROM = 10
_NO_OFFSET = -1

Group = OffsetFetchResponse.OffsetFetchResponseGroup
Topic = OffsetFetchResponse.OffsetFetchResponseTopics
PartitionOffset = OffsetFetchResponse.OffsetFetchResponsePartitions
RequestGroup = OffsetFetchRequest.OffsetFetchRequestGroup
RequestTopic = OffsetFetchRequest.OffsetFetchRequestTopics


def handle_offset_fetch(
    state: GroupCoordinatorState,
    context: Context,
    request: OffsetFetchRequest,
    version: int,
    now_ms: int,
) -> None:
    """Give the offsets of each group; those of a group that is not there are -1.

    Errors:  UNSTABLE_OFFSET_COMMIT for a partition with an open transaction where stable offsets
             are required; UNKNOWN_TOPIC_ID.
    """
    groups = _groups_of(request, version)
    fetched: dict[int, Any] = {}

    def finish(place: int, group: Any) -> None:
        fetched[place] = group
        if len(fetched) == len(groups):
            in_order = [fetched[i] for i in range(len(groups))]
            state.respond(context.token, _response(in_order, version))

    if not groups:
        state.respond(context.token, OffsetFetchResponse())
    for place, group in enumerate(groups):
        fetch = _GroupFetch(state, group, version, stable=request.require_stable)
        fetch.run(partial(finish, place), now_ms)


def _groups_of(request: OffsetFetchRequest, version: int) -> Sequence[Any]:
    if version >= _SEVERAL_GROUPS_FROM:
        return request.groups
    # Version 1 has no way to request all topics.
    topics: tuple[Any, ...] | None = None
    if request.topics is not None:
        topics = tuple(
            RequestTopic(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    return (RequestGroup(group_id=request.group_id, topics=topics),)


class _Place(Value):
    """A topic whose offsets are fetched.

    Shapes:  requested_id: the id in the request, all zeros where it has none.
    """

    name: str
    topic_id: uuid.UUID
    indexes: Sequence[int]
    requested_id: uuid.UUID
    is_unknown: bool = False


class _GroupFetch:
    """The fetch of one group."""

    def __init__(
        self, state: GroupCoordinatorState, group: Any, version: int, *, stable: bool
    ) -> None:
        self.state = state
        self.group = group
        self.version = version
        self.stable = stable
        self.by_id = version >= _TOPIC_IDS_FROM

    def run(self, finish: Callable[[Any], None], now_ms: int) -> None:
        """Read as committed, or, where stable offsets are required, behind all writes."""

        group_id = self.group.group_id

        def done(group: Any, error: ErrorCode | None, _: str | None) -> None:
            if error == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                # Consumers before 3.9 do not know it here (handleOffsetFetchException).
                error = ErrorCode.NOT_COORDINATOR
            finish(group if error is None else _failed(self.group, error, self.version))

        def operation(shard: GroupShard, _: int) -> Result:
            return Result(response=self._fetch(shard))

        if self.stable:
            self.state.write(group_id, operation, done, now_ms)
            return
        try:
            finish(self.state.read(group_id, lambda shard, _: self._fetch(shard)))
        except OperationError as rejection:
            finish(_failed(self.group, rejection.error, self.version))

    def _fetch(self, shard: GroupShard) -> Any:
        offsets = self._offsets(shard)
        places = list(self._all(offsets) if self.group.topics is None else self._some())
        places.sort(key=attrgetter("is_unknown"))
        topics = (
            Topic(
                name=place.name,
                topic_id=place.topic_id if self.by_id else ZERO_UUID,
                partitions=tuple(
                    self._partition(shard, offsets, place, index) for index in place.indexes
                ),
            )
            for place in places
        )
        return Group(group_id=self.group.group_id, topics=tuple(topics))

    def _offsets(self, shard: GroupShard) -> OfGroup[OffsetAndMetadata]:
        group_id = self.group.group_id
        groups = shard.groups
        group = groups.get(group_id) if self.stable else groups.committed_value(group_id)
        if group is None or group.state is GroupState.DEAD:
            return OfGroup(None, committed=False)
        if isinstance(group, ConsumerGroup):
            member_id, epoch = self.group.member_id, self.group.member_epoch
            validate_offset_fetch(group, member_id, epoch, committed=not self.stable)
        return shard.offsets.of_group(group_id, committed=not self.stable)

    def _all(self, offsets: OfGroup[OffsetAndMetadata]) -> Iterator[_Place]:
        for name in offsets.topics():
            image = self.state.image.topics.named(name)
            if not self.by_id or image is not None:
                topic_id = ZERO_UUID if image is None else image.id
                yield _Place(name, topic_id, offsets.partitions(name), ZERO_UUID)

    def _some(self) -> Iterator[_Place]:
        images = self.state.image.topics
        for topic in self.group.topics:
            name, topic_id, is_unknown = topic.name, topic.topic_id, False
            if self.by_id:
                image = images.get(topic_id)
                is_unknown = image is None
                name = topic.name if image is None else image.name
            yield _Place(name, topic_id, topic.partition_indexes, topic_id, is_unknown)

    def _partition(
        self,
        shard: GroupShard,
        offsets: OfGroup[OffsetAndMetadata],
        place: _Place,
        index: int,
    ) -> Any:
        if place.is_unknown:
            return _no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID)
        key = self.group.group_id, place.name, index
        value = offsets.get(place.name, index)
        if value is not None and _is_of_other_topic(value, place.requested_id):
            value = None
        return fetched_offset(self.state, shard, key, value, self.stable)


@step
def fetched_offset(
    state: GroupCoordinatorState,
    shard: GroupShard,
    key: OffsetKey,
    value: OffsetAndMetadata | None,
    stable: bool,
) -> Any:
    """The committed offset of a partition; unstable while a transaction may commit another."""
    if stable and shard.offsets.is_pending(key):
        return _no_offset(key[2], ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if value is None:
        return _no_offset(key[2], ErrorCode.NONE)
    return PartitionOffset(
        partition_index=key[2],
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _is_of_other_topic(value: OffsetAndMetadata, topic_id: Any) -> bool:
    return ZERO_UUID not in (value.topic_id, topic_id) and value.topic_id != topic_id


def _no_offset(index: int, error: ErrorCode) -> Any:
    return PartitionOffset(
        partition_index=index,
        committed_offset=_NO_OFFSET,
        committed_leader_epoch=-1,
        metadata="",
        error_code=error,
    )


def _failed(group: Any, error: ErrorCode, version: int) -> Any:
    if version >= _GROUP_ERROR_FROM:
        return Group(group_id=group.group_id, error_code=error)
    topics = tuple(
        Topic(
            name=topic.name,
            partitions=tuple(_no_offset(i, error) for i in topic.partition_indexes),
        )
        for topic in group.topics
    )
    return Group(group_id=group.group_id, topics=topics)


def _response(groups: Sequence[Any], version: int) -> OffsetFetchResponse:
    if version >= _SEVERAL_GROUPS_FROM:
        return OffsetFetchResponse(groups=tuple(groups))
    (group,) = groups
    kind = OffsetFetchResponse
    topics = (
        kind.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=tuple(
                kind.OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ),
        )
        for topic in group.topics
    )
    return kind(error_code=group.error_code, topics=tuple(topics))
