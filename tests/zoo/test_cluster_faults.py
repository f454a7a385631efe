"""Planted faults that no file of steps can show: each is caught by its primary rule.

Every story is played with the fault and without; all runs are judged together.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.errors import NoResponse
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from minicluster.verify import Report, Verdict, verify

Story = Callable[[MiniCluster], None]


def a_broker_comes_back_to_a_snapshot(cluster: MiniCluster) -> None:
    """It was away while a topic was deleted; configs, producer ids and ISRs have changed."""
    gone = cluster.create_topic("gone")
    kept = cluster.create_topic("kept", min_isr=1)
    cluster.set_config("min.insync.replicas", 2, topic=kept)
    owner = cluster.brokers[0]
    request = m.AllocateProducerIdsRequest(broker_id=owner.id, broker_epoch=owner.broker_epoch)
    assert cluster.admin(request).error_code == 0
    broker = next(b for b in cluster.brokers if b not in (kept[0].leader, owner))
    cluster.pause(broker)
    cluster.wait_until(lambda: broker.is_fenced, within="20s")
    cluster.delete_topic(gone)
    cluster.snapshot(cluster.controllers)
    cluster.run_for("1s")
    cluster.compact(cluster.active_controller)  # the others keep the whole log as evidence
    cluster.resume(broker)
    cluster.wait_until(lambda: not broker.is_fenced, within="60s")
    cluster.run_for("5s")


def a_decision_is_not_committed(cluster: MiniCluster) -> None:
    """The active controller decides, cannot commit, and is deposed."""
    topic = cluster.create_topic("orders")
    deposed = cluster.active_controller
    cluster.cut(deposed, [c for c in cluster.controllers if c != deposed], both=True)
    with pytest.raises(NoResponse):
        cluster.set_config("min.insync.replicas", 2, topic=topic, within="1s")
    cluster.wait_until(lambda: cluster.active_controller not in (None, deposed), within="20s")
    cluster.heal()
    cluster.run_for("3s")
    cluster.set_config("unclean.leader.election.enable", True, topic=topic)
    cluster.run_for("3s")


def a_voter_is_removed_where_another_had_a_tail(cluster: MiniCluster) -> None:
    """A deposed leader's tail is truncated; the record of the new voters gets its offsets."""
    topic = cluster.create_topic("orders")
    deposed = cluster.active_controller
    others = [c for c in cluster.controllers if c != deposed]
    cluster.cut(deposed, others, both=True)
    for number in range(6):
        with pytest.raises(NoResponse):
            cluster.set_config("retention.ms", 1_000 + number, topic=topic, within="200ms")
    cluster.wait_until(lambda: cluster.active_controller not in (None, deposed), within="20s")
    cluster.remove_voter(next(c for c in others if c != cluster.active_controller))
    cluster.heal()
    cluster.run_for("3s")


def two_topics_are_deleted_by_one_request(cluster: MiniCluster) -> None:
    """KAFKA-12376: a request that deletes topics is one operation."""
    names = ("orders", "invoices")
    for name in names:
        cluster.create_topic(name)
    topics = tuple(m.DeleteTopicsRequest.DeleteTopicState(name=name) for name in names)
    response = cluster.admin(m.DeleteTopicsRequest(topics=topics))
    assert [topic.error_code for topic in response.responses] == [0, 0]
    cluster.run_for("2s")


def a_leaderless_partition_moves_away(cluster: MiniCluster) -> None:
    """Its last member was kept before there were eligible leader replicas; then one goes."""
    orders = cluster.create_topic("orders", assignment=[[1, 2]], min_isr=1)
    for broker in (cluster.node(2), cluster.node(1)):
        cluster.kill(broker)
        cluster.wait_until(lambda broker=broker: broker.is_fenced, within="30s")
    assert orders[0].leader is None
    update = m.UpdateFeaturesRequest.FeatureUpdateKey(
        feature="eligible.leader.replicas.version", max_version_level=1
    )
    assert cluster.admin(m.UpdateFeaturesRequest(feature_updates=(update,))).error_code == 0
    cluster.reassign(orders[0], [cluster.node(1)])
    cluster.run_for("2s")
    assert [replica.id for replica in orders[0].replicas] == [1]


def a_leader_receives_and_cannot_send(cluster: MiniCluster) -> None:
    """Fetches wait at it when a candidate's request ends its epoch; it never gets the winner."""
    cluster.create_topic("orders")
    deposed = cluster.active_controller
    others = [c for c in cluster.controllers if c != deposed]
    cluster.cut(deposed, others)
    cluster.cut(others, deposed, api="BeginQuorumEpoch")
    cluster.wait_until(lambda: cluster.active_controller not in (None, deposed), within="30s")
    cluster.run_for("2s")
    cluster.heal()
    cluster.run_for("2s")


def rights_come_and_go(cluster: MiniCluster) -> None:
    """A prefix allows alice to write, is revoked and allowed again; then she is denied it."""
    orders = cluster.create_topic("orders")
    alice = cluster.as_user("alice")
    for _ in range(2):
        cluster.grant("alice", "WRITE", topic="ord", prefixed=True)
        alice.produce(orders, count=1)
        cluster.revoke("alice", "WRITE", topic="ord", prefixed=True)
        alice.produce(orders, count=1)
    cluster.grant("alice", "WRITE", topic="ord", prefixed=True)
    cluster.deny("alice", "WRITE", topic="orders")
    alice.produce(orders, count=1)


def a_program_outlives_its_session(cluster: MiniCluster) -> None:
    """A client that does not log in again; its connections end, and it makes others."""
    import aiokafka

    config = cluster.client_config("alice", for_="aiokafka", listener="SASL_PLAINTEXT")

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(**config)
        await producer.start()
        for number in range(20):
            await producer.send_and_wait("orders", b"%d" % number)
            await asyncio.sleep(1)
        await producer.stop()

    cluster.create_topic("orders")
    app = cluster.app("shop", run)
    cluster.wait_until(lambda: not app.is_running, within="2m")


def a_token_is_made_and_renewed(cluster: MiniCluster) -> None:
    """Who reads its HMAC logs in as its owner."""
    alice = cluster.as_user("alice")
    made = alice.admin(m.CreateDelegationTokenRequest())
    assert alice.admin(m.RenewDelegationTokenRequest(hmac=made.hmac)).error_code == 0


STORIES: dict[str, tuple[Story, str]] = {
    "Z23": (two_topics_are_deleted_by_one_request, "E44"),
    "Z24": (a_broker_comes_back_to_a_snapshot, "E34"),
    "Z25": (a_broker_comes_back_to_a_snapshot, "E34"),
    "S60": (a_broker_comes_back_to_a_snapshot, "E34"),
    "Z43": (a_broker_comes_back_to_a_snapshot, "E32"),
    "Z55": (a_leaderless_partition_moves_away, "E13"),
    "Z59": (a_leader_receives_and_cannot_send, "E45"),
    "Z61": (a_voter_is_removed_where_another_had_a_tail, "E43"),
    "S18": (a_decision_is_not_committed, "E33"),
    "S20": (a_broker_comes_back_to_a_snapshot, "E34"),
    "S21": (a_broker_comes_back_to_a_snapshot, "E32"),
    "S24": (a_broker_comes_back_to_a_snapshot, "E06"),
    "S25": (a_decision_is_not_committed, "E32"),
    "S80": (rights_come_and_go, "U1"),
    "S81": (rights_come_and_go, "U1"),
    "S82": (rights_come_and_go, "U2"),
    "S83": (a_program_outlives_its_session, "U3"),
    "S84": (a_token_is_made_and_renewed, "U4"),
}
PLAIN = {
    "reload": a_broker_comes_back_to_a_snapshot,
    "depose": a_decision_is_not_committed,
    "remove": a_voter_is_removed_where_another_had_a_tail,
    "unheard": a_leader_receives_and_cannot_send,
    "delete": two_topics_are_deleted_by_one_request,
    "move": a_leaderless_partition_moves_away,
    "rights": rights_come_and_go,
    "session": a_program_outlives_its_session,
    "token": a_token_is_made_and_renewed,
}
SHAPES: dict[Story, dict[str, Any]] = {
    rights_come_and_go: {"super_users": ["admin"]},
    a_program_outlives_its_session: {
        "users": {"alice": "secret"},
        "config": {"connections.max.reauth.ms": 3_000},
    },
    a_token_is_made_and_renewed: {
        "users": {"alice": "secret"},
        "super_users": ["admin"],
        "config": {"delegation.token.secret.key": "of the nodes"},
    },
    a_leaderless_partition_moves_away: {"config": {"eligible.leader.replicas.enable": False}},
    a_voter_is_removed_where_another_had_a_tail: {
        "controllers": 5,
        "config": {"kraft.version": 1},
    },
}


def played(folder: Path, name: str, story: Story, faults: tuple[str, ...] = ()) -> Path:
    shape = SHAPES.get(story, {})
    with MiniCluster(seed=24, faults=faults, run_id=name, online=not faults, **shape) as cluster:
        story(cluster)
        return cluster.save(folder / name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    found = {name: played(folder, name, story) for name, story in PLAIN.items()}
    return found | {
        zoo_id: played(folder, zoo_id, story, (zoo_id,)) for zoo_id, (story, _) in STORIES.items()
    }


@pytest.fixture(scope="module")
def report(runs: dict[str, Path]) -> Report:
    return verify(*runs.values(), engine="process")


@pytest.mark.parametrize("zoo_id", STORIES)
def test_the_primary_rule_catches_the_fault(
    zoo_id: str, runs: dict[str, Path], report: Report
) -> None:
    header = json.loads((runs[zoo_id] / "run.json").read_text())
    assert zoo_id in Rules.zoo() or header["hits"][zoo_id] > 0
    primary = STORIES[zoo_id][1]
    assert [f for f in report.rule(primary).findings if f.run == zoo_id], [
        (f.rule, f.message) for f in report.findings if f.run == zoo_id
    ]


@pytest.mark.parametrize("name", PLAIN)
def test_without_a_fault_the_story_keeps_every_promise(name: str, report: Report) -> None:
    assert [f for f in report.findings if f.run == name] == []


def test_the_primary_rules_had_something_to_look_at(report: Report) -> None:
    for primary in sorted({rule for _, rule in STORIES.values()}):
        assert report.rule(primary).looked_at > 0
        assert report.rule(primary).verdict is Verdict.INVALID
