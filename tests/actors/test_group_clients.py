"""Consumers in groups as steps and methods: what they read and commit, and who takes over."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.liveness import unfinished
from minicluster.clients.client import GROUP, Client
from minicluster.clients.consumer import GroupProtocol
from minicluster.effects import Send, SetTimer
from minicluster.errors import UserError
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FindCoordinatorResponse, MetadataResponse

SMALL = {"offsets.topic.num.partitions": 1}


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=2, controllers=1, seed=3, config=SMALL) as running:
        running.create_topic("alpha", partitions=3, replicas=2, min_isr=1)
        yield running


def test_a_consumer_in_a_long_run_keeps_its_latest_records_and_counts_all(
    cluster: MiniCluster,
) -> None:
    inside(cluster).recorder.own_records_max = 2
    cluster.consume("alpha")
    (group,) = inside(cluster).groups
    cluster.produce("alpha", 0, count=5)
    cluster.wait_until(lambda: group.seen == 5, within="30s")
    assert [record.offset for record in group] == [3, 4]
    assert len(cluster.consume("alpha", count=5, group="other")) == 5


def test_transactions_in_a_long_run_keep_their_rate_and_the_latest_ones(
    cluster: MiniCluster,
) -> None:
    inside(cluster).recorder.own_records_max = 2
    latest = cluster.transaction(
        "alpha", transactional_id="t", count=1, rate=2, lasting="5s", abort_every=3
    )
    cluster.run_for("8s")
    [load] = inside(cluster).loads
    assert len(latest) == 2 and 5 < load.begun <= 10


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_share_the_partitions_and_the_next_ones_go_on_where_they_ended(
    cluster: MiniCluster, protocol: GroupProtocol
) -> None:
    cluster.consume("alpha", members=2, protocol=protocol)
    (group,) = inside(cluster).groups

    def shares() -> list[int]:
        return sorted(len(member.client.committed) for member in group.actors)

    cluster.wait_until(lambda: shares() == [1, 2], within="30s")
    for partition in range(3):
        cluster.produce("alpha", partition, count=2)
    cluster.wait_until(lambda: group.seen == 6, within="30s")
    assert sorted((r.partition, r.offset) for r in group) == [
        (partition, offset) for partition in range(3) for offset in range(2)
    ]
    group.stop()
    cluster.wait_until(lambda: group.has_left, within="30s")
    cluster.produce("alpha", 1, count=1)
    (after,) = cluster.consume("alpha", count=1, protocol=protocol)
    assert (after.partition, after.offset) == (1, 2)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_when_its_coordinator_and_leaders_are_gone(
    cluster: MiniCluster, protocol: GroupProtocol
) -> None:
    cluster.consume("alpha", members=2, protocol=protocol)
    (group,) = inside(cluster).groups
    cluster.produce("alpha", 0, count=3)
    cluster.wait_until(lambda: group.seen == 3, within="30s")
    for broker in cluster.brokers:
        cluster.bounce(broker, down="1s")
        cluster.wait_until(lambda: cluster.topic("alpha").fully_in_sync(), within="120s")
        cluster.produce("alpha", 1, count=1)
    cluster.wait_until(lambda: group.seen >= 5, within="120s")
    assert len({(r.partition, r.offset) for r in group}) == 5


def test_a_count_that_does_not_come_is_an_error(cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match="0 of 1 record came within 5s"):
        cluster.consume("alpha", count=1, within="5s")


def test_several_searches_for_a_coordinator_do_not_end_each_other() -> None:
    """A heartbeat and a commit both look for it, twice; each is sent once it is found."""
    client, found = Client("one", (1,)), list[str]()
    for name in ("heartbeat", "commit"):
        client.with_coordinator("group", GROUP, lambda node, _, name=name: found.append(name), 0)
    effects = client.take_effects()
    for node_id, error in ((-1, ErrorCode.COORDINATOR_NOT_AVAILABLE), (1, ErrorCode.NONE)):
        coordinator = FindCoordinatorResponse.Coordinator(
            key="group", node_id=node_id, error_code=error
        )
        response = FindCoordinatorResponse(coordinators=(coordinator,))
        sent = [effect for effect in effects if isinstance(effect, Send)]
        ended = [e for one in sent for e in client.on_end(one.correlation_id, response, 0)]
        timers = [effect for effect in ended if isinstance(effect, SetTimer)]
        effects = [e for timer in timers for e in client.on_timer(timer.name, timer.at_ms)]
    assert found == ["heartbeat", "commit"]


def test_a_commit_that_ends_after_the_next_assignment_takes_nothing_back(
    cluster: MiniCluster,
) -> None:
    """A member of a consumer group gets one more partition while its commit is on its way."""
    cluster.consume("alpha", protocol="consumer")
    (group,) = inside(cluster).groups
    (member,) = group.actors
    cluster.produce("alpha", 0, count=5)
    cluster.wait_until(lambda: member.client.committed.get(("alpha", 0)) == 5, within="30s")
    late = {"client": member.client.name, "distribution": "fixed", "times": 1}
    cluster.delay(api="OffsetCommit", mean="20s", **late)
    cluster.produce("alpha", 0, count=1)
    cluster.wait_until(lambda: group.seen == 6, within="10s")
    cluster.delay(api="OffsetFetch", mean="1s", **late)
    cluster.add_partitions("alpha", 4)
    cluster.wait_until(lambda: not member.client.committed, within="15s")  # it is assigned again
    cluster.delay(api="Metadata", mean="20s", **late)  # and looks for the leaders
    cluster.run_for("40s")
    assert member.client.committed == {("alpha", 0): 6, **{("alpha", n): 0 for n in (1, 2, 3)}}
    assert unfinished(inside(cluster)) == []


def test_what_a_group_has_read_stays_read_while_nobody_owns_it(cluster: MiniCluster) -> None:
    """Its member joins again and again."""
    cluster.consume("alpha", members=1)
    (group,) = inside(cluster).groups
    cluster.produce("alpha", 0, count=5)
    cluster.wait_until(lambda: group.actors[0].client.reached.get(("alpha", 0)) == 5, within="30s")
    cluster.respond("Heartbeat", "UNKNOWN_MEMBER_ID", client=group.actors[0].client.name, times=99)
    cluster.run_for("10s")
    assert unfinished(inside(cluster)) == []


def test_deleted_records_are_not_waited_for(cluster: MiniCluster) -> None:
    """A consumer whose offset is out of range commits its new position, as Kafka's do."""
    cluster.produce("alpha", 0, count=5)
    cluster.delete_records("alpha-0", before=5)
    cluster.consume("alpha")
    (group,) = inside(cluster).groups
    cluster.wait_until(
        lambda: group.actors[0].client.committed.get(("alpha", 0)) == 5, within="30s"
    )
    assert group.seen == 0 and unfinished(inside(cluster)) == []


def test_metadata_of_an_earlier_leader_epoch_is_not_taken_but_of_another_topic_is() -> None:
    """KIP-320; Metadata.updateLatestMetadata. A broker that is cut off knows what was before."""
    client = Client("app", [1, 2, 3])
    topic, made_anew = UUID(int=1), UUID(int=2)
    kind = MetadataResponse

    def told(topic_id: UUID, leader: int, epoch: int) -> int:
        """The leader of alpha-0 for the client, once it was told of one."""
        partition = kind.MetadataResponsePartition(leader_id=leader, leader_epoch=epoch)
        alpha = kind.MetadataResponseTopic(name="alpha", topic_id=topic_id, partitions=(partition,))
        client.find_leaders(["alpha"], lambda _: None, 0)
        sent = client.take_effects()[-1]
        assert isinstance(sent, Send)
        client.on_end(sent.correlation_id, kind(topics=(alpha,)), 0)
        return client.leaders["alpha", 0]

    assert [told(topic, 1, 0), told(topic, 3, 3), told(topic, 1, 0), told(topic, 2, 3)] == [
        1, 3, 3, 2,
    ]  # fmt: skip
    assert told(made_anew, 1, 0) == 1
    assert told(topic, 2, 3) == 2, "a stale broker; its next fetch fails, and it asks again"
    assert told(made_anew, 1, 0) == 1
