"""Ids for producers: blocks from the controller, ids one by one."""

from __future__ import annotations

from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from tests.coordinator.transaction_bench import OWN, Bench

BLOCK = 10


class Story:
    def __init__(self) -> None:
        self.bench = Bench(holds=True)
        self.next_block = 0

    @property
    def sends(self) -> list[Any]:
        return self.bench.sends

    def init(self) -> Any:
        return self.bench.init(None, version=4)

    def allocate(self, error: ErrorCode = ErrorCode.NONE) -> None:
        request = self.sends[0].request
        assert isinstance(request, AllocateProducerIdsRequest)
        assert (request.broker_id, request.broker_epoch) == (OWN, 41)
        response = AllocateProducerIdsResponse(
            error_code=error, producer_id_start=self.next_block, producer_id_len=BLOCK
        )
        self.next_block += BLOCK
        self.bench.respond(response)


def test_the_first_one_has_to_retry_while_a_block_is_fetched() -> None:
    story = Story()
    assert story.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert story.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert len(story.sends) == 1
    story.allocate()
    response = story.init()
    assert (response.error_code, response.producer_id, response.producer_epoch) == (0, 0, 0)


def test_no_id_is_given_twice_and_the_next_block_comes_before_it_is_needed() -> None:
    story = Story()
    story.init()
    story.allocate()
    ids = []
    for _ in range(5 * BLOCK):
        ids.append(story.init().producer_id)
        if story.sends:
            assert len(ids) % BLOCK == BLOCK - 1
            story.allocate()
    assert ids == list(range(5 * BLOCK))


def test_a_refused_block_is_requested_again_a_little_later() -> None:
    story = Story()
    story.init()
    story.allocate(ErrorCode.STALE_BROKER_EPOCH)
    assert story.init().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert not story.sends
    story.bench.advance(50)
    story.init()
    assert len(story.sends) == 1
