"""Handles compare as a test means them, and a wrong type is one line, never a test that passes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError
from minicluster.protocol.messages import DescribeLogDirsRequest


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=1) as started:
        started.create_topic("orders", partitions=2)
        yield started


def test_nodes_compare_with_their_ids(cluster: MiniCluster) -> None:
    orders = cluster.topic("orders")
    leader = orders[0].leader
    assert leader is not None
    assert leader == leader.id and leader != leader.id + 1 and leader != str(leader.id)
    assert leader in (leader.id,) and hash(leader) == hash(leader.id)
    assert cluster.node(leader) == leader and leader.is_running


def test_replicas_compare_as_sets_and_keep_their_order(cluster: MiniCluster) -> None:
    partition = cluster.topic("orders")[0]
    ids = partition.isr.ids
    assert 3 in partition.isr and 4 not in partition.isr and None not in partition.isr
    for same in ([3, 2, 1], (1, 2, 3), {1, 2, 3}, frozenset(cluster.brokers), partition.replicas):
        assert partition.isr == same and same == partition.isr, same
        assert (partition.isr != same) is False
    assert partition.isr != [1, 2] and partition.isr != [partition.leader]
    assert partition.followers != partition.isr
    assert hash(partition.isr) == hash(partition.replicas)
    assert tuple(node.id for node in partition.isr) == ids == partition.state.isr


def test_topics_and_partitions_of_one_name_are_one(cluster: MiniCluster) -> None:
    orders = cluster.topic("orders")
    assert cluster.topic(orders) == orders and len({orders, cluster.topic("orders")}) == 1
    assert orders[0] == cluster.topic("orders")[0] != orders[1]
    assert len({orders[0], cluster.topic("orders")[0]}) == 1


WRONG = {
    "cluster.kill('1')": "'1' is text",
    "cluster.kill(orders[0])": "orders-0 is not a selector",
    "cluster.kill(orders)": "orders-0 is not a selector",
    "cluster.kill(None)": "None was given",
    "cluster.kill(True)": "True is not a selector",
    "cluster.node('1')": "'1' is not the id of a node",
    "cluster.node(None)": "None is not the id of a node",
    "cluster.topic(3)": "3 is not the name of a topic",
    "cluster.client(3)": "3 is not a client.id",
    "cluster.create_topic('t', partitions='3')": "'3' is not a whole number",
    "cluster.create_topic('t', configs={'min.insync.replicas': [2]})": "[2] is not text or a num",
    "cluster.create_topic(['t'])": "['t'] is not text",
    "cluster.cut(1)": "missing a required argument: 'dst'; it takes src, dst, api",
    "cluster.cut(1, 2, apis='Fetch')": "unexpected keyword argument 'apis'",
    "cluster.run_for(-10)": "-10 is not a duration",
    "cluster.wait_until(lambda: True, within=True)": "True is not a duration",
    "cluster.wait_until(orders.fully_in_sync())": "True is not a condition",
    "cluster.wait_until(lambda: orders.fully_in_sync)": "gives a function, which is always true",
    "cluster.wait_until(lambda: orders[0].fully_in_sync)": "call it: orders-0.fully_in_sync()",
    "cluster.save(5)": "save: 5 is not a path",
    "cluster.verify(5)": "verify: 5 is not a path",
    "cluster.ingest(5)": "5 is not a path",
    "cluster.ingest('no', [])": "[] is not one of parquet, log",
    "cluster.export('no', port='x')": "port: 'x' is not one of 1 to 65530",
    "cluster.mutate([])": "[] is not a planted fault",
    "cluster.admin('CreateTopics')": "'CreateTopics' is not a request",
    "cluster.admin(DescribeLogDirsRequest(), to='1')": "'1' is not the id of a node",
    "cluster.admin(DescribeLogDirsRequest(), to=9)": "there is no node 9",
    "orders['0']": "'0' is not the number of a partition",
    "orders[0:1]": "is not the number of a partition",
    "'3' in orders[0].isr": "'3' is not a node",
    "orders[0].isr == 2": "is compared with 2; it takes nodes or ids",
    "orders[0].isr == ['1']": "'1' is not a node",
}


@pytest.mark.parametrize("expression", WRONG)
def test_a_wrong_type_is_one_line_and_harms_nothing(cluster: MiniCluster, expression: str) -> None:
    orders = cluster.topic("orders")
    with pytest.raises(UserError) as refused:
        names = {"DescribeLogDirsRequest": DescribeLogDirsRequest}
        eval(expression, {"cluster": cluster, "orders": orders, **names})
    assert WRONG[expression] in str(refused.value) and "\n" not in str(refused.value)
    assert not inside(cluster).rt.crashes and inside(cluster).all_unfenced()


def test_a_request_goes_to_the_node_that_is_named(cluster: MiniCluster) -> None:
    """Without a node the active controller takes it, which has no log directories of brokers."""
    broker = cluster.topic("orders")[1].followers[0]
    for node in (broker, broker.id):
        [found] = cluster.admin(DescribeLogDirsRequest(topics=None), to=node).results
        logs = {(t.name, p.partition_index) for t in found.topics for p in t.partitions}
        assert logs >= {("orders", 0), ("orders", 1)}
    cluster.kill(broker)
    with pytest.raises(UserError, match=rf"no response of node {broker.id} came within 2s \("):
        cluster.admin(DescribeLogDirsRequest(topics=None), to=broker, within="2s")
    cluster.restart(broker)
    cluster.wait_until(inside(cluster).all_unfenced)


@pytest.mark.parametrize(
    "call",
    [
        "create_topic('orders')",
        "kill(1)",
        "heal()",
        "produce('orders')",
        "reassignments()",
        "run_for('1s')",
        "save('nowhere')",
        "wait_until(lambda: True)",
    ],
)
def test_a_cluster_that_is_not_started_is_an_error_of_the_user(call: str) -> None:
    with pytest.raises(UserError, match=r"the cluster is not started; call start\(\)"):
        eval(f"cluster.{call}", {"cluster": MiniCluster(seed=1)})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("config", 3),
        ("features", [("group.version", 1)]),
        ("faults", 3),
        ("exercises", "A1"),
        ("rules", 4.3),
        ("metadata_version", 4),
        ("wire", 1),
        ("scenario", "kill 1"),
    ],
)
def test_a_wrong_argument_of_a_cluster_is_one_line(name: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"^{name}: .* is not [^\n]+$"):
        MiniCluster(**{name: value})  # type: ignore[arg-type]


def test_listeners_of_a_protocol_that_kafka_does_not_have_are_one_line() -> None:
    with pytest.raises(UserError, match=r"^listeners: unknown protocol 'localhost'; known: .*SSL"):
        MiniCluster(listeners="localhost")


@pytest.mark.parametrize("value", [2, ["d0", "d1"], True])
def test_log_dirs_are_names(value: object) -> None:
    with pytest.raises(UserError, match="write 'd0,d1' for two directories"):
        MiniCluster(config={"log.dirs": value})
    assert inside(MiniCluster(config={"log.dirs": "d0, d1"})).config.log_dirs == ("d0", "d1")


def test_a_partition_of_the_network_takes_its_groups_as_yaml_has_them_or_one_by_one(
    cluster: MiniCluster,
) -> None:
    links = []
    for given in (([1, 2], [3]), ()):
        cluster.partition(*given, **({} if given else {"groups": [[1, 2], [3]]}))
        links.append([*inside(cluster).recorder.in_memory("fault")][-1].values["targets"])
        cluster.heal()
    assert links[0] == links[1] and {1, 3} <= {node for link in links[0] for node in link}
    with pytest.raises(UserError, match=r"partition: give groups=\[…\] or each group"):
        cluster.partition([1], [2], groups=[[1], [2]])


def test_no_leader_is_no_node_in_one_line(cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match="kill: node: None was given; it takes a selector"):
        cluster.kill(None)


def test_produce_to_what_is_not_there_fails_at_once_in_one_line(cluster: MiniCluster) -> None:
    began_ms = cluster.now_ms
    for topic, partition, mistake in (
        ("nope", 0, "produce: there is no topic nope"),
        ("orders", 2, "produce: there is no partition orders-2; the last one is 1"),
    ):
        with pytest.raises(UserError, match=mistake):
            cluster.produce(topic, partition)
        with pytest.raises(UserError, match=mistake):
            cluster.produce(topic, partition, rate=5, lasting="1s")
    assert cluster.now_ms == began_ms, "nothing was waited for"


def test_outcomes_are_read_at_a_glance(cluster: MiniCluster) -> None:
    """A failing assertion prints them; an operation knows all that are behind it."""
    shown = cluster.create_topic("shown")
    assert re.sub("/[0-9]+'", "/N'", repr(cluster.produce(shown, count=2))) == (
        "[<record 'shown-0/N' to shown-0: ok at offset 0>,"
        " <record 'shown-0/N' to shown-0: ok at offset 1>]"
    )
    cluster.kill(shown[0].leader)
    assert repr(cluster.produce(shown)[0]).endswith("to shown-0: failed: disconnected>")
    [transaction] = cluster.transaction(shown)
    assert "outcome='committed'" in repr(transaction)
    assert "function" not in repr(transaction)
