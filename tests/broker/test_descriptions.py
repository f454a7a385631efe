"""Descriptions that clients get from a broker, beyond the recorded requests."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.broker.api_state import KafkaApisConfig
from minicluster.broker.kafka_apis import KafkaApis
from minicluster.effects import Respond
from minicluster.metadata.image.metadata_image import apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from minicluster.protocol.records import ClientQuotaRecord, ConfigRecord
from tests.broker.test_kafka_apis import IMAGE

EXACT, DEFAULT, SPECIFIED = range(3)


def responded(request: Any, *records: Any, version: int = 0) -> Any:
    """The response that a broker of this image gives at once."""
    api = KafkaApis(KafkaApisConfig(broker_id=1, cluster_id="a-cluster"))
    api.on_metadata(apply_all(IMAGE, records), 1)
    (effect,) = api.on_request("client", request, version, 0)
    assert isinstance(effect, Respond)
    return effect.response


def quota(name: str | None, key: str = "producer_byte_rate", **others: str) -> ClientQuotaRecord:
    kind = ClientQuotaRecord.EntityData
    entity = tuple(
        kind(entity_type=entity_type.replace("_", "-"), entity_name=value)
        for entity_type, value in {"user": name, **others}.items()
    )
    return ClientQuotaRecord(entity=entity, key=key, value=1.0)


def test_the_default_is_among_the_entities_of_a_specified_type() -> None:
    """Source: ClientQuotasImage.matches."""
    component = DescribeClientQuotasRequest.ComponentData(
        entity_type="user", match_type=SPECIFIED, match=None
    )
    request = DescribeClientQuotasRequest(components=(component,), strict=True)
    found = responded(request, quota("alice"), quota(None))
    assert {entry.entity[0].entity_name for entry in found.entries} == {"alice", None}


def test_quotas_come_in_the_order_of_hash_maps() -> None:
    """Kafka 4.3.0 prints this for its own image of these records."""
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
    users = [quota(name, key) for name in ("alice", None, "carol") for key in keys]
    both = quota("bob", client_id="app")
    found = responded(DescribeClientQuotasRequest(), *users, both).entries
    shown = [[f"{e.entity_type}={e.entity_name}" for e in entry.entity] for entry in found]
    of_both = ["client-id=app", "user=bob"]
    assert shown == [["user=None"], ["user=alice"], of_both, ["user=carol"]]
    assert [value.key for value in found[0].values] == [keys[1], keys[0], keys[2]]


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        (("orders",), ErrorCode.INVALID_REQUEST),
        (("orders", "payments"), ErrorCode.NONE),
        ((), ErrorCode.NONE),
    ],
)
def test_a_cursor_lies_at_a_requested_topic(topics: tuple[str, ...], error: ErrorCode) -> None:
    """Source: DescribeTopicPartitionsRequestHandler."""
    kind = DescribeTopicPartitionsRequest
    request = kind(
        topics=tuple(kind.TopicRequest(name=name) for name in topics),
        cursor=kind.Cursor(topic_name="payments", partition_index=0),
    )
    found = responded(request)
    refused = {topic.error_code for topic in found.topics} == {ErrorCode.INVALID_REQUEST}
    assert refused == (error == ErrorCode.INVALID_REQUEST)


def test_an_empty_name_without_a_cursor_breaks_the_description() -> None:
    """DescribeTopicPartitionsRequestHandler: no cursor is one at the empty name, and null."""
    kind = DescribeTopicPartitionsRequest
    topics = tuple(kind.TopicRequest(name=name) for name in ("orders", ""))
    broken = [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert [topic.error_code for topic in responded(kind(topics=topics)).topics] == broken
    cursor = kind.Cursor(topic_name="", partition_index=0)
    found = {t.name: t.error_code for t in responded(kind(topics=topics, cursor=cursor)).topics}
    assert found == {"": ErrorCode.INVALID_TOPIC_EXCEPTION, "orders": ErrorCode.NONE}


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (AlterConfigsRequest(), AlterConfigsResponse()),
        (IncrementalAlterConfigsRequest(), IncrementalAlterConfigsResponse()),
    ],
)
def test_a_change_of_nothing_needs_no_controller(request_: Any, response: Any) -> None:
    """Source: KafkaApis.handleAlterConfigsRequest."""
    assert responded(request_) == response


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("leader.replication.throttled.rate", "1048576"),  # a quota: LONG
        ("listener.name.external.ssl.keystore.location", "store.jks"),  # that of its listener
        ("listener.name.external.ssl.keystore.password", None),
        ("my.own", None),
    ],
)
def test_a_dynamic_config_is_shown_unless_it_may_be_a_secret(name: str, value: str | None) -> None:
    """Source: KafkaConfig.configType, maybeSensitive; ConfigHelper.createBrokerConfigEntry.

    kafka-reassign-partitions reads the throttle back that it has set.
    """
    record = ConfigRecord(resource_type=4, resource_name="1", name=name, value=value or "hidden")
    kind = DescribeConfigsRequest.DescribeConfigsResource
    of_broker = kind(resource_type=4, resource_name="1", configuration_keys=(name,))
    request = DescribeConfigsRequest(resources=(of_broker,), include_synonyms=True)
    (result,) = responded(request, record, version=4).results
    (entry,) = result.configs
    assert (entry.value, entry.is_sensitive) == (value, value is None)
    assert [synonym.value for synonym in entry.synonyms[:1]] == [value]


@pytest.mark.parametrize(
    ("name", "error"),
    [("+1", ErrorCode.NONE), (" 1", ErrorCode.INVALID_REQUEST), ("1_0", ErrorCode.INVALID_REQUEST)],
)
def test_a_broker_id_is_read_as_java_does(name: str, error: ErrorCode) -> None:
    kind = DescribeConfigsRequest.DescribeConfigsResource
    (result,) = responded(
        DescribeConfigsRequest(resources=(kind(resource_type=4, resource_name=name),)), version=4
    ).results
    assert result.error_code == error
