"""KafkaJS: administration, an idempotent producer, groups, transactions."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from minicluster import MiniCluster
from tests.apps.programs import needs_kafkajs, node_modules

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafkajs()]

STORY = Path(__file__).with_name("node") / "story.js"
ENDS_WITHIN_S = 240.0


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_SSL"])
def test_kafkajs_administers_produces_consumes_and_commits(protocol: str) -> None:
    """By itself on PLAINTEXT; on SASL_SSL as a user with an ACL for each thing that it does."""
    users = {} if protocol == "PLAINTEXT" else {"admin": "admin-secret", "story": "secret"}
    with MiniCluster(
        brokers=3,
        controllers=3,
        seed=24,
        listeners=protocol,
        users=users,
        super_users=[*users][:1],
    ) as cluster:
        login = []
        if users:
            config = cluster.client_config("story")
            login = [config["ssl.ca.location"], config["sasl.username"], config["sasl.password"]]
            cluster.grant("story", ["CREATE", "DESCRIBE"], cluster=True)
            cluster.grant("story", "ALL", topic="orders")
            cluster.grant("story", ["READ", "DESCRIBE", "DELETE"], group="*")
            cluster.grant("story", ["WRITE", "DESCRIBE"], transactional_id="story")
            cluster.grant("story", "IDEMPOTENT_WRITE", cluster=True)
        done = subprocess.run(
            ["node", str(STORY), cluster.bootstrap_servers, *login],
            env={**os.environ, "NODE_PATH": str(node_modules())},
            capture_output=True,
            text=True,
            timeout=ENDS_WITHIN_S,
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
        parts = {line.pop("part"): line for line in map(json.loads, done.stdout.splitlines())}
        orders = [f"order {number}" for number in range(200)]
        assert parts["admin"] == {
            "created": True,
            "brokers": 3,
            "partitions": 4,
            "retention": "60000",
        }
        assert sorted(parts["group"]["values"]) == sorted(orders)
        assert sorted(parts["after"]["values"]) == ["kept", "kept too"]
        assert sorted(parts["all"]["values"]) == sorted([*orders, "kept", "kept too"])
        end = parts["end"]
        assert {"readers", "others"} <= set(end["groups"]) and "readers" not in end["left"]
        assert end["offset"] == "1" and "orders" not in end["topics"]
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()
