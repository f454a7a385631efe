"""``minicluster serve --sasl … --tls DIR``: what it writes, and who gets in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.cli.in_process import command
from tests.serve.test_serve import FEW, serving

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

pytestmark = pytest.mark.clients
SECRET = "alice's own secret"


def test_who_has_a_password_gets_in_and_it_stands_in_his_file_alone(tmp_path: Path) -> None:
    tls = tmp_path / "tls"
    users = ("--sasl", f"alice:{SECRET}", "--sasl", "admin:boss", "--super-user", "admin")
    with serving(tmp_path, *FEW, *users, "--tls", str(tls)) as served:
        settings = {
            "bootstrap.servers": served.ready["bootstrap_servers"],
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(tls / "ca.pem"),
            "sasl.mechanism": "PLAIN",
        }
        admin = AdminClient({**settings, "sasl.username": "admin", "sasl.password": "boss"})
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(20)
        alice = AdminClient({**settings, "sasl.username": "alice", "sasl.password": SECRET})
        deadline_s = time.monotonic() + 30  # a broker hears of the topic after the controller
        while not (known := set(admin.list_topics(timeout=30).topics)):
            assert time.monotonic() < deadline_s
        assert known == {"orders"}
        assert set(alice.list_topics(timeout=30).topics) == set()
        code, _, _ = served.end()
        assert code == 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    with_secret = {path.name for path in files if SECRET.encode() in path.read_bytes()}
    assert with_secret == {"alice.properties"}
    assert (tls / "alice.properties").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("given", ["alice", "alice:", ":secret"])
def test_a_user_without_a_password_is_one_line(given: str) -> None:
    done = command("serve", *FEW, "--sasl", given)
    assert done.returncode != 0 and "is not USER:PASSWORD" in done.stderr
    assert "secret" not in done.stderr.replace("alice:secret", "")
