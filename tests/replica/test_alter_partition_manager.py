"""The AlterPartition manager: group G, Kafka's AlterPartitionManagerTest."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ZERO_UUID, ErrorCode, decode, encode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.replica.partition.isr_state import (
    RECOVERING,
    AlterPartitionAnswer,
    IsrProposal,
    ProposalItem,
)
from minicluster.replica.partition.steps import ProposalAnswered
from minicluster.replica.to_controller.alter_partition_manager import (
    RETRY_MS,
    TIMER,
    AlterPartitionManager,
    AnswersGiven,
    SendAlterPartition,
)
from minicluster.rules import Rules

BAR, ZAR = UUID(int=1), UUID(int=2)
NAMES = {BAR: "bar", ZAR: "zar", ZERO_UUID: "foo"}
NOW_MS = 1_000


def item(partition: int = 0, topic_id: UUID = BAR, *, id: int = 0, **fields: Any) -> ProposalItem:
    """A proposal of leader 1 for brokers 1, 2 and 3."""
    proposal = IsrProposal(
        **{
            "leader": 1,
            "leader_epoch": 0,
            "partition_epoch": 10,
            "isr": ((1, 101), (2, 102), (3, 103)),
            **fields,
        }
    )
    return ProposalItem(
        id=id or partition + 1,
        topic=NAMES[topic_id],
        topic_id=topic_id,
        partition=partition,
        proposal=proposal,
    )


def manager(**fields: Any) -> AlterPartitionManager:
    """The manager of broker 1 in epoch 101."""
    return AlterPartitionManager(1, **{"broker_epoch": 101, **fields})


def sent(effects: list[Effect]) -> list[SendAlterPartition]:
    """The requests among effects."""
    return [effect for effect in effects if isinstance(effect, SendAlterPartition)]


def partitions(effects: list[Effect]) -> list[int]:
    """The partitions in the one request among effects."""
    (send,) = sent(effects)
    return [data.partition_index for topic in send.request.topics for data in topic.partitions]


def response(*answers: tuple[ProposalItem, ErrorCode], names: bool = False) -> Any:
    """A response without top-level error; each answer says what was asked, or an error."""
    return AlterPartitionResponse(
        topics=tuple(
            AlterPartitionResponse.TopicData(
                topic_id=ZERO_UUID if names else answered.topic_id,
                topic_name=answered.topic if names else "",
                partitions=(
                    AlterPartitionResponse.PartitionData(
                        partition_index=answered.partition,
                        error_code=error,
                        leader_id=1,
                        isr=tuple(member for member, _ in answered.isr),
                        partition_epoch=11,
                    ),
                ),
            )
            for answered, error in answers
        )
    )


def ended(effects: list[Effect]) -> dict[int, ErrorCode]:
    """The proposals that ended, by id."""
    return {e.item.id: e.answer.error for e in effects if isinstance(e, ProposalAnswered)}


def test_g01_a_request_carries_the_broker_epoch_and_the_members_with_theirs() -> None:
    (send,) = sent(manager().submit(item()))
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
    held = manager(rules=Rules.KAFKA_3_9, sends_recovery_state=sends)
    (send,) = sent(held.submit(item(recovery_state=RECOVERING)))
    assert send.request.topics[0].partitions[0].leader_recovery_state == state


def test_g03_a_second_proposal_for_a_partition_is_not_attempted() -> None:
    held = manager()
    first = item(id=1)
    held.submit(first)
    assert ended(held.submit(item(id=2))) == {2: ErrorCode.OPERATION_NOT_ATTEMPTED}
    assert ended(held.on_response(NOW_MS, response((first, ErrorCode.NONE)))) == {1: ErrorCode.NONE}
    assert held.answers_heard() == []
    assert len(sent(held.submit(item(id=3)))) == 1


def test_g04_one_request_is_in_flight_and_the_next_holds_all_that_waits() -> None:
    held = manager()
    assert partitions(held.submit(item(0))) == [0]
    for index in range(1, 10):
        assert held.submit(item(index)) == []
    assert held.on_response(NOW_MS, response()) == [AnswersGiven()]
    assert partitions(held.answers_heard()) == list(range(10))


def test_g06_a_partition_that_an_answer_leaves_out_is_sent_again() -> None:
    held = manager()
    items = [item(index) for index in range(3)]
    for each in items:
        held.submit(each)
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    assert ended(held.on_response(NOW_MS, response((items[0], error)))) == {1: error}
    assert partitions(held.answers_heard()) == [1, 2]
    assert ended(held.on_response(NOW_MS, response((items[2], ErrorCode.NONE)))) == {
        3: ErrorCode.NONE
    }
    assert partitions(held.answers_heard()) == [1]


def test_g07_topics_without_id_cap_the_version_where_names_are_still_known() -> None:
    held = manager(rules=Rules.KAFKA_3_9)
    zar, foo, bar = item(0, ZAR, id=1), item(0, ZERO_UUID, id=2), item(0, BAR, id=3)
    (send,) = sent(held.submit(zar))
    assert send.version == 3
    held.submit(foo)
    held.submit(bar)
    assert ended(held.on_response(NOW_MS, response((zar, ErrorCode.NONE)))) == {1: ErrorCode.NONE}
    (send,) = sent(held.answers_heard())
    assert send.version == 1
    request = decode(AlterPartitionRequest, encode(send.request, 1), 1)
    assert [topic.topic_name for topic in request.topics] == ["foo", "bar"]
    assert request.topics[0].partitions[0].new_isr == (1, 2, 3)
    none = ErrorCode.NONE
    assert ended(held.on_response(NOW_MS, response((foo, none), (bar, none), names=True))) == {
        2: none,
        3: none,
    }


def test_g08_what_is_submitted_on_hearing_an_answer_leaves_with_what_is_left() -> None:
    held = manager()
    first, second = item(0), item(1)
    held.submit(first)
    held.submit(second)
    effects = held.on_response(NOW_MS, response((first, ErrorCode.UNKNOWN_SERVER_ERROR)))
    assert ended(effects) == {1: ErrorCode.UNKNOWN_SERVER_ERROR}
    assert held.submit(item(0, id=9)) == [], "accepted, and it waits for the others to hear"
    assert sorted(partitions(held.answers_heard())) == [0, 1]


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
def test_g09_after_a_top_level_error_or_no_answer_all_is_sent_again_50_ms_later(
    error: ErrorCode | None,
) -> None:
    held = manager()
    first = item()
    held.submit(first)
    if error is None:
        effects = held.on_failure(NOW_MS)
    else:
        effects = held.on_response(NOW_MS, AlterPartitionResponse(error_code=error))
    assert effects == [SetTimer(TIMER, NOW_MS + RETRY_MS)]
    assert held.held == (first,)
    assert held.on_timer(NOW_MS + RETRY_MS - 1) == []
    held.broker_epoch = 202
    (send,) = sent(held.on_timer(NOW_MS + RETRY_MS))
    assert send.request.broker_epoch == 202, "the epoch is read when the request leaves"
    held.on_response(NOW_MS + RETRY_MS, response((first, ErrorCode.NONE)))
    assert held.answers_heard() == []
    assert held.held == ()


def test_g09_a_submit_sends_sooner_than_the_timer() -> None:
    held = manager()
    held.submit(item(0))
    held.on_failure(NOW_MS)
    assert partitions(held.submit(item(1))) == [0, 1]
    assert held.on_timer(NOW_MS + RETRY_MS) == []


def test_each_failure_has_its_own_time_to_try_again() -> None:
    held = manager()
    held.submit(item(0))
    held.on_failure(NOW_MS)
    held.submit(item(1))
    assert held.on_failure(NOW_MS + 20) == [SetTimer(TIMER, NOW_MS + RETRY_MS)]
    effects = held.on_timer(NOW_MS + RETRY_MS)
    assert partitions(effects) == [0, 1]
    assert SetTimer(TIMER, NOW_MS + RETRY_MS + 20) in effects
    assert held.on_timer(NOW_MS + RETRY_MS + 20) == []


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.INVALID_REQUEST,
    ],
)
def test_g10_an_error_of_a_partition_ends_its_proposal(error: ErrorCode) -> None:
    held = manager()
    first = item(id=1)
    held.submit(first)
    assert ended(held.on_response(NOW_MS, response((first, error)))) == {1: error}
    held.answers_heard()
    assert len(sent(held.submit(item(id=2)))) == 1


def test_an_answer_brings_what_the_controller_wrote_and_an_unknown_state_is_an_error() -> None:
    def answered(state: int) -> AlterPartitionAnswer:
        held = manager()
        held.submit(item())
        data = AlterPartitionResponse.PartitionData(
            leader_id=1, leader_epoch=4, isr=(1, 2), leader_recovery_state=state, partition_epoch=9
        )
        topic = AlterPartitionResponse.TopicData(topic_id=BAR, partitions=(data,))
        effects = held.on_response(NOW_MS, AlterPartitionResponse(topics=(topic,)))
        (answer,) = [e.answer for e in effects if isinstance(e, ProposalAnswered)]
        return answer

    assert answered(1) == AlterPartitionAnswer(
        leader=1, leader_epoch=4, isr=(1, 2), recovery_state=1, partition_epoch=9
    )
    assert answered(7).error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_made_anew_waits_beside_its_predecessor_by_id_and_not_by_name() -> None:
    again = ProposalItem(id=2, topic="bar", topic_id=ZAR, partition=0, proposal=item().proposal)
    by_id, by_name = manager(), manager(rules=Rules.KAFKA_3_9)
    by_id.submit(item(id=1))
    by_name.submit(item(id=1))
    assert by_id.submit(again) == []
    assert ended(by_name.submit(again)) == {2: ErrorCode.OPERATION_NOT_ATTEMPTED}


def test_an_answer_that_nobody_waits_for_is_ignored() -> None:
    held = manager()
    assert held.on_response(NOW_MS, response()) == []
    assert held.on_failure(NOW_MS) == []
