"""Controlled shutdown: a broker hands over before it stops, so that nobody waits for its session.

1. Each heartbeat of the broker requests it (WantShutDown).
2. At the first, the log marks it as in controlled shutdown, and it leaves ISRs and leaderships.
   The record comes before the partition changes: from it on no election and no ISR takes the
   broker in, so that a lagging leader cannot propose it again (KIP-841).
3. At the later ones it hands over what could not move before, or what it has come to lead since. A
   partition of which it is the last member stays with it.
4. Once it leads nothing, and every active broker has read up to where the shutdown began, the
   response lets it stop: until then others would go on fetching from it
   (``operations/broker_heartbeat.py``).
5. It is fenced. The mark stays until it registers again.

Below metadata.version 3.3-IV3 the log has no such mark; the broker only hands over.

Source:  KIP-631, KIP-841; ReplicationControlManager.handleBrokerInControlledShutdown.
"""

from __future__ import annotations

from minicluster.controller.deciding.broker_changes import Records, partition_updates
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.cluster import IN_CONTROLLED_SHUTDOWN, BrokerRegistration
from minicluster.planting import step
from minicluster.protocol.records import BrokerRegistrationChangeRecord, VersionedRecord


def broker_in_controlled_shutdown(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The records of a broker that enters controlled shutdown."""
    records: Records = []
    if not broker.in_controlled_shutdown and _is_marked(state):
        change = BrokerRegistrationChangeRecord(
            broker_id=broker.id,
            broker_epoch=broker.epoch,
            in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN,
        )
        records.append(VersionedRecord(change, 1))
    return records + hand_over(state, broker)


@step
def hand_over(state: ClusterState, broker: BrokerRegistration) -> Records:
    """The broker leaves its ISRs and leaderships, but for those of which it is the last member."""
    return partition_updates(state, state.indexes.in_isr(broker.id), to_remove=broker.id)


def _is_marked(state: ClusterState) -> bool:
    return state.gates.metadata_version.in_controlled_shutdown_supported
