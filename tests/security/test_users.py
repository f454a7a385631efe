"""Users in the simulation: grants, denials and revocations, without a socket."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.errors import RequestRejected, UserError
from minicluster.scenario.vocabulary import action_of


def secured(seed: int = 1) -> MiniCluster:
    return MiniCluster(brokers=2, controllers=1, seed=seed, super_users=["admin"])


def test_a_grant_counts_until_it_is_revoked() -> None:
    """On each broker, and at once: the call ends when every node enforces it."""
    with secured() as cluster:
        orders = cluster.create_topic("orders", partitions=2)
        alice = cluster.as_user("alice")

        def produced() -> list[bool]:
            return [alice.produce(orders, partition=p, count=1)[0].ok for p in (0, 1)]

        assert produced() == [False, False]
        cluster.grant("alice", "WRITE", topic="orders")
        assert produced() == [True, True]
        cluster.deny("alice", "ALL", topic="ord", prefixed=True)
        assert produced() == [False, False]
        cluster.revoke("alice", "ALL", topic="ord", prefixed=True)
        assert produced() == [True, True]
        cluster.revoke("alice", "WRITE", topic="orders")
        assert produced() == [False, False]
        assert [orders[index].log_end_offset for index in (0, 1)] == [2, 2]
        report = cluster.verify(engine="process")
        assert report.valid, report.to_text()


def test_a_request_that_is_denied_changes_nothing() -> None:
    """Each says what is missing; who may alter the cluster may grant."""
    with secured() as cluster:
        cluster.create_topic("orders")
        before = cluster.image
        mallory = cluster.as_user("mallory")
        for act in (
            lambda: mallory.create_topic("mine"),
            lambda: mallory.delete_topic("orders"),
            lambda: mallory.add_partitions("orders", 9),
            lambda: mallory.delete_records("orders-0"),
            lambda: mallory.grant("mallory", "ALL", cluster=True),
        ):
            with pytest.raises(RequestRejected, match="AUTHORIZATION_FAILED"):
                act()
        assert cluster.image.topics == before.topics and not cluster.image.acls
        cluster.grant("mallory", "ALTER", cluster=True)
        mallory.grant("mallory", "CREATE", cluster=True)
        assert mallory.create_topic("mine").exists


def test_arguments_that_say_nothing_are_rejected_in_one_line() -> None:
    with secured() as cluster:
        with pytest.raises(UserError, match="unknown operation 'WRIT'; did you mean WRITE"):
            cluster.grant("alice", "WRIT", topic="orders")
        with pytest.raises(UserError, match="grant: name one resource"):
            cluster.grant("alice", "READ", topic="orders", group="g")
    with MiniCluster(brokers=1, controllers=1) as cluster, pytest.raises(UserError, match="super"):
        cluster.as_user("alice")


def test_a_step_is_written_as_the_method_is_called() -> None:
    step = {"user": "alice", "operations": ["READ", "DESCRIBE"], "group": "shop", "prefixed": True}
    assert action_of("grant", step, "step 1").given == step


def test_a_seed_repeats_what_users_do() -> None:
    def run() -> str:
        with secured(seed=7) as cluster:
            cluster.create_topic("orders")
            cluster.grant("alice", ["WRITE", "DESCRIBE"], topic="*")
            cluster.as_user("alice").produce("orders", count=3)
            return cluster.trace_hash

    assert run() == run()
