"""Cordoned log directories in a whole cluster (KIP-1066)."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.cli import run
from minicluster.errors import RequestRejected, UserError


def lies(cluster: MiniCluster, broker: int, topic: str) -> uuid.UUID:
    """The directory of a broker's replica of partition 0."""
    directory: uuid.UUID = (
        inside(cluster).disks[broker].files[f"{topic}-0/partition.metadata"].directory
    )
    return directory


def known(cluster: MiniCluster, broker: int) -> tuple[uuid.UUID, ...] | None:
    registration = cluster.node(broker).registration
    assert registration is not None
    return registration.cordoned_log_dirs


def test_a_cordoned_directory_gets_nothing_new_and_a_cordoned_broker_no_replica() -> None:
    with MiniCluster(brokers=2, seed=1066, config={"log.dirs": "d0,d1"}) as cluster:
        cluster.run_for("3s")
        first, second = inside(cluster).disks[1].directory_ids
        assert known(cluster, 1) == ()
        cluster.set_config("cordoned.log.dirs", "d0", broker=1)
        cluster.wait_until(lambda: known(cluster, 1) == (first,), within="5s")
        for name in ("a", "b", "c"):
            cluster.create_topic(name, assignment=[[1, 2]])
            cluster.run_for("1s")
        assert {lies(cluster, 1, name) for name in ("a", "b", "c")} == {second}
        assert {lies(cluster, 2, name) for name in ("a", "b")} == set(
            inside(cluster).disks[2].directory_ids
        )

        cluster.set_config("cordoned.log.dirs", "*", broker=1)
        cluster.wait_until(lambda: known(cluster, 1) == (first, second), within="5s")
        placed = cluster.create_topic("d", partitions=4, replicas=1)
        assert [partition.replicas for partition in placed] == [(cluster.node(2),)] * 4

        cluster.set_config("cordoned.log.dirs", None, broker=1)
        cluster.wait_until(lambda: known(cluster, 1) == (), within="5s")


def test_below_4_3_cordoned_directories_are_not_reported() -> None:
    with MiniCluster(brokers=1, controllers=1, seed=1, metadata_version="4.2-IV1") as cluster:
        cluster.run_for("5s")
        assert known(cluster, 1) is None
        rows = inside(cluster).recorder.table("rpc")
        reported = [row for row in rows if row["api"] == "BrokerHeartbeat"]
        assert reported and not any("cordonedLogDirs" in row["request"] for row in reported)


def test_the_properties_file_cordons_until_a_dynamic_config_says_otherwise() -> None:
    config = {"log.dirs": "d0,d1", "cordoned.log.dirs": "*"}
    with MiniCluster(brokers=1, controllers=1, seed=1, config=config) as cluster:
        cluster.wait_until(lambda: len(known(cluster, 1) or ()) == 2, within="5s")
        with pytest.raises(RequestRejected, match="INVALID_REPLICATION_FACTOR"):
            cluster.create_topic("a", replicas=1)
        cluster.set_config("cordoned.log.dirs", "", broker=1)
        cluster.wait_until(lambda: known(cluster, 1) == (), within="5s")
        cluster.create_topic("a", replicas=1)


def test_a_cluster_does_not_start_with_a_cordoned_directory_that_it_lacks() -> None:
    with pytest.raises(UserError, match="Missing entries : d7"):
        MiniCluster(brokers=1, config={"log.dirs": "d0,d1", "cordoned.log.dirs": "d1,d7"})


def test_a_controller_alone_does_not_look_at_cordoned_directories() -> None:
    """Its log directories take no replicas. Source: KafkaConfig.validateCordonedLogDirs."""
    lacking = {"cordoned.log.dirs": "d7"}
    with pytest.raises(UserError, match="Missing entries : d7"):
        MiniCluster(brokers=2, node_configs={2: lacking})
    with pytest.raises(UserError, match="Missing entries : d7"):
        MiniCluster(broker_ids=[1], controller_ids=[1], node_configs={1: lacking})
    with MiniCluster(brokers=1, controllers=1, seed=1, node_configs={101: lacking}) as cluster:
        assert cluster.create_topic("a", replicas=1).exists


def test_a_release_without_cordoned_directories_does_not_look_at_them() -> None:
    config = {"cordoned.log.dirs": "d7"}
    with MiniCluster(brokers=1, controllers=1, rules="kafka-3.9", seed=1, config=config) as cluster:
        assert cluster.create_topic("a", replicas=1).exists
        # Another check is the first, as it is on a controller of 4.3 below metadata.version 4.3.
        with pytest.raises(RequestRejected, match=r"requires metadata\.version"):
            cluster.set_config("cordoned.log.dirs", "d8", broker=1)


def test_check_reads_the_directories_of_a_file_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cordoned.yaml"
    path.write_text(
        "cluster: {config: {cordoned.log.dirs: d1, log.dirs: 'd0,d1'}}\nsteps: [{do: heal}]\n"
    )
    assert run(["check", str(path)]) == 0, capsys.readouterr().err
