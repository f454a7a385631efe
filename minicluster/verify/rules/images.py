"""Images that nodes publish and snapshots that they write, beside folds of the log."""

from __future__ import annotations

from minicluster.verify.histories.images import Publication
from minicluster.verify.histories.snapshots import SnapshotFile
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, broken, exempt, rule
from minicluster.verify.rules.topics import configs_do_not_outlive_their_topic

# Its images put replicas that a change without directories adds into no directory (UNASSIGNED), as
# no other release does (PartitionRegistration.merge).
HAS_OTHER_DIRECTORIES = (3, 7)
NO_LOG = "the log before the snapshot is not kept, or cannot be folded"
_NO_FOLD = "the log up to the image cannot be folded, or the trace has no digest of the image"


@rule("E32", "Published images are folds of the log",
      source="KIP-631, KIP-630, KAFKA-13357, KAFKA-16892; MetadataLoader",
      at_end=True, evidence=Evidence.IMAGES, tables=("publish",),
      breaks="Broker 2 publishes an image that is not the fold of the log.",
      keeps="A metadata transaction is aborted, and broker 2 publishes an image "
      "without its records.")  # fmt: skip
def images_are_folds_of_the_log(image: Publication) -> Findings:
    """The image that a node publishes at an offset is the fold of the committed log up to that
    offset, also where the node has loaded a snapshot and the rest of the log."""
    if image.fold is None or image.digest is None:
        yield exempt(_NO_FOLD)
        return
    yield CASE
    if image.digest != image.fold:
        node = f"node {image.node}"
        if image.after_snapshot:
            node += ", which has loaded a snapshot,"
        yield broken(
            f"{node} published an image that differs from the fold of the log", broker=image.node
        )


@rule("E33", "Images are published in order, at committed batch ends",
      source="KAFKA-15389, KAFKA-17713; MetadataLoader.maybePublishMetadata",
      at_end=True, evidence=Evidence.IMAGES, tables=("publish", "raft_event"),
      breaks="Broker 2 publishes an image, and then an older one.",
      keeps="A new incarnation of broker 2 begins with an older image, and broker 3 "
      "has its own pace.")  # fmt: skip
def images_are_published_in_order(image: Publication) -> Findings:
    """Each incarnation publishes images in order, at the end of a committed batch, never past the
    high watermark, never inside a metadata transaction, and never an empty one."""
    node = image.node
    yield CASE
    if image.before is not None and image.offset < image.before:
        yield broken(f"node {node} published an older image than before", broker=node)
    if image.foldable and not image.ends_a_batch:
        where = "an offset that is not the end of a committed batch"
        yield broken(f"node {node} published at {where}", broker=node)
    mark = image.high_watermark
    if mark is not None and image.offset >= mark:
        yield broken(f"node {node} published past the high watermark {mark}", broker=node)
    is_open = image.foldable and image.ends_a_batch and image.fold is None
    # With 3.9 an empty snapshot counts as a record, and its empty image is published (KAFKA-17713).
    is_empty = image.offset < 0 or (image.is_empty and not image.may_be_empty)
    if is_empty or image.in_transaction or is_open:
        what = "an empty image or one inside a transaction"
        yield broken(f"node {node} published {what}", broker=node)


@rule("E34", "Snapshots are folds of the log",
      source="KIP-630, KAFKA-14618, KAFKA-17713; SnapshotGenerator",
      at_end=True, evidence=Evidence.SNAPSHOTS,
      breaks="A snapshot has a topic that the log before it never created.",
      keeps="A snapshot is the fold of the log up to its end.")  # fmt: skip
def snapshots_are_folds_of_the_log(snapshot: SnapshotFile) -> Findings:
    """A snapshot ends (exclusive) where a committed batch ends, carries the epoch and the time of
    that batch, and holds the fold of the log up to its end. In Kafka 3.7 the directories that it
    gives to replicas may be others."""
    if not snapshot.in_log:
        yield exempt(NO_LOG)
        return
    is_the_fold = snapshot.digest is not None and snapshot.digest == snapshot.expected_digest
    if not is_the_fold and snapshot.release == HAS_OTHER_DIRECTORIES:
        yield NOT_PROMISED
        return
    yield CASE
    node = snapshot.node
    which = f"the snapshot of controller {node} that ends at {snapshot.end_offset}"
    if not is_the_fold or snapshot.epoch != snapshot.expected_epoch:
        yield broken(f"{which} differs from the fold of the log up to there", broker=node)
    time_ms, expected_ms = snapshot.timestamp_ms, snapshot.expected_timestamp_ms
    if expected_ms is not None and time_ms != expected_ms:
        message = f"the header of {which} has another time than the batch before, {expected_ms}"
        yield broken(message, broker=node)


@configs_do_not_outlive_their_topic.also
def _nor_in_a_snapshot(snapshot: SnapshotFile) -> Findings:
    if snapshot.orphans:
        topic = snapshot.orphans[0]
        yield broken(
            f"the snapshot of controller {snapshot.node} that ends at {snapshot.end_offset} has "
            f"configs of topic {topic}, which it lacks",
            broker=snapshot.node,
            topic=topic,
        )
