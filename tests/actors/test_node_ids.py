"""Node ids, racks and configs that the user chooses, as Kafka's own deployments have them."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.errors import UserError
from minicluster.protocol.messages import DescribeConfigsRequest


def test_brokers_begin_at_0_and_a_controller_is_3000() -> None:
    """The numbers of Kafka's own test kit: every part of a run takes them."""
    with MiniCluster(broker_ids=[0, 1, 2], controller_ids=[3000], seed=4) as cluster:
        orders = cluster.create_topic("orders", partitions=3, replicas=3, min_isr=2)
        assert [node.id for node in cluster.brokers] == [0, 1, 2]
        assert cluster.active_controller == 3000
        assert all(cluster.produce(orders, index, count=2)[-1].ok for index in range(3))
        leads = next(partition for partition in orders if partition.leader == 0)
        cluster.kill(0)
        cluster.wait_until(lambda: leads.leader not in (None, 0), within="30s")
        cluster.restart(0)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        assert len(cluster.consume("orders", count=6)) == 6
        assert cluster.verify(engine="process").valid


def test_a_node_in_both_lists_is_a_broker_and_a_controller() -> None:
    with MiniCluster(broker_ids=[1, 2, 3], controller_ids=[1, 2, 3], seed=5) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        active = cluster.active_controller
        cluster.kill(active)
        cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="30s")
        cluster.restart(active)
        cluster.wait_until(orders.fully_in_sync, within="60s")


def test_a_broker_has_its_own_rack_and_directories() -> None:
    own = {0: {"broker.rack": "north"}, 7: {"broker.rack": "south", "log.dirs": "a,b"}}
    with MiniCluster(broker_ids=[0, 7], controllers=1, node_configs=own, seed=6) as cluster:
        north, south = (node.registration for node in cluster.brokers)
        assert (north.rack, len(north.log_dirs)) == ("north", 1)
        assert (south.rack, len(south.log_dirs)) == ("south", 2)


def test_racks_that_brokers_take_in_turn_go_by_place_not_by_id() -> None:
    config = {"broker.rack": "a,b"}
    with MiniCluster(broker_ids=[0, 4, 8], controllers=1, config=config, seed=6) as cluster:
        assert [node.registration.rack for node in cluster.brokers] == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("kraft_version", "has", "has_not"),
    [
        (0, "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        (1, "controller.quorum.bootstrap.servers", "controller.quorum.voters"),
    ],
)
def test_a_node_describes_its_place_as_its_properties_file_would(
    kraft_version: int, has: str, has_not: str
) -> None:
    """KafkaConfig: a listener that is no protocol's name is in listener.security.protocol.map."""
    config = {"kraft.version": kraft_version}
    with MiniCluster(broker_ids=[4], controller_ids=[5], config=config, seed=6) as cluster:
        broker = DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="4")
        [described] = cluster.admin(DescribeConfigsRequest(resources=(broker,)), to=4).results
        values = {each.name: each.value for each in described.configs}
        protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
        assert values["node.id"] == values["broker.id"] == "4"
        assert values["listener.security.protocol.map"] == protocols
        assert "node5:9095" in values[has]
        assert not values[has_not]


@pytest.mark.mini_cluster(broker_ids=[0], controller_ids=[9])
def test_the_marker_takes_them(mini_cluster: MiniCluster) -> None:
    assert [node.id for node in (*mini_cluster.brokers, *mini_cluster.controllers)] == [0, 9]


@pytest.mark.parametrize(
    ("shape", "line"),
    [
        ({"broker_ids": [1, 1]}, "broker_ids: an id is there twice; each node has its own"),
        ({"broker_ids": "0,1"}, "broker_ids: '0,1' is not a list of ids such as [0, 1, 2]"),
        ({"controller_ids": []}, "controller_ids: how many: 0 is not a whole number from 1 to"),
        ({"broker_ids": [-1]}, "broker_ids: -1 is not a whole number from 0 to 2147483647"),
        (
            {"node_configs": {8: {"broker.rack": "a"}}, "controllers": 1},
            "node_configs: 8 is not a node; nodes are 1, 2, 3, 101",
        ),
        ({"broker_ids": [1], "mode": "zookeeper"}, "on ZooKeeper brokers are numbered"),
    ],
)
def test_ids_that_no_cluster_can_have_are_one_line(shape: dict[str, object], line: str) -> None:
    with pytest.raises(UserError) as error:
        MiniCluster(**shape)
    assert line in str(error.value) and "\n" not in str(error.value)
