"""A topic is described once, until it or a broker changes: clients ask for all topics often."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from minicluster.broker.api_state import ApiState, KafkaApisConfig
from minicluster.broker.requests.metadata import metadata
from minicluster.metadata.image.metadata_image import apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import MetadataRequest
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.broker.test_kafka_apis import IMAGE, ORDERS

VERSIONS = (0, 5, 6, 12)


def asked(state: ApiState, version: int = 12) -> dict[str, Any]:
    """All topics by their names."""
    request = MetadataRequest(topics=None if version else ())
    return {topic.name or "": topic for topic in metadata(state, request, version, ()).topics}


@pytest.fixture
def state() -> ApiState:
    return ApiState(KafkaApisConfig(broker_id=1, cluster_id="x"), IMAGE)


def test_a_topic_that_has_not_changed_is_not_described_again(state: ApiState) -> None:
    before = asked(state)
    state.image = apply_all(state.image, [TopicRecord(name="new", topic_id=uuid.UUID(int=9))])
    after = asked(state)
    assert after["orders"] is before["orders"] and "new" in after


def test_a_change_of_the_topic_or_of_a_broker_is_in_the_next_response(state: ApiState) -> None:
    leaders = [asked(state)["orders"].partitions[0].leader_id]
    other = PartitionChangeRecord(topic_id=ORDERS, partition_id=0, leader=2)
    state.image = apply_all(state.image, [other])
    leaders.append(asked(state)["orders"].partitions[0].leader_id)
    assert leaders == [1, 2]
    fenced = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=2, fenced=1)
    state.image = apply_all(state.image, [fenced])
    assert 2 in asked(state)["orders"].partitions[0].offline_replicas


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_what_it_has_without_the_others(state: ApiState, version: int) -> None:
    alone = asked(ApiState(state.config, IMAGE), version)
    for other in VERSIONS:
        asked(state, other)
    assert asked(state, version) == alone


def test_a_topic_that_comes_again_is_another_one(state: ApiState) -> None:
    asked(state)
    again = TopicRecord(name="orders", topic_id=uuid.UUID(int=0xB))
    state.image = apply_all(state.image, [RemoveTopicRecord(topic_id=ORDERS), again])
    topic = asked(state)["orders"]
    assert (topic.error_code, topic.topic_id) == (ErrorCode.NONE, again.topic_id)
    assert topic.partitions == ()


def test_descriptions_of_topics_that_are_gone_are_forgotten(
    state: ApiState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("minicluster.broker.api_state._GONE_MAX", 5)
    for number in range(50):
        topic = TopicRecord(name=f"t{number}", topic_id=uuid.UUID(int=1_000 + number))
        state.image = apply_all(IMAGE, [topic])
        asked(state)
        kept = state.descriptions_of(state.image.cluster)
        assert len(kept) <= 3 * len(state.image.topics) + 5 + 2
