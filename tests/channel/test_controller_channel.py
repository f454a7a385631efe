"""The queue of requests to the controller: order, retries, and an end for each request."""

from __future__ import annotations

import pytest

from minicluster.channel.controller_channel import (
    RECHECK_MS,
    ClientResponse,
    ControllerChannel,
    CorrelationIds,
)
from minicluster.effects import Effect, Send
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionResponse,
)

CONTROLLER, ANOTHER = 101, 102
TIMEOUT_MS = 60_000


def channel() -> ControllerChannel:
    return ControllerChannel("test", CorrelationIds(), retry_timeout_ms=TIMEOUT_MS)


def sends(effects: list[Effect]) -> list[Send]:
    return [effect for effect in effects if isinstance(effect, Send)]


def tokens(ended: list[ClientResponse]) -> list[str]:
    return [request.token for request in ended]


def submit(queue: ControllerChannel, token: str, now_ms: int) -> list[Send]:
    return sends(queue.submit(token, AlterConfigsRequest(), 0, now_ms))


def test_requests_leave_one_at_a_time_in_order() -> None:
    queue = channel()
    queue.on_controller(CONTROLLER, 0)
    (first,) = submit(queue, "a", 0)
    assert submit(queue, "b", 0) == []
    effects = queue.on_response(first.correlation_id, AlterConfigsResponse(), 5)
    assert tokens(queue.take_ended()) == ["a"] and len(sends(effects)) == 1


@pytest.mark.parametrize(
    "response",
    [
        None,
        AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER),
        AlterConfigsResponse(
            responses=(
                AlterConfigsResponse.AlterConfigsResourceResponse(),
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=ErrorCode.NOT_CONTROLLER
                ),
            )
        ),
    ],
    ids=["none", "as a whole", "in an item"],
)
def test_a_request_to_an_inactive_controller_is_sent_again(response: object) -> None:
    queue = channel()
    queue.on_controller(CONTROLLER, 0)
    (first,) = submit(queue, "a", 0)
    if response is None:
        effects = queue.on_failure(first.correlation_id, 5)
    else:
        effects = queue.on_response(first.correlation_id, response, 5)
    assert queue.take_ended() == [] and sends(effects) == []
    (again,) = sends(queue.on_controller(ANOTHER, 7))
    assert (again.to, again.request) == (ANOTHER, first.request)


def test_the_same_controller_is_tried_again_after_a_moment() -> None:
    queue = channel()
    queue.on_controller(CONTROLLER, 0)
    (first,) = submit(queue, "a", 0)
    queue.on_failure(first.correlation_id, 5)
    effects = queue.on_timer(5 + RECHECK_MS)
    assert len(sends(effects)) == 1


def test_a_request_that_times_out_ends_even_if_another_comes_at_that_moment() -> None:
    queue = channel()
    submit(queue, "a", 0)
    submit(queue, "b", TIMEOUT_MS)
    queue.on_timer(TIMEOUT_MS)
    assert [(request.token, request.response) for request in queue.take_ended()] == [("a", None)]


def test_a_controller_that_is_elected_at_the_timeout_gets_the_request() -> None:
    queue = channel()
    submit(queue, "a", 0)
    (send,) = sends(queue.on_controller(CONTROLLER, TIMEOUT_MS))
    queue.on_response(send.correlation_id, AlterConfigsResponse(), TIMEOUT_MS + 1)
    assert tokens(queue.take_ended()) == ["a"]
