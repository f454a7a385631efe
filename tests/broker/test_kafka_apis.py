"""Responses of a broker from its image, and requests that it forwards to the controller."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from minicluster.broker.api_state import KafkaApisConfig
from minicluster.broker.kafka_apis import (
    HANDLERS,
    KafkaApis,
    supported_versions,
)
from minicluster.effects import Effect, Respond, Send, SetTimer
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    UnregisterBrokerRequest,
    UpdateFeaturesRequest,
    VoteRequest,
)
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from minicluster.protocol.topics import invalid_name_reason
from minicluster.rules import Rules
from tests.protocol.values import error_codes, filled

ORDERS = uuid.UUID(int=0xA)
SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
CONTROLLER, OTHER_CONTROLLER = 101, 102


def broker(number: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=number,
        broker_epoch=number,
        incarnation_id=uuid.UUID(int=number),
        fenced=False,
        end_points=(
            RegisterBrokerRecord.BrokerEndpoint(
                name="PLAINTEXT", host="localhost", port=9_000 + number, security_protocol=0
            ),
        ),
        features=(
            RegisterBrokerRecord.BrokerFeature(
                name="metadata.version", min_supported_version=7, max_supported_version=30
            ),
        ),
    )


IMAGE = apply_all(
    MetadataImage.EMPTY,
    [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        broker(1),
        broker(2),
        broker(3),
        BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, fenced=1),
        TopicRecord(name="orders", topic_id=ORDERS),
        PartitionRecord(
            partition_id=0,
            topic_id=ORDERS,
            replicas=(1, 2, 3),
            isr=(1, 2),
            leader=1,
            leader_epoch=4,
            partition_epoch=9,
        ),
        PartitionRecord(
            partition_id=1,
            topic_id=ORDERS,
            replicas=(3,),
            isr=(3,),
            leader=-1,
            leader_epoch=2,
            partition_epoch=2,
        ),
    ],
)


class Story:
    def __init__(self, broker_id: int = 1, rules: Rules = Rules.KAFKA_4_3) -> None:
        self.api = KafkaApis(
            KafkaApisConfig(
                broker_id=broker_id,
                cluster_id="a-cluster",
                static={"auto.create.topics.enable": "false"},
                rules=rules,
            )
        )
        self.api.on_metadata(IMAGE, 77)
        self.now_ms = 0

    def request(self, request: Any, version: int) -> list[Effect]:
        return self.api.on_request("who", request, version, self.now_ms)

    def respond(self, request: Any, version: int) -> Any:
        (response,) = self.request(request, version)
        assert isinstance(response, Respond)
        assert response.token == "who"
        return response.response


def test_metadata_names_live_brokers_and_topics_with_their_partitions() -> None:
    response: MetadataResponse = Story().respond(MetadataRequest(topics=None), 12)
    assert [(b.node_id, b.port) for b in response.brokers] == [(1, 9_001), (2, 9_002)]
    assert (response.cluster_id, response.controller_id) == ("a-cluster", 1)
    (topic,) = response.topics
    assert (topic.name, topic.topic_id) == ("orders", ORDERS)
    first, second = topic.partitions
    assert (first.leader_id, first.leader_epoch, first.isr_nodes) == (1, 4, (1, 2))
    assert (first.error_code, first.offline_replicas) == (ErrorCode.NONE, (3,))
    assert (second.leader_id, second.error_code) == (-1, ErrorCode.LEADER_NOT_AVAILABLE)


def test_a_fenced_broker_names_another_live_one_as_controller() -> None:
    assert Story(broker_id=3).respond(MetadataRequest(topics=None), 12).controller_id == 1


@pytest.mark.parametrize(
    ("topics", "version", "names"),
    [((), 0, ["orders"]), ((), 1, []), (None, 1, ["orders"])],
)
def test_no_topics_means_all_of_them_only_in_version_0(
    topics: Any, version: int, names: list[str]
) -> None:
    response = Story().respond(MetadataRequest(topics=topics), version)
    assert [topic.name for topic in response.topics] == names


@pytest.mark.parametrize(
    ("requested", "error"),
    [
        ({"name": "orders"}, ErrorCode.NONE),
        ({"name": None, "topic_id": ORDERS}, ErrorCode.NONE),
        ({"name": "bills"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"name": "bad name"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": None, "topic_id": uuid.UUID(int=5)}, ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_each_requested_topic_has_its_own_error(requested: Any, error: ErrorCode) -> None:
    request = MetadataRequest(topics=(MetadataRequest.MetadataRequestTopic(**requested),))
    assert Story().respond(request, 12).topics[0].error_code == error


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_without_name_and_id_breaks_the_request_unless_others_have_ids(
    version: int,
) -> None:
    """Topic.validate(null) throws; where there are ids, names are not looked at."""
    kind = MetadataRequest.MetadataRequestTopic
    nameless, named, by_id = kind(name=None), kind(name="bills"), kind(name=None, topic_id=ORDERS)
    story = Story()
    response = story.respond(MetadataRequest(topics=(named, nameless)), version)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    response = story.respond(MetadataRequest(topics=(nameless, by_id)), version)
    assert [(t.name, t.error_code) for t in response.topics] == [("orders", ErrorCode.NONE)]


@pytest.mark.parametrize("version", [0, 5, 8, 10, 13])
def test_metadata_responses_can_be_written_in_every_version(version: int) -> None:
    response = Story().respond(MetadataRequest(topics=None), version)
    decoded = decode(MetadataResponse, encode(response, version), version)
    assert [b.node_id for b in decoded.brokers] == [1, 2]


def test_api_versions_lists_what_is_served_and_the_finalized_features() -> None:
    response: ApiVersionsResponse = Story().respond(SOFTWARE, 3)
    offered = {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}
    assert offered[1] == (4, 18)
    assert offered[0] == (0, 13)
    assert 56 not in offered, "AlterPartition is between brokers and controllers"
    assert 71 not in offered, "clients would request telemetry if it were offered"
    assert [(f.name, f.max_version_level) for f in response.finalized_features] == [
        ("metadata.version", 30)
    ]
    assert response.finalized_features_epoch == 77
    assert list(offered) == sorted(offered)


def test_a_login_over_plaintext_is_rejected_by_what_is_offered() -> None:
    """A client that is set to SASL reads that the listener expects none (KafkaApis)."""
    story = Story()
    offered = {key.api_key for key in story.respond(SOFTWARE, 3).api_keys}
    assert {17, 36} <= offered
    handshake = story.respond(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert handshake == SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    authenticate = story.respond(SaslAuthenticateRequest(auth_bytes=b"me"), 2)
    assert authenticate == SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )


def test_the_rules_of_3_9_offer_the_versions_of_3_9() -> None:
    offered = supported_versions(Rules.KAFKA_3_9)
    assert (offered[1], offered[0], offered[3]) == (range(18), range(12), range(13))


def test_3_9_has_groups_of_kip_848_in_their_first_version_only() -> None:
    """Version 1, with regular expressions and the types of members, came with 4.0."""
    for rules, versions in ((Rules.KAFKA_3_9, range(1)), (Rules.KAFKA_4_3, range(2))):
        offered = supported_versions(rules)
        assert (offered[68], offered[69]) == (versions, versions)


def test_administration_goes_to_the_active_controller_and_its_response_comes_back() -> None:
    story = Story()
    request = CreateTopicsRequest(timeout_ms=1_000)
    waits = story.request(request, 7)
    assert not any(isinstance(effect, Send) for effect in waits)
    (_, send) = story.api.channel.on_controller(CONTROLLER, 0)
    assert isinstance(send, Send)
    assert (send.to, send.request, send.version) == (CONTROLLER, request, 7)
    assert story.api.channel.owns(send.correlation_id)
    response = CreateTopicsResponse()
    assert story.api.on_response(send.correlation_id, response, 5) == [Respond("who", response)]


def test_a_response_of_a_controller_that_is_active_no_more_is_not_passed_on() -> None:
    story = Story()
    story.api.channel.on_controller(CONTROLLER, 0)
    request = CreateTopicsRequest(topics=(CreateTopicsRequest.CreatableTopic(name="bills"),))
    (send,) = story.request(request, 7)
    assert isinstance(send, Send)
    kind = CreateTopicsResponse.CreatableTopicResult
    refusal = CreateTopicsResponse(
        topics=(kind(name="bills", error_code=ErrorCode.NOT_CONTROLLER),)
    )
    effects = story.api.on_response(send.correlation_id, refusal, 5)
    assert [type(effect) for effect in effects] == [SetTimer]
    again = story.api.channel.on_controller(OTHER_CONTROLLER, 6)
    assert [effect.to for effect in again if isinstance(effect, Send)] == [OTHER_CONTROLLER]


REQUESTS = [
    CreateTopicsRequest(topics=(CreateTopicsRequest.CreatableTopic(name="bills"),)),
    DeleteTopicsRequest(topics=(DeleteTopicsRequest.DeleteTopicState(topic_id=ORDERS),)),
    IncrementalAlterConfigsRequest(
        resources=(
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=2, resource_name="orders"
            ),
        )
    ),
    ElectLeadersRequest(
        topic_partitions=(ElectLeadersRequest.TopicPartitions(topic="orders", partitions=(0, 1)),)
    ),
    UnregisterBrokerRequest(broker_id=3),
    UpdateFeaturesRequest(),
]


@pytest.mark.parametrize(
    "kind", [kind for kind, handle in HANDLERS.items() if handle is KafkaApis.forward]
)
def test_every_forwarded_request_times_out_after_a_minute_without_a_controller(kind: Any) -> None:
    for version in kind.valid_versions:
        story = Story()
        (timer,) = story.request(filled(kind, version), version)
        assert isinstance(timer, SetTimer)
        assert timer.at_ms == 60_000
        (response,) = [e for e in story.api.on_timer(timer.name, 60_000) if isinstance(e, Respond)]
        assert ErrorCode.REQUEST_TIMED_OUT in set(error_codes(response.response))
        encode(response.response, version)


def test_what_is_not_for_brokers_is_refused() -> None:
    response = Story().respond(VoteRequest(), 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250])
def test_a_bad_topic_name_is_refused(name: str) -> None:
    assert invalid_name_reason(name)
    assert invalid_name_reason("orders-2.new_1") is None
