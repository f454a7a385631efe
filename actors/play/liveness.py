"""The liveness properties after the last fault, their bounds, and the state that breaks them.

Source:  the liveness properties G1-G7 and their bounds in virtual time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.time_bounds import time_bounds
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.broker.lifecycle import BrokerState
from minicluster.configs.without_effect import CONTROLLER_SOCKET_TIMEOUT_MS
from minicluster.coordinator.group.offsets.committed import OffsetKey
from minicluster.protocol.uuids import METADATA_TOPIC_ID
from minicluster.replica.partition.partition import Partition
from minicluster.rules import UncleanRecovery
from minicluster.values import Value
from minicluster.verify.waits.driver import ISR_CHANGES
from minicluster.verify.waits.liveness import BY_LOST_REQUESTS

LOOK_EVERY_MS = 100
Stuck = Callable[[Cluster], list[str]]


class Promise(Value, kw_only=True):
    """A property, its bound, and a function that lists the violations so far."""

    id: str
    text: str
    bound_ms: int
    stuck: Stuck


class Broken(Value, kw_only=True):
    """A promise that was not kept in time."""

    promise: Promise
    after_ms: int
    stuck: tuple[str, ...]

    def __str__(self) -> str:
        reasons = "; ".join(self.stuck)
        return (
            f"{self.promise.id} ({self.promise.text}) did not hold {self.after_ms / 1000:g}s after "
            f"healing: {reasons}"
        )


def promises(config: ClusterConfig, at_most_ms: int) -> tuple[Promise, ...]:
    """The promises with the bounds that a cluster's timeouts give them, the earliest first."""
    bounds = time_bounds(config)
    texts = (
        ("G2", "one controller leads, and a majority follows it", no_leader),
        ("G3", "every node has the whole log and the same image", behind),
        ("G1", "every broker is registered and unfenced", not_alive),
        ("G7", "every partition has a leader that has recovered", leaderless),
        ("G6", "every replica is in its ISR", out_of_sync),
        ("G5", "all that leaders hold is committed", uncommitted),
        ("G4", "no ISR change is pending", pending),
        ("G12", "clients have ended their transactions and read what is committed", unfinished),
    )
    table = ((name, text, bounds[name], stuck) for name, text, stuck in texts)
    return promised(table, at_most_ms)


def promised(bounds: Iterable[tuple[str, str, int, Stuck]], at_most_ms: int) -> tuple[Promise, ...]:
    """The promises of a table: id, text, bound, and what lists the violations."""
    return tuple(
        Promise(id=name, text=text, bound_ms=min(bound_ms, at_most_ms), stuck=stuck)
        for name, text, bound_ms, stuck in bounds
    )


def converge(cluster: Cluster, kept: Sequence[Promise]) -> Broken | None:
    """Let the cluster run until every promise holds, or one is broken; all faults are gone.

    A promise has to hold together with those before it: one that came true may be broken again
    while the cluster waits for another.
    """
    healed_ms = max(cluster.now_ms, cluster.network.delayed_until_ms)
    settled_ms = max(healed_ms, _lost_requests_end_ms(cluster))
    so_far: tuple[Promise, ...] = ()
    for promise in kept:
        so_far = (*so_far, promise)
        from_ms = settled_ms if promise.id in BY_LOST_REQUESTS else healed_ms
        left_ms = max(0, from_ms + promise.bound_ms - cluster.now_ms)
        if cluster.run_until(_every(cluster, so_far), left_ms):
            continue
        after_ms = cluster.now_ms - healed_ms
        for broken in so_far:
            if stuck := broken.stuck(cluster):
                return Broken(promise=broken, after_ms=after_ms, stuck=tuple(stuck))
    return None


def _lost_requests_end_ms(cluster: Cluster) -> int:
    """When the last ISR change or Fetch of a broker that is on its way, or was lost there, times
    out.

    Until then the leader proposes nothing else for these partitions, and the follower fetches
    nothing else from its leader, as in Kafka, where a lost packet is not an end of a connection
    either. A Fetch that waits at its leader for records is not on its way.

    Source:  controller.socket.timeout.ms, request.timeout.ms; DefaultAlterPartitionManager,
             BrokerBlockingSender.
    """
    network = cluster.network
    ends_ms = [
        request.sent_ms + CONTROLLER_SOCKET_TIMEOUT_MS
        for request in network.open_requests(ISR_CHANGES)
    ]
    ends_ms += [
        request.sent_ms + cluster.config.request_timeout_ms
        for request in network.open_requests(("Fetch",))
        if request.src in cluster.broker_ids
        and (not request.is_handled or request.is_responded)
        and all(topic.topic_id != METADATA_TOPIC_ID for topic in request.request.topics)
    ]
    return max(ends_ms, default=0)


def _every(cluster: Cluster, kept: Sequence[Promise]) -> Callable[[], bool]:
    """A condition that all promises hold, evaluated at intervals because it is costly."""
    next_ms = 0

    def look() -> bool:
        nonlocal next_ms
        if cluster.now_ms < next_ms:
            return False
        next_ms = cluster.now_ms + LOOK_EVERY_MS
        return not any(promise.stuck(cluster) for promise in reversed(kept))

    return look


# --- stuck states --------------------------------------------------------------------------------


def unfinished(cluster: Cluster) -> list[str]:
    """Producers with a transaction, and groups below the end of what they may read (G12)."""
    stuck = [
        f"{producer.name} has a transaction"
        for producer in cluster.producers.values()
        if not producer.client.is_idle
    ]
    for group in cluster.groups:
        if group.is_stopped:
            continue
        reached: dict[tuple[str, int], int] = {}
        for actor in group.actors:
            for place, offset in actor.client.reached.items():
                reached[place] = max(offset, reached.get(place, 0))
        config = group.actors[0].client.config
        for topic in config.topics:
            existing = cluster.image.topics.named(topic)
            for index in () if existing is None else existing.partitions:
                partition = cluster.leading(topic, index)
                if partition is None:
                    continue
                end = partition.high_watermark
                if config.read_committed:
                    end = partition.last_stable_offset
                at = reached.get((topic, index), 0)
                if at < end and not _hangs(cluster, (config.group, topic, index)):
                    stuck.append(f"group {config.group} is at {at} of {end} in {topic}-{index}")
    return stuck


def _hangs(cluster: Cluster, key: OffsetKey) -> bool:
    """A group's offset waits for a transaction that no coordinator knows.

    The records of the transaction were lost with the log of its coordinator, so no marker will end
    it. In Kafka an administrator ends it (KIP-664).
    """
    waited_for, known = set[int](), set[int]()
    for process in cluster.processes.values():
        coordinators = None if process.replicas is None else process.replicas.made_coordinators
        if coordinators is not None:
            for shard in coordinators.groups.state.runtime.shards:
                waited_for |= shard.offsets.pending_producers(key)
            transactions = coordinators.transactions.state.transactions()
            known |= {transaction.metadata.producer_id for transaction in transactions}
    return bool(waited_for - known)


def no_leader(cluster: Cluster) -> list[str]:
    """The role and leader of each controller, unless a majority has one leader (G2)."""
    machines = {
        node_id: controller.quorum
        for node_id in cluster.controller_ids
        if (process := cluster.processes.get(node_id)) and (controller := process.controller)
    }
    leaders = [node_id for node_id, machine in machines.items() if machine.is_leader]
    stuck = [
        f"controller {node_id} is {machine.role} of epoch {machine.epoch}, "
        f"leader {machine.leader_id if machine.leader_id >= 0 else 'none'}"
        for node_id, machine in machines.items()
    ]
    if len(leaders) != 1:
        return stuck
    leader = machines[leaders[0]]
    voters = leader.voters.ids
    agreeing = [
        node_id
        for node_id, machine in machines.items()
        if node_id in voters and (machine.leader_id, machine.epoch) == (leaders[0], leader.epoch)
    ]
    active = cluster.active_controller_id()
    if 2 * len(agreeing) <= len(voters) or active != leaders[0]:
        return stuck
    return []


def behind(cluster: Cluster) -> list[str]:
    """The nodes whose image is not that of all committed records (G3)."""
    stuck, image = [], cluster.image
    digest = image.digest()
    for node_id in cluster.node_ids:
        process = cluster.processes.get(node_id)
        if process is None:
            stuck.append(f"node {node_id} is down")
        elif process.publisher is not None:
            publisher = process.publisher
            if publisher.image.digest() != digest:
                stuck.append(f"broker {node_id} has published another image, at {publisher.offset}")
        elif process.controller is not None:
            machine = process.controller.controller
            if machine.committed_image.digest() != digest:
                stuck.append(
                    f"controller {node_id} holds another image, before {machine.next_offset}"
                )
    return stuck


def not_alive(cluster: Cluster) -> list[str]:
    """The brokers that are not registered, unfenced and running (G1)."""
    stuck = []
    for broker_id in cluster.broker_ids:
        process = cluster.processes.get(broker_id)
        registration = cluster.image.cluster.broker(broker_id)
        if process is None or process.broker is None:
            stuck.append(f"broker {broker_id} is down")
        elif registration is None:
            stuck.append(f"broker {broker_id} is not registered")
        elif registration.fenced:
            stuck.append(f"broker {broker_id} is fenced")
        elif process.broker.lifecycle.state is not BrokerState.RUNNING:
            stuck.append(f"broker {broker_id} is in state {process.broker.lifecycle.state.name}")
    return stuck


def leaderless(cluster: Cluster) -> list[str]:
    """The partitions without a leader, or with one that is recovering (G7)."""
    stuck = []
    # As shipped, only the next ISR change reports the recovery, and a sole replica makes none.
    sole_replica_recovers = cluster.rules.unclean_leader_recovers is UncleanRecovery.REPORTED
    for topic, index, state in cluster.image.topics.partitions():
        if state.leader < 0:
            stuck.append(f"{topic.name}-{index} has no leader, ISR {list(state.isr)}")
        elif state.is_recovering and (sole_replica_recovers or len(state.replicas) > 1):
            stuck.append(f"{topic.name}-{index} is recovering")
    return stuck


def out_of_sync(cluster: Cluster) -> list[str]:
    """The partitions whose ISR lacks replicas (G6)."""
    return [
        f"{topic.name}-{index} has ISR {list(state.isr)} of {list(state.replicas)}"
        for topic, index, state in cluster.image.topics.partitions()
        if sorted(state.isr) != sorted(state.replicas)
    ]


def uncommitted(cluster: Cluster) -> list[str]:
    """The leaders with records above their high watermark (G5)."""
    stuck = []
    for name, leader, partition in _led_partitions(cluster):
        if partition is None or partition.high_watermark != partition.log.end_offset:
            mark = "unknown" if partition is None else str(partition.high_watermark)
            stuck.append(f"{name}: high watermark {mark} at leader {leader}")
    return stuck


def pending(cluster: Cluster) -> list[str]:
    """The leaders that wait for the response to an ISR change (G4)."""
    return [
        f"{name}: leader {leader} waits for the controller"
        for name, leader, partition in _led_partitions(cluster)
        if partition is not None and partition.isr_state.is_pending
    ]


def _led_partitions(cluster: Cluster) -> Iterator[tuple[str, int, Partition | None]]:
    """The name, leader and leader's replica of the partitions whose leader runs."""
    for topic, index, state in cluster.image.topics.partitions():
        process = cluster.processes.get(state.leader)
        if process is not None and process.replicas is not None:
            partitions = process.replicas.partitions
            yield f"{topic.name}-{index}", state.leader, partitions.get((topic.id, index))
