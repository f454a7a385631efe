"""The order of topics in a Metadata response, as Kafka 4.3.0 and Scala 2.13 give it."""

from __future__ import annotations

import uuid

import pytest

from minicluster.broker.api_state import ApiState, KafkaApisConfig
from minicluster.broker.requests.metadata import metadata
from minicluster.metadata.image.metadata_image import apply_all
from minicluster.protocol.messages import MetadataRequest
from minicluster.protocol.records import TopicRecord
from tests.broker.test_kafka_apis import IMAGE

NAMES = ("plain", "compact", "stamped", "small", "window", "gone")
Requested = MetadataRequest.MetadataRequestTopic


def ordered(there: int, *, created: tuple[str, ...] = (), wanted: int = len(NAMES)) -> list[str]:
    """The names of a response to the first names, of which some are there."""
    topics = [
        TopicRecord(name=name, topic_id=uuid.UUID(int=100 + n))
        for n, name in enumerate(NAMES[:there])
    ]
    state = ApiState(KafkaApisConfig(broker_id=1, cluster_id="x"), apply_all(IMAGE, topics))
    request = MetadataRequest(topics=tuple(Requested(name=name) for name in NAMES[:wanted]))
    return [topic.name or "" for topic in metadata(state, request, 12, created).topics]


@pytest.mark.parametrize(
    ("there", "order"),
    [
        (3, "stamped plain compact window small gone"),
        (5, "window small stamped plain compact gone"),
    ],
)
def test_more_than_four_topics_come_in_the_order_of_a_trie(there: int, order: str) -> None:
    """Both are recorded; those that are not there follow."""
    assert ordered(there) == order.split()


def test_up_to_four_topics_come_as_they_are_named() -> None:
    assert ordered(4, wanted=4) == list(NAMES[:4])
    assert ordered(2, wanted=4) == list(NAMES[:4])


def test_topics_that_are_created_come_last() -> None:
    """Source: DefaultAutoTopicCreationManager.filterCreatableTopics."""
    first = ["stamped", "plain", "compact", "window"]
    assert ordered(3, created=("small",)) == [*first, "gone", "small"]
