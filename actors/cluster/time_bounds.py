"""The bounds of the promises about time, and the moment from which they count.

Source:  the liveness properties G1-G12, their bounds in virtual time.
"""

from __future__ import annotations

from minicluster.actors.cluster.cluster import ZOOKEEPER, Cluster
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.clients.client import REQUEST_TIMEOUT_MS
from minicluster.replica.log_manager import ReplicaStore

LATE_RESPONSE_MS = 2_000
"""The time beyond a request's own timeout that its response may take."""


def time_bounds(config: ClusterConfig) -> dict[str, int]:
    """The bound of each promise that the timeouts of a cluster give it."""
    leader_ms = (
        2 * config.fetch_timeout_ms + 2 * config.election_timeout_ms
        + config.election_backoff_max_ms
    )  # fmt: skip
    alive_ms = leader_ms + 2 * config.session_timeout_ms
    in_sync_ms = alive_ms + config.replica_lag_time_max_ms + 5_000
    return {
        "G1": alive_ms,
        "G2": leader_ms,
        "G3": leader_ms + 2_000,
        "G4": in_sync_ms + 2 * config.request_timeout_ms,
        "G5": in_sync_ms + 1_000,
        "G6": in_sync_ms,
        "G7": alive_ms + 5_000,
        "G8": LATE_RESPONSE_MS,
        "G9": in_sync_ms + 10_000,
        "G10": 2 * config.session_timeout_ms,
        "G11": in_sync_ms,
        "G12": in_sync_ms + 4 * REQUEST_TIMEOUT_MS,
    }


def unregistered_brokers(cluster: Cluster) -> list[int]:
    """The brokers that run and were unregistered since they registered, which disturbs them for as
    long as they run.

    Only a new process registers: a heartbeat that is answered STALE_BROKER_EPOCH is just repeated.

    Source:  BrokerLifecycleManager, BrokerHeartbeatResponseEvent; ClusterControlManager
             .unregisterBroker.
    """
    if cluster.mode == ZOOKEEPER:  # a registration ends with the session of its broker
        return []
    return [
        broker_id
        for broker_id in cluster.broker_ids
        if (process := cluster.processes.get(broker_id)) is not None
        and process.broker is not None
        and process.broker.lifecycle.registered
        and cluster.image.cluster.broker(broker_id) is None
    ]


def healed_ms(cluster: Cluster) -> int | None:
    """When the last disturbance ended; None where one lasts, or where time is not virtual."""
    network = cluster.network
    if cluster.runtime_name != "simulated" or network.conditions or network.answers.present:
        return None
    for node_id in cluster.node_ids:
        process = cluster.processes.get(node_id)
        if process is None or process.paused or cluster.disks[node_id].write_ms:
            return None
        if cluster.clocks[node_id].drifts:
            return None
        if process.publisher is not None and process.publisher.delay_ms:
            return None
    if unregistered_brokers(cluster):
        return None
    for broker_id in cluster.broker_ids:
        store = ReplicaStore(cluster.disks[broker_id])
        if len(store.online_directories) < len(store.directory_ids):
            return None
    # What a delay held up still holds up what follows it on its link.
    return max(cluster.disturbed_ms, network.delayed_until_ms)
