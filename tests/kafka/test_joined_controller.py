"""A controller of Apache Kafka becomes a voter beside those of a cluster (KIP-853)."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol import messages as m
from tests.kafka.clients import PATIENT
from tests.kafka.process import CONTROLLER, LOOPBACK, KafkaProcess, free_port

KAFKA = 3000
WITHIN = "120s"


@pytest.mark.kafka
@pytest.mark.slow
def test_it_votes_and_nothing_is_committed_without_it(tmp_path: Path) -> None:
    config = {**PATIENT, "kraft.version": 1}
    with MiniCluster(brokers=2, seed=2, listeners=True, config=config) as cluster:
        port = free_port()
        own = {
            "node.id": KAFKA,
            "listeners": f"CONTROLLER://{LOOPBACK}:{port}",
            "controller.quorum.bootstrap.servers": cluster.bootstrap_controllers,
        }
        cluster_id = cluster.cluster_id
        kafka = KafkaProcess(tmp_path / "kafka", cluster_id, {**CONTROLLER, **own})
        kafka.format("--no-initial-controllers")
        kafka.start()
        try:
            cluster.wait_until(lambda: cluster.image.cluster.controllers.get(KAFKA), within=WITHIN)
            listener = m.AddRaftVoterRequest.Listener(name="CONTROLLER", host=LOOPBACK, port=port)
            added = m.AddRaftVoterRequest(
                cluster_id=cluster_id,
                voter_id=KAFKA,
                voter_directory_id=kafka.directory_id,
                timeout_ms=30_000,
                listeners=(listener,),
            )
            assert cluster.admin(added, within="60s").error_code == 0
            standby = next(c for c in cluster.controllers if c != cluster.active_controller)
            cluster.kill(standby)  # of four voters, all three that are left make a majority
            cluster.create_topic("orders", replicas=2)
            kafka.pause()
            cluster.produce("orders", count=1)  # brokers go on
            before = inside(cluster).committed.offset
            cluster.run_for("3s")
            assert inside(cluster).committed.offset <= before + 1, (
                "a batch may have been on its way"
            )
            kafka.resume()
            cluster.restart(standby)
            cluster.create_topic("bills", replicas=2, within="60s")
        finally:
            print(kafka.log_lines())  # shown where the test has failed
            kafka.kill()
