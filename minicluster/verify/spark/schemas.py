"""The tables of facts that Spark reads: their columns and types."""

from __future__ import annotations

import pyarrow as pa

from minicluster.verify.zookeeper.columns import COLUMNS as ZNODE_COLUMNS

_INTS = pa.list_(pa.int32())
_STRINGS = pa.list_(pa.string())
_TYPES = {
    "text": pa.string(), "long": pa.int64(), "int": pa.int32(), "ints": _INTS, "flag": pa.bool_(),
}  # fmt: skip

SCHEMAS: dict[str, pa.Schema] = {
    "partitions": pa.schema(
        {
            "run": pa.string(),
            "offset": pa.int64(),
            "pos": pa.int64(),
            "op": pa.int64(),
            "kind": pa.string(),  # Partition Change ClearElr RemoveTopic
            "judged": pa.bool_(),  # the log holds it (else a snapshot does)
            "mv": pa.int32(),
            "elr_on": pa.bool_(),
            "min_isr": pa.int32(),
            "topic": pa.string(),
            "topic_id": pa.string(),
            "part": pa.int32(),
            "isr": _INTS,
            "leader": pa.int32(),
            "replicas": _INTS,
            "adding": _INTS,
            "removing": _INTS,
            "elr": _INTS,
            "last_elr": _INTS,
            "rec": pa.int32(),
            "directories": _STRINGS,
            "leader_epoch": pa.int32(),
            "partition_epoch": pa.int32(),
            "traced": pa.bool_(),  # the run left a trace, which has the cause
            "failures_in_log": pa.bool_(),  # this and the next: promises of the run
            "leaves_from": pa.int32(),
        }
    ),
    "brokers": pa.schema(
        {
            "run": pa.string(),
            "offset": pa.int64(),
            "pos": pa.int64(),
            "op": pa.int64(),
            "kind": pa.string(),  # Register Unregister Fence Unfence Change
            "judged": pa.bool_(),
            "mv": pa.int32(),
            "clean_from": pa.int64(),
            "broker": pa.int32(),
            "epoch": pa.int64(),
            "incarnation": pa.string(),
            "fenced": pa.bool_(),
            "in_controlled_shutdown": pa.bool_(),
            "log_dirs": _STRINGS,
            "may_stay": pa.bool_(),  # in its ISRs although its new incarnation is still fenced
            "leaves_from": pa.int32(),
        }
    ),
    "topics": pa.schema(
        {
            "run": pa.string(),
            "offset": pa.int64(),
            "pos": pa.int64(),
            "op": pa.int64(),
            "kind": pa.string(),  # Topic RemoveTopic Partition Config
            "judged": pa.bool_(),
            "mv": pa.int32(),
            "topic": pa.string(),
            "topic_id": pa.string(),
            "part": pa.int32(),
        }
    ),
    "batches": pa.schema(
        {
            "run": pa.string(),
            "node": pa.int32(),
            "pos": pa.int64(),
            "offset": pa.int64(),
            "base_offset": pa.int64(),
            "last_offset": pa.int64(),
            "epoch": pa.int32(),
            "elected": pa.int32(),  # the leader that its first record announces
            "begins_well": pa.bool_(),
            "mv": pa.int32(),
            "crc": pa.int64(),
        }
    ),
    "transactions": pa.schema(
        {
            "run": pa.string(),
            "offset": pa.int64(),
            "kind": pa.string(),  # Begin End Abort
            "mv": pa.int32(),
        }
    ),
    **{
        table: pa.schema({name: _TYPES[kind] for name, kind in columns.items()})
        for table, columns in ZNODE_COLUMNS.items()
    },
}
