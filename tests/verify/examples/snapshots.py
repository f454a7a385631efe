"""Examples of the rules in `images/snapshots.py`."""

from __future__ import annotations

from minicluster.protocol import records as r
from minicluster.verify.images.snapshots import (
    a_snapshot_has_the_topics_of_its_configs,
    snapshots_are_folds_of_the_log,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.log import V3_7
from tests.verify.handwritten.run import RunBuilder, WithSnapshot


@breaks(snapshots_are_folds_of_the_log)
def e34_bad() -> RunBuilder:
    """A snapshot has a topic that the log before it never created."""
    return WithSnapshot(batches=9, lie=True)


@breaks(snapshots_are_folds_of_the_log)
def e34_epoch() -> RunBuilder:
    """A snapshot has epoch 2 in its name, and the batch that it ends with has epoch 1."""
    return WithSnapshot(batches=9, name_epoch=2)


@breaks(snapshots_are_folds_of_the_log)
def e34_time() -> RunBuilder:
    """The header of a snapshot has another time than the batch that it ends with."""
    return WithSnapshot(batches=9, late_ms=1)


@keeps(snapshots_are_folds_of_the_log)
def e34_near() -> RunBuilder:
    """A snapshot is the fold of the log up to its end."""
    return WithSnapshot(batches=9)


@exempts(snapshots_are_folds_of_the_log)
def e34_near_3_7() -> RunBuilder:
    """A snapshot of Kafka 3.7, which gave replicas other directories than the log, is not its
    fold."""
    return WithSnapshot(batches=9, lie=True, level=V3_7)


@breaks(a_snapshot_has_the_topics_of_its_configs)
def e46_bad() -> RunBuilder:
    """The log begins with a snapshot that has a config of payments, a topic that it lacks."""
    return WithSnapshot(batches=9, kept=8, configured="payments")


@keeps(a_snapshot_has_the_topics_of_its_configs)
def e46_near() -> RunBuilder:
    """The log begins with a snapshot that has orders and a config of it; another config follows."""
    run = WithSnapshot(batches=9, kept=8, configured="orders")
    run.log.op(r.ConfigRecord(resource_type=2, resource_name="orders", name="a", value="c"))
    return run
