"""Recovery of a leader from its unclean election (KIP-704).

An unclean election may have lost the end of a transaction, and nobody will write it any more. By
KIP-704's text the leader aborts such transactions itself, stays RECOVERING until it has, and takes
no replica into the ISR before it has reported that to the controller. As shipped it does nothing.

Source:  KIP-704, "Leader recovery".
"""

from __future__ import annotations

from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.trace import trace
from minicluster.replica.producers.entry import NO_COORDINATOR_EPOCH
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch

_ABORT = EndTransactionMarker(committed=False, coordinator_epoch=NO_COORDINATOR_EPOCH)


def abort_open_transactions(partition: Partition, now_ms: int) -> None:
    """Append an abort marker for each open transaction."""
    replica_log = partition.replica_log
    for producer in replica_log.producers.open_transactions:
        marker = marker_batch(_ABORT, producer.producer_id, producer.epoch, now_ms)
        placed = marker.with_base(replica_log.log.end_offset, partition.leader_epoch)
        replica_log.maybe_roll((placed,), partition.log_config, now_ms)
        replica_log.append_as_leader(placed, partition.log_config, now_ms)
        trace(partition, "append", offset=placed.last_offset, appended=(placed,))
