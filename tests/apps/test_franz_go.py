"""franz-go's own suite for its client: groups, transactions, every balancer, 50,000 records."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from minicluster import MiniCluster
from tests.apps.programs import kgo_source, kgo_tests, needs_franz_go

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_franz_go()]

RECORDS = 50_000
ENDS_WITHIN_S = 2_700
# It ends once it has records of two topics, of which __consumer_offsets may be one: its expression
# names that too where topics have no kfake.is_internal, and other tests' groups write to it.
UNSOUND = "^Test848RegexBrokerResolves$"


def _failures(lines: list[str]) -> list[str]:
    """The failed tests and what each of them said; go names a test before its lines."""
    failed = {line.split()[2] for line in lines if line.strip().startswith("--- FAIL")}
    shown, name = [], ""
    for line in lines:
        words = line.split()
        if line.startswith("=== "):
            name = words[2]
        elif "--- FAIL" in line or (name in failed and "_test.go:" in line):
            shown.append(line)
    return shown


def test_the_suite_of_kgo_holds(tmp_path: Path) -> None:
    log = tmp_path / "kgo.log"
    with MiniCluster(brokers=3, controllers=1, seed=24, listeners=True) as cluster:
        settings = {
            "KGO_SEEDS": cluster.bootstrap_servers,
            "KGO_TEST_RECORDS": str(RECORDS),
            "KGO_TEST_RF": "3",
            "KGO_LOG_LEVEL": "none",
        }
        with log.open("wb") as output:
            done = subprocess.run(
                [
                    kgo_tests(),
                    "-test.v",
                    f"-test.skip={UNSOUND}",
                    f"-test.timeout={ENDS_WITHIN_S}s",
                ],
                env={**os.environ, **settings},
                cwd=kgo_source(),  # one of its tests reads its own sources
                stdout=output,
                stderr=output,
            )
        lines = log.read_text(errors="replace").splitlines()
        assert done.returncode == 0, "\n".join([*_failures(lines), *lines[-5:]])
        assert any(line.startswith("--- PASS: TestTxnEtl") for line in lines)
