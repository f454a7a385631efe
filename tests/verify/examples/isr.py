"""Examples of the rules in `partition/isr.py`."""

from __future__ import annotations

from typing import Any

from minicluster.verify.partition.isr import (
    leaders_propose_only_eligible_replicas,
    one_isr_change_is_in_flight_at_a_time,
    only_a_caught_up_replica_is_proposed,
    the_high_watermark_advances_when_the_isr_shrinks,
    the_maximal_isr_contains_the_committed_isr,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run


@breaks(leaders_propose_only_eligible_replicas)
def a5_bad() -> RunBuilder:
    """Broker 3 is fenced in the image of leader 1, which proposes ISR [1, 2, 3]."""
    run = RunBuilder(cluster().fence(3, change((1, 2))))
    run.publish(1)
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known={3: (5, 0, -1)})


@breaks(leaders_propose_only_eligible_replicas)
def a5_old_epoch() -> RunBuilder:
    """Leader 1 proposes broker 3 with broker epoch 1, and has a newer epoch of it in its image."""
    run = RunBuilder(cluster().op(change((1, 2))))
    run.publish(1)
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known={3: (5, 0, 1)})


@keeps(leaders_propose_only_eligible_replicas)
def a5_near() -> RunBuilder:
    """Leader 1 proposes broker 3 before its broker has published the fencing of 3."""
    log = cluster().op(change((1, 2)))
    before = log.offset - 1
    log.fence(3)
    return _proposes_3(RunBuilder(log).publish(1, before).publish(2))


def _proposes_3(run: RunBuilder) -> RunBuilder:
    """Leader 1 proposes broker 3 with its registered epoch."""
    known = {3: (5, 0, run.log.broker_epochs[3])}
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known=known)


@keeps(leaders_propose_only_eligible_replicas)
def a5_near_pending() -> RunBuilder:
    """Leader 1 proposes broker 3 before the fencing is published; the proposal is shown again after
    it, with metadata of before."""
    return _proposes_3(a5_near().publish(1))


@breaks(the_maximal_isr_contains_the_committed_isr)
def b1_bad() -> RunBuilder:
    """Leader 1 proposes to shrink ISR [1, 2, 3], and has maximal ISR [1, 2] before that is
    committed."""
    run = RunBuilder(cluster()).committed()
    run.partition("become_leader", isr=[1, 2, 3], maximal_isr=[1, 2, 3])
    return run.partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1, 2])


@breaks(the_maximal_isr_contains_the_committed_isr)
def b1_committed_under_it() -> RunBuilder:
    """The controller commits ISR [1, 2, 3] while leader 1 has maximal ISR [1, 2]."""
    run = RunBuilder(cluster().op(change((1, 2))).op(change((1, 2, 3))))
    run.committed(run.log.offset - 1)
    run.partition("isr_commit", isr=[1, 2], maximal_isr=[1, 2], partition_epoch=1)
    return run.committed()


@breaks(the_maximal_isr_contains_the_committed_isr)
def b1_no_change_under_way() -> RunBuilder:
    """Leader 1 has ISR [1, 2, 3] and maximal ISR [1, 2, 3, 4], and no change in flight."""
    run = RunBuilder(cluster()).committed()
    return run.partition("isr_commit", isr=[1, 2, 3], maximal_isr=[1, 2, 3, 4])


@keeps(the_maximal_isr_contains_the_committed_isr)
def b1_near() -> RunBuilder:
    """Broker 3 is in the maximal ISR from its proposal on; a deposed leader's maximal ISR does not
    count."""
    log = cluster().op(change((1, 2))).op(change((1, 2, 3)))
    grown = log.offset
    log.op(change(leader=2))
    run = RunBuilder(log).committed(grown - 1)
    run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], partition_epoch=1)
    run.committed(grown)
    run.partition("isr_commit", isr=[1, 2, 3], maximal_isr=[1, 2, 3], partition_epoch=2)
    run.committed()
    return run.partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1], partition_epoch=2)


def _proposed(run: RunBuilder, maximal: list[int], **values: Any) -> RunBuilder:
    """Leader 1 of ISR [1, 2] proposes another one; all replicas hold its 9 records."""
    known = {2: (9, 0, 5), 3: (9, 0, 5)}
    leader = {"isr": [1, 2], "maximal_isr": maximal, "known": known, "hw_new": 8, "leo": 9}
    return run.partition("isr_pending", **{**leader, **values})


@breaks(one_isr_change_is_in_flight_at_a_time)
def b7_bad() -> RunBuilder:
    """Leader 1 proposes [1, 2, 3], and then [1, 2, 4] before the first change has ended."""
    return _proposed(_proposed(plain_run(), [1, 2, 3]), [1, 2, 4])


@breaks(one_isr_change_is_in_flight_at_a_time)
def b7_nobody_refused() -> RunBuilder:
    """Leader 1 reverts its ISR change, which nobody has rejected."""
    run = _proposed(plain_run(), [1, 2, 3])
    return run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2])


@breaks(one_isr_change_is_in_flight_at_a_time)
def b7_old_metadata() -> RunBuilder:
    """Leader 1 drops its ISR change for metadata of the same partition epoch."""
    run = _proposed(plain_run(), [1, 2, 3])
    return run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9)


@keeps(one_isr_change_is_in_flight_at_a_time)
def b7_near() -> RunBuilder:
    """An ISR change is rejected, proposed again, shown again with metadata of before, and ended by
    newer metadata."""
    run = _proposed(plain_run(), [1, 2, 3])
    run.partition("isr_revert", isr=[1, 2], maximal_isr=[1, 2], error="INELIGIBLE_REPLICA")
    _proposed(_proposed(run, [1, 2, 3]), [1, 2, 3])
    run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9, partition_epoch=1)
    return _proposed(run, [1, 2, 3], partition_epoch=1)


@keeps(one_isr_change_is_in_flight_at_a_time)
def b7_rejected_as_out_of_date() -> RunBuilder:
    """An ISR change is rejected as out of date, and ended by metadata that its leader has."""
    run = _proposed(plain_run(), [1, 2, 3])
    _proposed(run, [1, 2, 3], error="INVALID_UPDATE_VERSION")
    return run.partition("become_leader", isr=[1, 2], maximal_isr=[1, 2], leo=9)


def _shrink(*, fetched_before: int = 5) -> RunBuilder:
    """3, which has 5 records, has left the ISR; 2 holds all nine, and the high watermark is 5.

    Shapes:  fetched_before: how far 3 had fetched when the shrink was proposed.
    """
    run = plain_run()
    known = {2: (9, 0, 5), 3: (fetched_before, 0, 5)}
    run.partition("isr_pending", leo=9, hw_new=5, **{**EVERYBODY, "known": known})
    return run.partition(
        "isr_commit",
        isr=[1, 2],
        maximal_isr=[1, 2],
        min_isr=2,
        leo=9,
        hw_old=5,
        hw_new=5,
        partition_epoch=1,
        known={2: (9, 0, 5), 3: (5, 0, 5)},
    )


@breaks(the_high_watermark_advances_when_the_isr_shrinks)
def b8_bad() -> RunBuilder:
    """Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark stays at 5."""
    return _shrink().partition("append", leo=10, offset=9, partition_epoch=1)


@keeps(the_high_watermark_advances_when_the_isr_shrinks)
def b8_near() -> RunBuilder:
    """Broker 3, with 5 of 9 records, leaves the ISR, and the high watermark goes to 9 in the same
    step."""
    return _shrink().partition(
        "hw",
        isr=[1, 2],
        maximal_isr=[1, 2],
        min_isr=2,
        leo=9,
        hw_old=5,
        hw_new=9,
        partition_epoch=1,
        known={2: (9, 0, 5), 3: (5, 0, 5)},
    )


@keeps(the_high_watermark_advances_when_the_isr_shrinks)
def b8_fetched() -> RunBuilder:
    """Broker 3 has fetched since it was to leave: it may be caught up in time, and is waited
    for."""
    return _shrink(fetched_before=3).partition("append", leo=10, offset=9, partition_epoch=1)


def _joins(leo: int, epoch: int = 0) -> RunBuilder:
    """3 is proposed with these records; the epoch began at 6, the high watermark is 5."""
    run = plain_run().partition("become_leader", leo=6, isr=[1, 2], maximal_isr=[1, 2])
    return _proposed(run, [1, 2, 3], known={2: (9, 0, 5), 3: (leo, epoch, 5)}, hw_new=5)


@breaks(only_a_caught_up_replica_is_proposed)
def f14_bad() -> RunBuilder:
    """The epoch began at 6; leader 1 proposes broker 3, which has fetched up to 5."""
    return _joins(5)


@breaks(only_a_caught_up_replica_is_proposed)
def f14_other_epoch() -> RunBuilder:
    """Leader 1 proposes broker 3, which has not fetched in this leader epoch."""
    return _joins(9, -1)


@keeps(only_a_caught_up_replica_is_proposed)
def f14_near() -> RunBuilder:
    """The epoch began at 6; leader 1 proposes broker 3, which has fetched up to 6."""
    return _joins(6)


@keeps(only_a_caught_up_replica_is_proposed)
def f14_near_began_again() -> RunBuilder:
    """Broker 3 was caught up when it was proposed; the proposal is shown again, and 3 has begun
    again from nothing."""
    return _proposed(_joins(6), [1, 2, 3], known={2: (9, 0, 5), 3: (0, 0, 5)}, hw_new=5)
