"""Requested elections: preferred by a znode, by a client, by the rebalance; unclean.

Source:  KIP-460; kafka.controller.KafkaController.processReplicaLeaderElection,
         checkAndTriggerAutoLeaderRebalance.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from minicluster.controller.errors import ApiError
from minicluster.java_order import int_hash, scala_trie_order
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.zookeeper.controller.context import PartitionStatus
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.effects import RespondOnceLed
from minicluster.zookeeper.controller.elections import Strategy, preferred_may_lead
from minicluster.zookeeper.controller.errors import NO_PARTITION, StateChangeFailed
from minicluster.zookeeper.controller.events import ZkPreferredElection
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr
from minicluster.zookeeper.controller.partition_states import Outcomes, change_partitions
from minicluster.zookeeper.controller.znode_access import (
    decoded,
    delete_all,
    expect_ok,
    read_data,
    watch_node,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_partitions

AUTO_REBALANCE_DELAY_MS = 5_000
"""The first look at the leaders comes this long after a fail-over."""

PREFERRED, UNCLEAN = 0, 1
NOT_CONTROLLER = ApiError(ErrorCode.NOT_CONTROLLER)
IN_DELETION = ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")


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
    partitions = decoded(decode_partitions, expect_ok(result, Code.NONODE), ())
    yield from _elect(state, partitions, PREFERRED, Trigger.ZNODE)


def process_elect_leaders(
    state: ControllerState, token: Any, request: ElectLeadersRequest, version: int, received_ms: int
) -> Process[None]:
    """ElectLeaders of a client; its broker has named the partitions where the client has not."""
    partitions = _partitions_of(request)
    if not state.is_active:
        state.respond(token, elect_leaders_response(dict.fromkeys(partitions, NOT_CONTROLLER)))
        return
    if request.election_type not in (PREFERRED, UNCLEAN):
        failed = error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR, version=version)
        state.respond(token, failed)  # Kafka cannot read the request, and fails
        return
    outcomes, leaders = yield from _elect(state, partitions, request.election_type, Trigger.CLIENT)
    expires_ms = received_ms + request.timeout_ms
    response = elect_leaders_response(outcomes)
    state.effects.append(RespondOnceLed(token, response, leaders, expires_ms))


def elect_leaders_response(outcomes: dict[TopicPartition, ApiError]) -> ElectLeadersResponse:
    """The response with the outcome of each partition."""
    by_topic: dict[str, list[ElectLeadersResponse.PartitionResult]] = {}
    for partition, outcome in outcomes.items():
        by_topic.setdefault(partition.topic, []).append(
            ElectLeadersResponse.PartitionResult(
                partition_id=partition.partition,
                error_code=outcome.error,
                error_message=outcome.message,
            )
        )
    return ElectLeadersResponse(
        replica_election_results=tuple(
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=tuple(results))
            for topic, results in by_topic.items()
        )
    )


def _partitions_of(request: ElectLeadersRequest) -> list[TopicPartition]:
    named = (
        TopicPartition(topic.topic, partition)
        for topic in request.topic_partitions or ()
        for partition in topic.partitions
    )
    return list(dict.fromkeys(named))


def _elect(
    state: ControllerState,
    partitions: Sequence[TopicPartition],
    election_type: int,
    trigger: Trigger,
) -> Process[tuple[dict[TopicPartition, ApiError], dict[TopicPartition, int]]]:
    """The outcome of each partition, and the leaders that were elected."""
    context = state.context
    known = set(context.partitions())
    outcomes: dict[TopicPartition, ApiError] = {}
    electable = []
    for partition in partitions:
        if partition not in known:
            outcomes[partition] = NO_PARTITION
        elif context.is_queued_for_deletion(partition.topic):
            outcomes[partition] = IN_DELETION
        elif _is_needed(state, partition, election_type):
            electable.append(partition)
        else:
            outcomes[partition] = ApiError.of_code(ErrorCode.ELECTION_NOT_NEEDED)
    unclean = trigger is Trigger.CLIENT
    if election_type == PREFERRED:
        strategy, unavailable = Strategy.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        strategy = Strategy.UNCLEAN_BY_CLIENT if unclean else Strategy.OFFLINE
        unavailable = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    elected = yield from elect_replicas(state, electable, trigger, strategy)
    leaders = {}
    for partition, outcome in elected.items():
        if isinstance(outcome, LeaderAndIsr):
            outcomes[partition], leaders[partition] = ApiError(), outcome.leader
        elif isinstance(outcome, StateChangeFailed):
            outcomes[partition] = ApiError(unavailable, str(outcome))
        else:
            outcomes[partition] = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return outcomes, leaders


def _is_needed(state: ControllerState, partition: TopicPartition, election_type: int) -> bool:
    context = state.context
    leader = context.leadership(partition).leader_and_isr.leader
    if election_type == PREFERRED:
        return leader != context.preferred_replica(partition)
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
            preferred = context.preferred_replica(partition)
            by_preferred.setdefault(preferred, []).append(partition)
    percentage = state.settings.leader_imbalance_per_broker_percentage
    for broker in scala_trie_order(by_preferred, int_hash):
        partitions = by_preferred[broker]
        elsewhere = [
            p
            for p in partitions
            if p in context.leaderships and context.leaderships[p].leader_and_isr.leader != broker
        ]
        if len(elsewhere) * 100 > percentage * len(partitions):
            candidates = [p for p in elsewhere if preferred_may_lead(state, p)]
            yield from elect_replicas(state, candidates, Trigger.AUTO)


def _preempted(request: ElectLeadersRequest) -> ElectLeadersResponse:
    topics = request.topic_partitions or ()
    partitions = [TopicPartition(t.topic, p) for t in topics for p in t.partitions]
    return elect_leaders_response(dict.fromkeys(partitions, NOT_CONTROLLER))


API = ControllerApi(
    ElectLeadersRequest,
    lambda state, event: process_elect_leaders(
        state, event.token, event.request, event.version, event.received_ms
    ),
    preempted=_preempted,
)
