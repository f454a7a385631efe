"""The rules of znodes find nothing in the logs of real clusters, and what is wrong elsewhere."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.verify.zookeeper.checker import ZnodeChecker
from minicluster.verify.zookeeper.rules import ZNODE_RULES

RUNS = Path(__file__).parents[1] / "data" / "zookeeper-runs"
NAMES = ("ibp-2.6", "ibp-2.7", "ibp-3.9", "ibp-3.9-again", "release-3.0", "release-3.2")


def lines_of(run: str) -> list[dict[str, Any]]:
    text = gzip.decompress((RUNS / run / "zk.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def checker_of(run: str) -> ZnodeChecker:
    summary = json.loads((RUNS / run / "summary.json").read_text())
    protocol = InterBrokerProtocol.parse(summary["inter.broker.protocol.version"])
    checked = summary["release"] > "3.3"  # releases before it took dead members
    return ZnodeChecker(protocol, members_checked=checked, left_out=("probe",))


@pytest.mark.parametrize("run", NAMES)
def test_nothing_is_found_in_the_log_of_a_real_cluster(run: str) -> None:
    checker = checker_of(run)
    for line in lines_of(run):
        checker.on_line(line)
    assert checker.findings == []
    assert checker.looked_at["K2"] >= 190


def broken(run: str, path_end: str, change: dict[str, Any], nth: int = 0) -> set[str]:
    """The rules that a log breaks once the state of a partition has other values."""
    lines = lines_of(run)
    states = [one for one in lines if one["op"] == "set" and one.get("path", "").endswith(path_end)]
    line = states[nth]
    value = {**line["json"], **change}
    line["raw"] = json.dumps(value, separators=(",", ":"))
    checker = checker_of(run)
    for one in lines:
        checker.on_line(one)
    return {finding.rule for finding in checker.findings}


STATE = "orders/partitions/0/state"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"controller_epoch": 0}, "K2"),
        ({"leader_epoch": 9}, "K3"),
        ({"leader": 2}, "K4"),
        ({"isr": []}, "K5"),
        ({"isr": [1, 1]}, "K5"),
        ({"isr": [1, 99]}, "K5"),
        ({"isr": [2]}, "K6"),
        ({"leader_recovery_state": 1}, "K8"),
    ],
)
def test_a_state_that_is_not_as_it_must_be_is_found(change: dict[str, Any], rule: str) -> None:
    assert rule in broken("ibp-3.9", STATE, change)


def test_a_write_that_is_never_notified_of_is_found() -> None:
    checker = checker_of("ibp-2.6")
    lines = iter(lines_of("ibp-2.6"))
    for line in lines:
        checker.on_line(line)
        if line["op"] == "set" and "multi" not in line and line["path"].endswith("/state"):
            break
    checker.end(line["ms"] + 60_000)
    assert checker.findings == []
    checker.end(line["ms"] + 80_000)
    assert {finding.rule for finding in checker.findings} == {"K13"}


def test_every_rule_has_a_number_and_a_source() -> None:
    assert all(rule.id == key and rule.source for key, rule in ZNODE_RULES.items())
