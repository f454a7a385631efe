"""The trace rows of a broker's logs, record by record (``replica_log``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.values import value_text
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore


def replica_rows(disk: Disk, incarnation: str | None, at: str) -> Iterator[dict[str, Any]]:
    """The rows of one broker.

    Shapes:  at: the event at which the logs are read (crash, end).
    """
    store = ReplicaStore(disk)
    for name in store.names():
        known = store.partition_file(name)
        topic, _, index = name.rpartition("-")
        topic_id = None if known is None else format_uuid(known.topic_id)
        place: dict[str, Any] = {}
        if at == "end" and known is not None:
            is_online = known.directory in store.online_directories
            place = {"directory": format_uuid(known.directory), "online": is_online}
        for batch in disk.logs[name].batches:
            for record in batch.records:
                yield {
                    "broker": disk.node_id,
                    "incarnation": incarnation,
                    "topic": topic,
                    "topic_id": topic_id,
                    "part": int(index),
                    "offset": record.offset,
                    "leader_epoch": batch.leader_epoch,
                    "value_id": value_text(record.value),
                    "at": at,
                    **place,
                }
