"""ElectLeaders on ZooKeeper: when the response comes, and what it has for each partition."""

from __future__ import annotations

from minicluster import MiniCluster
from minicluster.controller.errors import ApiError
from minicluster.effects import CancelTimer, Respond, SetTimer
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, UpdateMetadataRequest
from minicluster.zookeeper.broker.delayed_elections import (
    TIMER,
    DelayedElections,
    without_needless,
)
from minicluster.zookeeper.broker.metadata_cache import MetadataCache
from minicluster.zookeeper.controller.effects import RespondOnceLed
from minicluster.zookeeper.controller.errors import NO_PARTITION
from minicluster.zookeeper.controller.preferred_election import (
    elect_leaders_response,
)

ORDERS, NOWHERE = TopicPartition("orders", 0), TopicPartition("nowhere", 0)
EXPIRES_MS = 1_000


def elected(leader: int) -> RespondOnceLed:
    response = elect_leaders_response({ORDERS: ApiError(), NOWHERE: NO_PARTITION})
    return RespondOnceLed("token", response, {ORDERS: leader}, EXPIRES_MS)


def led_by(cache: MetadataCache, leader: int) -> None:
    state = UpdateMetadataRequest.UpdateMetadataPartitionState(
        topic_name="orders", partition_index=0, leader=leader, isr=(1, 2), replicas=(1, 2)
    )
    topic = UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name="orders", partition_states=(state,)
    )
    cache.update(UpdateMetadataRequest(controller_id=1, topic_states=(topic,)))


def errors(response: Respond) -> list[int]:
    results = response.response.replica_election_results
    return [one.error_code for topic in results for one in topic.partition_result]


def test_the_response_waits_for_the_new_leader_in_the_metadata() -> None:
    """Source:  kafka.server.DelayedElectLeader.tryComplete."""
    cache, delayed = MetadataCache(), DelayedElections()
    led_by(cache, 2)
    assert delayed.add(elected(1), cache.topics, 0) == [SetTimer(TIMER, EXPIRES_MS)]
    led_by(cache, 1)
    [response, ended] = delayed.on_metadata(cache.topics, 5)
    assert isinstance(response, Respond) and ended == CancelTimer(TIMER)
    assert errors(response) == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_leader_that_is_not_in_the_metadata_in_time_is_a_time_out() -> None:
    """Source:  kafka.server.DelayedElectLeader.onComplete."""
    cache, delayed = MetadataCache(), DelayedElections()
    led_by(cache, 2)
    delayed.add(elected(1), cache.topics, 0)
    [response, _] = delayed.on_metadata(cache.topics, EXPIRES_MS)
    assert isinstance(response, Respond)
    assert errors(response) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_an_election_of_all_partitions_tells_of_no_needless_one() -> None:
    """Source:  KafkaApis.handleElectLeaders."""
    needless = ApiError.of_code(ErrorCode.ELECTION_NOT_NEEDED)
    response = elect_leaders_response({ORDERS: needless, NOWHERE: NO_PARTITION})
    [left] = without_needless(response).replica_election_results
    assert left.topic == "nowhere"


def test_elections_have_the_texts_of_kafka() -> None:
    """Source:  KafkaController.processReplicaLeaderElection, KafkaApis.handleElectLeaders."""
    with MiniCluster(mode="zookeeper", seed=3) as cluster:
        first, second, *_ = (node.id for node in cluster.brokers)
        cluster.create_topic("orders", assignment=[[first, second], [second, first]])

        def outcomes(*partitions: int, kind: int = 0) -> dict[int, tuple[str, str | None]]:
            topic = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=partitions)
            request = ElectLeadersRequest(
                election_type=kind, topic_partitions=(topic,) if partitions else None
            )
            results = cluster.admin(request).replica_election_results
            return {
                one.partition_id: (ErrorCode(one.error_code).name, one.error_message)
                for topic_result in results
                for one in topic_result.partition_result
            }

        needless = "Leader election not needed for topic partition."
        assert outcomes(0, 7) == {
            0: ("ELECTION_NOT_NEEDED", needless),
            7: ("UNKNOWN_TOPIC_OR_PARTITION", "The partition does not exist."),
        }
        assert outcomes() == {}
        unknown = outcomes(0, kind=5)[0]
        assert unknown[0] == "UNKNOWN_SERVER_ERROR"
