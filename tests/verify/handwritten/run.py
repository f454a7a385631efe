"""Runs written by hand: a log, a header, and the rows of a trace.

::

    run = RunBuilder(cluster().op(change((1, 2)))).committed()
    run.alter_partition(1, (1, 2), written=(run.log.offset - 1,))  # what wrote the last record
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyarrow import parquet

from minicluster import trace
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.snapshot import image_records
from minicluster.protocol import records as r
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.evidence.trace_tables import ARROW_TYPES
from tests.verify.handwritten.log import OTHER_TOPIC, TOPIC, LogBuilder, change, cluster

TOPIC_ID = format_uuid(TOPIC)
EVERYBODY: Mapping[str, Any] = {"isr": [1, 2, 3], "maximal_isr": [1, 2, 3], "min_isr": 2}
"""What a leader of orders-0 with all three replicas in sync says of it."""


class RunBuilder:
    """A run that grows by one row of its trace for each call.

    Every row gets the next event number, and that as its virtual milliseconds, unless it names its
    own (``seq``).

    Shapes:  header: more fields of run.json. left_out: tables of the trace that are not written.
    """

    def __init__(self, log: LogBuilder, **header: Any) -> None:
        self.log = log
        self.header: dict[str, Any] = {"run_id": "r", "seed": 1, "trace_hash": "a", **header}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in trace.TABLES}
        self.seq = 0
        self.left_out: set[str] = set()

    def row(self, table: str, values: Mapping[str, Any]) -> Self:
        """Add one row."""
        self.seq = values.get("seq", self.seq + 1)
        rest = {name: value for name, value in values.items() if name != "seq"}
        common = {"run_id": "r", "vt": self.seq, "seq": self.seq}
        self.rows[table].append({**common, **trace.row(table, rest)})
        return self

    def committed(self, offset: int | None = None) -> Self:
        """The quorum's high watermark reaches the end of the log, or an offset (exclusive)."""
        end = self.log.offset if offset is None else offset
        return self.row("raft_event", {"node": 101, "kind": "hw", "offset": end, "epoch": 1})

    def rpc(self, api: str, src: int, *, written: tuple[int, ...] = (), **values: Any) -> Self:
        """A request that was handled, with its response."""
        number = len(self.rows["rpc"]) + 1
        start = self.seq
        self.seq += 3
        defaults: dict[str, Any] = {
            "id": number,
            "api": api,
            "version": 3,
            "src": src,
            "dst": 101,
            "send_seq": start + 1,
            "handle_seq": start + 2,
            "resp_seq": start + 3,
            "error": "NONE",
            "records_written": list(written),
            "high_watermark": self.log.offset,
            "request": "{}",
            "response": "{}",
        }
        return self.row("rpc", {**defaults, **values, "seq": start + 3})

    def alter_partition(
        self,
        src: int,
        isr: tuple[int, ...],
        *,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        error_code: int = 0,
        written: tuple[int, ...] = (),
        **values: Any,
    ) -> Self:
        """An AlterPartition about orders-0, and its response."""
        epoch = self.log.broker_epochs.get(src, -1)
        requested = {
            "brokerId": src,
            "brokerEpoch": epoch,
            "topics": [
                {
                    "topicId": TOPIC_ID,
                    "partitions": [
                        {
                            "partitionIndex": 0,
                            "leaderEpoch": leader_epoch,
                            "newIsrWithEpochs": [{"brokerId": b, "brokerEpoch": -1} for b in isr],
                            "leaderRecoveryState": 0,
                            "partitionEpoch": partition_epoch,
                        }
                    ],
                }
            ],
        }
        reported = {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "topics": [
                {
                    "topicId": TOPIC_ID,
                    "partitions": [{"partitionIndex": 0, "errorCode": error_code}],
                }
            ],
        }
        defaults = {
            "broker_epoch": epoch,
            "registered_epoch": epoch,
            "request": json.dumps(requested),
            "response": json.dumps(reported),
        }
        return self.rpc("AlterPartition", src, written=written, **{**defaults, **values})

    def raft_event(self, kind: str, node: int = 101, *, life: int = 1, **values: Any) -> Self:
        """An event of a node of the quorum, in epoch 1."""
        defaults = {"node": node, "incarnation": f"{node}-{life}", "kind": kind, "epoch": 1}
        return self.row("raft_event", {**defaults, **values})

    def partition(self, kind: str, broker: int = 1, **values: Any) -> Self:
        """An event of the replica of orders-0 on a broker.

        Shapes:  known: for each follower what its leader knows of it: log end, leader epoch of its
                 last fetch, broker epoch.
        """
        known = values.pop("known", None)
        defaults: dict[str, Any] = {
            "broker": broker,
            "incarnation": f"{broker}-1",
            "topic": "orders",
            "topic_id": TOPIC_ID,
            "part": 0,
            "kind": kind,
            "leader_epoch": 0,
            "partition_epoch": 0,
        }
        if known is not None:
            values["follower_leos"] = json.dumps({str(b): list(k) for b, k in known.items()})
        return self.row("partition_event", {**defaults, **values})

    def replica_log(self, broker: int, *records: tuple[int, str], at: str = "end") -> Self:
        """The records of a replica of orders-0, all seen at once.

        Shapes:  records: leader epoch and value, from offset 0 on. at: as in the trace.
        """
        seq = self.seq + 1
        for offset, (leader_epoch, value) in enumerate(records):
            row = {
                "broker": broker,
                "topic": "orders",
                "topic_id": TOPIC_ID,
                "part": 0,
                "offset": offset,
                "leader_epoch": leader_epoch,
                "value_id": value,
                "at": at,
                "seq": seq,
            }
            self.row("replica_log", row)
        return self

    def publish(self, node: int, offset: int | None = None, **values: Any) -> Self:
        """A node publishes the image at an offset; None: the end of the log."""
        at = self.log.offset - 1 if offset is None else offset
        if "image_hash" not in values:
            values["image_hash"] = self.image_hash(at)
        defaults = {
            "node": node,
            "incarnation": f"{node}-1",
            "offset": at,
            "epoch": 1,
            "manifest": "log",
            "in_tx": False,
        }
        return self.row("publish", {**defaults, **values})

    def image_hash(self, offset: int) -> str:
        """The digest of the image at an offset, from the log."""
        batches = [batch for batch in self.log.batches if batch.last_offset <= offset]
        return _image(batches).digest()

    def write(self, folder: Path) -> Path:
        """Write the run folder."""
        self.log.write(folder / "controller-101")
        (folder / "trace").mkdir()
        for table in trace.TABLES:
            if table not in self.left_out:
                rows = self.rows[table]
                content = _file_of(table, rows) if rows else _file_without_rows(table)
                (folder / "trace" / f"{table}.parquet").write_bytes(content)
        (folder / "run.json").write_text(json.dumps(self.header))
        return folder


def _file_of(table: str, rows: Sequence[Mapping[str, Any]]) -> bytes:
    kinds = {**trace.COMMON, **trace.TABLES[table]}
    arrays = {
        name: pa.array([row[name] for row in rows], type=ARROW_TYPES[kind])
        for name, kind in kinds.items()
    }
    content = BytesIO()
    parquet.write_table(pa.table(arrays), content)
    return content.getvalue()


@cache
def _file_without_rows(table: str) -> bytes:
    """Most tables of most runs: a third of what an example took."""
    return _file_of(table, ())


def _image(batches: Sequence[RecordBatch]) -> MetadataImage:
    image = MetadataImage.EMPTY
    for batch in batches:
        image = apply_all(image, batch.metadata_records, base_offset=batch.base_offset)
    return image


def plain_run(**header: Any) -> RunBuilder:
    """A run over the log of ``cluster()``, in which nothing is traced yet."""
    return RunBuilder(cluster(), **header)


def as_json(value: object) -> str:
    """A request or response as a trace has it."""
    return json.dumps(value)


def cut_log(log: LogBuilder, *, keep_from: int) -> LogBuilder:
    """A log whose first batches have been deleted."""
    log.batches = log.batches[keep_from:]
    return log


class WithSnapshot(RunBuilder):
    """A run whose controller has a snapshot of the first batches of its log.

    Shapes:  batches: how many batches the snapshot holds. kept: the first batch that the log still
             has. name_epoch: the epoch in the snapshot's name. lie: the snapshot has a topic that
             the log never created. late_ms: its time is that of its last batch and so much more.
             configured: a topic of which the snapshot has a config. level: of metadata.version.
    """

    def __init__(
        self,
        *,
        batches: int,
        kept: int = 0,
        name_epoch: int = 1,
        lie: bool = False,
        late_ms: int = 0,
        configured: str | None = None,
        level: int = 30,
    ):
        log = cluster(mv=level).op(change((1, 2)))
        super().__init__(log)
        records = [*image_records(_image(log.batches[:batches]))]
        if lie:
            records.append(r.VersionedRecord(r.TopicRecord(name="x", topic_id=OTHER_TOPIC), 0))
        if configured is not None:
            record = r.ConfigRecord(resource_type=2, resource_name=configured, name="a", value="b")
            records.append(r.VersionedRecord(record, 0))
        last = log.batches[batches - 1]
        self.snapshot_name = checkpoint_name((last.next_offset, name_epoch))
        self.snapshot = Snapshot(
            records=tuple(records), last_contained_log_timestamp=last.max_timestamp + late_ms
        )
        cut_log(log, keep_from=kept)

    def write(self, folder: Path) -> Path:
        super().write(folder)
        content = encode_snapshot(self.snapshot, epoch=1, timestamp_ms=0)
        home = folder / "controller-101" / "__cluster_metadata-0"
        (home / self.snapshot_name).write_bytes(content)
        return folder
