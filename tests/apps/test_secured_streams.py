"""Kafka Streams logs in, with the ACLs that it needs and with one of them missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from tests.apps.programs import jars, needs_kafka
from tests.kafka.process import JavaProgram, wait_for

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafka()]

COUNT_WORDS = Path(__file__).with_name("java") / "CountWords.java"
APP = "count-words"
WITHIN_S = 180.0


def grant_all_it_needs(cluster: MiniCluster) -> None:
    """The rights of Kafka's guide to the security of Streams: a prefix for what is its own."""
    cluster.grant("counter", ["READ", "DESCRIBE"], topic="words")
    cluster.grant("counter", ["WRITE", "DESCRIBE"], topic="counts")
    cluster.grant("counter", "ALL", topic=APP, prefixed=True)
    cluster.grant("counter", ["READ", "DESCRIBE"], group=APP)
    cluster.grant("counter", ["WRITE", "DESCRIBE"], transactional_id=APP, prefixed=True)


def test_it_counts_with_its_rights_and_says_which_one_it_lacks(tmp_path: Path) -> None:
    """Without WRITE on what it writes the first word ends it; with it the word is counted."""
    with MiniCluster(
        brokers=1,
        controllers=1,
        seed=24,
        listeners="SASL_PLAINTEXT",
        users={"admin": "admin-secret", "counter": "secret"},
        super_users=["admin"],
        config={"transaction.state.log.replication.factor": 1},
    ) as cluster:
        for topic in ("words", "counts"):
            cluster.create_topic(topic)
        grant_all_it_needs(cluster)
        cluster.revoke("counter", "WRITE", topic="counts")
        cluster.as_user("admin").produce(cluster.topic("words"), count=1)
        config = {**cluster.client_config("counter", for_="java"), "replication.factor": 1}
        properties = tmp_path / "counter.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in config.items()))

        def start(name: str) -> JavaProgram:
            folder = tmp_path / name
            folder.mkdir()
            arguments = (cluster.bootstrap_servers, "exactly_once_v2", str(folder), str(properties))
            return JavaProgram(COUNT_WORDS, *arguments, folder=folder, class_path=[f"{jars()}/*"])

        counts = cluster.topic("counts")[0]
        denied = start("denied")
        try:
            wait_for(lambda: "state ERROR" in denied.lines("state"), WITHIN_S, denied.log_lines)
        finally:
            denied.kill()
        because = "\n".join(denied.lines("because"))
        assert "TopicAuthorizationException: Not authorized to access topics: [counts]" in because
        cluster.grant("counter", "WRITE", topic="counts")
        allowed = start("allowed")
        try:
            wait_for(lambda: counts.log_end_offset > 0, WITHIN_S, allowed.log_lines)
        finally:
            print(allowed.log_lines())  # shown where the test has failed
            allowed.kill()
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()
