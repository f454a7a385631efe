"""A broker on ZooKeeper ends: three attempts, then it stops in any case."""

from __future__ import annotations

import pytest

from minicluster.effects import Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ControlledShutdownResponse
from minicluster.zookeeper.broker.controlled_shutdown import (
    CORRELATION_ID,
    TIMER,
    ControlledShutdown,
    LeadershipsMoved,
)

MAX_ATTEMPTS, BACKOFF_MS, REQUEST_TIMEOUT_MS = 3, 5_000, 20_000

STILL_LED = ControlledShutdownResponse(
    remaining_partitions=(
        ControlledShutdownResponse.RemainingPartition(topic_name="orders", partition_index=0),
    )
)


def broker_of(controller: int | None) -> ControlledShutdown:
    machine = ControlledShutdown(1, MAX_ATTEMPTS, BACKOFF_MS, REQUEST_TIMEOUT_MS)
    machine.controller, machine.broker_epoch = controller, 40
    return machine


def test_a_broker_stops_when_its_leaderships_have_moved() -> None:
    machine = broker_of(controller=2)
    [sent] = machine.attempt(now_ms=0)
    assert isinstance(sent, Send)
    assert (sent.to, sent.request.broker_id, sent.request.broker_epoch) == (2, 1, 40)
    assert sent.timeout_ms == REQUEST_TIMEOUT_MS
    response = ControlledShutdownResponse()
    assert machine.on_response(CORRELATION_ID, response, now_ms=5) == [LeadershipsMoved()]


@pytest.mark.parametrize(
    "response", [STILL_LED, ControlledShutdownResponse(error_code=ErrorCode.NOT_CONTROLLER)]
)
def test_the_controller_of_the_next_attempt_may_be_another(
    response: ControlledShutdownResponse,
) -> None:
    machine = broker_of(controller=2)
    machine.attempt(now_ms=0)
    again = [SetTimer(TIMER, 10 + BACKOFF_MS)]
    assert machine.on_response(CORRELATION_ID, response, now_ms=10) == again
    machine.controller = 3
    [sent] = machine.attempt(now_ms=10 + BACKOFF_MS)
    assert isinstance(sent, Send)
    assert sent.to == 3


@pytest.mark.parametrize("controller", [None, 2])
def test_a_broker_stops_after_its_last_attempt(controller: int | None) -> None:
    machine = broker_of(controller)
    effects = machine.attempt(now_ms=0)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        if controller is not None:
            effects = machine.on_failure(CORRELATION_ID, now_ms=attempt)
        if attempt < MAX_ATTEMPTS:
            assert isinstance(effects[0], SetTimer)
            effects = machine.attempt(now_ms=attempt)
    assert effects == [LeadershipsMoved()]


def test_without_an_attempt_the_broker_stops_at_once() -> None:
    """controlled.shutdown.max.retries is 0. Source:  KafkaServer.doControlledShutdown."""
    assert ControlledShutdown(1, 0, BACKOFF_MS, REQUEST_TIMEOUT_MS).attempt(now_ms=0) == [
        LeadershipsMoved()
    ]
