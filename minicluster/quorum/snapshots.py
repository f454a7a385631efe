"""Making snapshots of the committed state, and cleaning up behind them (KIP-630).

Source:  KafkaRaftLog.createNewSnapshot, maybeClean.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.log.checkpoint import (
    Snapshot,
    checkpoint_name,
    decode_snapshot,
    encode_snapshot,
)
from minicluster.log.log import SnapshotId, snapshot_order
from minicluster.planting import step
from minicluster.protocol.records import KRaftVersionRecord, VersionedRecord
from minicluster.quorum.errors import IllegalArgument
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import Position


@step
def create(
    node: QuorumNode,
    snapshot_id: SnapshotId,
    records: Sequence[VersionedRecord],
    last_contained_log_timestamp: int,
    content: bytes | None,
    now_ms: int,
) -> bool:
    """Store a snapshot; see ``QuorumMachine.create_snapshot``."""
    offset, epoch = snapshot_id
    log = node.log
    if offset < log.start_offset:
        return False
    if offset > log.high_watermark:
        raise IllegalArgument(f"snapshot {snapshot_id}: committed up to {log.high_watermark}")
    if log.validate(offset, epoch).position is not Position.VALID:
        raise IllegalArgument(f"snapshot {snapshot_id}: the log has another epoch there")
    if not log.begins_batch(offset):
        raise IllegalArgument(f"snapshot {snapshot_id}: the offset is inside a batch")
    if snapshot_id in log.log.snapshots:
        return False
    if content is None:
        snapshot = Snapshot(
            records=tuple(records),
            last_contained_log_timestamp=last_contained_log_timestamp,
            control=_voters_before(node, offset),
        )
        content = encode_snapshot(snapshot, epoch=epoch, timestamp_ms=now_ms)
    log.log.snapshots[snapshot_id] = content
    return True


def _voters_before(node: QuorumNode, offset: int) -> tuple[object, ...]:
    version = node.history.kraft_version_at(offset - 1)
    voters = node.history.voters_at(offset - 1)
    if version == 0 or voters is None:
        return ()
    return KRaftVersionRecord(version=0, kraft_version=version), voters.to_record()


def clean(node: QuorumNode, retention_bytes: int, retention_ms: int, now_ms: int) -> bool:
    """Drop old snapshots and the log before them; see ``QuorumMachine.clean``."""
    log, cleaned = node.log.log, False
    while len(log.snapshots) >= 2:
        oldest, follows = sorted(log.snapshots, key=snapshot_order)[:2]
        size = sum(map(len, log.snapshots.values())) + sum(batch.size for batch in log.batches)
        content = decode_snapshot(log.snapshots[oldest], checkpoint_name(oldest))
        age_ms = now_ms - content.last_contained_log_timestamp
        if not (0 <= retention_bytes < size or 0 <= retention_ms < age_ms):
            break
        if not node.log.delete_before_snapshot(follows):
            break
        cleaned = True
    return cleaned
