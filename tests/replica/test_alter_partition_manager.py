"""The AlterPartition manager: group G, Kafka's AlterPartitionManagerTest."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.channel.backoff import RETRY_BACKOFF_MS
from minicluster.effects import Send
from minicluster.metadata.image.partition import RECOVERING
from minicluster.protocol import ZERO_UUID, ErrorCode, decode, encode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.replica.broker_context import AlterPartitionItem, AlterPartitionResult
from minicluster.rules import Rules
from tests.replica.manager_kit import NOW_MS, ManagerKit

BAR, ZAR = UUID(int=1), UUID(int=2)
NAMES = {BAR: "bar", ZAR: "zar", ZERO_UUID: "foo"}
NONE = ErrorCode.NONE
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


def item(partition: int = 0, topic_id: UUID = BAR, **fields: Any) -> AlterPartitionItem:
    """An item of leader 1 for brokers 1, 2 and 3."""
    return AlterPartitionItem(
        **{
            "topic": NAMES[topic_id],
            "topic_id": topic_id,
            "partition": partition,
            "leader": 1,
            "leader_epoch": 0,
            "partition_epoch": 10,
            "isr": ((1, 101), (2, 102), (3, 103)),
            **fields,
        }
    )


def partitions(sends: list[Send]) -> list[int]:
    """The partitions in the one request."""
    (send,) = sends
    return [data.partition_index for topic in send.request.topics for data in topic.partitions]


def response(*results: tuple[AlterPartitionItem, ErrorCode], names: bool = False) -> Any:
    """A response without top-level error; each item is committed, or has an error."""
    return AlterPartitionResponse(
        topics=tuple(
            AlterPartitionResponse.TopicData(
                topic_id=ZERO_UUID if names else ended.topic_id,
                topic_name=ended.topic if names else "",
                partitions=(
                    AlterPartitionResponse.PartitionData(
                        partition_index=ended.partition,
                        error_code=error,
                        leader_id=1,
                        isr=ended.members,
                        partition_epoch=11,
                    ),
                ),
            )
            for ended, error in results
        )
    )


def test_g01_a_request_carries_the_broker_epoch_and_the_members_with_theirs() -> None:
    (send,) = ManagerKit().submit(item())
    assert send.version == 3
    request = decode(AlterPartitionRequest, encode(send.request, 3), 3)
    assert (request.broker_id, request.broker_epoch) == (1, 101)
    (data,) = request.topics[0].partitions
    assert data.partition_epoch == 10
    members = [(state.broker_id, state.broker_epoch) for state in data.new_isr_with_epochs]
    assert members == [(1, 101), (2, 102), (3, 103)]
    assert request.topics[0].topic_id == BAR


@pytest.mark.parametrize(("sends", "state"), [(True, RECOVERING), (False, 0)])
def test_g02_the_recovery_state_is_sent_from_metadata_version_3_2_on(
    sends: bool, state: int
) -> None:
    kit = ManagerKit(rules=Rules.KAFKA_3_9)
    kit.context.sends_recovery_state = sends
    (send,) = kit.submit(item(recovery_state=RECOVERING))
    assert send.request.topics[0].partitions[0].leader_recovery_state == state


def test_g03_a_second_item_for_a_partition_is_not_attempted() -> None:
    kit = ManagerKit()
    first = item()
    kit.submit(first, "first")
    kit.submit(item(), "second")
    assert kit.take_ended() == {"second": NOT_ATTEMPTED}
    assert kit.respond(response((first, NONE))) == []
    assert kit.take_ended() == {"first": NONE}
    assert len(kit.submit(item())) == 1


def test_g04_one_request_is_in_flight_and_the_next_holds_all_that_waits() -> None:
    kit = ManagerKit()
    assert partitions(kit.submit(item(0))) == [0]
    for index in range(1, 10):
        assert kit.submit(item(index)) == []
    assert partitions(kit.respond(response())) == list(range(10))
    assert kit.take_ended() == {}


def test_g06_a_partition_that_a_response_leaves_out_is_sent_again() -> None:
    kit = ManagerKit()
    items = [item(index) for index in range(3)]
    for index, each in enumerate(items):
        kit.submit(each, str(index))
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert partitions(kit.respond(response((items[0], error)))) == [1, 2]
    assert kit.take_ended() == {"0": error}
    assert partitions(kit.respond(response((items[2], NONE)))) == [1]
    assert kit.take_ended() == {"2": NONE}


def test_g07_topics_without_id_cap_the_version_where_names_are_still_known() -> None:
    kit = ManagerKit(rules=Rules.KAFKA_3_9)
    zar, foo, bar = item(0, ZAR), item(0, ZERO_UUID), item(0, BAR)
    (send,) = kit.submit(zar, "zar")
    assert send.version == 3
    kit.submit(foo, "foo")
    kit.submit(bar, "bar")
    (send,) = kit.respond(response((zar, NONE)))
    assert kit.take_ended() == {"zar": NONE}
    assert send.version == 1
    request = decode(AlterPartitionRequest, encode(send.request, 1), 1)
    assert [topic.topic_name for topic in request.topics] == ["foo", "bar"]
    assert request.topics[0].partitions[0].new_isr == (1, 2, 3)
    kit.respond(response((foo, NONE), (bar, NONE), names=True))
    assert kit.take_ended() == {"foo": NONE, "bar": NONE}


def test_g08_an_item_submitted_on_completion_leaves_with_what_is_left() -> None:
    kit = ManagerKit()
    first, second = item(0), item(1)
    kit.submit(first, "first")
    kit.submit(second)
    kit.again = item(0, partition_epoch=11)
    sends = kit.respond(response((first, ErrorCode.UNKNOWN_SERVER_ERROR)))
    assert sorted(partitions(sends)) == [0, 1]
    assert kit.take_ended() == {"first": ErrorCode.UNKNOWN_SERVER_ERROR}


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.NOT_CONTROLLER,
        None,
    ],
)
def test_g09_after_a_top_level_error_or_no_response_all_is_sent_again_50_ms_later(
    error: ErrorCode | None,
) -> None:
    kit = ManagerKit()
    first = item()
    kit.submit(first)
    failed = None if error is None else AlterPartitionResponse(error_code=error)
    assert kit.respond(failed) == []
    assert kit.timers_ms == [NOW_MS + RETRY_BACKOFF_MS]
    assert kit.manager.items == (first,)
    assert kit.wake(NOW_MS + RETRY_BACKOFF_MS - 1) == []
    kit.register(202)
    (send,) = kit.wake(NOW_MS + RETRY_BACKOFF_MS)
    assert send.request.broker_epoch == 202, "the epoch is that of when the request leaves"
    assert kit.respond(response((first, NONE))) == []
    assert kit.manager.items == ()


def test_g09_a_submit_sends_sooner_than_the_timer() -> None:
    kit = ManagerKit()
    kit.submit(item(0))
    kit.respond(None)
    assert partitions(kit.submit(item(1))) == [0, 1]
    assert kit.wake(NOW_MS + RETRY_BACKOFF_MS) == []


def test_each_failure_has_its_own_time_to_try_again() -> None:
    kit = ManagerKit()
    kit.submit(item(0))
    kit.respond(None)
    kit.submit(item(1))
    kit.respond(None, NOW_MS + 20)
    assert kit.timers_ms == [NOW_MS + RETRY_BACKOFF_MS]
    assert partitions(kit.wake(NOW_MS + RETRY_BACKOFF_MS)) == [0, 1]
    assert kit.timers_ms == [NOW_MS + RETRY_BACKOFF_MS + 20]
    assert kit.wake(NOW_MS + RETRY_BACKOFF_MS + 20) == []


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_g10_an_error_of_a_partition_ends_its_item(error: ErrorCode) -> None:
    kit = ManagerKit()
    first = item()
    kit.submit(first, "first")
    kit.respond(response((first, error)))
    assert kit.take_ended() == {"first": error}
    assert len(kit.submit(item())) == 1


def test_a_result_has_what_the_controller_committed_and_an_unknown_state_is_an_error() -> None:
    def result_of(state: int) -> AlterPartitionResult:
        kit = ManagerKit()
        kit.submit(item())
        data = AlterPartitionResponse.PartitionData(
            leader_id=1, leader_epoch=4, isr=(1, 2), leader_recovery_state=state, partition_epoch=9
        )
        topic = AlterPartitionResponse.TopicData(topic_id=BAR, partitions=(data,))
        kit.respond(AlterPartitionResponse(topics=(topic,)))
        ((_, result),) = kit.ended
        return result

    assert result_of(1) == AlterPartitionResult(
        leader=1, leader_epoch=4, isr=(1, 2), recovery_state=1, partition_epoch=9
    )
    assert result_of(7).error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_made_anew_waits_beside_its_predecessor_by_id_and_not_by_name() -> None:
    again = item(0, ZAR, topic="bar")
    by_id, by_name = ManagerKit(), ManagerKit(rules=Rules.KAFKA_3_9)
    for kit in (by_id, by_name):
        kit.submit(item(), "first")
        kit.submit(again, "again")
    assert by_id.take_ended() == {}
    assert by_name.take_ended() == {"again": NOT_ATTEMPTED}


def test_a_response_that_nothing_waits_for_is_ignored() -> None:
    kit = ManagerKit()
    assert kit.respond(response()) == []
    assert kit.respond(None) == []
    assert kit.timers_ms == []
