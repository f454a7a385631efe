"""Hand-written runs: a log, a header and the rows of a trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from minicluster import trace
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol.uuids import format_uuid
from tests.verify.build import TOPIC, LogBuilder

TOPIC_ID = format_uuid(TOPIC)
_TYPES = {
    "int": pa.int64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "ints": pa.list_(pa.int64()),
    "json": pa.string(),
}


class RunBuilder:
    """A run folder in the making; every row gets the next event number unless it names its own."""

    def __init__(self, log: LogBuilder, **header: Any) -> None:
        self.log = log
        self.header: dict[str, Any] = {"run_id": "r", "seed": 1, "trace_hash": "a", **header}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in trace.TABLES}
        self.seq = 0
        self.left_out: set[str] = set()

    def row(self, table: str, values: Mapping[str, Any]) -> RunBuilder:
        """Add one row."""
        self.seq = values.get("seq", self.seq + 1)
        rest = {name: value for name, value in values.items() if name != "seq"}
        common = {"run_id": "r", "vt": self.seq, "seq": self.seq}
        self.rows[table].append({**common, **trace.row(table, rest)})
        return self

    def committed(self, offset: int | None = None) -> RunBuilder:
        """The quorum's high watermark reaches the end of the log, or an offset (exclusive)."""
        end = self.log.offset if offset is None else offset
        return self.row("raft_event", {"node": 101, "kind": "hw", "offset": end, "epoch": 1})

    def rpc(
        self, api: str, src: int, *, written: tuple[int, ...] = (), **values: Any
    ) -> RunBuilder:
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
    ) -> RunBuilder:
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

    def partition(self, kind: str, broker: int = 1, **values: Any) -> RunBuilder:
        """An event of the replica of orders-0 on a broker."""
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

    def publish(self, node: int, offset: int | None = None, **values: Any) -> RunBuilder:
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
        image = MetadataImage.EMPTY
        for batch in self.log.batches:
            if batch.last_offset <= offset:
                image = apply_all(image, batch.metadata_records, base_offset=batch.base_offset)
        return image.digest()

    def write(self, folder: Path) -> Path:
        """Write the run folder."""
        self.log.write(folder / "controller-101")
        (folder / "trace").mkdir()
        for table, columns in trace.TABLES.items():
            if table in self.left_out:
                continue
            kinds = {**trace.COMMON, **columns}
            arrays = {
                name: pa.array([row[name] for row in self.rows[table]], type=_TYPES[kind])
                for name, kind in kinds.items()
            }
            parquet.write_table(pa.table(arrays), folder / "trace" / f"{table}.parquet")
        (folder / "run.json").write_text(json.dumps(self.header))
        return folder
