"""The rows of ``raft_event``: what is on whose disk, and by which voters a node goes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol.uuids import format_uuid

LOG = "__cluster_metadata-0"


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    config = {"kraft.version": 1, "initial.controllers": 3}
    with MiniCluster(brokers=2, controllers=4, seed=5, config=config) as built:
        yield built


def rows(cluster: MiniCluster, kind: str, node: int) -> list[dict[str, Any]]:
    table = inside(cluster).recorder.table("raft_event")
    return [row for row in table if row["kind"] == kind and row["node"] == node]


def text(cluster: MiniCluster, *ids: int) -> str:
    return ",".join(f"{i}@{format_uuid(inside(cluster).disks[i].directory_ids[0])}" for i in ids)


def test_whoever_can_vote_flushes_what_it_appends_before_the_leader_commits_it(
    cluster: MiniCluster,
) -> None:
    cluster.create_topic("orders", replicas=2)
    for node in cluster.controllers:
        appended, flushed = rows(cluster, "append", node.id), rows(cluster, "flush", node.id)
        assert flushed[-1]["offset"] == inside(cluster).disks[node.id].logs[LOG].flushed_offset
        assert len(flushed) <= len(appended) and flushed[-1]["seq"] > appended[-1]["seq"]
    leader = cluster.active_controller
    for reported in rows(cluster, "hw", leader.id):
        holders = [
            node
            for node in cluster.controllers[:3]
            if any(
                row["offset"] >= reported["offset"] and row["seq"] < reported["seq"]
                for row in rows(cluster, "flush", node.id)
            )
        ]
        assert len(holders) >= 2 and reported["voters"] == text(cluster, 101, 102, 103)


def test_brokers_do_not_wait_for_their_disk(cluster: MiniCluster) -> None:
    cluster.create_topic("orders", replicas=2)
    broker = cluster.brokers[0]
    assert rows(cluster, "append", broker.id) and not rows(cluster, "flush", broker.id)


def test_the_voters_of_every_node_are_traced_when_they_change(cluster: MiniCluster) -> None:
    cluster.add_voter(104)
    cluster.run_for("2s")
    for node in (*cluster.controllers, *cluster.brokers):
        views = [row["voters"] for row in rows(cluster, "voters", node.id)]
        assert views[-1] == text(cluster, 101, 102, 103, 104)
        named = [row["voters"] for row in rows(cluster, "append", node.id) if row["voters"]]
        assert named[-1] == views[-1]


def test_a_node_that_begins_again_traces_where_and_with_which_voters(cluster: MiniCluster) -> None:
    cluster.add_voter(104)
    node = next(n for n in cluster.controllers if n != cluster.active_controller)
    cluster.kill(node)
    log = inside(cluster).disks[node.id].logs[LOG]
    end, epoch = log.end_offset, log.last_epoch
    cluster.restart(node)
    cluster.run_for("1s")
    begun = rows(cluster, "begin", node.id)[-1]
    assert (begun["offset"], begun["epoch"]) == (end, epoch)
    assert (begun["voters"], begun["kraft_version"]) == (text(cluster, 101, 102, 103, 104), 1)


def test_a_row_names_the_batch_by_its_checksum(cluster: MiniCluster) -> None:
    cluster.create_topic("orders", replicas=2)
    by_name: dict[tuple[int, int], set[int]] = {}
    for node in (*cluster.controllers, *cluster.brokers):
        for row in rows(cluster, "append", node.id):
            by_name.setdefault((row["epoch"], row["offset"]), set()).add(int(row["crc"]))
    assert by_name and all(len(crcs) == 1 for crcs in by_name.values())
