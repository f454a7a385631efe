"""Listeners of controllers: what Kafka's admin clients and brokers connect to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.records import RegisterBrokerRecord
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID
from minicluster.rules import Rules
from minicluster.server.controller_listener import controller_versions
from tests.listeners.raw_client import SOFTWARE, RawClient, read_response, request_bytes

# ApiKeys.apisForListener(CONTROLLER) of Apache Kafka 4.3.0: key, lowest and highest version.
KAFKA_4_3_CONTROLLER = {
    1: (4, 18), 17: (0, 1), 18: (0, 4), 19: (2, 7), 20: (1, 6), 29: (1, 3), 30: (1, 3), 31: (1, 3),
    32: (1, 4), 33: (0, 2), 36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3),
    43: (0, 2), 44: (0, 1), 45: (0, 1), 46: (0, 0), 49: (0, 1), 50: (0, 0), 51: (0, 0), 52: (0, 2),
    53: (0, 1), 54: (0, 1), 55: (0, 2), 56: (2, 3), 57: (0, 2), 58: (0, 0), 59: (0, 1), 60: (0, 2),
    62: (0, 4), 63: (0, 2), 64: (0, 0), 67: (0, 0), 70: (0, 0), 73: (0, 0), 80: (0, 1), 81: (0, 0),
    82: (0, 0),
}  # fmt: skip
PRINCIPAL = struct.pack(">h", 0) + encode(
    m.DefaultPrincipalData(type="User", name="ANONYMOUS", token_authenticated=False), 0
)


# Roles stay as they are on a machine that is busy with other things.
PATIENT = {
    "controller.quorum.election.timeout.ms": "10s",
    "controller.quorum.fetch.timeout.ms": "20s",
    "broker.session.timeout.ms": "30s",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=1, seed=5, listeners=True, config=PATIENT) as built:
        yield built


def active_id(cluster: MiniCluster) -> int:
    cluster.wait_until(inside(cluster).active_controller_id)
    return inside(cluster).active_controller_id() or 0


@pytest.fixture
def active(cluster: MiniCluster) -> Iterator[RawClient]:
    """A client of the active controller."""
    yield from client_of(cluster, active_id(cluster))


@pytest.fixture
def standby(cluster: MiniCluster) -> Iterator[RawClient]:
    """A client of a controller that is not active."""
    other = next(i for i in inside(cluster).controller_ids if i != active_id(cluster))
    yield from client_of(cluster, other)


def client_of(cluster: MiniCluster, node_id: int) -> Iterator[RawClient]:
    with RawClient(cluster, node_id) as client:
        yield client


def enveloped(client: RawClient, request: Any, version: int, **more: Any) -> Any:
    """The response to a request that a broker forwards, or the envelope with an error."""
    fields = {"request_principal": PRINCIPAL, "client_host_address": bytes(4), **more}
    data = request_bytes(request, version, 7, "app")
    envelope = client.request(m.EnvelopeRequest(request_data=data, **fields))
    if envelope.error_code:
        return ErrorCode(envelope.error_code)
    correlation_id, response = read_response(request, version, envelope.response_data)
    assert correlation_id == 7
    return response


def creation(name: str) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return m.CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)


def test_a_controller_advertises_what_kafkas_does() -> None:
    versions = controller_versions(Rules.KAFKA_4_3)
    assert {key: (r[0], r[-1]) for key, r in versions.items()} == KAFKA_4_3_CONTROLLER


def test_a_controller_responds_with_its_versions_and_features(
    cluster: MiniCluster, active: RawClient
) -> None:
    """Its features are there once it has published the metadata, as a client sees."""
    cluster.wait_until(lambda: active.request(SOFTWARE).finalized_features)
    response = active.request(SOFTWARE)
    assert {k.api_key for k in response.api_keys} == set(KAFKA_4_3_CONTROLLER)
    assert {f.name for f in response.supported_features} >= {"kraft.version", "metadata.version"}
    assert {f.name for f in response.finalized_features} >= {"metadata.version"}


def test_a_controller_shows_levels_for_testing_by_the_config_of_its_apis() -> None:
    """Source: SimpleApiVersionManager; registrations go by unstable.feature.versions.enable."""
    own = {101: {"unstable.api.versions.enable": True}}
    with MiniCluster(
        brokers=1, controllers=2, seed=5, listeners=True, config=PATIENT, node_configs=own
    ) as cluster:
        highest = {}
        for node_id in (101, 102):
            with RawClient(cluster, node_id) as client:
                features = client.request(SOFTWARE).supported_features
            highest[node_id] = {f.name: f.max_version for f in features}["metadata.version"]
        assert highest == {101: 31, 102: 30}


def test_the_metadata_log_comes_as_batches_with_the_real_endpoints(
    cluster: MiniCluster, active: RawClient
) -> None:
    partition = m.FetchRequest.FetchPartition(
        current_leader_epoch=active_epoch(cluster), last_fetched_epoch=0, fetch_offset=0
    )
    request = m.FetchRequest(
        cluster_id=cluster.cluster_id,
        max_wait_ms=0,
        max_bytes=1_000_000,
        topics=(m.FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
    )
    [topic] = active.request(request, 17).responses
    [fetched] = topic.partitions
    batches = Records.of(fetched.records).batches
    assert batches[0].is_control and batches[0].base_offset == 0
    records = [each.record for b in batches if not b.is_control for each in b.metadata_records]
    [broker] = [r for r in records if isinstance(r, RegisterBrokerRecord)]
    [endpoint] = broker.end_points
    assert f"{endpoint.host}:{endpoint.port}" == cluster.bootstrap_servers


def active_epoch(cluster: MiniCluster) -> int:
    process = inside(cluster).processes[active_id(cluster)]
    assert process.controller is not None
    return process.controller.quorum.epoch


def test_a_topic_is_created_directly_and_through_an_envelope(
    cluster: MiniCluster, active: RawClient, standby: RawClient
) -> None:
    assert active.request(creation("direct")).topics[0].error_code == 0
    assert enveloped(active, creation("forwarded"), 7).topics[0].error_code == 0
    assert standby.request(creation("no")).topics[0].error_code == ErrorCode.NOT_CONTROLLER
    assert enveloped(standby, creation("no"), 7) is ErrorCode.NOT_CONTROLLER
    cluster.wait_until(lambda: cluster.image.topics.named("forwarded"))
    assert cluster.image.topics.named("no") is None


@pytest.mark.parametrize(
    ("request_", "version", "more", "error"),
    [
        (creation("a"), 7, {"request_principal": b""}, "PRINCIPAL_DESERIALIZATION_FAILURE"),
        (creation("a"), 7, {"client_host_address": bytes(5)}, "INVALID_REQUEST"),
        (SOFTWARE, 3, {}, "INVALID_REQUEST"),
        (creation("a"), 7, {"request_data": b"\0\x13\0\x07\0"}, "UNSUPPORTED_VERSION"),
        (creation("a"), 7, {"request_data": b""}, "UNSUPPORTED_VERSION"),
    ],
)
def test_an_envelope_that_is_none_is_refused(
    active: RawClient, request_: Any, version: int, more: dict[str, Any], error: str
) -> None:
    if "request_data" not in more:
        assert enveloped(active, request_, version, **more) is ErrorCode[error]
        return
    envelope = m.EnvelopeRequest(request_principal=PRINCIPAL, client_host_address=bytes(4), **more)
    assert active.request(envelope).error_code == ErrorCode[error]


def test_the_quorum_is_described_by_its_leader_only(active: RawClient, standby: RawClient) -> None:
    partition = m.DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = m.DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    request = m.DescribeQuorumRequest(topics=(topic,))
    voters = active.request(request).topics[0].partitions[0].current_voters
    assert [voter.replica_id for voter in voters] == [101, 102, 103]
    assert enveloped(active, request, 2).topics[0].partitions[0].leader_epoch > 0
    refused = standby.request(request).topics[0].partitions[0].error_code
    assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert enveloped(standby, request, 2) is ErrorCode.NOT_CONTROLLER


def test_a_controller_describes_the_registered_controllers_and_no_brokers(
    cluster: MiniCluster, active: RawClient
) -> None:
    request = m.DescribeClusterRequest(endpoint_type=2)
    cluster.wait_until(lambda: len(active.request(request).brokers) == 3)
    described = active.request(request)
    found = ",".join(f"{each.host}:{each.port}" for each in described.brokers)
    assert found == cluster.bootstrap_controllers
    assert described.controller_id == active_id(cluster)
    brokers = active.request(m.DescribeClusterRequest(endpoint_type=1))
    assert brokers.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert active.request(m.DescribeClusterRequest(), 0).error_code == ErrorCode.INVALID_REQUEST
    unknown = active.request(m.DescribeClusterRequest(endpoint_type=3))
    assert unknown.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (m.SaslHandshakeRequest(mechanism="PLAIN"), ErrorCode.ILLEGAL_SASL_STATE),
        (m.DescribeUserScramCredentialsRequest(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (m.DescribeDelegationTokenRequest(), ErrorCode.UNKNOWN_SERVER_ERROR),
        (m.RenewDelegationTokenRequest(), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
    ],
)
def test_what_a_controller_does_not_do_is_refused(
    active: RawClient, request_: Any, error: ErrorCode
) -> None:
    assert active.request(request_).error_code == error
