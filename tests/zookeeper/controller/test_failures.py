"""Failures that end one event of the controller: the next one is processed as ever.

Source:  kafka.controller.KafkaController.process, which takes any Throwable.
"""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from minicluster.effects import SetTimer
from minicluster.java_order import scala_map_order, string_hash
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    ElectLeadersRequest,
)
from minicluster.zookeeper.broker.registration import register
from minicluster.zookeeper.controller.allocate_producer_ids import PRODUCER_ID_BLOCK_SIZE
from minicluster.zookeeper.controller.controller_state import AUTO_REBALANCE
from minicluster.zookeeper.server.operations import (
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    SetData,
)
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import (
    encode_controller,
    encode_controller_epoch,
    encode_producer_id_block,
)
from minicluster.zookeeper.znodes.notifications import encode_partitions
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment
from tests.zookeeper.controller.kit import Kit, alter

WRITTEN_BY_HAND = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)


def test_a_controller_whose_response_was_lost_is_the_controller() -> None:
    """ZooKeeper's client sends the write again, which fails: the znodes show whose it was.

    Source:  KafkaZkClient.registerControllerAndIncrementControllerEpoch, checkControllerAndEpoch.
    """
    kit = Kit()
    kit.start(1, 2)
    znode = encode_controller(2, 0, with_kraft_epoch=True)
    first = Multi(
        (
            Create(paths.CONTROLLER, znode, ephemeral=True),
            SetData(paths.CONTROLLER_EPOCH, encode_controller_epoch(2), 1),
        )
    )
    kit.before_write = lambda: kit.do(kit.sessions[2], first) and None
    kit.end(1)
    assert kit.machines[2].state.is_active
    assert kit.machines[2].state.context.epoch == 2
    kit.create_topic("orders", (2,))
    assert kit.state("orders").controller_epoch == 2


def elect(kit: Kit, *partitions: int) -> ElectLeadersRequest:
    topic = ElectLeadersRequest.TopicPartitions(topic="orders", partitions=partitions)
    return ElectLeadersRequest(topic_partitions=(topic,))


def test_an_election_of_a_partition_without_a_state_gets_no_response() -> None:
    """None of its brokers has ever been there. Source:  processReplicaLeaderElection."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (9,), (1,))
    kit.perform(1, kit.machines[1].on_request("token", elect(kit, 0), 2, kit.now_ms))
    assert kit.responses == [] and kit.machines[1].is_idle
    response = kit.request(1, elect(kit, 1), 2)
    [result] = response.replica_election_results[0].partition_result
    assert result.error_code == ErrorCode.ELECTION_NOT_NEEDED


def test_a_reassignment_of_a_partition_without_a_state_fails_by_itself() -> None:
    """Source:  maybeTriggerPartitionReassignment, moveReassignedPartitionLeaderIfRequired."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (9,))
    kind = AlterPartitionReassignmentsRequest
    partition = kind.ReassignablePartition(partition_index=0, replicas=(9,))
    topic = kind.ReassignableTopic(name="orders", partitions=(partition,))
    [outcome] = kit.request(1, kind(topics=(topic,)), 0).responses[0].partitions
    assert outcome.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_with_the_id_of_another_one_is_not_taken() -> None:
    """Source:  ControllerContext.addTopicId."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (1,))
    id_of_orders = kit.machines[1].state.context.topic_ids["orders"]
    copied = TopicAssignment({0: ReplicaAssignment((1,))}, id_of_orders)
    kit.do(kit.admin, Create(paths.topic("copy"), copied.encode()))
    kit.deliver()
    assert kit.machines[1].state.context.topic_names == {id_of_orders: "orders"}
    kit.create_topic("other", (1,))
    assert kit.state("other").leader == 1


@pytest.mark.parametrize("path", WRITTEN_BY_HAND)
def test_a_znode_without_json_is_one_without_partitions(path: str) -> None:
    """Source:  KafkaZkClient.getPartitionReassignment, getPreferredReplicaElection."""
    kit = Kit()
    kit.start(1, 2)
    kit.do(kit.admin, Create(path, b"everything, please"))
    kit.deliver()
    assert kit.machines[1].is_idle
    kit.end(1)
    assert kit.machines[2].state.is_active


NO_PARTITIONS = {
    paths.PREFERRED_REPLICA_ELECTION: [b"", b"[]", b'{"version":1}', b'{"partitions":[{}]}'],
    paths.REASSIGN_PARTITIONS: [
        b'{"version":1}',
        b'{"version":1,"partitions":[{"topic":"orders","partition":0}]}',
    ],
}


@pytest.mark.parametrize(
    ("path", "data"), [(path, data) for path, texts in NO_PARTITIONS.items() for data in texts]
)
def test_a_znode_with_json_of_another_shape_fails_every_fail_over(path: str, data: bytes) -> None:
    """Each controller resigns until the znode is gone.

    Source:  KafkaController.elect, kafka.utils.Json.parseBytes, JsonValue.asJsonObject.
    """
    kit = Kit()
    kit.start(1)
    kit.do(kit.admin, Create(path, data))
    kit.deliver()
    assert kit.machines[1].state.is_active and kit.machines[1].is_idle
    kit.do(kit.admin, Delete(paths.CONTROLLER))
    kit.before_write = lambda: kit.deaf.add(1)  # else it would try for ever
    kit.deliver()
    assert not kit.machines[1].state.is_active
    assert not kit.do(kit.admin, Exists(paths.CONTROLLER)).ok


@pytest.mark.parametrize("data", [b"", b"x", b"[]", b'{"version":1,"partitions":[{"topic":1}]}'])
def test_a_reassignment_of_another_shape_is_none(data: bytes) -> None:
    """Jackson rejects it. Source:  KafkaZkClient.getPartitionReassignment."""
    kit = Kit()
    kit.start(1, 2)
    kit.do(kit.admin, Create(paths.REASSIGN_PARTITIONS, data))
    kit.deliver()
    kit.end(1)
    assert kit.machines[2].state.is_active


@pytest.mark.parametrize("prefix", [paths.ISR_CHANGE_PREFIX, paths.LOG_DIR_EVENT_PREFIX])
def test_a_notification_that_cannot_be_read_is_deleted(prefix: str) -> None:
    """Source:  KafkaController.processIsrChangeNotification, processLogDirEventNotification."""
    kit = Kit()
    kit.start(1)
    kit.do(kit.admin, Create(prefix, b'{"version":1}', sequential=True))
    kit.deliver()
    assert kit.machines[1].is_idle
    assert not kit.do(kit.admin, GetChildren(prefix.rpartition("/")[0])).children


def test_a_notification_of_a_topic_that_is_no_path_is_deleted_and_nobody_hears_of_it() -> None:
    """ZooKeeper's client does not read it. Source:  PathUtils.validatePath."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (1,))
    for topics, sent in ((("orders",), 1), (("", "orders"), 0)):
        kit.sent.clear()
        partitions = [TopicPartition(topic, 0) for topic in topics]
        kit.do(
            kit.admin,
            Create(paths.ISR_CHANGE_PREFIX, encode_partitions(partitions), sequential=True),
        )
        kit.deliver()
        assert kit.machines[1].is_idle and len(kit.sent) == sent
        assert not kit.do(kit.admin, GetChildren(paths.ISR_CHANGE_NOTIFICATION)).children


def test_replicas_of_brokers_go_offline_in_the_order_of_a_scala_map() -> None:
    """Source:  ZkReplicaStateMachine.handleStateChanges, which groups them by broker."""
    kit = Kit()
    kit.start(1, 5, 10)
    kit.create_topic("orders", (1, 5, 10))
    kit.do(kit.admin, Create(paths.delete_topic("orders")))
    kit.deliver()
    state = paths.partition_state(TopicPartition("orders", 0))
    isrs = [
        json.loads(line["raw"])["isr"]
        for line in kit.log.lines
        if (line["op"], line.get("path")) == ("set", state)
    ]
    assert isrs == [[1, 10], [1], [1]]


def test_topics_are_deleted_in_the_order_of_a_scala_set() -> None:
    """Source:  TopicDeletionManager.resumeDeletions."""
    kit = Kit()
    kit.start(1)
    names = ("orders", "pairs", "t10", "t2")
    for topic in names:
        kit.create_topic(topic)
    for topic in names:
        kit.do(kit.admin, Create(paths.delete_topic(topic)))
    kit.deliver()
    deleted = [line["path"] for line in kit.log.lines if line["op"] == "delete"]
    order = scala_map_order(names, string_hash)
    assert order != sorted(names)
    assert [path for path in deleted if path.startswith(paths.DELETE_TOPICS)] == [
        paths.delete_topic(topic) for topic in order
    ]


def test_a_feature_znode_that_cannot_be_read_lets_no_broker_be_the_controller() -> None:
    """Each resigns in its fail-over. Source:  KafkaController.elect, triggerControllerMove."""
    kit = Kit()
    kit.start(1)
    kit.do(kit.admin, SetData(paths.FEATURE, b'{"status":1,"version":2,"features":{"a":1}}'))
    kit.do(kit.admin, Delete(paths.CONTROLLER))
    kit.before_write = lambda: kit.deaf.add(1)  # else it would try for ever
    kit.deliver()
    assert not kit.machines[1].state.is_active
    assert not kit.do(kit.admin, Exists(paths.CONTROLLER)).ok
    assert int(kit.do(kit.admin, GetData(paths.CONTROLLER_EPOCH)).data_and_stat[0]) == 2


def test_an_unknown_recovery_state_counts_for_known_topics_only() -> None:
    """Source:  KafkaController.tryProcessAlterPartition, LeaderRecoveryState.of."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("orders", (1,))
    kind = AlterPartitionRequest

    def response_of(topic_id: UUID) -> object:
        data = kind.PartitionData(partition_index=0, leader_recovery_state=2)
        topic = kind.TopicData(topic_id=topic_id, partitions=(data,))
        request = kind(broker_id=1, broker_epoch=kit.epochs[1], topics=(topic,))
        response = kit.request(1, request, 3)
        return response.error_code or response.topics[0].partitions[0].error_code

    assert response_of(UUID(int=5)) == ErrorCode.UNKNOWN_TOPIC_ID
    known = kit.machines[1].state.context.topic_ids["orders"]
    assert response_of(known) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert alter(kit, 1, (1,), 0, 0) is ErrorCode.NONE


def test_an_unclean_election_takes_the_config_as_kafka_reads_it() -> None:
    """A boolean in capitals is one. Source:  KafkaZkClient.getLogConfigs, ConfigDef.parseType."""
    kit = Kit()
    kit.start(1, 2)
    kit.create_topic("orders", (2, 1), **{"unclean.leader.election.enable": " TRUE "})
    assert alter(kit, 2, (2,), 0, 0) is ErrorCode.NONE
    kit.end(2)
    assert kit.state("orders").leader == 1
    assert TopicPartition("orders", 0) in kit.machines[1].state.context.leaderships


def test_a_broker_whose_registration_got_no_response_is_registered() -> None:
    """The znode is of its session. Source:  KafkaZkClient.CheckedEphemeral.getAfterNodeExists."""
    kit = Kit()
    kit.start(1, 2)
    mine = kit.machines[1].state.registration
    again = register(1, mine, "cluster", kit.sessions[1])
    assert kit.run(1, again) == kit.epochs[1]
    of_another_session = register(1, mine, "cluster", kit.sessions[2])
    assert kit.run(2, of_another_session) is None


def test_a_block_of_producer_ids_whose_response_was_lost_is_taken_once() -> None:
    """Source:  ZkProducerIdManager.getNewProducerIdBlock, checkProducerIdBlockZkData."""
    kit = Kit()
    kit.start(1)
    block = encode_producer_id_block(1, 0, PRODUCER_ID_BLOCK_SIZE - 1)
    kit.before_write = lambda: kit.do(kit.admin, SetData(paths.PRODUCER_ID_BLOCK, block)) and None
    request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=kit.epochs[1])
    starts = [kit.request(1, request, 0).producer_id_start for _ in range(2)]
    assert starts == [0, PRODUCER_ID_BLOCK_SIZE]


def test_a_partition_without_replicas_ends_a_rebalance_and_not_the_next_one() -> None:
    """A tool has written it. Source:  KafkaController.checkAndTriggerAutoLeaderRebalance."""
    kit = Kit()
    kit.start(1)
    kit.create_topic("empty", ())
    effects = kit.machines[1].on_timer(AUTO_REBALANCE, kit.now_ms)
    assert [type(effect) for effect in effects] == [SetTimer]
    kit.create_topic("orders", (1,))
    assert kit.state("orders").leader == 1
