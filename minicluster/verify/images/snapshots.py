"""The snapshots beside the logs of controllers, of a run or of Apache Kafka.

subject   a snapshot, beside the fold of the committed log where it ends
keeps     nothing
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minicluster.log.checkpoint import Snapshot
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.records import ConfigRecord, TopicRecord, VersionedRecord
from minicluster.values import Value
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.image_fold import ImageFold
from minicluster.verify.model import Evidence
from minicluster.verify.promises import Release
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, Said, broken, exempt, rule

# Its images put replicas that a change without directories adds into no directory (UNASSIGNED), as
# no other release does (PartitionRegistration.merge).
HAS_OTHER_DIRECTORIES = (3, 7)
NO_LOG = "the log before the snapshot is not kept, or cannot be folded"


class SnapshotFile(Value):
    """A snapshot of a controller.

    Shapes:  digest: of what it holds; None: its records do not fit each other. release: the oldest
             that may have written it.
    Units:   end: exclusive; epoch: in its name; timestamp_ms: of the last batch, as its header has
             it.
    """

    node: int
    end: int
    epoch: int
    digest: str | None
    timestamp_ms: int
    release: Release

    @classmethod
    def of(
        cls, node: int, end: int, epoch: int, content: Snapshot, release: Release
    ) -> SnapshotFile:
        """The snapshot in a file."""
        digest, time_ms = _digest(content.records), content.last_contained_log_timestamp
        return cls(node, end, epoch, digest, time_ms, release)

    def __str__(self) -> str:
        return f"the snapshot of controller {self.node} that ends at {self.end}"


def on_snapshot(snapshot: SnapshotFile, records: Iterable[VersionedRecord], log: ImageFold) -> Said:
    """A snapshot lies beside the log."""
    yield from snapshots_are_folds_of_the_log(snapshot, log)
    yield from a_snapshot_has_the_topics_of_its_configs(snapshot, records)


@rule("E34", "Snapshots are folds of the log",
      source="KIP-630, KAFKA-14618, KAFKA-17713; SnapshotGenerator",
      at_end=True, evidence=Evidence.SNAPSHOTS,
      breaks="A snapshot has a topic that the log before it never created.",
      keeps="A snapshot is the fold of the log up to its end.")  # fmt: skip
def snapshots_are_folds_of_the_log(snapshot: SnapshotFile, log: ImageFold) -> Findings:
    """A snapshot ends (exclusive) where a committed batch ends, carries the epoch and the time of
    that batch, and holds the fold of the log up to its end. In Kafka 3.7 the directories that it
    gives to replicas may be others."""
    if not _leads_to(log, snapshot.end):
        yield exempt(NO_LOG)
        return
    epoch, expected_ms = log.ends.get(snapshot.end - 1, (None, None))
    fold = None if epoch is None else log.digests.get(snapshot.end - 1)
    is_the_fold = snapshot.digest is not None and snapshot.digest == fold
    if not is_the_fold and snapshot.release == HAS_OTHER_DIRECTORIES:
        yield NOT_PROMISED
        return
    yield CASE
    node, offset = snapshot.node, snapshot.end
    if not is_the_fold or snapshot.epoch != epoch:
        why = f"{snapshot} differs from the fold of the log up to there"
        yield broken(why, broker=node, offset=offset)
    if expected_ms is not None and snapshot.timestamp_ms != expected_ms:
        why = f"the header of {snapshot} has another time than the batch before, {expected_ms}"
        yield broken(why, broker=node, offset=offset)


def _leads_to(log: ImageFold, end: int) -> bool:
    """The log, as far as it is kept and fits together, leads from before an offset to it.

    Else the fold begins there or later: it would be compared with itself, or with a log that is
    gone.
    """
    if log.first is None or end - 1 < log.first:
        return False
    is_before = log.begins_at is not None and end <= log.begins_at
    return not is_before and (end - 1 not in log.ends or end - 1 in log.digests)


def _digest(records: Sequence[VersionedRecord]) -> str | None:
    try:
        return image_from_records(records).digest()
    except ReplayError:
        return None


@rule("E46", "A snapshot has the topics of its configs",
      source="KIP-516; ConfigurationControlManager.deleteTopicConfigs",
      at_end=True, evidence=Evidence.SNAPSHOTS,
      breaks="The log begins with a snapshot that has a config of payments, a topic that it lacks.",
      keeps="The log begins with a snapshot that has orders and a config of it; another config "
      "follows.")  # fmt: skip
def a_snapshot_has_the_topics_of_its_configs(
    snapshot: SnapshotFile, records: Iterable[VersionedRecord]
) -> Findings:
    """No config in a snapshot names a topic that it does not have."""
    topics, configured = set(), set()
    for record in (versioned.record for versioned in records):
        if isinstance(record, TopicRecord):
            topics.add(record.name)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC_RESOURCE:
            configured.add(record.resource_name)
    for topic in sorted(configured):
        yield CASE
        if topic not in topics:
            yield broken(
                f"{snapshot} has configs of topic {topic}, which it lacks",
                broker=snapshot.node,
                offset=snapshot.end,
                topic=topic,
            )
