"""The next leader of a partition, by the reason of the election.

Source:  KIP-460, KIP-704; kafka.controller.Election, PartitionLeaderElectionAlgorithms.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from minicluster.metadata.image.partition import RECOVERING
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import step
from minicluster.values import Value, replace
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr


class Strategy(Enum):
    """Reasons of an election."""

    OFFLINE = "OfflinePartitionLeaderElectionStrategy(false)"
    UNCLEAN_BY_CLIENT = "OfflinePartitionLeaderElectionStrategy(true)"
    REASSIGN = "ReassignPartitionLeaderElectionStrategy"
    PREFERRED = "PreferredReplicaPartitionLeaderElectionStrategy"
    CONTROLLED_SHUTDOWN = "ControlledShutdownPartitionLeaderElectionStrategy"


class Election(Value):
    """The new leader and ISR, None without a candidate, and the brokers to learn of them."""

    leader_and_isr: LeaderAndIsr | None
    recipients: tuple[int, ...]


def elect(
    state: ControllerState,
    partition: TopicPartition,
    current: LeaderAndIsr,
    strategy: Strategy,
    *,
    unclean: bool,
) -> Election:
    """The election of one partition."""
    match strategy:
        case Strategy.REASSIGN:
            return _for_reassignment(state, partition, current)
        case Strategy.PREFERRED:
            return _preferred(state, partition, current)
        case Strategy.CONTROLLED_SHUTDOWN:
            return _for_shutdown(state, partition, current)
    return elect_offline(state, partition, current, unclean)


@step
def elect_offline(
    state: ControllerState, partition: TopicPartition, current: LeaderAndIsr, unclean: bool
) -> Election:
    """The first replica that is online and in the ISR; unclean, the first that is online.

    An unclean leader is the whole ISR, and recovering from IBP 3.2 on (KIP-704).
    """
    replicas = state.context.assignment(partition).replicas
    online = state.context.online(replicas, partition)
    leader = _first(online, current.isr)
    if leader is not None:
        isr = state.context.online(current.isr, partition)
        return Election(current.elect(leader, isr), online)
    if not unclean or not online:
        return Election(None, online)
    elected = current.elect(online[0], online[:1])
    if state.settings.protocol.leader_recovery_supported:
        elected = replace(elected, recovery_state=RECOVERING)
    return Election(elected, online)


def _for_reassignment(
    state: ControllerState, partition: TopicPartition, current: LeaderAndIsr
) -> Election:
    """The first target replica that is online and in the ISR, which stays."""
    target = state.context.assignment(partition).target
    leader = _first(state.context.online(target, partition), current.isr)
    return Election(None if leader is None else current.elect(leader), target)


def _preferred(
    state: ControllerState, partition: TopicPartition, current: LeaderAndIsr
) -> Election:
    """The first replica, if it is online and in the ISR, which stays."""
    replicas = state.context.assignment(partition).replicas
    leader = _first(state.context.online(replicas[:1], partition), current.isr)
    return Election(None if leader is None else current.elect(leader), replicas)


def _for_shutdown(
    state: ControllerState, partition: TopicPartition, current: LeaderAndIsr
) -> Election:
    """The first replica in the ISR that is not shutting down; those that are leave the ISR."""
    context = state.context
    replicas = context.assignment(partition).replicas
    present = tuple(
        replica
        for replica in replicas
        if context.is_online(replica, partition, or_shutting_down=True)
    )
    staying = tuple(replica for replica in current.isr if replica not in context.shutting_down)
    leader = _first(present, staying)
    return Election(None if leader is None else current.elect(leader, staying), present)


def preferred_may_lead(state: ControllerState, partition: TopicPartition) -> bool:
    """The preferred replica is online and in the ISR."""
    current = state.context.leaderships[partition].leader_and_isr
    return _preferred(state, partition, current).leader_and_isr is not None


def _first(candidates: Iterable[int], isr: tuple[int, ...]) -> int | None:
    return next((candidate for candidate in candidates if candidate in isr), None)
