"""Responses to ElectLeaders that wait until this broker's metadata has the new leaders.

A client that has elected a leader sends to it at once. The metadata arrives later, by
UpdateMetadata.

Units:   the timeout is that of the request, from its arrival on.
Errors:  REQUEST_TIMED_OUT for the partitions whose leader is not there in time.
Source:  kafka.server.DelayedElectLeader, ReplicaManager.electLeaders.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.metadata.image.topics import TopicsImage
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.values import replace
from minicluster.zookeeper.controller.effects import RespondOnceLed

TIMER = "leader-elections"


class _Delayed(Struct, eq=False):
    effect: RespondOnceLed
    waiting: dict[TopicPartition, int]


class DelayedElections:
    """The responses of one broker that wait, in the order of their elections."""

    def __init__(self) -> None:
        self._delayed: list[_Delayed] = []

    def add(self, effect: RespondOnceLed, topics: TopicsImage, now_ms: int) -> list[Effect]:
        """Respond as soon as the metadata has had every new leader."""
        if not effect.leaders:
            return [Respond(effect.token, effect.response)]
        self._delayed.append(_Delayed(effect, dict(effect.leaders)))
        return self.on_metadata(topics, now_ms)

    def on_metadata(self, topics: TopicsImage, now_ms: int) -> list[Effect]:
        """Respond where the metadata has had the new leaders, or the time has passed."""
        if not self._delayed:
            return []
        effects: list[Effect] = []
        still_delayed = []
        for delayed in self._delayed:
            delayed.waiting = {
                partition: leader
                for partition, leader in delayed.waiting.items()
                if _leader(topics, partition) != leader
            }
            if delayed.waiting and now_ms < delayed.effect.expires_ms:
                still_delayed.append(delayed)
            else:
                response = timed_out(delayed.effect.response, delayed.waiting)
                effects.append(Respond(delayed.effect.token, response))
        self._delayed = still_delayed
        next_ms = min((delayed.effect.expires_ms for delayed in still_delayed), default=None)
        effects.append(CancelTimer(TIMER) if next_ms is None else SetTimer(TIMER, next_ms))
        return effects


def all_partitions(topics: TopicsImage) -> tuple[ElectLeadersRequest.TopicPartitions, ...]:
    """The partitions of a request that names none."""
    return tuple(
        ElectLeadersRequest.TopicPartitions(
            topic=topic.name, partitions=tuple(number for number, _ in topic.items())
        )
        for topic in topics.by_id.values()
    )


def _leader(topics: TopicsImage, partition: TopicPartition) -> int | None:
    topic = topics.named(partition.topic)
    state = None if topic is None else topic.partitions.get(partition.partition)
    return None if state is None else state.leader


def without_needless(response: ElectLeadersResponse) -> ElectLeadersResponse:
    """The response to a request that named no partition, without those that had no election.

    Source:  kafka.server.KafkaApis.handleElectLeaders.
    """
    needless = ErrorCode.ELECTION_NOT_NEEDED
    topics = []
    for topic in response.replica_election_results:
        needed = tuple(result for result in topic.partition_result if result.error_code != needless)
        if needed:
            topics.append(replace(topic, partition_result=needed))
    return replace(response, replica_election_results=tuple(topics))


def timed_out(
    response: ElectLeadersResponse, waiting: Collection[TopicPartition]
) -> ElectLeadersResponse:
    """The response with REQUEST_TIMED_OUT for these partitions."""
    if not waiting:
        return response
    code = ErrorCode.REQUEST_TIMED_OUT
    return replace(
        response,
        replica_election_results=tuple(
            replace(
                topic,
                partition_result=tuple(
                    replace(result, error_code=code)
                    if TopicPartition(topic.topic, result.partition_id) in waiting
                    else result
                    for result in topic.partition_result
                ),
            )
            for topic in response.replica_election_results
        ),
    )
