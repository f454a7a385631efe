"""Clusters that go on from the end of a log: Apache Kafka's, our own, checkpoints alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.adoption import read_log_end
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError
from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import records as r
from tests.verify.handwritten.log import LogBuilder, partition

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
RUNS = sorted(path for path in LOGS.iterdir() if path.is_dir())
SINGLE = sorted(LOGS.glob("*/controller-*"))
CHECKPOINTS = sorted(
    path
    for path in LOGS.glob("*/controller-*/*/*.checkpoint")
    if not path.name.startswith("0" * 20)
)


def shown(path: Path) -> str:
    return str(path.relative_to(LOGS))


def placement(image: MetadataImage) -> dict[tuple[str, int], tuple[int, ...]]:
    return {(topic.name, n): state.replicas for topic, n, state in image.topics.partitions()}


def in_sync(cluster: MiniCluster) -> bool:
    """Every partition that can has a leader, and all its replicas that run in the ISR."""
    running = set(inside(cluster).processes)
    return all(
        state.leader >= 0 and set(state.isr) >= set(state.replicas) & running
        for _, _, state in cluster.image.topics.partitions()
        if running & {*state.isr, *state.elr}
    )


@pytest.mark.parametrize("path", [*RUNS, *SINGLE, *CHECKPOINTS[::6]], ids=shown)
def test_the_cluster_of_a_recorded_log_goes_on_where_the_log_ends(path: Path) -> None:
    end = read_log_end(path)
    with MiniCluster.from_log(path, seed=1) as cluster:
        before, now = end.image, cluster.image
        assert placement(now) == placement(before)
        assert now.features == before.features
        assert now.configs == before.configs
        assert inside(cluster).committed.offset >= end.end_offset
        assert 0 <= cluster.now_ms - end.time_ms < 30_000
        for broker in before.cluster.brokers.values():
            registered = now.cluster.broker(broker.id)
            assert registered is not None
            assert set(registered.log_dirs) >= set(broker.log_dirs)
            assert registered.epoch >= broker.epoch
            assert registered.rack == broker.rack
        cluster.wait_until(lambda: in_sync(cluster), within="60s")


@pytest.mark.parametrize("path", RUNS, ids=shown)
def test_the_cluster_of_a_recorded_log_serves_and_survives(path: Path) -> None:
    """Online rules hold from the end of the log on."""
    with MiniCluster.from_log(path, seed=2) as cluster:
        cluster.wait_until(lambda: in_sync(cluster), within="60s")
        replicas = min(2, len(cluster.brokers))
        topic = cluster.create_topic("made-afterwards", partitions=2, replicas=replicas)
        cluster.wait_until(topic.fully_in_sync, within="20s")
        first = cluster.brokers[0]
        cluster.kill(first)
        if len(cluster.controllers) > 1:
            cluster.fail_over()
        cluster.run_for("12s")
        cluster.restart(first)
        cluster.wait_until(inside(cluster).all_unfenced, within="60s")
        cluster.wait_until(lambda: in_sync(cluster), within="60s")
        cluster.produce("made-afterwards", count=3, acks="all")


def test_brokers_that_the_log_has_unfenced_go_on_under_their_epochs() -> None:
    """All nodes of this run were killed at once: nothing was fenced where its log ends."""
    path = LOGS / "divergent"
    before = read_log_end(path).image.cluster.brokers
    with MiniCluster.from_log(path) as cluster:
        cluster.run_for("30s")
        after = cluster.image.cluster.brokers
        for broker in before.values():
            assert after.rows[broker.id] == broker


def test_brokers_that_were_stopped_register_again() -> None:
    path = LOGS / "cluster"
    before = read_log_end(path).image.cluster.brokers
    with MiniCluster.from_log(path) as cluster:
        after = cluster.image.cluster.brokers
        for broker in before.values():
            assert after.rows[broker.id].epoch > broker.epoch
            assert after.rows[broker.id].incarnation_id != broker.incarnation_id


def test_a_fenced_broker_of_a_live_cluster_is_down_until_it_is_restarted(tmp_path: Path) -> None:
    with MiniCluster(seed=4) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        cluster.kill(cluster.node(3))
        cluster.wait_until(lambda: cluster.node(3).is_fenced, within="20s")
        path = cluster.save(tmp_path / "run")
    with MiniCluster.from_log(path, seed=5) as again:
        assert sorted(again.image.cluster.brokers.rows) == [1, 2, 3]
        assert not again.node(3).is_running
        assert again.node(1).is_running
        assert 3 not in again.topic("orders")[0].isr
        again.restart(again.node(3))
        again.wait_until(again.topic("orders").fully_in_sync, within="60s")


def test_a_broker_that_goes_on_hands_its_leaderships_over_from_the_first_moment_on(
    tmp_path: Path,
) -> None:
    """It has run before: it does not just stop, as one that shuts down while it starts."""
    with MiniCluster(brokers=3, controllers=1, seed=4) as cluster:
        cluster.create_topic("orders", partitions=3, replicas=3, min_isr=2)
        path = cluster.save(tmp_path / "run")
    with MiniCluster.from_log(path, seed=1) as again:
        orders = again.topic("orders")
        leaving = orders[0].leader
        again.controlled_shutdown(leaving)
        again.wait_until(lambda: not leaving.is_running, within="20s")
        assert all(partition.leader not in (None, leaving) for partition in orders)


def test_the_same_seed_goes_on_in_the_same_way() -> None:
    def played() -> str:
        with MiniCluster.from_log(LOGS / "jbod", seed=9) as cluster:
            cluster.bounce(cluster.node(2), down="5s")
            cluster.run_for("20s")
            return cluster.trace_hash

    assert played() == played()


def test_a_run_of_an_adopted_log_is_judged_from_there_on(tmp_path: Path) -> None:
    with MiniCluster.from_log(LOGS / "trimmed", seed=3) as cluster:
        cluster.kill(cluster.node(2))
        cluster.run_for("15s")
        path = cluster.save(tmp_path / "run")
        assert cluster.verify(engine="process").valid
        image = cluster.image
    end = read_log_end(path)
    assert end.image.topics == image.topics
    with MiniCluster.from_log(path) as again:
        assert not again.node(2).is_running


def test_threads_go_on_from_a_log() -> None:
    with MiniCluster.from_log(LOGS / "divergent", runtime="threaded") as cluster:
        cluster.wait_until(lambda: cluster.active_controller is not None, within="60s")
        assert cluster.now_ms >= read_log_end(LOGS / "divergent").time_ms


# --- any ids, racks, directories ------------------------------------------------------------------


def uid(number: int) -> UUID:
    return UUID(int=(number << 64) | 0x8000_0000_0000_0000 | number, version=4)


def checkpoint_of(
    folder: Path, brokers: Iterable[int], controllers: Iterable[int], *, fenced: bool = False
) -> Path:
    """A checkpoint as somebody copied it from a controller, without the log around it."""
    ids = tuple(brokers)
    ranges = (("metadata.version", 7, 30), ("kraft.version", 0, 1), *((n, 0, 2) for n in OTHERS))
    messages: list[r.VersionedRecord] = [
        r.VersionedRecord(r.FeatureLevelRecord(name="metadata.version", feature_level=27), 0)
    ]
    for broker in ids:
        registration = r.RegisterBrokerRecord(
            broker_id=broker,
            incarnation_id=uid(900 + broker),
            broker_epoch=1_000 + broker,
            features=tuple(
                r.RegisterBrokerRecord.BrokerFeature(
                    name=name, min_supported_version=low, max_supported_version=high
                )
                for name, low, high in ranges
            ),
            rack=f"rack, of {broker % 3}",
            fenced=fenced,
            log_dirs=(uid(10 * broker + 1), uid(10 * broker + 2)),
        )
        messages.append(r.VersionedRecord(registration, 3))
    for controller in controllers:
        record = r.RegisterControllerRecord(controller_id=controller, incarnation_id=uid(1))
        messages.append(r.VersionedRecord(record, 0))
    messages.append(r.VersionedRecord(r.TopicRecord(name="orders", topic_id=uid(77)), 0))
    for index in range(4):
        replicas = tuple(ids[(index + n) % len(ids)] for n in range(min(3, len(ids))))
        partition = r.PartitionRecord(
            partition_id=index,
            topic_id=uid(77),
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=3,
            partition_epoch=8,
            directories=tuple(uid(10 * replica + 1) for replica in replicas),
        )
        messages.append(r.VersionedRecord(partition, 1))
    snapshot = Snapshot(records=tuple(messages), last_contained_log_timestamp=1_700_000_000_000)
    path = folder / checkpoint_name((5_000, 12))
    path.write_bytes(encode_snapshot(snapshot, epoch=12, timestamp_ms=1_700_000_000_000))
    return path


OTHERS = ("eligible.leader.replicas.version", "group.version", "transaction.version")


def test_ids_racks_and_directories_are_those_of_the_log(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path, brokers=(0, 7, 5_001, 101), controllers=(3_000, 9, 44))
    with MiniCluster.from_log(path, seed=1) as cluster:
        assert [node.id for node in cluster.brokers] == [0, 7, 101, 5_001]
        assert [node.id for node in cluster.controllers] == [9, 44, 3_000]
        assert cluster.now_ms >= 1_700_000_000_000
        cluster.wait_until(cluster.topic("orders").fully_in_sync, within="20s")
        cluster.kill(cluster.node(0))
        cluster.wait_until(lambda: cluster.node(0).is_fenced, within="20s")
        cluster.restart(cluster.node(0))
        cluster.wait_until(cluster.topic("orders").fully_in_sync, within="60s")
        registered = cluster.image.cluster.brokers.rows[0]
        assert registered.rack == "rack, of 0"
        assert set(registered.log_dirs) == {uid(1), uid(2)}


def test_where_no_controller_is_named_there_are_three(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path, brokers=(101, 102), controllers=())
    with MiniCluster.from_log(path) as cluster:
        assert [node.id for node in cluster.controllers] == [103, 104, 105]


def test_a_combined_node_dies_as_a_broker_and_as_a_controller(tmp_path: Path) -> None:
    path = checkpoint_of(tmp_path, brokers=(0, 1, 2), controllers=(0, 1, 2))
    with MiniCluster.from_log(path, seed=6) as cluster:
        assert [node.id for node in cluster.controllers] == [0, 1, 2]
        cluster.wait_until(cluster.topic("orders").fully_in_sync, within="20s")
        active = cluster.active_controller
        assert active is not None
        assert active.is_broker
        cluster.kill(active)
        cluster.wait_until(lambda: active.is_fenced, within="30s")
        assert cluster.active_controller not in (None, active)
        assert all(partition.leader != active for partition in cluster.topic("orders"))
        cluster.produce("orders", count=3, acks="all")
        made = cluster.create_topic("more", partitions=1, replicas=2)
        assert active not in made[0].replicas
        cluster.restart(active)
        cluster.wait_until(cluster.topic("orders").fully_in_sync, within="60s")


def log_of_3_0(*, stopped: bool) -> LogBuilder:
    """Kafka 3.0 writes no FeatureLevelRecord, and fences by records of their own."""
    log = LogBuilder(mv=None)
    for broker in (1, 2, 3):
        log.register(broker)
        log.op(r.UnfenceBrokerRecord(id=broker, epoch=log.broker_epochs[broker]))
    log.topic(partition())
    for broker in (1, 2, 3) if stopped else ():
        log.op(r.FenceBrokerRecord(id=broker, epoch=log.broker_epochs[broker]))
    return log


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "stopped"])
def test_the_cluster_of_a_log_of_3_0_goes_on_at_the_first_metadata_version(
    tmp_path: Path, stopped: bool
) -> None:
    """3.9 assumes 3.0-IV1 until a record sets another one: its controller serves every request."""
    path = log_of_3_0(stopped=stopped).write(tmp_path / "3.0")
    with MiniCluster.from_log(path, seed=1) as cluster:
        cluster.wait_until(lambda: in_sync(cluster), within="60s")
        assert cluster.image.features.metadata_version is None
        topic = cluster.create_topic("made-afterwards", partitions=2, replicas=3)
        cluster.wait_until(topic.fully_in_sync, within="20s")
        cluster.kill(cluster.brokers[0])
        cluster.fail_over()
        cluster.run_for("12s")
        cluster.restart(cluster.brokers[0])
        cluster.wait_until(inside(cluster).all_unfenced, within="60s")
        cluster.wait_until(lambda: in_sync(cluster), within="60s")
        cluster.produce("made-afterwards", count=3, acks="all")
        assert read_log_end(cluster.save(tmp_path / "run")).image.topics.named("made-afterwards")


# --- errors for people ----------------------------------------------------------------------------


def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    content = bytearray((LOGS / "smoke/controller-1/__cluster_metadata-0" / path.name).read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    return path


REFUSED = {
    "no such file": lambda tmp: tmp / "nowhere",
    "holds no metadata log|is empty": lambda tmp: tmp,
    "no broker is registered": lambda tmp: LOGS.joinpath(
        "jbod/controller-101/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    ),
    "CRC|crc|damaged|checksum": damaged,
    "begins at offset 1332": lambda tmp: LOGS.joinpath(
        "trimmed/controller-102/__cluster_metadata-0/00000000000000001332.log"
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_path_without_a_cluster_is_refused_in_one_line(why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=why) as refused:
        MiniCluster.from_log(REFUSED[why](tmp_path))
    assert "\n" not in str(refused.value)


def test_arguments_that_the_log_decides_are_refused() -> None:
    with pytest.raises(UserError, match="brokers: the log decides it"):
        MiniCluster.from_log(LOGS / "jbod", brokers=5)
    with pytest.raises(UserError, match="is not a path"):
        MiniCluster.from_log(17)  # type: ignore[arg-type]
