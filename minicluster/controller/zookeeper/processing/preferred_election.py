"""Requested elections: preferred by a znode, by a client, by the rebalance; unclean.

Source:  KIP-460; kafka.controller.KafkaController.processReplicaLeaderElection,
         checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from minicluster.controller.zookeeper.changing.elections import Strategy, preferred_may_lead
from minicluster.controller.zookeeper.changing.partition_states import Outcomes, change_partitions
from minicluster.controller.zookeeper.errors import StateChangeFailed
from minicluster.controller.zookeeper.events import ZkPreferredElection
from minicluster.controller.zookeeper.process import Process
from minicluster.controller.zookeeper.state.context import PartitionStatus
from minicluster.controller.zookeeper.state.controller_state import ControllerState
from minicluster.controller.zookeeper.state.leader_and_isr import LeaderAndIsr
from minicluster.controller.zookeeper.znode_access import (
    delete_all,
    expect_ok,
    read_data,
    watch_node,
)
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.zookeeper.operations import Code
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_partitions

AUTO_REBALANCE_DELAY_MS = 5_000
"""The first look at the leaders comes this long after a fail-over."""

PREFERRED, UNCLEAN = 0, 1


class Trigger(Enum):
    """The source of an election."""

    AUTO = "AutoTriggered"
    ZNODE = "ZkTriggered"
    CLIENT = "AdminClientTriggered"


def elect_replicas(
    state: ControllerState,
    partitions: Sequence[TopicPartition],
    trigger: Trigger,
    strategy: Strategy = Strategy.PREFERRED,
) -> Process[Outcomes]:
    """Elect; the znode that requested it is deleted, and watched again."""
    outcomes = yield from change_partitions(state, partitions, PartitionStatus.ONLINE, strategy)
    if trigger is Trigger.ZNODE:
        yield from delete_all(state, [paths.PREFERRED_REPLICA_ELECTION])
        state.put(ZkPreferredElection())
    return outcomes


def process_zk_preferred_election(state: ControllerState) -> Process[None]:
    """The preferred elections that a tool requests."""
    if not state.is_active or not (yield from watch_node(state, paths.PREFERRED_REPLICA_ELECTION)):
        return
    result = yield from read_data(state, paths.PREFERRED_REPLICA_ELECTION)
    partitions = decode_partitions(result.data) if expect_ok(result, Code.NONODE).ok else ()
    yield from _elect(state, partitions, PREFERRED, Trigger.ZNODE)


def process_elect_leaders(
    state: ControllerState, token: Any, request: ElectLeadersRequest, version: int
) -> Process[None]:
    """ElectLeaders of a client; without partitions, all of them."""
    partitions = _partitions_of(state, request)
    if not state.is_active:
        outcomes = dict.fromkeys(partitions, ErrorCode.NOT_CONTROLLER)
    else:
        outcomes = yield from _elect(state, partitions, request.election_type, Trigger.CLIENT)
    if request.topic_partitions is None:
        needless = ErrorCode.ELECTION_NOT_NEEDED
        outcomes = {p: code for p, code in outcomes.items() if code != needless}
    state.respond(token, elect_leaders_response(outcomes))


def elect_leaders_response(outcomes: dict[TopicPartition, ErrorCode]) -> ElectLeadersResponse:
    """The response with the outcome of each partition."""
    by_topic: dict[str, list[ElectLeadersResponse.PartitionResult]] = {}
    for partition, code in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(
            ElectLeadersResponse.PartitionResult(
                partition_id=partition.partition, error_code=code, error_message=None
            )
        )
    return ElectLeadersResponse(
        replica_election_results=tuple(
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=tuple(results))
            for topic, results in by_topic.items()
        )
    )


def _partitions_of(state: ControllerState, request: ElectLeadersRequest) -> list[TopicPartition]:
    if request.topic_partitions is None:
        return state.context.partitions()
    return [
        TopicPartition(topic.topic, partition)
        for topic in request.topic_partitions
        for partition in topic.partitions
    ]


def _elect(
    state: ControllerState,
    partitions: Sequence[TopicPartition],
    election_type: int,
    trigger: Trigger,
) -> Process[dict[TopicPartition, ErrorCode]]:
    context = state.context
    known = set(context.partitions())
    outcomes: dict[TopicPartition, ErrorCode] = {}
    electable = []
    for partition in partitions:
        if partition not in known:
            outcomes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif context.is_queued_for_deletion(partition.topic):
            outcomes[partition] = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif _is_needed(state, partition, election_type):
            electable.append(partition)
        else:
            outcomes[partition] = ErrorCode.ELECTION_NOT_NEEDED
    unclean = trigger is Trigger.CLIENT
    if election_type == PREFERRED:
        strategy, refused = Strategy.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        strategy = Strategy.UNCLEAN_BY_CLIENT if unclean else Strategy.OFFLINE
        refused = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    elected = yield from elect_replicas(state, electable, trigger, strategy)
    for partition, outcome in elected.items():
        if isinstance(outcome, LeaderAndIsr):
            outcomes[partition] = ErrorCode.NONE
        elif isinstance(outcome, StateChangeFailed):
            outcomes[partition] = refused
        else:
            outcomes[partition] = ErrorCode.UNKNOWN_SERVER_ERROR
    return outcomes


def _is_needed(state: ControllerState, partition: TopicPartition, election_type: int) -> bool:
    context = state.context
    leader = context.leaderships[partition].leader_and_isr.leader
    if election_type == PREFERRED:
        return leader != context.assignment(partition).replicas[0]
    return leader == NO_LEADER or not context.is_live(leader)


def process_auto_preferred_election(state: ControllerState) -> Process[None]:
    """Elect preferred leaders on each broker that leads too little of what it should."""
    if not state.is_active:
        return
    try:
        yield from _rebalance(state)
    finally:
        state.schedule_auto_rebalance(state.settings.leader_imbalance_check_interval_ms)


def _rebalance(state: ControllerState) -> Process[None]:
    context = state.context
    by_preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions():
        if not context.is_queued_for_deletion(partition.topic):
            preferred = context.assignment(partition).replicas[0]
            by_preferred.setdefault(preferred, []).append(partition)
    percentage = state.settings.leader_imbalance_per_broker_percentage
    for broker, partitions in sorted(by_preferred.items()):
        elsewhere = [
            p
            for p in partitions
            if p in context.leaderships and context.leaderships[p].leader_and_isr.leader != broker
        ]
        if len(elsewhere) * 100 > percentage * len(partitions):
            candidates = [p for p in elsewhere if preferred_may_lead(state, p)]
            yield from elect_replicas(state, candidates, Trigger.AUTO)
