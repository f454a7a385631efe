"""Examples of the rules in `images/publications.py`."""

from __future__ import annotations

from typing import Any

from minicluster.protocol import records as r
from minicluster.verify.images.publications import (
    images_are_folds_of_the_log,
    images_are_published_in_order,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import RunBuilder


@breaks(images_are_folds_of_the_log)
def e32_bad() -> RunBuilder:
    """Broker 2 publishes an image that is not the fold of the log."""
    return RunBuilder(cluster()).committed().publish(2, image_hash="else")


@keeps(images_are_folds_of_the_log)
def e32_near() -> RunBuilder:
    """A metadata transaction is aborted, and broker 2 publishes an image without its records."""
    log = cluster().op(r.BeginTransactionRecord(name="x"), change((1, 2)))
    log.op(r.AbortTransactionRecord(reason="no"))
    run = RunBuilder(log).committed()
    before = RunBuilder(cluster()).image_hash(log.offset)
    return run.publish(2, image_hash=before)


def _after_snapshot(**values: Any) -> RunBuilder:
    """Broker 2 publishes a snapshot that it has loaded, and then the end of the log."""
    run = RunBuilder(cluster().op(change((1, 2)))).committed()
    before = run.log.batches[-2].last_offset
    return run.publish(2, before, manifest="snapshot").publish(2, **values)


@breaks(images_are_folds_of_the_log)
def e32_after_snapshot() -> RunBuilder:
    """Broker 2 has loaded a snapshot, and then publishes an image that is not the fold of the
    log."""
    return _after_snapshot(image_hash="else")


@keeps(images_are_folds_of_the_log)
def e32_after_snapshot_near() -> RunBuilder:
    """Broker 2 has loaded a snapshot, and then publishes the fold of the whole log."""
    return _after_snapshot()


@breaks(images_are_published_in_order)
def e33_bad() -> RunBuilder:
    """Broker 2 publishes an image, and then an older one."""
    run = RunBuilder(cluster()).committed()
    end = run.log.offset - 1
    return run.publish(2).publish(2, end - 2)


@breaks(images_are_published_in_order)
def e33_inside_a_batch() -> RunBuilder:
    """Broker 2 publishes an image at an offset inside a batch."""
    run = RunBuilder(cluster()).committed()
    return run.publish(2, run.log.offset - 2)


@breaks(images_are_published_in_order)
def e33_too_early() -> RunBuilder:
    """Broker 2 publishes the last record before it is committed."""
    run = RunBuilder(cluster())
    run.committed(run.log.offset - 1)
    return run.publish(2).committed()


@breaks(images_are_published_in_order)
def e33_empty() -> RunBuilder:
    """Broker 2 publishes an image at offset -1."""
    return RunBuilder(cluster()).committed().publish(2, -1)


@breaks(images_are_published_in_order)
def e33_nothing_yet() -> RunBuilder:
    """Broker 2 publishes an image at offset 0, up to which the log has a LeaderChange alone."""
    return RunBuilder(cluster()).committed().publish(2, 0)


@breaks(images_are_published_in_order)
def e33_in_transaction() -> RunBuilder:
    """Broker 2 publishes an image inside a metadata transaction."""
    return RunBuilder(cluster()).committed().publish(2, in_tx=True)


@keeps(images_are_published_in_order)
def e33_near() -> RunBuilder:
    """A new incarnation of broker 2 begins with an older image, and broker 3 has its own pace."""
    run = RunBuilder(cluster()).committed()
    first = run.log.batches[1].last_offset
    run.publish(2).publish(3, first).publish(2, first, incarnation="2-2")
    return run.publish(3).publish(3)
