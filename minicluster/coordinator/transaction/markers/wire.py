"""WriteTxnMarkers (27): the coordinator's request to the leaders of partitions.

Versions:  0-2; 4.x speaks 1-2. 2: the transaction version (KIP-1228).
Source:    WriteTxnMarkersRequest, WriteTxnMarkersResponse.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.coordinator.transaction.markers.entries import TxnMarkerEntry
from minicluster.coordinator.transaction.state.transaction_metadata import (
    TopicPartition,
    by_topic,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import WriteTxnMarkersRequest


def write_txn_markers_request(markers: Iterable[TxnMarkerEntry]) -> WriteTxnMarkersRequest:
    """The request that writes some markers."""
    return WriteTxnMarkersRequest(
        markers=tuple(
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.committed,
                topics=tuple(
                    WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                        name=topic, partition_indexes=tuple(indexes)
                    )
                    for topic, indexes in by_topic(marker.partitions).items()
                ),
                coordinator_epoch=marker.pending.coordinator_epoch,
                transaction_version=marker.transaction_version,
            )
            for marker in markers
        )
    )


def errors_by_producer_id(response: Any) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """The outcome of each partition, by the producer of its marker."""
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        of_producer = errors.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for partition in topic.partitions:
                place = topic.name, partition.partition_index
                of_producer[place] = ErrorCode.for_code(partition.error_code)
    return errors
