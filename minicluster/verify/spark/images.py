"""The hash of the fold of a committed log at the end of each of its batches.

Nodes publish images with their hash; a rule compares the two. The fold is one of its own, for no
node must be judged by the function that it uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa

from minicluster.log.checkpoint import read_checkpoint
from minicluster.log.errors import LogError
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
            timestamp, orphans = None, None
            try:
                content = read_checkpoint(path, node.files.limits)
                timestamp = content.last_contained_log_timestamp
                orphans = _orphans(content.records)
                digest = IndependentFold(content.records).digest()
            except (LogError, ProtocolError, ReplayError) as error:
                digest = f"unreadable: {error}"
            batch = last.get(end - 1)
            rows.append(
                {
                    "run": run.name,
                    "node": node.node,
                    "offset": end,
                    "epoch": epoch,
                    "hash": digest,
                    "in_log": end - 1 >= first and not is_before,
                    "expected_hash": hashes.get(end - 1),
                    "expected_epoch": None if batch is None else batch.leader_epoch,
                    "timestamp": timestamp,
                    "expected_timestamp": None if batch is None else batch.max_timestamp,
                    "configs": None if orphans is None else len(orphans),
                    "orphan": min(orphans) if orphans else None,
                }
            )
    return rows


def _orphans(records: Iterable[VersionedRecord]) -> list[str]:
    """The topics that a snapshot has configs of, and lacks."""
    topics, configured = set(), set()
    for record in (versioned.record for versioned in records):
        if isinstance(record, TopicRecord):
            topics.add(record.name)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC:
            configured.add(record.resource_name)
    return sorted(configured - topics)
