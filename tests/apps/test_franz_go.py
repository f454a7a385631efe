"""franz-go's own suite for its client: groups, transactions, every balancer, 50,000 records.

Its tests of logins; a program of ours by SASL_SSL.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from tests.apps.programs import kgo_source, kgo_tests, needs_franz_go

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_franz_go()]

SECURED = Path(__file__).with_name("go") / "secured.go"
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


def test_its_tests_of_logins_hold(tmp_path: Path) -> None:
    """Three listeners, for its suite wants TLS, SCRAM and tokens each at servers of their own."""
    log = tmp_path / "kgo.log"
    config = {
        "listener.security.protocol.map": "SCRAM:SASL_PLAINTEXT,TOKENS:SASL_PLAINTEXT",
        "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
    }
    tests = ("TestSCRAMAuth", "TestSCRAMAuthBadCredentials", "TestOAuthAuth")
    with MiniCluster(
        brokers=1,
        controllers=1,
        seed=24,
        listeners=["SSL", "SCRAM", "TOKENS"],
        users={"alice": "secret"},
        config=config,
    ) as cluster:
        by_tls = cluster.client_config(listener="SSL")
        servers = inside(cluster).open_to_clients("the test").bootstrap_servers
        settings = {
            "KGO_SEEDS": servers("SSL"),
            "KGO_TEST_TLS": f"ca:{by_tls['ssl.ca.location']}",
            "KGO_TEST_SCRAM": "alice:secret:512",
            "KGO_TEST_SCRAM_SEEDS": servers("SCRAM"),
            "KGO_TEST_OAUTH_SEEDS": servers("TOKENS"),
            "KGO_LOG_LEVEL": "none",
        }
        with log.open("wb") as output:
            done = subprocess.run(
                [kgo_tests(), "-test.v", f"-test.run=^({'|'.join(tests)})$", "-test.timeout=600s"],
                env={**os.environ, **settings},
                cwd=kgo_source(),
                stdout=output,
                stderr=output,
            )
        lines = log.read_text(errors="replace").splitlines()
        assert done.returncode == 0, "\n".join([*_failures(lines), *lines[-5:]])
        passed = {line.split()[2] for line in lines if line.startswith("--- PASS")}
        assert passed >= set(tests)


def test_a_program_logs_in_by_sasl_ssl(tmp_path: Path) -> None:
    """With ACLs that suffice; without the one on its group it is told so."""
    program = tmp_path / "secured"
    build = ["go", "build", "-o", str(program), str(SECURED)]
    subprocess.run(build, cwd=kgo_tests().parent, check=True)
    with MiniCluster(
        brokers=1,
        controllers=1,
        listeners="SASL_SSL",
        users={"admin": "admin-secret", "shop": "secret"},
        super_users=["admin"],
    ) as cluster:
        cluster.create_topic("orders")
        cluster.grant("shop", ["READ", "WRITE"], topic="orders")
        config = cluster.client_config("shop")
        arguments = [config["bootstrap.servers"], config["ssl.ca.location"], "shop", "secret"]

        def run() -> tuple[int, str]:
            command = [str(program), *arguments, "orders", "readers"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
            return done.returncode, done.stdout

        code, said = run()
        assert code == 1 and "GROUP_AUTHORIZATION_FAILED" in said
        cluster.grant("shop", "READ", group="readers")
        code, said = run()
        assert code == 0 and said.splitlines()[0] == "from Go", said
