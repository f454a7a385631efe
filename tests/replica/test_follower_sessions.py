"""The fetch session of a follower (KIP-227): which partitions each of its fetches names."""

from __future__ import annotations

import uuid

import pytest

from minicluster.log import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.replica.broker_context import BrokerView
from minicluster.replica.config import FetcherConfig
from minicluster.replica.partition.partition import Partition
from minicluster.rules import Rules
from minicluster.values import replace
from tests.replica.test_fetcher import (
    BILLS,
    EPOCH_7,
    ORDERS,
    Story,
    batch,
    diverging,
    fetch_response,
    replica,
)

IDLE = {"high_watermark": 0, "log_start_offset": 0, "records": Records()}
SESSION = 77


def in_session(*replicas: Partition, rules: Rules = Rules.KAFKA_4_3) -> Story:
    """The first incremental fetch is on its way."""
    story = Story(*replicas, rules=rules)
    assert (story.take().session_id, story.last.request.session_epoch) == (0, 0)
    data = dict.fromkeys((partition.topic_id for partition in replicas), IDLE)
    story.respond(fetch_response(data, session_id=SESSION))
    assert position(story) == (SESSION, 1)
    return story


def position(story: Story) -> tuple[int, int]:
    """The session and the epoch of the fetch that was sent."""
    request = story.take()
    assert isinstance(request, FetchRequest)
    return request.session_id, request.session_epoch


def named(story: Story) -> tuple[list[uuid.UUID], list[uuid.UUID]]:
    """The topics of the last fetch: those that it names, and those that it forgets."""
    request = story.last.request
    return (
        [topic.topic_id for topic in request.topics],
        [topic.topic_id for topic in request.forgotten_topics_data],
    )


def test_a_fetch_of_a_session_names_what_has_changed() -> None:
    story = in_session(replica("orders", (0, 5, 3)), replica("bills", (0, 1, 3)))
    assert named(story) == ([], [])
    one = {"high_watermark": 1, "log_start_offset": 0, "records": Records((batch(1, 1, 7),))}
    story.respond(fetch_response({BILLS: one}, session_id=SESSION))
    assert position(story) == (SESSION, 2)
    assert named(story) == ([BILLS], [])
    story.respond(fetch_response({}, session_id=SESSION))
    assert position(story) == (SESSION, 3)
    assert named(story) == ([], [])


def test_a_partition_that_backs_off_is_forgotten_until_it_is_fetched_again() -> None:
    story = in_session(replica("orders", (0, 5, 3)), replica("bills", (0, 1, 3)))
    refusal = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    story.respond(fetch_response({ORDERS: refusal}, session_id=SESSION))
    story.take()
    assert named(story) == ([], [ORDERS])
    story.now_ms = 1_000
    story.respond(fetch_response({}, session_id=SESSION))
    story.take()
    assert named(story) == ([ORDERS], [])


def test_the_last_partition_is_forgotten_and_the_leader_ends_the_session() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    refusal = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
    story.respond(fetch_response({ORDERS: refusal}, session_id=SESSION))
    story.take()
    assert named(story) == ([], [ORDERS])
    story.respond(fetch_response({}))
    assert not story.sends
    story.wait()
    assert position(story) == (0, 0)
    assert named(story) == ([ORDERS], [])


def test_a_session_that_the_leader_has_lost_is_opened_anew_at_once() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    story.respond(fetch_response({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    assert position(story) == (0, 0)
    assert named(story) == ([ORDERS], [])


def test_a_session_of_another_epoch_is_closed_by_a_full_fetch_at_once() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    story.respond(fetch_response({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH))
    assert position(story) == (SESSION, 0)
    assert named(story) == ([ORDERS], [])


def test_a_session_in_the_form_of_another_version_is_closed_after_a_back_off() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    story.respond(fetch_response({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR))
    assert not story.sends
    story.wait()
    assert position(story) == (SESSION, 0)


def test_a_lost_response_closes_the_session() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    story.fetcher.on_failure(story.last.correlation_id, 0)
    story.see()
    story.wait()
    assert position(story) == (SESSION, 0)
    assert named(story) == ([ORDERS], [])


def test_partitions_that_are_not_of_the_session_close_it() -> None:
    follower = replica("orders", (0, 5, 3))
    story = in_session(follower)
    story.respond(fetch_response({BILLS: IDLE}, session_id=SESSION))
    assert position(story) == (SESSION, 0)
    story.respond(fetch_response({}, session_id=SESSION))  # a full response lacks orders
    assert position(story) == (0, 0)


@pytest.mark.parametrize("shipped", [False, True])
def test_what_was_ignored_is_sent_again_by_a_leader_that_counts_it_as_sent(shipped: bool) -> None:
    follower = replica("orders", (0, 5, 3))
    rules = replace(Rules.KAFKA_4_3, ignored_fetch_is_not_repeated=shipped)
    story = in_session(follower, rules=rules)
    follower.leader_epoch = EPOCH_7 + 1
    story.fetcher.remove(follower.key)
    story.fetcher.add(follower)
    risen = {"high_watermark": 5, "log_start_offset": 0, "records": Records()}
    story.respond(fetch_response({ORDERS: risen}, session_id=SESSION))
    assert follower.high_watermark == 0
    assert position(story) == ((SESSION, 2) if shipped else (SESSION, 0))
    assert named(story) == ([ORDERS], [])
    story.respond(fetch_response({ORDERS: risen}, session_id=SESSION))
    assert follower.high_watermark == 5


@pytest.mark.parametrize("shipped", [False, True])
def test_what_came_with_a_diverging_epoch_is_sent_again(shipped: bool) -> None:
    rules = replace(Rules.KAFKA_4_3, ignored_fetch_is_not_repeated=shipped)
    story = in_session(replica("orders", (0, 5, 3), (5, 1, 4)), rules=rules)
    data = {"high_watermark": 5, "diverging_epoch": diverging(3, 5), "records": Records()}
    story.respond(fetch_response({ORDERS: data}, session_id=SESSION))
    assert position(story) == ((SESSION, 2) if shipped else (SESSION, 0))
    assert named(story) == ([ORDERS], [])


def test_a_log_start_that_has_moved_is_sent() -> None:
    follower = replica("orders", (0, 2, 3), (2, 3, 3))
    story = in_session(follower)
    follower.replica_log.set_high_watermark(5)
    follower.replica_log.maybe_increment_log_start_offset(2)
    story.fetcher.log_start_moved(follower.key)
    story.respond(fetch_response({}, session_id=SESSION))
    story.take()
    assert named(story) == ([ORDERS], [])
    assert story.last.request.topics[0].partitions[0].log_start_offset == 2


def test_a_topic_made_anew_takes_the_place_of_its_name_below_version_13() -> None:
    old, new = replica("orders", (0, 5, 3)), replica("orders")
    new.topic_id = uuid.UUID(int=0xC)
    new.key = (new.topic_id, 0)
    story = Story(old, config=FetcherConfig(fetch_version=12))
    story.take()
    kind = FetchResponse
    data = kind.PartitionData(partition_index=0, high_watermark=0, records=Records())
    topic = kind.FetchableTopicResponse(topic="orders", partitions=(data,))
    story.respond(kind(session_id=SESSION, responses=(topic,)))
    story.take()
    story.fetcher.remove(old.key)
    new.context = story.context
    story.fetcher.add(new)
    story.respond(kind(session_id=SESSION))
    assert story.requested() == {"orders": (0, -1)}
    assert not story.last.request.forgotten_topics_data


def test_below_version_7_there_is_no_session() -> None:
    story = Story(replica("orders", (0, 5, 3)), config=FetcherConfig(fetch_version=6))
    assert position(story) == (0, -1)


def lost(story: Story) -> None:
    """No response comes to the fetch that was sent."""
    story.fetcher.on_failure(story.last.correlation_id, story.now_ms)
    story.see()


def test_a_fetch_to_a_dead_leader_is_the_same_each_time() -> None:
    """A broker that leads thousands of partitions is dead for seconds before it is fenced."""
    story = in_session(replica("orders", (0, 5, 3)), replica("bills", (0, 1, 3)))
    requests = []
    for second in (1, 2, 3):
        lost(story)
        assert (story.sends, story.timer_ms) == ([], 1_000 * second)
        story.wait()
        requests.append(story.take())
    assert (requests[0].session_id, requests[0].session_epoch) == (SESSION, 0)
    assert named(story) == ([ORDERS, BILLS], [])
    assert requests[0] is requests[1] is requests[2]


def test_a_partition_that_comes_while_all_others_back_off_is_fetched_at_once() -> None:
    story = in_session(replica("orders", (0, 5, 3)))
    lost(story)
    bills = replica("bills", (0, 1, 3))
    bills.context = story.context
    story.now_ms = 400
    story.fetcher.add(bills)
    story.poll()
    assert position(story) == (SESSION, 0)
    assert named(story) == ([BILLS], [])
    story.now_ms = 1_000
    story.respond(fetch_response({BILLS: IDLE}, session_id=SESSION + 1))
    assert position(story) == (SESSION + 1, 1)
    assert named(story) == ([ORDERS], [])


def test_what_changes_while_all_back_off_is_in_the_next_fetch() -> None:
    """The log start has moved, a partition has gone, and so has the broker epoch."""
    orders, bills = replica("orders", (0, 5, 3)), replica("bills", (0, 1, 3))
    story = in_session(orders, bills)
    lost(story)
    orders.replica_log.maybe_increment_high_watermark(3)
    orders.replica_log.maybe_increment_log_start_offset(2)
    story.fetcher.log_start_moved(orders.key)
    story.fetcher.remove(bills.key)
    story.wait()
    request = story.take()
    assert named(story) == ([ORDERS], [])
    assert request.topics[0].partitions[0].log_start_offset == 2

    lost(story)
    story.context.view = BrokerView(43)
    story.wait()
    assert story.take().replica_state.replica_epoch == 43
