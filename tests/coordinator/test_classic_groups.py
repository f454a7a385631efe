"""Stories of classic groups on a cluster: generations, fail-over of the coordinator, retention."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError
from minicluster.log.format.compression import Codec
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.topics import partition_of
from tests.coordinator.client import exchange

OFFSETS = "__consumer_offsets"
PARTITIONS = 3
RETENTION_MINUTES = 2


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    static = {
        "offsets.topic.num.partitions": str(PARTITIONS),
        "offsets.retention.minutes": str(RETENTION_MINUTES),
        "offsets.retention.check.interval.ms": "10000",
        "group.initial.rebalance.delay.ms": "0",
    }
    with MiniCluster(brokers=3, controllers=1, seed=5, config=static) as cluster:
        cluster.create_topic("orders", partitions=2, replicas=3)
        exchange(cluster, 1, m.FindCoordinatorRequest(coordinator_keys=("g",)), version=6)
        cluster.run_for("5s")
        yield cluster


@dataclass
class Group:
    """One group, as a client with one member sees it."""

    cluster: MiniCluster
    member_id: str = ""
    generation_id: int = -1

    @property
    def coordinator(self) -> int:
        leader = self.cluster.topic(OFFSETS)[partition_of("g", PARTITIONS)].leader
        return int(leader.id)

    def send(self, request: Any, version: int) -> Any:
        return exchange(self.cluster, self.coordinator, request, version, "app")

    def join(self) -> Any:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")
        for _ in range(2):  # the first response gives the id (KIP-394)
            request = m.JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=20_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=(protocol,),
            )
            response = self.send(request, 9)
            self.member_id = response.member_id
            if response.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
        self.generation_id = response.generation_id
        return response

    def sync(self, assignment: bytes) -> Any:
        mine = m.SyncGroupRequest.SyncGroupRequestAssignment(
            member_id=self.member_id, assignment=assignment
        )
        request = m.SyncGroupRequest(
            group_id="g",
            generation_id=self.generation_id,
            member_id=self.member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(mine,),
        )
        return self.send(request, 5)

    def heartbeat(self) -> ErrorCode:
        request = m.HeartbeatRequest(
            group_id="g", generation_id=self.generation_id, member_id=self.member_id
        )
        return ErrorCode(self.send(request, 4).error_code)

    def commit(self, offset: int, metadata: str = "here") -> ErrorCode:
        partition = m.OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_metadata=metadata
        )
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(
            name="orders", partitions=(partition,)
        )
        request = m.OffsetCommitRequest(
            group_id="g",
            member_id=self.member_id,
            generation_id_or_member_epoch=self.generation_id,
            topics=(topic,),
        )
        return ErrorCode(self.send(request, 9).topics[0].partitions[0].error_code)

    def committed(self) -> list[int]:
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
        response = self.send(m.OffsetFetchRequest(groups=(group,)), 9)
        topics = response.groups[0].topics
        return [p.committed_offset for topic in topics for p in topic.partitions]

    @property
    def state(self) -> str:
        response = self.send(m.DescribeGroupsRequest(groups=("g",)), 5)
        return str(response.groups[0].group_state)


def test_a_group_and_its_offsets_survive_the_death_of_their_coordinator(
    cluster: MiniCluster,
) -> None:
    group = Group(cluster)
    assert group.join().error_code == ErrorCode.NONE
    assert group.sync(b"mine").assignment == b"mine"
    assert group.commit(42) == ErrorCode.NONE
    before = group.coordinator
    cluster.kill(before)
    cluster.wait_until(lambda: group.coordinator != before, within="30s")
    cluster.run_for("1s")
    assert group.heartbeat() == ErrorCode.NONE
    assert (group.state, group.committed()) == ("Stable", [42])
    assert group.commit(43) == ErrorCode.NONE


def test_a_broker_that_does_not_lead_the_partition_is_no_coordinator(cluster: MiniCluster) -> None:
    other = next(n for n in (1, 2, 3) if n != Group(cluster).coordinator)
    request = m.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    response = exchange(cluster, other, request, version=4)
    assert response.error_code == ErrorCode.NOT_COORDINATOR


def test_a_commit_waits_until_the_offsets_topic_has_replicated_it(cluster: MiniCluster) -> None:
    group = Group(cluster)
    others = [n for n in (1, 2, 3) if n != group.coordinator]
    cluster.cut(others, group.coordinator)
    assert group.commit(7) == ErrorCode.COORDINATOR_NOT_AVAILABLE  # offsets.commit.timeout.ms
    assert group.committed() == []  # a fetch reads what is committed
    cluster.heal()
    cluster.run_for("40s")  # the followers' fetches that were lost have timed out
    assert group.committed() == [7]


def test_a_group_reads_what_its_last_coordinator_has_compressed() -> None:
    codec = {"offsets.topic.compression.codec": int(Codec.ZSTD)}
    config = {**codec, "offsets.topic.num.partitions": PARTITIONS}
    with MiniCluster(brokers=2, controllers=1, seed=5, config=config) as cluster:
        cluster.create_topic("orders", replicas=2)
        exchange(cluster, 1, m.FindCoordinatorRequest(coordinator_keys=("g",)), version=6)
        cluster.run_for("5s")
        group = Group(cluster)
        assert group.commit(7) == ErrorCode.NONE
        log = inside(cluster).leading(OFFSETS, partition_of("g", PARTITIONS)).log
        assert {batch.codec for batch in log.batches} == {Codec.ZSTD}
        before = group.coordinator
        cluster.kill(before)
        cluster.wait_until(lambda: group.coordinator != before, within="30s")
        cluster.run_for("1s")
        assert group.committed() == [7]


def test_a_codec_that_is_none_is_an_error_in_one_line() -> None:
    with pytest.raises(UserError, match=r"codec: 9 is none of 0 \(none\), 1 \(gzip\), 2"):
        MiniCluster(brokers=1, config={"offsets.topic.compression.codec": 9})


def test_the_second_member_begins_another_generation(cluster: MiniCluster) -> None:
    first, second = Group(cluster), Group(cluster)
    first.join()
    first.sync(b"all")
    for _ in range(2):  # the second one waits until the first one has joined again
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")
        request = m.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            member_id=second.member_id,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        if second.member_id:
            send_later(cluster, second.coordinator, request)
            cluster.run_for("100ms")
        else:
            second.member_id = second.send(request, 9).member_id
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    assert first.join().generation_id == 2
    assert {member.member_id for member in first_members(first)} == {
        first.member_id,
        second.member_id,
    }


def test_a_member_that_falls_silent_leaves_the_group_empty(cluster: MiniCluster) -> None:
    group = Group(cluster)
    group.join()
    group.sync(b"all")
    cluster.run_for("11s")
    assert (group.state, group.heartbeat()) == ("Empty", ErrorCode.UNKNOWN_MEMBER_ID)


def test_offsets_of_an_empty_group_expire_and_the_group_with_them(cluster: MiniCluster) -> None:
    group = Group(cluster)
    group.join()
    group.sync(b"all")
    assert group.commit(5) == ErrorCode.NONE
    cluster.run_for("60s")
    assert group.committed() == [5]
    cluster.run_for("100s")
    assert (group.committed(), group.state) == ([], "Dead")


def test_a_retention_past_the_largest_long_wraps_around(cluster: MiniCluster) -> None:
    """OffsetMetadataManager.expireTimestampMs adds two longs."""
    group = Group(cluster)
    partition = m.OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5
    )
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name="orders", partitions=(partition,))
    request = m.OffsetCommitRequest(group_id="g", retention_time_ms=(1 << 63) - 1, topics=(topic,))
    response = group.send(request, 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_commit_that_is_refused_by_partition_still_makes_the_group(cluster: MiniCluster) -> None:
    """Source: OffsetMetadataManager.validateOffsetCommit creates it before it looks at offsets."""
    group = Group(cluster)
    assert group.commit(5, "x" * 4097) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    request = m.DeleteGroupsRequest(groups_names=("g",))
    errors = [group.send(request, 2).results[0].error_code for _ in range(2)]
    assert errors == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]


def test_offsets_of_a_deleted_topic_go_with_it(cluster: MiniCluster) -> None:
    group = Group(cluster)
    assert group.commit(5) == ErrorCode.NONE
    cluster.delete_topic("orders")
    cluster.run_for("2s")
    assert group.committed() == []


def first_members(group: Group) -> Any:
    """The members of a group as its coordinator describes them."""
    return group.send(m.DescribeGroupsRequest(groups=("g",)), 5).groups[0].members


def send_later(cluster: MiniCluster, broker: int, request: Any) -> None:
    """Send a request whose response is not awaited."""
    inside(cluster).network.request(src=-8, dst=broker, body=request, version=9, caller=None)


def test_several_groups_are_described_and_deleted_by_the_partitions_that_hold_them(
    cluster: MiniCluster,
) -> None:
    """Source: GroupCoordinatorService.describeGroups, deleteGroups: a HashMap of partitions."""
    ids = ("h", "g", "f", "e", "d", "c", "b", "a")
    by_partition = sorted(ids, key=lambda group_id: partition_of(group_id, PARTITIONS))
    group = Group(cluster)
    described = group.send(m.DescribeGroupsRequest(groups=ids), 5).groups
    assert [one.group_id for one in described] == by_partition
    deleted = group.send(m.DeleteGroupsRequest(groups_names=ids), 2).results
    in_order = sorted(ids, key=lambda group_id: (partition_of(group_id, PARTITIONS), group_id))
    assert [one.group_id for one in deleted] == in_order
