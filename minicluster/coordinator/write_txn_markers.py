"""WriteTxnMarkers (27): the leaders of partitions write the ends of transactions.

Versions:  0-2; 4.x serves 1-2. 2: the transaction version, by which a marker's epoch is checked
           (KIP-1228).
Source:    KafkaApis.handleWriteTxnMarkersRequest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from minicluster.coordinator.group.coordinator_state import GroupCoordinatorState
from minicluster.coordinator.runtime.internal_log import EndTxnMarker
from minicluster.coordinator.transaction.transaction import by_topic
from minicluster.java_order import hash_map_order, long_hash, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.replica.producers.markers import EndTransactionMarker
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.append_records import AppendStatus, append_markers

Response = WriteTxnMarkersResponse
_NOT_READY = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a group coordinator that the sender of markers gets as those of a leader."""


def handle_write_txn_markers(
    state: ReplicaManagerState,
    groups: GroupCoordinatorState,
    token: Any,
    request: WriteTxnMarkersRequest,
    now_ms: int,
) -> None:
    """Append markers with acks=all; the response waits for all of them.

    The group coordinator appends those of ``__consumer_offsets``, whose pending offsets they end.

    Kafka never responds where a marker names a partition twice, and where all partitions of a
    marker are unknown and those of the markers before it were appended at once: it counts the
    outcomes wrongly. Here the response comes.

    Errors:  by partition: those of ``append_markers``; NOT_LEADER_OR_FOLLOWER while the group
             coordinator is not ready.
    """
    outcomes = _Outcomes(state, token, request)
    for marker in request.markers:
        partitions = [(t.name, index) for t in marker.topics for index in t.partition_indexes]
        for partition in partitions:
            if partition[0] == GROUP_METADATA_TOPIC:
                _complete_in_group(state, groups, marker, partition, outcomes, now_ms)
        data = [p for p in partitions if p[0] != GROUP_METADATA_TOPIC]
        if data:
            append_markers(
                state,
                EndTransactionMarker(marker.transaction_result, marker.coordinator_epoch),
                (marker.producer_id, marker.producer_epoch),
                data,
                transaction_version=marker.transaction_version,
                timeout_ms=state.config.fetcher.request_timeout_ms,
                on_appended=partial(outcomes.add_appended, marker.producer_id),
                now_ms=now_ms,
            )
    outcomes.maybe_respond()


def _complete_in_group(
    state: ReplicaManagerState,
    groups: GroupCoordinatorState,
    marker: WriteTxnMarkersRequest.WritableTxnMarker,
    partition: tuple[str, int],
    outcomes: _Outcomes,
    now_ms: int,
) -> None:
    def done(_: Any, error: ErrorCode | None, __: str | None) -> None:
        if error in _NOT_READY:
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        outcomes.add(marker.producer_id, {partition: error or ErrorCode.NONE})

    if state.key_named(*partition) not in state.partitions:
        done(None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        return
    end = EndTxnMarker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )
    groups.runtime.complete_transaction(partition[1], end, done, now_ms)


class _Outcomes:
    """The errors by producer and partition, until all of them are there."""

    def __init__(
        self, state: ReplicaManagerState, token: Any, request: WriteTxnMarkersRequest
    ) -> None:
        self._state = state
        self._token = token
        self._open = {
            (marker.producer_id, topic.name, index)
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        }
        self._errors: dict[int, dict[tuple[str, int], ErrorCode]] = {}
        self._handled = False

    def add(self, producer_id: int, errors: dict[tuple[str, int], ErrorCode]) -> None:
        """Take the outcome of some partitions."""
        self._errors.setdefault(producer_id, {}).update(errors)
        for topic, index in errors:
            self._open.discard((producer_id, topic, index))
        if self._handled:
            self.maybe_respond()

    def add_appended(self, producer_id: int, statuses: Sequence[AppendStatus], now_ms: int) -> None:
        """Take the outcome of an append."""
        self.add(producer_id, {(s.topic, s.index): s.error for s in statuses})

    def maybe_respond(self) -> None:
        """Respond, unless a partition is open; called once when the request was handled."""
        self._handled = True
        if not self._open:
            order = hash_map_order(self._errors, long_hash)
            markers = tuple(_result(i, self._errors[i]) for i in order)
            self._state.respond(self._token, Response(markers=markers))


def _result(
    producer_id: int, errors: Mapping[tuple[str, int], ErrorCode]
) -> Response.WritableTxnMarkerResult:
    """The outcome of a producer, in the order of Java's maps."""
    topics = by_topic(errors)
    return Response.WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=tuple(
            Response.WritableTxnMarkerTopicResult(
                name=topic,
                partitions=tuple(
                    Response.WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=errors[topic, index]
                    )
                    for index in topics[topic]
                ),
            )
            for topic in hash_map_order(topics, string_hash)
        ),
    )
