"""Kafka's command line tools log in to ``minicluster serve --sasl … --tls DIR``.

Each reads one of the properties files that the command writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.apps.programs import needs_kafka
from tests.apps.test_tools import (
    CONFIGS,
    CONSOLE_CONSUMER,
    CONSOLE_PRODUCER,
    TOPICS,
    Tools,
    java_tools,
)
from tests.serve.test_serve import FEW, serving

pytestmark = [pytest.mark.apps, pytest.mark.slow, needs_kafka()]

ACLS = "org.apache.kafka.tools.AclCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
SERVED = (
    *FEW,
    *("--sasl", "admin:admin-secret", "--sasl", 'alice:a "quoted\\" secret, ü'),
    *("--super-user", "admin", "--config", "delegation.token.secret.key=the nodes' own"),
)


@dataclass(frozen=True, slots=True)
class Secured(Tools):
    """Tools on a cluster with users."""

    tls: Path

    def run(
        self, main: str, *arguments: str, user: str = "admin", typed: str = "", fails: bool = False
    ) -> str:
        """Run a tool as a user, by his properties file."""
        path = self.tls / f"{user}.properties"
        [servers] = re.findall(r"(?m)^bootstrap\.servers=(.*)$", path.read_text())
        as_user = ("--bootstrap-server", servers, "--command-config", str(path))
        return self.run_at(main, *as_user, *arguments, typed=typed, fails=fails)

    def allow(self, operation: str, *resource: str) -> None:
        rule = ("--add", "--allow-principal", "User:alice", "--operation", operation)
        self.run(ACLS, *rule, *resource)

    def with_config(self, name: str, lines: str) -> None:
        """A properties file of one more user, from alice's."""
        own = (self.tls / "alice.properties").read_text()
        kept = [line for line in own.splitlines() if not line.startswith("sasl.jaas.config=")]
        (self.tls / f"{name}.properties").write_text("\n".join([*kept, lines, ""]))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    tls = folder / "tls"
    with (
        serving(folder, *SERVED, "--tls", str(tls)),
        java_tools(folder / "java.log") as process,
    ):
        yield Secured(process, tls)


def test_who_may_nothing_is_told_so_and_sees_nothing(shell: Secured) -> None:
    shell.run(TOPICS, "--create", "--topic", "tea")
    denied = shell.run(TOPICS, "--create", "--topic", "mine", user="alice", fails=True)
    assert "Authorization failed." in denied or "TopicAuthorizationException" in denied
    assert shell.run(TOPICS, "--list", user="alice").split() == []
    assert shell.run(TOPICS, "--list").split() == ["tea"]
    listed = shell.run(ACLS, "--list", user="alice", fails=True)
    assert "ClusterAuthorizationException" in listed


def test_acls_are_added_listed_and_removed(shell: Secured) -> None:
    """By kafka-acls; a consumer of the console needs one on its group as well."""
    shell.run(TOPICS, "--create", "--topic", "orders")
    shell.run(CONSOLE_PRODUCER, "--topic", "orders", user="alice", typed="not to be there\n")
    shell.allow("Write", "--topic", "orders")
    shell.allow("Read", "--topic", "ord", "--resource-pattern-type", "prefixed")
    shell.run(CONSOLE_PRODUCER, "--topic", "orders", user="alice", typed="first\nsecond\n")
    reads = ("--topic", "orders", "--from-beginning", "--max-messages", "2", "--group", "shop")
    assert shell.run(CONSOLE_CONSUMER, *reads, user="alice") == ""
    shell.allow("Read", "--group", "shop")
    assert shell.run(CONSOLE_CONSUMER, *reads, user="alice").splitlines() == ["first", "second"]
    shown = shell.run(ACLS, "--list", "--principal", "User:alice")
    assert len(re.findall(r"principal=User:alice, host=\*, operation=\w+", shown)) == 3
    remove = ("--remove", "--force", "--allow-principal", "User:alice", "--operation", "Read")
    shell.run(ACLS, *remove, "--group", "shop")
    assert "shop" not in shell.run(ACLS, "--list", "--group", "shop")


def test_a_password_that_is_changed_counts_from_the_next_login_on(shell: Secured) -> None:
    """By kafka-configs, which alters the credentials of SCRAM."""
    of_bob = ("--entity-type", "users", "--entity-name", "bob")
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    for password in ("first", "second"):
        credential = f"SCRAM-SHA-256=[iterations=4096,password={password}]"
        shell.run(CONFIGS, "--alter", *of_bob, "--add-config", credential)
        line = f'sasl.jaas.config={jaas} username="bob" password="{password}";'
        shell.with_config(password, line)
        assert shell.run(TOPICS, "--list", user=password).split() == []
    assert "SCRAM-SHA-256=iterations=4096" in shell.run(CONFIGS, "--describe", *of_bob)
    assert "SaslAuthenticationException" in shell.run(TOPICS, "--list", user="first", fails=True)


def test_a_delegation_token_is_made_used_and_expires(shell: Secured) -> None:
    """By kafka-delegation-tokens; who logs in with one is its owner."""
    lives = ("--max-life-time-period", "-1", "--renewer-principal", "User:admin")
    made = shell.run(TOKENS, "--create", *lives, user="alice")
    [[token_id, hmac]] = re.findall(r"(?m)^(\S+)\s+(\S+)\s+User:alice\s", made)
    jaas = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    shell.with_config(
        "token",
        f'sasl.jaas.config={jaas} username="{token_id}" password="{hmac}" tokenauth="true";',
    )
    shell.run(TOPICS, "--create", "--topic", "toast")
    shell.allow("Describe", "--topic", "toast")
    assert "toast" in shell.run(TOPICS, "--list", user="token").split()
    # Without an owner the tool asks for the tokens of nobody, and Kafka shows none.
    of_alice = ("--describe", "--owner-principal", "User:alice")
    assert token_id in shell.run(TOKENS, *of_alice, user="alice")
    renewed = shell.run(TOKENS, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed renew operation." in renewed
    shell.run(TOKENS, "--expire", "--expiry-time-period", "-1", "--hmac", hmac, user="alice")
    assert "SaslAuthenticationException" in shell.run(TOPICS, "--list", user="token", fails=True)
