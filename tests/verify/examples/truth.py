"""Examples of the rules in `partition/truth.py`."""

from __future__ import annotations

from minicluster.verify.partition.truth import (
    a_leader_begins_with_what_is_committed,
    electable_replicas_hold_what_is_committed,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.examples.partitions import recovering
from tests.verify.handwritten.clients import behind_a_loss, leads
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run


def _commit_8(run: RunBuilder) -> RunBuilder:
    """The high watermark of orders-0 goes to 8."""
    return run.partition(
        "hw", leo=8, hw_old=0, hw_new=8, known={2: (8, 0, 5), 3: (8, 0, 5)}, **EVERYBODY
    )


@breaks(electable_replicas_hold_what_is_committed)
def b3_bad() -> RunBuilder:
    """The high watermark is 8; broker 2 is in the ISR, and its log ends at 3."""
    return _commit_8(plain_run().committed()).partition("become_follower", broker=2, leo=3)


@keeps(electable_replicas_hold_what_is_committed)
def b3_near() -> RunBuilder:
    """Broker 2 has all 8 committed records; after an unclean election it leads with 3."""
    run = RunBuilder(recovering())
    _commit_8(run.committed(cluster().offset))
    run.partition("append", broker=2, leo=8).committed()
    return run.partition(
        "become_leader", broker=2, incarnation="2-2", leo=3, leader_epoch=2, partition_epoch=4
    )


@keeps(electable_replicas_hold_what_is_committed)
def b3_near_truncated() -> RunBuilder:
    """Broker 2 truncates to 4 and fetches up to 8 again; it has all of that when it next becomes a
    follower."""
    run = plain_run().committed().partition("become_follower", broker=2, leo=0)
    run.partition("append", broker=2, leo=8).partition("truncate", broker=2, leo=4, offset=4)
    _commit_8(run)
    run.partition("append", broker=2, leo=8)
    return run.partition("become_follower", broker=2, leo=8)


@exempts(electable_replicas_hold_what_is_committed)
def b3_near_lost() -> RunBuilder:
    """Broker 1 came back as the last ISR member with an empty log; broker 2 is in the ISR again,
    and has none of its six records yet."""
    run = behind_a_loss()
    run.log.op(change((1, 2)))
    return run.committed().partition("become_follower", broker=2, leo=0)


def _elected(log_end: int, *, high_watermark: int = 2) -> RunBuilder:
    """Leader 1 has acknowledged offset 1, and then 2 leads, elected from ISR [2, 3]."""
    run = leads(plain_run().committed(), end=high_watermark)
    run.partition("ack", offset=1, leo=2, **EVERYBODY)
    run.log.op(change((2, 3), leader=2))
    return leads(run.committed(), broker=2, epoch=1, end=log_end, commit=False)


@breaks(a_leader_begins_with_what_is_committed)
def f19_bad() -> RunBuilder:
    """The high watermark is 2, and 2 is elected from ISR [2, 3] with a log that ends at 1."""
    return _elected(1)


@breaks(a_leader_begins_with_what_is_committed)
def f19_acknowledged() -> RunBuilder:
    """Offset 1 is acknowledged with acks=all before the high watermark passes it, and 2 is elected
    from ISR [2, 3] with a log that ends at 1."""
    return _elected(1, high_watermark=1)


@keeps(a_leader_begins_with_what_is_committed)
def f19_near() -> RunBuilder:
    """The high watermark is 2, and 2 is elected from ISR [2, 3] with a log that ends at 2."""
    return _elected(2)
