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


def test_kafkajs_administers_produces_consumes_and_commits() -> None:
    with MiniCluster(brokers=3, controllers=3, seed=24, listeners=True) as cluster:
        done = subprocess.run(
            ["node", str(STORY), cluster.bootstrap_servers],
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
