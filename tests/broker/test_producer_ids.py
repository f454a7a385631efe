"""Ids for idempotent producers: blocks from the controller, ids one by one."""

from __future__ import annotations

import uuid
from typing import Any

from minicluster.broker.kafka_apis import KafkaApis
from minicluster.broker.state.api_state import KafkaApisConfig
from minicluster.effects import Effect, Respond, Send
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    InitProducerIdRequest,
)
from minicluster.protocol.records import RegisterBrokerRecord

BLOCK = 10


class Story:
    def __init__(self) -> None:
        self.api = KafkaApis(KafkaApisConfig(broker_id=1, cluster_id="a-cluster"))
        record = RegisterBrokerRecord(
            broker_id=1, broker_epoch=42, incarnation_id=uuid.UUID(int=1), fenced=False
        )
        self.api.on_metadata(apply_all(MetadataImage.EMPTY, [record]), 0)
        self.api.channel.on_controller(101, 0)
        self.now_ms = 0
        self.sends: list[Send] = []
        self.next_block = 0

    def see(self, effects: list[Effect]) -> Any:
        responses = [effect.response for effect in effects if isinstance(effect, Respond)]
        self.sends += [effect for effect in effects if isinstance(effect, Send)]
        return responses[0] if responses else None

    def init(self, **fields: Any) -> Any:
        request = InitProducerIdRequest(**{"transactional_id": None, **fields})
        return self.see(self.api.on_request("who", request, 4, self.now_ms))

    def allocate(self, error: ErrorCode = ErrorCode.NONE) -> None:
        send = self.sends.pop(0)
        assert isinstance(send.request, AllocateProducerIdsRequest)
        assert (send.request.broker_id, send.request.broker_epoch) == (1, 42)
        response = AllocateProducerIdsResponse(
            error_code=error, producer_id_start=self.next_block, producer_id_len=BLOCK
        )
        self.next_block += BLOCK
        self.see(self.api.on_response(send.correlation_id, response, self.now_ms))


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
    story.now_ms += 50
    story.init()
    assert len(story.sends) == 1


def test_transactions_are_refused_because_nobody_coordinates_them() -> None:
    assert Story().init(transactional_id="t").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
