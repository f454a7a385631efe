"""The trace rows of what producers have left in a broker's logs at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.actors.nodes.disk import Disk
from minicluster.coordinator.transaction.transaction import TransactionState
from minicluster.log import InvalidBatch, Log
from minicluster.protocol.coordinator_records.framing import (
    TRANSACTION_RECORDS,
    decode_coordinator_record,
)
from minicluster.protocol.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
)
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.topics import TRANSACTION_STATE_TOPIC
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.producers.markers import read_marker

_DECISIONS = {
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
}
_COMPLETIONS = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def batch_rows(disk: Disk) -> Iterator[dict[str, Any]]:
    """The batches of producers in one broker's logs (``log_batch``)."""
    store = ReplicaStore(disk)
    for name in store.names():
        known = store.partition_file(name)
        if known is None:
            continue
        topic, _, index = name.rpartition("-")
        topic_id = format_uuid(known.topic_id)
        for batch in disk.logs[name].batches:
            if batch.producer_id < 0:
                continue
            row = {
                "broker": disk.node_id,
                "topic": topic,
                "topic_id": topic_id,
                "part": int(index),
                "base_offset": batch.base_offset,
                "last_offset": batch.last_offset,
                "producer_id": batch.producer_id,
                "producer_epoch": batch.producer_epoch,
                "transactional": batch.is_transactional,
            }
            try:
                marker = read_marker(batch) if batch.is_control else None
            except InvalidBatch:
                marker = None
            if marker is not None:
                row["marker"] = "commit" if marker.committed else "abort"
                row["coordinator_epoch"] = marker.coordinator_epoch
            yield row


def shortened_logs(disk: Disk) -> Iterator[tuple[str, int]]:
    """The partitions, by topic id, of which one broker has deleted or compacted records."""
    store = ReplicaStore(disk)
    for name in store.names():
        known, log = store.partition_file(name), disk.logs[name]
        if known is not None and max(log.start_offset, log.cleaned_offset) > 0:
            yield format_uuid(known.topic_id), int(name.rpartition("-")[2])


def decision_rows(disk: Disk) -> Iterator[dict[str, Any]]:
    """The decisions in one broker's logs of transactions (``transaction_decision``)."""
    for name in ReplicaStore(disk).names():
        if name.rpartition("-")[0] == TRANSACTION_STATE_TOPIC:
            for row in _decisions(disk.logs[name]):
                yield {"broker": disk.node_id, **row}


def _decisions(log: Log) -> list[dict[str, Any]]:
    decisions: list[dict[str, Any]] = []
    open_rows: dict[str, list[dict[str, Any]]] = {}
    for batch in log.batches:
        for record in batch.records:
            try:
                read = decode_coordinator_record(TRANSACTION_RECORDS, record.key, record.value)
            except ProtocolError:
                continue
            if read is None or not isinstance(read.key, TransactionLogKey) or read.value is None:
                continue
            key, value = read.key.transactional_id, read.value
            assert isinstance(value, TransactionLogValue)
            state = TransactionState(value.transaction_status)
            if state in _COMPLETIONS:
                for row in open_rows.pop(key, ()):
                    row["completed"] = True
            if state in _DECISIONS:
                rows = [
                    {
                        "offset": record.offset,
                        "transactional_id": key,
                        "producer_id": value.producer_id,
                        "producer_epoch": value.producer_epoch,
                        "state": _DECISIONS[state],
                        "completed": False,
                        "topic": topic.topic,
                        "part": index,
                    }
                    for topic in value.transaction_partitions or ()
                    for index in topic.partition_ids
                ]
                open_rows[key] = rows
                decisions += rows
    return decisions
