"""Requests of administrators on ZooKeeper: their refusals, and the time of their responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from minicluster import MiniCluster
from minicluster.configs.effective import BrokerLevels
from minicluster.effects import Respond
from minicluster.java_order import scala_map_order, string_hash
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.image.topics import TopicsImage
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_requests import process_admin
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.broker.alter_configs import preprocessed
from minicluster.zookeeper.broker.delayed_topic_operations import DelayedTopicOperations
from minicluster.zookeeper.server.operations import Create, Delete, Exists, GetChildren, GetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.records import broker_record, topic_record
from minicluster.zookeeper.znodes.topics import (
    TopicAssignment,
    decode_config,
    decode_config_change,
    encode_config,
)
from tests.zookeeper.controller.kit import Kit

TIMEOUT_MS = 5_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    """Three brokers with orders (two partitions) and a topic of another name with a dot."""
    with MiniCluster(brokers=3, mode="zookeeper", seed=3) as cluster:
        cluster.create_topic("orders", partitions=2, replicas=2)
        cluster.create_topic("a.b")
        yield cluster


def create(name: str, **fields: Any) -> m.CreateTopicsRequest.CreatableTopic:
    given = {"num_partitions": 1, "replication_factor": 1, **fields}
    configs = tuple(
        m.CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
        for key, value in given.pop("configs", {}).items()
    )
    assignments = tuple(
        m.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
        for index, ids in given.pop("assignments", {}).items()
    )
    return m.CreateTopicsRequest.CreatableTopic(
        name=name, configs=configs, assignments=assignments, **given
    )


GIVEN = {"num_partitions": -1, "replication_factor": -1}
ONE_SIZE = "All partitions should have the same number of replicas"
BOTH = "Both numPartitions or replicationFactor and replicasAssignments were set. "
REFUSED_TOPICS = [
    (create("orders"), "TOPIC_ALREADY_EXISTS", "Topic 'orders' already exists."),
    (create("a_b"), "INVALID_TOPIC_EXCEPTION", "Topic 'a_b' collides with existing topics: a.b"),
    (create(".."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: '..' is not allowed"),
    (create("x", num_partitions=0), "INVALID_PARTITIONS", "Number of partitions must be larger"),
    (create("x", replication_factor=4), "INVALID_REPLICATION_FACTOR", "Replication factor: 4"),
    (create("x", configs={"no.such": "1"}), "INVALID_CONFIG", "Unknown topic config name: no.such"),
    (create("x", configs={"retention.ms": None}), "INVALID_CONFIG", "Null value not supported"),
    (create("x", configs={"retention.ms": "soon"}), "INVALID_CONFIG", "Invalid value soon"),
    (create("x", assignments={0: (1,)}), "INVALID_REQUEST", BOTH),
    (create("x", assignments={0: (1,), 1: ()}, **GIVEN), "INVALID_REPLICA_ASSIGNMENT", ONE_SIZE),
    (create("x", assignments={0: (1, 1)}, **GIVEN), "INVALID_REPLICA_ASSIGNMENT", "Duplicate"),
    (create("x", assignments={1: (1,)}, **GIVEN), "INVALID_REPLICA_ASSIGNMENT", "partitions sho"),
    (create("x", assignments={-1: (1,)}, **GIVEN), "UNKNOWN_SERVER_ERROR", "partition 0"),
    (create("__cluster_metadata"), "INVALID_REQUEST", "Creation of internal topic"),
]


@pytest.mark.parametrize(("topic", "error", "message"), REFUSED_TOPICS)
def test_a_topic_that_cannot_be_created_is_refused(
    cluster: MiniCluster,
    topic: m.CreateTopicsRequest.CreatableTopic,
    error: str,
    message: str,
) -> None:
    response = cluster.admin(m.CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS))
    [result] = response.topics
    assert ErrorCode(result.error_code).name == error
    assert result.error_message.startswith(message)


def test_a_topic_is_named_once_in_a_request(cluster: MiniCluster) -> None:
    response = cluster.admin(m.CreateTopicsRequest(topics=(create("x"), create("x"))))
    assert len(response.topics) == 2  # KafkaApis.handleCreateTopicsRequest, a multi-collection
    for result in response.topics:
        assert result.error_code == ErrorCode.INVALID_REQUEST
        assert result.error_message == "Found multiple entries for this topic."


def test_a_request_that_only_validates_writes_nothing_and_waits_for_nothing(
    cluster: MiniCluster,
) -> None:
    request = m.CreateTopicsRequest(topics=(create("later", num_partitions=3),), validate_only=True)
    [result] = cluster.admin(request).topics
    assert (result.error_code, result.num_partitions) == (ErrorCode.NONE, 3)
    assert {config.name for config in result.configs} >= {"retention.ms", "min.insync.replicas"}
    cluster.run_for("5s")
    assert "later" not in [topic.name for topic in cluster.image.topics]


def test_a_client_that_does_not_wait_gets_an_error_and_the_topic_comes(
    cluster: MiniCluster,
) -> None:
    request = m.CreateTopicsRequest(topics=(create("soon"),), timeout_ms=0)
    [result] = cluster.admin(request).topics
    assert result.error_code == ErrorCode.REQUEST_TIMED_OUT
    # KafkaApis.handleCreateTopicsRequest: an error takes the sizes and configs away.
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, ())
    cluster.wait_until(lambda: cluster.image.topics.named("soon") is not None, within="10s")


def more(name: str, count: int, *given: tuple[int, ...]) -> m.CreatePartitionsRequest:
    request = m.CreatePartitionsRequest
    assignments = tuple(request.CreatePartitionsAssignment(broker_ids=ids) for ids in given)
    wanted = request.CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
    return request(topics=(wanted,), timeout_ms=TIMEOUT_MS)


REFUSED_GROWTH = [
    (more("none", 2), "UNKNOWN_TOPIC_OR_PARTITION", "The topic 'none' does not exist."),
    (more("orders", 1), "INVALID_PARTITIONS", "Topic currently has 2 partitions, which is higher"),
    (more("orders", 2), "INVALID_PARTITIONS", "Topic already has 2 partitions."),
    (more("orders", 3, (1, 9)), "INVALID_REPLICA_ASSIGNMENT", "Unknown broker(s) in replica"),
    (more("orders", 4, (1, 2)), "INVALID_REPLICA_ASSIGNMENT", "Increasing the number of parti"),
    (more("orders", 3, (1, 1)), "INVALID_REPLICA_ASSIGNMENT", "Duplicate brokers not allowed"),
    (more("orders", 3, (1,)), "INVALID_REPLICA_ASSIGNMENT", "Inconsistent replication factor"),
]


@pytest.mark.parametrize(("request_", "error", "message"), REFUSED_GROWTH)
def test_partitions_that_cannot_be_added_are_refused(
    cluster: MiniCluster, request_: m.CreatePartitionsRequest, error: str, message: str
) -> None:
    [result] = cluster.admin(request_).results
    assert ErrorCode(result.error_code).name == error
    assert result.error_message.startswith(message)


def test_partitions_are_there_when_the_response_is() -> None:
    with MiniCluster(brokers=3, mode="zookeeper", seed=4) as cluster:
        cluster.create_topic("orders", partitions=1, replicas=2)
        [result] = cluster.admin(more("orders", 3)).results
        assert result.error_code == ErrorCode.NONE
        orders = cluster.topic("orders")
        assert [partition.leader is not None for partition in orders] == [True] * 3


def test_a_topic_is_deleted_by_its_id_and_no_other(cluster: MiniCluster) -> None:
    topic = cluster.create_topic("gone")
    found = cluster.image.topics.named(topic.name)
    assert found is not None
    state = m.DeleteTopicsRequest.DeleteTopicState(topic_id=found.id)
    request = m.DeleteTopicsRequest(topics=(state,), timeout_ms=TIMEOUT_MS)
    [deleted] = cluster.admin(request).responses
    assert (deleted.name, deleted.error_code) == ("gone", ErrorCode.NONE)
    cluster.wait_until(lambda: cluster.image.topics.named("gone") is None, within="5s")
    [again] = cluster.admin(request).responses
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    ("name", "operation", "value", "error"),
    [
        ("retention.ms", 0, "soon", "INVALID_CONFIG"),
        ("retention.ms", 2, "1", "INVALID_CONFIG"),
        ("no.such", 0, "1", "INVALID_CONFIG"),
        ("no.such", 2, "1", "UNKNOWN_SERVER_ERROR"),  # ConfigAdminManager.prepareIncrementalConfigs
        ("retention.ms", 9, "1", "UNKNOWN_SERVER_ERROR"),
        ("retention.ms", 0, None, "INVALID_REQUEST"),  # ConfigAdminManager.preprocess
        ("cleanup.policy", 2, "compact", "NONE"),
        ("cleanup.policy", 3, "delete", "NONE"),
    ],
)
def test_configs_of_a_topic_are_changed_one_by_one(
    cluster: MiniCluster, name: str, operation: int, value: str | None, error: str
) -> None:
    request = m.IncrementalAlterConfigsRequest
    change = request.AlterableConfig(name=name, config_operation=operation, value=value)
    resource = request.AlterConfigsResource(
        resource_type=2, resource_name="orders", configs=(change,)
    )
    [result] = cluster.admin(request(resources=(resource,))).responses
    assert ErrorCode(result.error_code).name == error


def administrated(kit: Kit, request: Any, version: int | None = None) -> Any:
    """The response of broker 1, which shows the topic orders."""
    topic = topic_record("orders", UUID(int=9))
    image = apply(MetadataImage.EMPTY, topic)
    record = broker_record(1, -1, UUID(int=1), [("PLAINTEXT", "node1", 9091)])
    state = AdminState(
        kit.machines[1].state, apply(image, record), BrokerLevels({}, {}, {}), lambda: UUID(int=8)
    )
    latest = type(request).latest_version
    return kit.run(1, process_admin(state, request, latest if version is None else version))


def altered(kit: Kit, value: str) -> ErrorCode:
    kind = m.AlterConfigsRequest
    config = kind.AlterableConfig(name="follower.replication.throttled.replicas", value=value)
    resource = kind.AlterConfigsResource(resource_type=2, resource_name="orders", configs=(config,))
    [result] = administrated(kit, kind(resources=(resource,))).responses
    return ErrorCode(result.error_code)


def test_topics_of_a_request_are_created_in_the_order_of_a_scala_map() -> None:
    """Source:  KafkaApis.handleCreateTopicsRequest, a mutable map by name."""
    kit = Kit()
    kit.start(1)
    names = ["t21", "t4", "nowhere", "t23"]
    request = m.CreateTopicsRequest(topics=tuple(create(name) for name in names))
    response = administrated(kit, request)
    assert [topic.name for topic in response.topics] == names
    born = {
        name: kit.do(kit.admin, GetData(paths.topic(name))).data_and_stat[1].czxid for name in names
    }
    assert sorted(names, key=born.__getitem__) == scala_map_order(names, string_hash)
    assert sorted(names, key=born.__getitem__) != names


def test_configs_have_the_order_of_javas_properties() -> None:
    """As recorded, from a request that had the second one first."""
    configs = {"unclean.leader.election.enable": "false", "cleanup.policy": "compact"}
    assert encode_config(configs) == (
        b'{"version":1,"config":{"cleanup.policy":"compact",'
        b'"unclean.leader.election.enable":"false"}}'
    )


def test_a_config_without_a_value_has_another_error_before_3_3() -> None:
    """Source:  ZkAdminManager.createTopics."""
    codes = []
    for level in ("3.2", "3.3"):
        kit = Kit(level)
        kit.start(1)
        topic = create("new", configs={"retention.ms": None})
        [result] = administrated(kit, m.CreateTopicsRequest(topics=(topic,))).topics
        codes.append(result.error_code)
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG]


def test_what_is_there_is_appended_again_before_3_3() -> None:
    """Source:  ConfigAdminManager.prepareIncrementalConfigs."""
    values = []
    for level in ("3.2", "3.3"):
        kit = Kit(level)
        kit.start(1)
        kit.create_topic("orders", (1,), **{"cleanup.policy": "delete"})
        kind = m.IncrementalAlterConfigsRequest
        config = kind.AlterableConfig(name="cleanup.policy", config_operation=2, value="delete")
        resource = kind.AlterConfigsResource(
            resource_type=2, resource_name="orders", configs=(config,)
        )
        administrated(kit, kind(resources=(resource,)))
        data = kit.do(kit.admin, GetData(paths.topic_config("orders"))).data
        values.append(decode_config(data)["cleanup.policy"])
    assert values == ["delete,delete", "delete"]


@pytest.mark.parametrize(
    ("level", "error"), [("3.2", ErrorCode.INVALID_REQUEST), ("3.3", ErrorCode.INVALID_CONFIG)]
)
@pytest.mark.parametrize(
    ("topic", "config", "operation", "value"),
    [
        ("orders", "retention.ms", 0, "soon"),
        ("orders", "retention.ms", 2, "1"),
        (".", "retention.ms", 0, "1"),  # no path of ZooKeeper
    ],
)
def test_a_wrong_config_has_another_error_before_3_3(
    level: str, error: ErrorCode, topic: str, config: str, operation: int, value: str
) -> None:
    """Source:  ZkAdminManager.incrementalAlterConfigs, prepareIncrementalConfigs."""
    kit = Kit(level)
    kit.start(1)
    kit.create_topic("orders", (1,))
    kind = m.IncrementalAlterConfigsRequest
    change = kind.AlterableConfig(name=config, config_operation=operation, value=value)
    resource = kind.AlterConfigsResource(resource_type=2, resource_name=topic, configs=(change,))
    [result] = administrated(kit, kind(resources=(resource,))).responses
    assert result.error_code == error


@pytest.mark.parametrize(
    ("kind", "name", "configs"),
    [
        (2, "orders", [("retention.ms", "1"), ("retention.ms", "2")]),
        (2, "orders", [("retention.ms", None)]),
        (4, "9", [("log.retention.ms", "1")]),
        (4, "1", [("log.retention.ms", "soon")]),
    ],
)
def test_before_3_2_each_resource_is_checked_when_it_is_altered(
    kind: int, name: str, configs: list[tuple[str, str | None]]
) -> None:
    """And of a resource that comes twice the last one counts. Source:  ZkAdminManager of 3.1."""
    kit = Kit("3.1")
    kit.start(1)
    kit.create_topic("orders", (1,))
    of = m.IncrementalAlterConfigsRequest
    wrong = of.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(of.AlterableConfig(name=key, value=value) for key, value in configs),
    )
    fine = of.AlterConfigsResource(resource_type=2, resource_name="orders")
    state: Any = None  # nothing of the broker is needed
    request = of(resources=(fine, replace(wrong, configs=()), wrong))
    checked = preprocessed(state, request, kit.machines[1].state.settings.release)
    response = checked.whole_response(administrated(kit, checked.request))
    assert [result.error_code for result in response.responses if result.error_code] == [42]
    assert len(response.responses) == (1 if (kind, name) == (2, "orders") else 2)


@pytest.mark.parametrize(("name", "znode"), [("", "<default>"), ("1", "1")])
def test_configs_of_brokers_are_written_and_notified(name: str, znode: str) -> None:
    """Source:  KIP-226; AdminZkClient.changeBrokerConfig."""
    kit = Kit()
    kit.start(1)
    kind = m.IncrementalAlterConfigsRequest
    for operation, after in ((0, {"log.retention.ms": "600000"}), (1, {})):
        config = kind.AlterableConfig(
            name="log.retention.ms", config_operation=operation, value="600000"
        )
        resource = kind.AlterConfigsResource(resource_type=4, resource_name=name, configs=(config,))
        [result] = administrated(kit, kind(resources=(resource,))).responses
        assert result.error_code == ErrorCode.NONE
        data = kit.do(kit.admin, GetData(f"/config/brokers/{znode}")).data
        assert decode_config(data) == after
    children = kit.do(kit.admin, GetChildren(paths.CONFIG_CHANGES)).children
    data = kit.do(kit.admin, GetData(f"{paths.CONFIG_CHANGES}/{children[-1]}")).data
    assert decode_config_change(data) == f"brokers/{znode}"


def test_a_topic_that_is_deleted_twice_has_its_outcome_once() -> None:
    """Source:  KafkaApis.handleDeleteTopicsRequest: the result is found by its name."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (9,))
    kind = m.DeleteTopicsRequest.DeleteTopicState
    states = (kind(name="orders"), kind(name="orders"), kind(name=""), kind())
    request = m.DeleteTopicsRequest(topics=states, timeout_ms=0)
    response = administrated(kit, request)
    [effect] = DelayedTopicOperations().add("token", request, response, TopicsImage(), 0)
    assert isinstance(effect, Respond)
    assert [ErrorCode(result.error_code).name for result in effect.response.responses] == [
        "REQUEST_TIMED_OUT",
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "TOPIC_AUTHORIZATION_FAILED",  # one with neither name nor id
    ]


@pytest.mark.parametrize("name", ["", ".", "..", "a//b", "a/", "a\x7f"])
def test_partitions_of_a_name_that_is_no_path_end_the_request(name: str) -> None:
    """ZooKeeper's client does not take it. Source:  PathUtils.validatePath."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (1,))
    wanted = m.CreatePartitionsRequest.CreatePartitionsTopic
    topics = (wanted(name=name, count=2), wanted(name="orders", count=2))
    response = administrated(kit, m.CreatePartitionsRequest(topics=topics))
    assert [result.error_code for result in response.results] == [-1, -1]
    znode = TopicAssignment.decode(kit.do(kit.admin, GetData(paths.topic("orders"))).data)
    assert len(znode.partitions) == 1


def test_partitions_are_placed_on_brokers_that_are_registered() -> None:
    """Not on those that the metadata shows. Source:  AdminZkClient.getBrokerMetadatas."""
    kit = Kit()
    kit.start(1, 2)  # the metadata has broker 1 alone
    kit.create_topic("orders", (1,))
    wanted = m.CreatePartitionsRequest.CreatePartitionsTopic(
        name="orders", count=2, assignments=None
    )
    [result] = administrated(kit, m.CreatePartitionsRequest(topics=(wanted,))).results
    assert result.error_code == ErrorCode.NONE
    znode = TopicAssignment.decode(kit.do(kit.admin, GetData(paths.topic("orders"))).data)
    assert znode.partitions[1].replicas == (2,)


def test_configs_are_not_written_while_there_is_no_controller() -> None:
    """Neither those of a new topic. Source:  KafkaZkClient.setOrCreateEntityConfigs."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (1,))
    assert altered(kit, "") is ErrorCode.NONE
    config = kit.do(kit.admin, GetData(paths.topic_config("orders")))
    assert decode_config(config.data) == {"follower.replication.throttled.replicas": ""}
    kit.do(kit.admin, Delete(paths.CONTROLLER))
    assert altered(kit, "*") is ErrorCode.STALE_CONTROLLER_EPOCH
    assert kit.do(kit.admin, GetData(paths.topic_config("orders"))) == config
    [result] = administrated(kit, m.CreateTopicsRequest(topics=(create("new"),))).topics
    assert result.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert not kit.do(kit.admin, Exists(paths.topic("new"))).ok


@pytest.mark.parametrize(("level", "checked"), [("3.6", False), ("3.7", True)])
def test_configs_are_written_whoever_is_the_controller_before_3_7_1(
    level: str, checked: bool
) -> None:
    """Source:  KAFKA-16539; KafkaZkClient.setOrCreateEntityConfigs."""
    kit = Kit(level)
    kit.start(1)
    kit.create_topic("orders", (1,))
    kit.do(kit.admin, Delete(paths.CONTROLLER))
    assert altered(kit, "*") is (ErrorCode.STALE_CONTROLLER_EPOCH if checked else ErrorCode.NONE)


def test_a_topic_marked_for_deletion_has_its_own_refusal_from_3_2_on() -> None:
    """Source:  AdminZkClient.validateTopicCreate."""
    texts = []
    for level in ("3.0", "3.2"):
        kit = Kit(level)
        kit.start(1)
        kit.create_topic("going", (9,))
        kit.deaf = {1}
        kit.do(kit.admin, Create(paths.delete_topic("going")))
        [result] = administrated(kit, m.CreateTopicsRequest(topics=(create("going"),))).topics
        assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        texts.append(result.error_message)
    assert texts == [
        "Topic 'going' already exists.",
        "Topic 'going' is marked for deletion.",
    ]


@pytest.mark.parametrize(
    ("version", "fields", "why"),
    [
        (0, {"max_version_level": 1}, "is not supported"),
        (0, {"allow_downgrade": True}, "Can not delete non-existing"),
        (1, {"upgrade_type": 2}, "Can not delete non-existing"),
        (1, {"max_version_level": 0}, "Can not provide versionLevel: 0 less than 1"),
        (1, {"upgrade_type": 9}, "Received unknown upgrade type."),
        (1, {"feature": ""}, "Feature name can not be empty."),
    ],
)
def test_each_feature_has_its_own_error_and_the_response_has_none(
    version: int, fields: dict[str, Any], why: str
) -> None:
    """Source:  KafkaController.validateFeatureUpdate, UpdateFeaturesResponse.createWithErrors."""
    kit = Kit()
    kit.start(1)
    update = m.UpdateFeaturesRequest.FeatureUpdateKey(**{"feature": "some.version", **fields})
    response = administrated(kit, m.UpdateFeaturesRequest(feature_updates=(update,)), version)
    assert response.error_code == ErrorCode.NONE
    [result] = response.results
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert why in result.error_message
