"""The hash of the fold of a committed log at the end of each of its batches.

Nodes publish images with their hash; a rule compares the two. The fold is one of its own, for no
node must be judged by the function that it uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import read_checkpoint
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.configs import TOPIC
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import ConfigRecord, TopicRecord, VersionedRecord
from minicluster.verify.evidence.independent_fold import IndependentFold
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.rules.model import Evidence

IMAGE_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "offset": pa.int64(),  # the last one that the image holds
        "hash": pa.string(),  # null: inside a metadata transaction
    }
)


def image_rows(
    run: Run, only: Collection[int] | None = None
) -> tuple[list[dict[str, Any]], Problem | None]:
    """The hash after each batch, and a problem if a record does not fit the image before it.

    Shapes:  only: the last offsets of the batches for which the hash is needed, None for all.
    """
    fold = IndependentFold()
    rows: list[dict[str, Any]] = []
    skip_to, at = 0, -1
    if not run.foldable:
        return rows, None
    try:
        if run.start is not None:
            skip_to = run.start.end_offset
            fold = IndependentFold(run.start.records)
            rows.append({"run": run.name, "offset": skip_to - 1, "hash": fold.digest()})
        operations = iter(run.history.operations)
        following = next(operations, None)
        for batch in run.committed:
            while following is not None and following.end <= batch.last_offset:
                for entry in following.entries:
                    at = entry.offset
                    if at >= skip_to:
                        fold.apply(entry.record)
                following = next(operations, None)
            needed = only is None or not rows or batch.last_offset in only
            if batch.last_offset >= skip_to and needed:
                is_open = batch.last_offset in run.history.open_at
                digest = None if is_open else fold.digest()
                rows.append({"run": run.name, "offset": batch.last_offset, "hash": digest})
    except ReplayError as error:
        return rows, Problem(
            evidence=Evidence.IMAGES, why=f"the log cannot be folded: offset {at}: {error}"
        )
    return rows, None


def snapshot_ends(run: Run) -> frozenset[int]:
    """The last offsets that the snapshots of a run hold."""
    return frozenset(end - 1 for node in run.nodes for end, _, _ in node.snapshots)


def snapshot_rows(run: Run, images: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each snapshot beside a log, and the fold of the log up to its end.

    Shapes:  a snapshot from before the fold begins is not ``in_log``; one that cannot be read has
             the error for a hash, which matches none.
    """
    if not images:
        return []
    hashes = {row["offset"]: row["hash"] for row in images}
    last = {batch.last_offset: batch for batch in run.committed}
    first = min(hashes)
    rows = []
    for node in run.nodes:
        for end, epoch, path in node.snapshots:
            is_before = run.start is not None and end <= run.start.end_offset
            row = {"run": run.name, "node": node.node, "offset": end, "epoch": epoch}
            row |= snapshot_content(path, node.files.limits)
            row["in_log"] = end - 1 >= first and not is_before
            if (batch := last.get(end - 1)) is not None:
                row |= expected_content(batch, hashes.get(end - 1))
            rows.append(row)
    return rows


def snapshot_content(path: Path, limits: ReadLimits) -> dict[str, Any]:
    """The columns about what a snapshot holds."""
    row: dict[str, Any] = {}
    try:
        content = read_checkpoint(path, limits)
        orphans = _orphans(content.records)
        row["timestamp"] = content.last_contained_log_timestamp
        row |= {"configs": len(orphans), "orphan": min(orphans, default=None)}
        return row | {"hash": IndependentFold(content.records).digest()}
    except (LogError, ProtocolError, ReplayError) as error:
        return row | {"hash": f"unreadable: {error}"}


def expected_content(batch: RecordBatch, digest: str | None) -> dict[str, Any]:
    """The columns about the batch with which a snapshot ends, and the fold of the log up to it."""
    return {
        "expected_hash": digest,
        "expected_epoch": batch.leader_epoch,
        "expected_timestamp": batch.max_timestamp,
    }


def _orphans(records: Iterable[VersionedRecord]) -> list[str]:
    """The topics that a snapshot has configs of, and lacks."""
    topics, configured = set(), set()
    for record in (versioned.record for versioned in records):
        if isinstance(record, TopicRecord):
            topics.add(record.name)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC:
            configured.add(record.resource_name)
    return sorted(configured - topics)
