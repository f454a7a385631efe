"""The trace rows of a broker's logs, record by record (``replica_log``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.values import value_text
from minicluster.log.batch import RecordBatch
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore


def records_of(disk: Disk) -> int:
    """How many records a broker's logs have, so many rows would there be."""
    logs = (disk.logs[name] for name in ReplicaStore(disk).names())
    return sum(batch.count for log in logs for batch in log.batches)


def replica_rows(disk: Disk, incarnation: str | None, at: str) -> Iterator[dict[str, Any]]:
    """The rows of one broker; no record is made of a batch's bytes, since there may be a million.

    Shapes:  at: the event at which the logs are read (crash, end).
    """
    store = ReplicaStore(disk)
    for name in store.names():
        known = store.partition_file(name)
        topic, _, index = name.rpartition("-")
        place: dict[str, Any] = {
            "broker": disk.node_id,
            "incarnation": incarnation,
            "topic": topic,
            "topic_id": None if known is None else format_uuid(known.topic_id),
            "part": int(index),
            "at": at,
        }
        if at == "end" and known is not None:
            place["directory"] = format_uuid(known.directory)
            place["online"] = known.directory in store.online_directories
        for batch in disk.logs[name].batches:
            values = batch.values()
            for offset, value in zip(_offsets(batch, len(values)), values, strict=True):
                yield {
                    **place,
                    "offset": offset,
                    "leader_epoch": batch.leader_epoch,
                    "value_id": value_text(value),
                }


def _offsets(batch: RecordBatch, count: int) -> Sequence[int]:
    """The offsets of a batch's records."""
    if count == batch.last_offset - batch.base_offset + 1:
        return range(batch.base_offset, batch.last_offset + 1)
    return [record.offset for record in batch.records]  # compaction has left gaps
