"""The follower's fetch loop: its requests, its use of the responses, its waits."""

from __future__ import annotations

import uuid
from typing import Any

import minicluster.zoo  # noqa: F401  (the fault that a test plants)
from minicluster.effects import CancelTimer, FaultHit, Send, SetTimer
from minicluster.faults import Faults
from minicluster.log import Log, Record, RecordBatch, Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from minicluster.replica.broker_context import BrokerContext, BrokerView
from minicluster.replica.config import FetcherConfig, ReplicaManagerConfig
from minicluster.replica.effects import FetchFailed
from minicluster.replica.fetching.fetcher import Fetcher
from minicluster.replica.partition.partition import Partition
from minicluster.rules import Rules

ORDERS, BILLS = uuid.UUID(int=0xA), uuid.UUID(int=0xB)
EPOCH_7 = 7


def batch(base: int, count: int, epoch: int) -> RecordBatch:
    return RecordBatch.of(
        [Record(base + i, 0, None, b"v") for i in range(count)], leader_epoch=epoch
    )


def replica(topic: str = "orders", *runs: tuple[int, int, int]) -> Partition:
    """A follower in leader epoch 7 whose log has these batches: (base, count, epoch)."""
    context = BrokerContext(ReplicaManagerConfig(broker_id=2, traced=False))
    topic_id = ORDERS if topic == "orders" else BILLS
    log = Log()
    for base, count, epoch in runs:
        log.append(batch(base, count, epoch))
    partition = Partition(context, topic=topic, topic_id=topic_id, partition=0, log=log)
    partition.leader, partition.leader_epoch = 1, EPOCH_7
    return partition


class Story:
    """One fetcher of broker 2 against leader 1."""

    def __init__(
        self,
        *replicas: Partition,
        faults: Faults = Faults.NONE,
        config: FetcherConfig | None = None,
        rules: Rules = Rules.KAFKA_4_3,
    ) -> None:
        self.now_ms = 0
        self.hits: list[str] = []
        fetching = config or FetcherConfig()
        self.context = BrokerContext(
            ReplicaManagerConfig(broker_id=2, traced=False, fetcher=fetching),
            faults=faults,
            rules=rules,
        )
        self.context.view = BrokerView(42)
        self.fetcher = Fetcher(self.context, leader_id=1)
        self.sends: list[Send] = []
        self.failed: list[FetchFailed] = []
        self.timer_ms: int | None = None
        for partition in replicas:
            partition.context = self.context
            self.fetcher.add(partition)
        self.poll()

    def poll(self) -> None:
        self.fetcher.poll(self.now_ms)
        self.see()

    def see(self) -> None:
        for effect in self.context.take_effects():
            if isinstance(effect, Send):
                assert effect.to == 1
                self.sends.append(effect)
            elif isinstance(effect, FetchFailed):
                self.failed.append(effect)
            elif isinstance(effect, FaultHit):
                self.hits.append(effect.fault)
            elif isinstance(effect, SetTimer):
                self.timer_ms = effect.at_ms
            elif isinstance(effect, CancelTimer):
                self.timer_ms = None

    def take(self) -> Any:
        assert len(self.sends) == 1, self.sends
        self.last = self.sends.pop()
        return self.last.request

    def requested(self) -> dict[str, tuple[int, int]]:
        """Of the fetch that was sent: topic -> (offset, last fetched epoch)."""
        request = self.take()
        assert isinstance(request, FetchRequest)
        return {
            topic.topic: (topic.partitions[0].fetch_offset, topic.partitions[0].last_fetched_epoch)
            for topic in request.topics
        }

    def respond(self, response: Any) -> None:
        self.respond_to(self.last.correlation_id, response)

    def respond_to(self, correlation_id: int, response: Any) -> None:
        self.fetcher.on_response(correlation_id, response, self.now_ms)
        self.see()

    def fetched(self, topic_id: uuid.UUID = ORDERS, **data: Any) -> None:
        self.respond(fetch_response({topic_id: data}))

    def wait(self) -> None:
        """Go to the time of the fetcher's timer."""
        assert self.timer_ms is not None
        self.now_ms, self.timer_ms = self.timer_ms, None
        self.fetcher.on_timer(self.now_ms)
        self.see()


def fetch_response(
    data: dict[uuid.UUID, dict[str, Any]], *, session_id: int = 0, error: int = 0
) -> FetchResponse:
    return FetchResponse(
        session_id=session_id,
        error_code=error,
        responses=tuple(
            FetchResponse.FetchableTopicResponse(
                topic_id=topic_id,
                partitions=(FetchResponse.PartitionData(partition_index=0, **fields),),
            )
            for topic_id, fields in data.items()
        ),
    )


def diverging(epoch: int, end_offset: int) -> FetchResponse.EpochEndOffset:
    return FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)


def epoch_end(epoch: int, end_offset: int, error: int = 0) -> OffsetForLeaderEpochResponse:
    kind = OffsetForLeaderEpochResponse
    response = kind.EpochEndOffset(
        partition=0, leader_epoch=epoch, end_offset=end_offset, error_code=error
    )
    return kind(topics=(kind.OffsetForLeaderTopicResult(topic="orders", partitions=(response,)),))


def offset_is(offset: int) -> ListOffsetsResponse:
    kind = ListOffsetsResponse
    response = kind.ListOffsetsPartitionResponse(partition_index=0, offset=offset)
    return kind(topics=(kind.ListOffsetsTopicResponse(name="orders", partitions=(response,)),))


def test_it_fetches_from_the_log_end_with_its_epochs() -> None:
    story = Story(replica("orders", (0, 5, 3)))
    request = story.take()
    partition = request.topics[0].partitions[0]
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 42)
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (5, 3)
    assert partition.current_leader_epoch == EPOCH_7
    assert (request.max_wait_ms, request.min_bytes, request.session_id) == (500, 1, 0)


def test_one_request_is_in_flight_at_a_time_and_an_idle_response_repeats_it() -> None:
    story = Story(replica("orders", (0, 5, 3)))
    first = story.take()
    story.poll()
    assert not story.sends
    story.fetched(high_watermark=5, log_start_offset=0, records=Records())
    assert story.take() is first


def test_what_was_fetched_is_appended_and_the_next_fetch_goes_on_behind_it() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    story.fetched(high_watermark=6, log_start_offset=0, records=Records((batch(5, 2, 7),)))
    assert (follower.log_end_offset, follower.high_watermark) == (7, 6)
    assert story.requested() == {"orders": (7, 7)}


def test_records_come_as_bytes_as_well() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    story.fetched(high_watermark=5, log_start_offset=0, records=batch(5, 2, 7).encoded)
    assert follower.log_end_offset == 7


def test_a_response_for_another_offset_or_epoch_is_ignored() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    story.fetcher.remove((ORDERS, 0))
    follower.leader_epoch = EPOCH_7 + 1
    story.fetcher.add(follower)
    story.fetched(high_watermark=6, log_start_offset=0, records=Records((batch(5, 2, 7),)))
    assert follower.log_end_offset == 5
    assert story.take().topics[0].partitions[0].current_leader_epoch == EPOCH_7 + 1


def test_a_response_that_comes_twice_is_ignored_the_second_time() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    first = story.last.correlation_id
    data = {"high_watermark": 5, "log_start_offset": 0, "records": Records((batch(5, 1, 7),))}
    story.fetched(**data)
    story.respond_to(first, fetch_response({ORDERS: data}))
    assert follower.log_end_offset == 6
    assert len(story.sends) == 1


def test_diverging_logs_are_truncated_to_where_they_agree() -> None:
    follower = replica("orders", (0, 4, 3), (4, 1, 3), (5, 4, 5))
    story = Story(follower)
    assert story.requested() == {"orders": (9, 5)}
    story.fetched(diverging_epoch=diverging(3, 4), records=Records())
    assert follower.log_end_offset == 4
    assert story.requested() == {"orders": (4, 3)}


def test_an_epoch_that_the_leader_lacks_takes_a_second_request() -> None:
    """KIP-279: the leader's epoch is unknown here, so only an upper bound is known."""
    follower = replica("orders", (0, 3, 1), (3, 3, 2), (6, 3, 5))
    story = Story(follower)
    story.take()
    story.fetched(diverging_epoch=diverging(4, 8), records=Records())
    assert follower.log_end_offset == 6
    request = story.take()
    assert isinstance(request, OffsetForLeaderEpochRequest)
    assert request.topics[0].partitions[0].leader_epoch == 2
    story.respond(epoch_end(1, 3))
    assert follower.log_end_offset == 3
    assert story.requested() == {"orders": (3, 1)}


def test_without_the_second_request_the_logs_stay_apart() -> None:
    """Z36: what KIP-101 alone did, before KIP-279."""
    follower = replica("orders", (0, 3, 1), (3, 3, 2), (6, 3, 5))
    story = Story(follower, faults=Faults.of(["Z36"]))
    story.take()
    story.fetched(diverging_epoch=diverging(4, 9), records=Records())
    assert story.hits == ["Z36"]
    assert story.requested() == {"orders": (9, -1)}


def test_a_leader_that_has_no_such_epoch_means_the_high_watermark() -> None:
    follower = replica("orders", (0, 3, 1), (3, 3, 2))
    follower.replica_log.set_high_watermark(3)
    story = Story(follower)
    story.take()
    story.fetched(diverging_epoch=diverging(1, -1), records=Records())
    assert follower.log_end_offset == 3


def test_a_log_without_epochs_begins_at_its_high_watermark() -> None:
    story = Story(replica("orders"))
    assert story.requested() == {"orders": (0, -1)}


def test_out_of_range_below_a_longer_leader_jumps_to_where_that_begins() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    story.fetched(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    request = story.take()
    assert isinstance(request, ListOffsetsRequest)
    assert (request.replica_id, request.topics[0].partitions[0].timestamp) == (2, -1)
    story.respond(offset_is(20))
    assert story.take().topics[0].partitions[0].timestamp == -2
    story.respond(offset_is(10))
    assert (follower.log_start_offset, follower.log_end_offset) == (10, 10)
    assert story.requested() == {"orders": (10, -1)}


def test_out_of_range_above_a_shorter_leader_follows_it_down() -> None:
    follower = replica("orders", (0, 3, 3), (3, 2, 3))
    story = Story(follower)
    story.take()
    story.fetched(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    story.take()
    story.respond(offset_is(3))
    assert follower.log_end_offset == 3
    assert story.requested() == {"orders": (3, 3)}


def test_out_of_range_within_the_leaders_log_keeps_what_is_there() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower)
    story.take()
    story.fetched(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    story.take()
    story.respond(offset_is(20))
    story.take()
    story.respond(offset_is(2))
    assert follower.log_end_offset == 5
    assert story.requested() == {"orders": (5, 3)}


def test_fenced_waits_for_metadata_and_is_not_fetched_from_again() -> None:
    story = Story(replica("orders", (0, 5, 3)))
    story.take()
    story.fetched(error_code=ErrorCode.FENCED_LEADER_EPOCH)
    assert [failed.topic_id for failed in story.failed] == [ORDERS]
    assert not story.sends and story.timer_ms is None
    assert story.fetcher.is_idle


def test_other_errors_back_off_a_second_while_the_rest_goes_on() -> None:
    story = Story(replica("orders", (0, 5, 3)), replica("bills", (0, 1, 3)))
    assert story.requested() == {"orders": (5, 3), "bills": (1, 3)}
    idle = {"high_watermark": 1, "log_start_offset": 0, "records": Records()}
    refusal = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    story.respond(fetch_response({ORDERS: refusal, BILLS: idle}))
    assert story.requested() == {"bills": (1, 3)}
    story.now_ms = 500
    story.fetched(BILLS, **idle)
    assert story.requested() == {"bills": (1, 3)}
    story.now_ms = 1_000
    story.fetched(BILLS, **idle)
    assert story.requested() == {"orders": (5, 3), "bills": (1, 3)}


def test_a_lost_response_backs_everything_off_and_a_timer_brings_it_back() -> None:
    story = Story(replica("orders", (0, 5, 3)))
    story.take()
    story.fetcher.on_failure(story.last.correlation_id, 0)
    story.see()
    assert not story.sends
    assert story.timer_ms == 1_000
    story.wait()
    assert story.requested() == {"orders": (5, 3)}


def test_a_batch_that_cannot_be_appended_stops_this_partition_only() -> None:
    bad = replica("orders", (0, 5, 3))
    story = Story(bad, replica("bills", (0, 1, 3)))
    story.take()
    mixed = Records((batch(6, 1, 7), batch(5, 1, 7)))
    one = {"high_watermark": 5, "log_start_offset": 0, "records": mixed}
    idle = {"high_watermark": 1, "log_start_offset": 0, "records": Records()}
    story.respond(fetch_response({ORDERS: one, BILLS: idle}))
    assert bad.log_end_offset == 5
    assert [failed.topic_id for failed in story.failed] == [ORDERS]
    assert story.requested() == {"bills": (1, 3)}


def test_a_fetcher_without_partitions_is_silent() -> None:
    story = Story()
    assert not story.sends
    assert story.fetcher.is_idle
    assert story.timer_ms is None


def test_below_fetch_version_13_topics_are_named() -> None:
    follower = replica("orders", (0, 5, 3))
    story = Story(follower, config=FetcherConfig(fetch_version=12))
    assert story.take().replica_id == 2
    kind = FetchResponse
    data = kind.PartitionData(
        partition_index=0, high_watermark=6, log_start_offset=0, records=Records((batch(5, 1, 7),))
    )
    topic = kind.FetchableTopicResponse(topic="orders", partitions=(data,))
    story.respond(kind(responses=(topic,)))
    assert follower.log_end_offset == 6
