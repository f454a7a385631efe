"""The rules about responses to clients, while a cluster with listeners runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.views import Partition
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.log.batch import Record, RecordBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest, ProduceRequest
from minicluster.protocol.uuids import format_uuid
from tests.listeners.raw_client import RawClient
from tests.verify.in_process import judged

OF_CLIENTS = ("F6", "F19", "H5", "H7")
PRODUCE, FETCH, LIST = 9, 12, 6  # versions that name the topic


def produce(client: RawClient, value: bytes, *, acks: int) -> int:
    """Produce one record to orders-0; its offset."""
    batch = RecordBatch.of([Record(0, 0, None, value)], leader_epoch=-1)
    partition = ProduceRequest.PartitionProduceData(index=0, records=Records((batch,)))
    data = ProduceRequest.TopicProduceData(name="orders", partition_data=(partition,))
    request = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=(data,))
    [responded] = client.request(request, PRODUCE).responses[0].partition_responses
    assert responded.error_code == ErrorCode.NONE
    return int(responded.base_offset)


def fetch(client: RawClient) -> Any:
    """Fetch orders-0 from its start."""
    wanted = FetchRequest.FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=-1, partition_max_bytes=1 << 20
    )
    topic = FetchRequest.FetchTopic(topic="orders", partitions=(wanted,))
    request = FetchRequest(topics=(topic,), session_epoch=-1, max_bytes=1 << 20, min_bytes=0)
    [responded] = client.request(request, FETCH).responses[0].partitions
    return responded


def list_latest(client: RawClient) -> int:
    """The end offset of orders-0."""
    wanted = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topic = ListOffsetsRequest.ListOffsetsTopic(name="orders", partitions=(wanted,))
    request = ListOffsetsRequest(replica_id=-1, topics=(topic,))
    return int(client.request(request, LIST).topics[0].partitions[0].offset)


def led_by(cluster: MiniCluster, partition: Partition) -> RawClient:
    """A client of the leader, once its broker leads: a raw client does not send again."""
    cluster.wait_until(lambda: partition.high_watermark >= 0, within="60s")
    leader = partition.leader
    assert leader is not None
    return RawClient(cluster, leader.id, client_id="app-1")


def test_clients_of_two_leaders_receive_nothing_wrong() -> None:
    with MiniCluster(seed=3, controllers=1, listeners=True, pace=20) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        with led_by(cluster, orders[0]) as app:
            assert [produce(app, b"first", acks=-1), produce(app, b"second", acks=-1)] == [0, 1]
            assert fetch(app).high_watermark == list_latest(app) == 2
        first = orders[0].leader
        cluster.kill(first)
        cluster.wait_until(lambda: orders[0].leader not in (None, first), within="60s")
        cluster.wait_until(lambda: orders[0].high_watermark == 2, within="60s")
        with led_by(cluster, orders[0]) as app:
            assert produce(app, b"third", acks=-1) == 2
            assert fetch(app).high_watermark == list_latest(app) == 3
        assert inside(cluster).live_checks is not None
        cases = inside(cluster).live_checks.looked_at
        looked_at = {rule: cases.get(rule, 0) for rule in OF_CLIENTS}
    not_looked_at = [rule for rule, count in looked_at.items() if not count]
    assert not_looked_at == ["H7"], looked_at  # no client of this test has a producer id


def test_a_read_above_the_high_watermark_ends_the_run() -> None:
    with (
        pytest.raises(InvariantViolated, match="rule F6 is broken in orders-0"),
        MiniCluster(seed=3, controllers=1, listeners=True, pace=20, faults=["S31"]) as cluster,
    ):
        orders = cluster.create_topic("orders", min_isr=2)
        with led_by(cluster, orders[0]) as app:
            cluster.hold(cluster.brokers, cluster.brokers, api="Fetch")
            produce(app, b"first", acks=1)
            fetch(app)
            cluster.run_for("1s")


def test_an_acknowledgement_before_the_followers_have_the_record_ends_the_run() -> None:
    with (
        pytest.raises(InvariantViolated, match="rule F8 is broken in orders-0"),
        MiniCluster(seed=3, controllers=1, listeners=True, pace=20, faults=["S32"]) as cluster,
    ):
        orders = cluster.create_topic("orders", min_isr=2)
        with led_by(cluster, orders[0]) as app:
            cluster.cut(cluster.brokers, cluster.brokers)
            produce(app, b"first", acks=-1)
        cluster.run_for("1s")


def test_topics_of_one_name_are_judged_each_by_itself(tmp_path: Path) -> None:
    """F9: each response is about the topic that its broker had under the name by then."""
    rounds = [b"first", b"second", b"third"]
    with MiniCluster(seed=3, brokers=1, controllers=1, listeners=True, pace=20) as cluster:
        topic_ids = []
        for value in rounds:
            orders = cluster.create_topic("orders", partitions=1, replicas=1)
            with led_by(cluster, orders[0]) as app:
                assert produce(app, value, acks=-1) == 0
                assert fetch(app).high_watermark == list_latest(app) == 1
            topic_ids.append(format_uuid(cluster.image.topics.ids_by_name["orders"]))
            cluster.delete_topic("orders")
        inside(cluster).check_clients()
        rows = list(inside(cluster).recorder.table("client_record"))
        run = cluster.save(tmp_path / "run")
    assert len({*topic_ids}) == len(rounds)
    for kind in ("send", "fetch", "read", "list"):
        assert [row["topic_id"] for row in rows if row["f"] == kind] == topic_ids
    assert judged(run, "F1", "F9") == {"F1": (0, []), "F9": (6, [])}
