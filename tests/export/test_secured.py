"""A run with users for Apache Kafka: its listeners, who logs in there, certificates."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.export.kafka_folder import export_run
from minicluster.cli import run as command
from minicluster.errors import UserError
from minicluster.log.text_files import read_properties

NOON = 1_700_000_000_000
SHAPE = {
    "brokers": 2,
    "controllers": 1,
    "listeners": ["SASL_SSL", "EXTERNAL"],
    "users": {"alice": 'a "quoted" secret'},
    "super_users": ["admin"],
    "config": {
        "listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT",
        "listener.name.external.sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
        "delegation.token.secret.key": "nobody knows",
    },
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with MiniCluster(**SHAPE, runtime="simulated") as cluster:
        return cluster.save(tmp_path_factory.mktemp("secured") / "run")


def properties(folder: Path, node: str = "broker-2") -> dict[str, str]:
    values = read_properties(folder / node / "server.properties")
    assert values is not None
    return values


def test_each_broker_has_the_listeners_of_the_run_and_one_for_the_nodes(
    run: Path, tmp_path: Path
) -> None:
    exported = export_run(run, tmp_path / "kafka", port=20_000, now_ms=NOON)
    values = properties(tmp_path / "kafka")
    assert exported.bootstrap_servers == "127.0.0.1:20000,127.0.0.1:20001"
    assert values["listeners"].split(",") == [
        "SASL_SSL://127.0.0.1:20001",
        "EXTERNAL://127.0.0.1:20004",
        "NODES://127.0.0.1:20006",
    ]
    assert values["inter.broker.listener.name"] == "NODES"
    assert values["listener.security.protocol.map"] == (
        "SASL_SSL:SASL_SSL,EXTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_SSL,NODES:SASL_PLAINTEXT"
    )
    assert values["super.users"] == "User:admin;User:minicluster-nodes"
    assert "delegation.token.secret.key" not in values, "the run does not have it"


def test_a_run_has_no_passwords_so_plain_waits_for_them(run: Path, tmp_path: Path) -> None:
    without = export_run(run, tmp_path / "without", now_ms=NOON)
    offered = "listener.name.external.sasl.enabled.mechanisms"
    assert without.note is not None and "--sasl USER:PASSWORD" in without.note
    assert properties(tmp_path / "without")[offered] == "SCRAM-SHA-256"
    given = export_run(run, tmp_path / "given", now_ms=NOON, users={"alice": "secret"})
    values = properties(tmp_path / "given")
    assert given.note is None and values[offered] == "SCRAM-SHA-256,PLAIN"
    jaas = values["listener.name.external.plain.sasl.jaas.config"]
    assert jaas.endswith('PlainLoginModule required user_alice="secret";')


def test_the_nodes_log_in_by_a_password_that_is_made_for_each_folder(
    run: Path, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        export_run(run, tmp_path / name, now_ms=NOON)
    own = "listener.name.nodes.plain.sasl.jaas.config"
    first = [properties(tmp_path / "first", node)[own] for node in ("broker-1", "controller-101")]
    assert first[0] == first[1] != properties(tmp_path / "second")[own]
    file = tmp_path / "first" / "broker-1" / "server.properties"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_certificate_of_the_nodes_is_for_this_machine(run: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "kafka", now_ms=NOON)
    values = properties(tmp_path / "kafka")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(values["ssl.keystore.location"])
    client = ssl.create_default_context(cafile=values["ssl.truststore.location"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ours.getpeercert()


def test_an_authorizer_alone_has_the_nodes_log_in(tmp_path: Path) -> None:
    """Otherwise every client of a PLAINTEXT listener would be the super user that nodes are."""
    with MiniCluster(brokers=1, controllers=1, super_users=["admin"]) as cluster:
        cluster.export(tmp_path / "kafka")
    values = properties(tmp_path / "kafka", "broker-1")
    assert values["listener.security.protocol.map"] == (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT,NODES:SASL_PLAINTEXT"
    )
    assert not (tmp_path / "kafka" / "tls").exists()


def test_the_command_takes_passwords(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["export", str(run), "--kafka", str(tmp_path / "a")]) == 0
    assert "PLAIN is not offered" in capsys.readouterr().err
    given = ["--sasl", "alice:secret"]
    assert command(["export", str(run), "--kafka", str(tmp_path / "b"), *given]) == 0
    assert capsys.readouterr().err == ""


def test_the_ports_of_all_listeners_fit(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not one of 1 to 65529: the nodes and their listeners"):
        export_run(run, tmp_path / "kafka", port=65_530, now_ms=NOON)
