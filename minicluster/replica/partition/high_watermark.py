"""The high watermark of a leader, and its low watermark.

What lies below the high watermark is committed: every replica that can be elected cleanly has it.
So it is the lowest log end among

* the leader,
* the members of the maximal ISR (``isr``: the committed one, and a proposed replica),
* replicas outside that are about to join: eligible, and caught up in replica.lag.time.max.ms.

and it does not move at all while the committed ISR is below min.insync.replicas, because fewer
replicas than the topic's owner asked for would have the record.

Within a leadership it only rises. A new leader starts from its own, which it had from its
predecessor's responses and which is therefore a fetch or so behind: everything below the start of
its epoch may be committed already. So a replica joins the ISR only if it holds that start
(``isr.is_follower_in_sync``), and no latest offset is listed before the high watermark has reached
it (``reads.list_offsets``, KIP-207).

It is looked at again after an append, a fetch that moves a follower's end, a committed ISR change
and ``make_leader``; as in Kafka, *not* after a change of min.insync.replicas or of broker metadata,
nor after an ISR change that is reverted. Until the next fetch it can be lower than it might be.

Source:  Partition.maybeIncrementLeaderHW, lowWatermarkIfLeader; KIP-966 (min ISR), KAFKA-15583.
"""

from __future__ import annotations

from minicluster.planting import step
from minicluster.replica.partition.partition import Partition, trace


@step
def maybe_increment_leader_hw(partition: Partition, now_ms: int) -> bool:
    """Raise the high watermark to the end that all replicas that count are known to hold.

    Shapes:  -> whether it rose.
    Source:  Partition.maybeIncrementLeaderHW.
    """
    # A committed record must be held by min.insync.replicas brokers, so below that minimum nothing
    # is committed (KAFKA-15583).
    if partition.is_under_min_isr:
        return False
    new = lowest_log_end_offset(partition, now_ms)
    old = partition.high_watermark
    rose = partition.replica_log.maybe_increment_high_watermark(new)
    if partition.high_watermark != old:
        trace(partition, "hw", hw_old=old)
    return rose


@step
def lowest_log_end_offset(partition: Partition, now_ms: int) -> int:
    """The lowest log end of the leader and of each replica that holds back the high watermark."""
    context = partition.context
    view, max_lag_ms = context.view, context.config.replica_lag_time_max_ms
    leader_end = new = partition.log_end_offset
    maximal_isr = partition.isr_state.maximal_isr
    for broker, replica in partition.remote_replicas.items():
        if replica.log_end_offset < new and (
            # The maximal ISR, because the controller may have committed the pending change already.
            broker in maximal_isr
            # A replica that is about to join: were the high watermark to run away from it with
            # every append, it would never catch up with it and never join.
            or (
                replica.is_caught_up(leader_end, now_ms, max_lag_ms)
                and view.is_eligible(broker, replica.broker_epoch)
            )
        ):
            new = replica.log_end_offset
    return new


def low_watermark(partition: Partition) -> int:
    """The lowest log start of the replicas on live brokers; -1 until all of them have fetched.

    Errors:  NOT_LEADER_OR_FOLLOWER.
    """
    partition.require_leader()
    view = partition.context.view
    low = partition.log_start_offset
    for broker, replica in partition.remote_replicas.items():
        if replica.log_start_offset < low and view.alive_epoch(broker) is not None:
            low = replica.log_start_offset
    return low
