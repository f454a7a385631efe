"""The folders of a run for Apache Kafka: every file of each node, and what cannot be exported."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.export.kafka_folder import Exported, export_run
from minicluster.cli import run as command
from minicluster.cli.exit_codes import EXIT_FILES
from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.log.directory import METADATA_DIRECTORY, read_metadata_log
from minicluster.log.locating import locate
from minicluster.log.segment import read_segment
from minicluster.log.text_files import read_properties
from minicluster.protocol.records import (
    RegisterBrokerRecord,
    RegisterControllerRecord,
    VotersRecord,
)
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.producers.snapshot_file import decode_producers

NOON = 1_700_000_000_000
CONFIG = {
    "kraft.version": 1,
    "log.dirs": "d0,d1",
    "metadata.log.dir": "d1",
    "broker.rack": "a,b,c",
    "broker.session.timeout.ms": "6s",
    "auto.leader.rebalance.enable": False,
    "min.insync.replicas": 2,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}


@dataclass(frozen=True, slots=True)
class Story:
    """A cluster that has ended, its run folder, and the folders for Kafka."""

    cluster: MiniCluster
    run: Path
    kafka: Path
    exported: Exported
    killed_epoch: int


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A group and transactions have left records; broker 3 is dead, and the rest runs."""
    folder = tmp_path_factory.mktemp("exported")
    with MiniCluster(brokers=3, controllers=3, seed=11, config=CONFIG) as cluster:
        orders = cluster.create_topic("orders", partitions=2, replicas=3)
        cluster.transaction(orders, transactional_id="t", count=4)
        cluster.transaction(orders, transactional_id="t", count=2, end="abort")
        cluster.consume(orders, group="g", count=4, isolation="read_committed")
        cluster.snapshot(cluster.controllers)
        killed_epoch = cluster.node(3).broker_epoch
        cluster.kill(3)
        cluster.wait_until(lambda: cluster.node(3).is_fenced, within="30s")
        run = cluster.save(folder / "run")
        exported = export_run(run, folder / "kafka", port=20_000, now_ms=NOON)
        yield Story(cluster, run, folder / "kafka", exported, killed_epoch)


def batches(path: Path) -> list[RecordBatch]:
    return [placed.batch for placed in read_segment(path).batches]


def test_the_nodes_have_addresses_of_this_machine(story: Story) -> None:
    exported = story.exported
    assert exported.bootstrap_servers == "127.0.0.1:20000,127.0.0.1:20001,127.0.0.1:20002"
    assert {node: port for node, (_, port) in exported.controllers.items()} == {
        101: 20_003, 102: 20_004, 103: 20_005,
    }  # fmt: skip
    assert all(path.is_file() for path in exported.properties)
    assert exported.note is None


def test_server_properties_of_a_broker(story: Story) -> None:
    folder = story.kafka / "broker-2"
    assert read_properties(folder / "server.properties") == {
        "auto.leader.rebalance.enable": "false",
        "broker.session.timeout.ms": "6000",
        "group.initial.rebalance.delay.ms": "0",
        "min.insync.replicas": "2",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "process.roles": "broker",
        "node.id": "2",
        "listeners": "PLAINTEXT://127.0.0.1:20001",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:20001",
        "log.dirs": f"{folder / 'd0'},{folder / 'd1'}",
        "metadata.log.dir": str(folder / "d1"),
        "broker.rack": "b",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.quorum.bootstrap.servers": "127.0.0.1:20003,127.0.0.1:20004,127.0.0.1:20005",
    }


def test_server_properties_of_a_controller(story: Story) -> None:
    folder = story.kafka / "controller-103"
    values = read_properties(folder / "server.properties")
    assert values is not None
    assert (values["process.roles"], values["node.id"]) == ("controller", "103")
    assert values["listeners"] == "CONTROLLER://127.0.0.1:20005"
    assert values["log.dirs"] == str(folder)


def test_each_directory_has_the_identity_of_the_run(story: Story) -> None:
    for node_id, disk in inside(story.cluster).disks.items():
        for number, directory_id in enumerate(disk.directory_ids):
            is_broker = node_id < 100
            if not is_broker and number:
                continue  # a controller has one
            kind = f"broker-{node_id}/d{number}" if is_broker else f"controller-{node_id}"
            assert read_properties(story.kafka / kind / "meta.properties") == {
                "node.id": str(node_id),
                "directory.id": format_uuid(directory_id),
                "version": "1",
                "cluster.id": inside(story.cluster).plan.cluster_id,
            }


def test_the_metadata_log_is_the_same_on_the_time_of_day_and_at_real_addresses(
    story: Story,
) -> None:
    (before,) = locate(story.run / "controller-101").logs
    (after,) = locate(story.kafka / "controller-101").logs
    assert [path.name for path in after.checkpoints] == [path.name for path in before.checkpoints]
    ours = [one.batch for one in read_metadata_log(before).batches]
    theirs = [one.batch for one in read_metadata_log(after).batches]
    assert len(ours) == len(theirs) > 10
    for one, other in zip(ours, theirs, strict=True):
        assert (one.base_offset, one.last_offset, one.leader_epoch) == (
            other.base_offset, other.last_offset, other.leader_epoch,
        )  # fmt: skip
        assert NOON - 3_600_000 < other.max_timestamp <= NOON
        for mine, its in zip(one.metadata_records, other.metadata_records, strict=True):
            if not isinstance(mine.record, (RegisterBrokerRecord, RegisterControllerRecord)):
                assert mine == its
    records = [r.record for batch in theirs for r in batch.metadata_records]
    brokers = {
        (record.broker_id, point.host, point.port)
        for record in records
        if isinstance(record, RegisterBrokerRecord)
        for point in record.end_points
    }
    assert brokers == {(n, "127.0.0.1", 19_999 + n) for n in (1, 2, 3)}
    controllers = {
        (record.controller_id, point.host)
        for record in records
        if isinstance(record, RegisterControllerRecord)
        for point in record.end_points
    }
    assert controllers == {(n, "127.0.0.1") for n in (101, 102, 103)}


def test_the_voters_in_every_checkpoint_have_real_addresses(story: Story) -> None:
    seen = 0
    for path in story.kafka.glob(f"controller-*/{METADATA_DIRECTORY}/*.checkpoint"):
        for batch in batches(path):
            for control in control_records(batch):
                if isinstance(control.message, VotersRecord):
                    seen += 1
                    found = {v.voter_id: v.endpoints[0].port for v in control.message.voters}
                    assert found == {101: 20_003, 102: 20_004, 103: 20_005}
    assert seen >= 6, "the checkpoint 0-0 and a snapshot of each controller"


def test_each_log_lies_in_its_directory_with_the_same_records(story: Story) -> None:
    checked = 0
    for broker_id in inside(story.cluster).broker_ids:
        disk = inside(story.cluster).disks[broker_id]
        for stored in ReplicaStore(disk).stored_logs():
            directory = f"d{disk.directory_ids.index(stored.directory)}"
            name = f"{stored.topic}-{stored.index}"
            folder = story.kafka / f"broker-{broker_id}" / directory / name
            after = [batch for path in sorted(folder.glob("*.log")) for batch in batches(path)]
            before = stored.log.batches
            keys = [(r.offset, r.key) for batch in before for r in batch.records]
            assert [(r.offset, r.key) for batch in after for r in batch.records] == keys
            if not stored.topic.startswith("__"):
                values = [r.value for batch in before for r in batch.records]
                assert [r.value for batch in after for r in batch.records] == values
            assert all(NOON - 3_600_000 < batch.max_timestamp <= NOON for batch in after)
            topic_id = format_uuid(stored.topic_id)
            text = (folder / "partition.metadata").read_text()
            assert text == f"version: 0\ntopic_id: {topic_id}"
            checked += bool(keys)
    assert checked > 6
    logs = list(story.kafka.glob("broker-*/d*/*-*/"))
    assert story.exported.logs == len(logs)


def test_producers_and_aborted_transactions_of_a_partition(story: Story) -> None:
    partition = inside(story.cluster).leading("orders", 0)
    assert partition is not None
    leader = partition.replica_log
    leader_id = inside(story.cluster).leader_id("orders", 0)
    (folder,) = story.kafka.glob(f"broker-{leader_id}/d*/orders-0")
    end = leader.log.end_offset
    (entry,) = decode_producers((folder / f"{end:020d}.snapshot").read_bytes())
    (producer,) = leader.producers.snapshot()
    assert (entry.producer_id, entry.epoch) == (producer.producer_id, producer.epoch)
    assert entry.coordinator_epoch == producer.coordinator_epoch
    assert NOON - 3_600_000 < entry.last_timestamp <= NOON
    assert len((folder / f"{0:020d}.txnindex").read_bytes()) == 34


def test_checkpoints_and_the_clean_end_of_a_broker_that_runs(story: Story) -> None:
    state = inside(story.cluster).processes[1].replicas
    assert state is not None
    for number in (0, 1):
        folder = story.kafka / "broker-1" / f"d{number}"
        clean = json.loads((folder / ".kafka_cleanshutdown").read_text())
        assert clean == {"version": 0, "brokerEpoch": story.cluster.node(1).broker_epoch}
        ends = _offsets(folder / "recovery-point-offset-checkpoint")
        high_watermarks = _offsets(folder / "replication-offset-checkpoint")
        assert ends.keys() == high_watermarks.keys()
        for partition in state.machine.state.partitions.values():
            key = f"{partition.topic}-{partition.partition}"
            if key in ends:
                assert ends[key] == partition.replica_log.log.end_offset
                assert high_watermarks[key] == partition.high_watermark
        assert (folder / "log-start-offset-checkpoint").read_text() == "0\n0\n"


def test_a_broker_that_was_killed_has_no_clean_end(story: Story) -> None:
    assert story.killed_epoch >= 0
    assert not list(story.kafka.glob("broker-3/*/.kafka_cleanshutdown"))
    assert (story.kafka / "broker-3/d0/recovery-point-offset-checkpoint").is_file()


def _offsets(path: Path) -> dict[str, int]:
    version, count, *lines = path.read_text().splitlines()
    assert (version, int(count)) == ("0", len(lines))
    found = {}
    for line in lines:
        topic, index, offset = line.split(" ")
        found[f"{topic}-{index}"] = int(offset)
    return found


# --- refusals ------------------------------------------------------------------------------------


def test_a_place_that_is_taken_is_refused_and_stays(story: Story, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("years of work")
    with pytest.raises(UserError, match="taken: the folder is not empty; name a new one"):
        export_run(story.run, tmp_path / "taken", now_ms=NOON)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file: is a file; name a new folder"):
        export_run(story.run, tmp_path / "file", now_ms=NOON)
    with pytest.raises(UserError, match=r"port: 65531 is not one of 1 to 65530: 6 nodes"):
        export_run(story.run, tmp_path / "new", port=65_531, now_ms=NOON)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "taken"]


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(
    story: Story,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "file").write_text("")
    target = tmp_path / "file" / "new"
    assert command(["export", str(story.run), "--kafka", str(target)]) == EXIT_FILES
    why = "cannot be written: there is a file in the place of a folder above it"
    assert capfd.readouterr() == ("", f"minicluster: {target}: {why}\n")

    def full(path: Path, content: bytes) -> int:
        raise OSError(ENOSPC, "No space left on device", str(path))

    target = tmp_path / "new"
    monkeypatch.setattr(Path, "write_bytes", full)
    assert command(["export", str(story.run), "--kafka", str(target)]) == EXIT_FILES
    why = "cannot be written: No space left on device"
    assert capfd.readouterr() == ("", f"minicluster: {target}: {why}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("change", "code", "line"),
    [
        ({"mode": "zookeeper"}, 64, "a run of ZooKeeper mode"),
        ({"mode": "outside"}, 64, "its controllers were of another process"),
        ({"controllers": [], "brokers": []}, 66, "it has no controllers"),
        ({"brokers": [1, 101]}, 64, "node 101 is broker and controller at once"),
        ({"brokers": [1, 2, 3, 4]}, 66, "it has no broker-4.zip"),
        ({"ended_at_ms": "soon"}, 65, "ended_at_ms: expected `int | null`, got `str`"),
    ],
)
def test_a_run_that_kafka_cannot_start_from_is_refused_in_one_line(
    story: Story,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    change: dict[str, object],
    code: int,
    line: str,
) -> None:
    run = tmp_path / "run"
    shutil.copytree(story.run, run)
    header = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(header | change))
    assert command(["export", str(run), "--kafka", str(tmp_path / "kafka")]) == code
    out, err = capfd.readouterr()
    assert not out
    assert line in " ".join(err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["run"], "nothing is left"


def test_a_damaged_archive_is_refused(story: Story, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(story.run, run)
    (run / "broker-2.zip").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"broker-2\.zip: damaged"):
        export_run(run, tmp_path / "kafka", now_ms=NOON)
    assert not (tmp_path / "kafka").exists()


def test_there_is_no_such_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command(["export", str(tmp_path / "none"), "--kafka", str(tmp_path / "kafka")]) == 66
    assert "none: there is no such folder" in " ".join(capfd.readouterr().err.split())
    (tmp_path / "empty").mkdir()
    assert command(["export", str(tmp_path / "empty"), "--kafka", str(tmp_path / "kafka")]) == 66
    assert "not a run folder: it has no run.json" in " ".join(capfd.readouterr().err.split())


# --- command and method --------------------------------------------------------------------------


def test_the_command_prints_how_to_start_the_nodes(
    story: Story, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "kafka"
    before_ms = int(time.time() * 1000)
    assert command(["export", str(story.run), "--kafka", str(target), "--port", "30000"]) == 0
    out = capfd.readouterr().out
    wrote, start, connect = out.splitlines()
    assert wrote.startswith(f"wrote    {target}: 3 controllers, 3 brokers, ")
    assert f"for f in {target}/*/server.properties; do bin/kafka-server-start.sh" in start
    assert connect.endswith("bootstrap.servers=127.0.0.1:30000,127.0.0.1:30001,127.0.0.1:30002")
    (path,) = (target / "controller-101" / METADATA_DIRECTORY).glob("*.log")
    assert batches(path)[-1].max_timestamp > before_ms - 3_600_000, "the present"


def test_static_voters_are_in_the_files_and_an_old_metadata_version_has_a_note(
    tmp_path: Path,
) -> None:
    old = {"metadata_version": "3.3-IV0", "rules": "kafka-3.9"}
    with MiniCluster(brokers=1, controllers=1, seed=2, **old) as cluster:
        exported = cluster.export(tmp_path / "kafka", port=20_000)
    values = read_properties(tmp_path / "kafka/broker-1/server.properties")
    assert values is not None
    assert values["controller.quorum.voters"] == "101@127.0.0.1:20001"
    assert "controller.quorum.bootstrap.servers" not in values
    assert exported.note is not None
    assert exported.note.startswith("metadata.version 3.3-IV0: Apache Kafka 4 needs 3.3-IV3")
