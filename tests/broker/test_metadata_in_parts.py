"""Metadata of many partitions is described in parts, and other requests come between them."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.broker.api_state import KafkaApisConfig
from minicluster.broker.kafka_apis import KafkaApis
from minicluster.broker.requests import metadata as described
from minicluster.effects import Continue, Effect, Respond
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol.messages import MetadataRequest
from minicluster.protocol.records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.broker.test_kafka_apis import IMAGE
from tests.metadata.records import partition, topic, uid


class Asked:
    """A broker that is asked for metadata, and its parts."""

    def __init__(self, image: MetadataImage) -> None:
        self.apis = KafkaApis(KafkaApisConfig(broker_id=1, cluster_id="c"))
        self.apis.on_metadata(image, 1)
        self.effects: list[Effect] = []

    def ask(self, *names: str) -> None:
        topics = tuple(MetadataRequest.MetadataRequestTopic(name=name) for name in names) or None
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self.effects = self.apis.on_request("token", request, 12, 0)

    def next_part(self) -> bool:
        """Carry the next part out; False where the response has left."""
        [effect] = self.effects
        if isinstance(effect, Respond):
            return False
        assert isinstance(effect, Continue)
        self.effects = effect.next_part(0)
        return True

    def response(self) -> Any:
        while self.next_part():
            pass
        [effect] = self.effects
        assert isinstance(effect, Respond)
        return effect.response


MANY = apply_all(
    IMAGE, [topic("many", 7), *(partition(7, index) for index in range(11)), topic("none", 8)]
)


@pytest.fixture
def parts_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described, "PARTITIONS_PER_PART", 3)


@pytest.mark.parametrize("names", [(), ("many",), ("none", "many", "nobody"), ("none",)])
def test_metadata_in_parts_is_that_of_one_step(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_once = Asked(MANY)
    asked_once.ask(*names)
    assert isinstance(asked_once.effects[0], Respond)
    monkeypatch.setattr(described, "PARTITIONS_PER_PART", 3)
    in_parts = Asked(MANY)
    in_parts.ask(*names)
    assert isinstance(in_parts.effects[0], Respond) == (names == ("none",))
    assert in_parts.response() == asked_once.response()


@pytest.mark.usefixtures("parts_of_three")
def test_what_was_described_is_not_described_in_parts_again() -> None:
    asked = Asked(MANY)
    asked.ask()
    first = asked.response()
    asked.ask()
    assert isinstance(asked.effects[0], Respond)
    assert asked.response() == first


@pytest.mark.usefixtures("parts_of_three")
def test_another_request_is_answered_between_two_parts() -> None:
    asked = Asked(MANY)
    asked.ask()
    rest = asked.effects
    asked.ask("none")
    assert [topic.name for topic in asked.response().topics] == ["none"]
    asked.effects = rest
    assert "many" in {topic.name for topic in asked.response().topics}


@pytest.mark.usefixtures("parts_of_three")
@pytest.mark.parametrize("at", range(5))
def test_a_response_is_of_one_image_whatever_changes_between_its_parts(at: int) -> None:
    """A broker is fenced, and a partition has another leader."""
    changed = apply_all(
        MANY,
        [
            BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1),
            PartitionChangeRecord(topic_id=uid(7), partition_id=0, leader=2),
        ],
    )
    asked = Asked(MANY)
    asked.ask()
    for _ in range(at):
        asked.next_part()
    expected = Asked(changed if isinstance(asked.effects[0], Continue) else MANY)
    asked.apis.on_metadata(changed, 2)
    expected.ask()
    assert asked.response() == expected.response()
