"""The voters of a running cluster change (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import RequestRejected
from minicluster.log.checkpoint import decode_snapshot
from minicluster.log.control import control_records
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import KRaftVersionRecord, NoOpRecord, VotersRecord
from tests.log.controller_directory import read_controller_directory

DYNAMIC = {"kraft.version": 1}


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    config = {**DYNAMIC, "initial.controllers": 3}
    with MiniCluster(controllers=4, seed=8, config=config) as built:
        yield built


def ids(cluster: MiniCluster) -> list[int]:
    return [node.id for node in cluster.voters]


def test_the_first_voters_are_in_the_bootstrap_checkpoint(
    cluster: MiniCluster, tmp_path: Path
) -> None:
    assert ids(cluster) == [101, 102, 103]
    run = cluster.save(tmp_path / "run")
    log, _, _ = read_controller_directory(run / "controller-101")
    control = decode_snapshot(log.snapshots[0, 0]).control
    [voters] = [record for record in control if isinstance(record, VotersRecord)]
    assert [voter.voter_id for voter in voters.voters] == [101, 102, 103]
    assert (0, 0) not in inside(cluster).disks[104].logs["__cluster_metadata-0"].snapshots


def test_a_controller_that_observes_is_added_and_votes(cluster: MiniCluster) -> None:
    cluster.add_voter(104)
    assert ids(cluster) == [101, 102, 103, 104]
    cluster.run_for("2s")
    cluster.kill(cluster.active_controller)  # three of four are left: 104 must vote and fetch
    cluster.create_topic("orders")
    with pytest.raises(RequestRejected) as refusal:
        cluster.add_voter(104)
    assert refusal.value.error is ErrorCode.DUPLICATE_VOTER


def test_a_removed_voter_only_observes_and_the_rest_goes_on(cluster: MiniCluster) -> None:
    gone = next(node for node in cluster.voters if node != cluster.active_controller)
    cluster.remove_voter(gone)
    assert gone.id not in ids(cluster)
    cluster.kill(gone)
    cluster.create_topic("orders")
    cluster.restart(gone)
    cluster.run_for("3s")
    controller = inside(cluster).processes[gone.id].controller
    assert controller is not None
    assert not controller.quorum.is_voter
    assert controller.controller.committed_image.digest() == cluster.image.digest()


def test_the_active_controller_can_be_removed_and_another_takes_over(
    cluster: MiniCluster,
) -> None:
    before = cluster.active_controller
    assert before is not None
    cluster.remove_voter(before)
    cluster.wait_until(lambda: cluster.active_controller not in (None, before), within="20s")
    cluster.create_topic("orders")
    assert before.id not in ids(cluster)


def test_a_controller_with_a_new_disk_takes_its_old_place(cluster: MiniCluster) -> None:
    lost = next(node for node in cluster.voters if node != cluster.active_controller)
    cluster.create_topic("orders")
    cluster.wipe(lost)
    cluster.restart(lost)
    cluster.run_for("5s")
    controller = inside(cluster).processes[lost.id].controller
    assert controller is not None
    assert not controller.quorum.is_voter  # the voter of this id had another directory
    cluster.remove_voter(lost)
    cluster.add_voter(lost)
    cluster.run_for("2s")
    assert lost.id in ids(cluster)
    assert controller.quorum.is_voter
    assert controller.controller.committed_image.digest() == cluster.image.digest()


def test_a_controller_joins_by_itself_where_it_may() -> None:
    config = {**DYNAMIC, "initial.controllers": 2, "controller.quorum.auto.join.enable": True}
    with MiniCluster(controllers=3, seed=8, config=config) as cluster:
        cluster.wait_until(lambda: ids(cluster) == [101, 102, 103], within="30s")
        cluster.wipe(103)
        cluster.restart(103)
        cluster.run_for("30s")
        controller = inside(cluster).processes[103].controller
        assert controller is not None and controller.quorum.is_voter
        cluster.create_topic("orders")


def test_a_static_quorum_is_upgraded_and_then_takes_another_voter() -> None:
    """UpdateFeatures is refused until every voter has sent UpdateRaftVoter (KIP-853)."""
    with MiniCluster(seed=8, controllers=4, config={"initial.controllers": 3}) as cluster:
        with pytest.raises(RequestRejected) as refusal:
            cluster.add_voter(104)
        assert refusal.value.error is ErrorCode.UNSUPPORTED_VERSION
        cluster.fail_over()  # the new leader has no update of any voter yet
        follower = next(node for node in cluster.voters if node != cluster.active_controller)
        cluster.kill(follower)
        with pytest.raises(RequestRejected) as refusal:
            cluster.upgrade_kraft_version(within="5s")
        assert refusal.value.error is ErrorCode.INVALID_UPDATE_VERSION
        cluster.restart(follower)
        cluster.upgrade_kraft_version()  # it waits for what the voters support
        log = inside(cluster).disks[cluster.active_controller.id].logs["__cluster_metadata-0"]
        upgrade, carrier = next(
            (batch, log.batches[index + 1])
            for index, batch in enumerate(log.batches)
            if [type(r.message) for r in control_records(batch)]
            == [KRaftVersionRecord, VotersRecord]
        )
        assert [type(r.record) for r in carrier.metadata_records] == [NoOpRecord]
        assert carrier.base_offset == upgrade.next_offset
        cluster.upgrade_kraft_version()  # no change, and no harm
        cluster.add_voter(104)
        assert ids(cluster) == [101, 102, 103, 104]
        cluster.fail_over()
        cluster.create_topic("orders")
        cluster.kill(cluster.controllers)
        cluster.restart(cluster.controllers)
        cluster.wait_until(lambda: cluster.active_controller is not None, within="30s")
        assert ids(cluster) == [101, 102, 103, 104]


def test_an_upgrade_that_is_only_validated_changes_nothing() -> None:
    Request = m.UpdateFeaturesRequest
    key = Request.FeatureUpdateKey(feature="kraft.version", max_version_level=1, upgrade_type=1)
    with MiniCluster(seed=8, controllers=3, brokers=1) as cluster:
        cluster.run_for("5s")
        response = cluster.admin(Request(feature_updates=(key,), validate_only=True))
        assert response.error_code == ErrorCode.NONE
        cluster.run_for("2s")
        with pytest.raises(RequestRejected) as refusal:
            cluster.remove_voter(cluster.controllers[0])
        assert refusal.value.error is ErrorCode.UNSUPPORTED_VERSION
