"""Kafka's own admin client against the controllers of a cluster (``bootstrap.controllers``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from tests.kafka.clients import PATIENT
from tests.kafka.process import output_of

ADMINISTER = Path(__file__).with_name("java") / "Administer.java"


@pytest.mark.kafka
@pytest.mark.slow
def test_the_admin_client_describes_and_administers_the_quorum() -> None:
    config = {**PATIENT, "kraft.version": 1}
    with MiniCluster(brokers=1, seed=9, listeners=True, config=config) as cluster:
        active = inside(cluster).active_controller_id()
        output = output_of(ADMINISTER, cluster.bootstrap_controllers, "101")
        lines = dict(line.replace("! ", ": ", 1).split(": ", 1) for line in output.splitlines())
        addresses = zip(
            inside(cluster).controller_ids, cluster.bootstrap_controllers.split(","), strict=True
        )
        nodes = ", ".join(f"{node_id}@{address}" for node_id, address in addresses)
        assert lines["cluster"] == f"[{nodes}]"
        assert lines["controller"] == str(active)
        assert lines["voters"] == "[101, 102, 103]"
        assert lines["features"] == str(cluster.image.features.level("metadata.version"))
        assert (lines["alter"], lines["config"]) == ("null", "86400000")
        assert lines["level"].startswith("InvalidUpdateVersionException: ")
        assert lines["unregister"].startswith("BrokerIdNotRegisteredException: ")
        assert lines["remove"].startswith("VoterNotFoundException: ")
