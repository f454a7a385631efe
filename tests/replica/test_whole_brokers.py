"""Brokers from start to controlled shutdown, against the controller machine itself."""

from __future__ import annotations

import pytest

from minicluster.broker.lifecycle import BrokerState
from minicluster.protocol import ErrorCode
from minicluster.rules import Rules
from tests.replica.whole import CONTROLLER, Whole

SESSION_MS = 9_000
START_MS = 100


@pytest.fixture(params=[Rules.KAFKA_4_3, Rules.KAFKA_3_9], ids=lambda rules: rules.name)
def whole(request: pytest.FixtureRequest) -> Whole:
    """Three running brokers."""
    whole = Whole(rules=request.param)
    whole.advance(START_MS)
    assert whole.all_running()
    return whole


def test_brokers_register_catch_up_and_are_unfenced_within_a_tenth_of_a_second() -> None:
    whole = Whole()
    whole.advance(START_MS)
    assert whole.states[1] == [BrokerState.STARTING, BrokerState.RECOVERY, BrokerState.RUNNING]
    assert not any(whole.is_fenced(broker) for broker in whole.brokers)


def test_a_topic_is_created_through_any_broker_and_replicated(whole: Whole) -> None:
    created = whole.create_topic()
    whole.advance(20)
    assert whole.response(created).topics[0].error_code == ErrorCode.NONE
    produce = whole.produce(whole.partition().leader, b"a")
    whole.advance(20)
    assert whole.produced(produce) == ErrorCode.NONE
    assert whole.values(1) == whole.values(2) == whole.values(3) == [b"a"]


def test_controlled_shutdown_hands_over_and_is_granted_when_all_have_the_metadata(
    whole: Whole,
) -> None:
    whole.create_topic()
    whole.advance(3_000)
    leader = whole.partition().leader
    whole.shut_down(leader)
    whole.advance(10)
    assert whole.brokers[leader].lifecycle.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
    after = whole.partition()
    assert after.leader not in (leader, -1)
    assert leader not in after.isr

    whole.advance(5_000)
    assert leader not in whole.brokers
    assert whole.states[leader][-1] is BrokerState.SHUTTING_DOWN
    assert whole.is_fenced(leader)
    produce = whole.produce(after.leader, b"a")
    whole.advance(20)
    assert whole.produced(produce) == ErrorCode.NONE


def test_a_clean_restart_registers_the_previous_epoch_and_comes_back(whole: Whole) -> None:
    whole.create_topic()
    whole.advance(3_000)
    known = whole.image.cluster.broker(2)
    assert known is not None
    whole.shut_down(2)
    whole.advance(5_000)
    whole.start(2)
    assert whole.registrations[-1].previous_broker_epoch == known.epoch
    whole.advance(2 * SESSION_MS)
    assert whole.all_running()
    assert sorted(whole.partition().isr) == [1, 2, 3]


def test_a_crashed_leader_is_fenced_when_its_session_ends_and_rejoins_later(whole: Whole) -> None:
    whole.create_topic()
    whole.advance(1_000)
    leader = whole.partition().leader
    whole.produce(leader, b"a")
    whole.advance(20)
    whole.crash(leader)
    whole.advance(SESSION_MS - 3_000)
    assert not whole.is_fenced(leader)
    whole.advance(5_000)
    assert whole.is_fenced(leader)
    after = whole.partition()
    assert leader not in after.isr and after.leader not in (leader, -1)

    whole.start(leader)
    assert whole.registrations[-1].previous_broker_epoch == -1
    whole.advance(SESSION_MS + 5_000)
    assert whole.all_running()
    assert sorted(whole.partition().isr) == [1, 2, 3]
    assert whole.values(leader) == [b"a"]


def test_a_follower_that_only_the_controller_cannot_reach_stays_out_of_the_isr(
    whole: Whole,
) -> None:
    """KIP-841: it fetches all the time, but it is fenced, and so it is not proposed."""
    whole.create_topic()
    whole.advance(1_000)
    leader = whole.partition().leader
    follower = next(broker for broker in (1, 2, 3) if broker != leader)
    whole.cuts.add((follower, CONTROLLER))
    whole.advance(SESSION_MS + 3_000)
    assert whole.is_fenced(follower)
    assert follower not in whole.partition().isr
    whole.advance(10_000)
    assert follower not in whole.partition().isr
    whole.cuts.clear()
    whole.advance(20_000)
    assert not whole.is_fenced(follower)
    assert follower in whole.partition().isr


def test_a_leader_that_lost_the_controller_cannot_shrink_and_is_replaced(whole: Whole) -> None:
    whole.create_topic()
    whole.advance(1_000)
    leader = whole.partition().leader
    whole.cuts |= {(leader, CONTROLLER)} | {(b, leader) for b in (1, 2, 3) if b != leader}
    whole.advance(60_000)
    after = whole.partition()
    assert after.leader not in (leader, -1)
    assert leader not in after.isr
    whole.cuts.clear()
    whole.advance(60_000)
    assert sorted(whole.partition().isr) == [1, 2, 3]
