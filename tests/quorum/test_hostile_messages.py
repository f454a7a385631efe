"""Invariant E42: a machine responds to any message or ignores it, and never raises."""

from __future__ import annotations

import random
from typing import Any

import pytest

from minicluster.effects import Respond
from minicluster.log.records import Records
from minicluster.protocol import encode
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID, ZERO_UUID
from minicluster.quorum import effects as qx
from minicluster.quorum.errors import IllegalArgument, NotLeader
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.voters import VoterSet
from tests.quorum.bootstrap import bootstrap_checkpoint
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of, voter_of
from tests.quorum.probe import Probe, data_batch

GOOD_SNAPSHOT = bootstrap_checkpoint(VoterSet.of(voter_of(i, dynamic=True) for i in (1, 2)))


class Hostile:
    """Peers that send anything at all."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"hostile {seed}")
        self.probe = Probe(
            (1, 2, 3) if seed % 3 else (1,),
            local=1 if seed % 4 else 4,
            dynamic=bool(seed % 2),
            settings=QuorumSettings(
                append_linger_ms=seed % 3 * 10, auto_join=bool(seed % 5), request_timeout_ms=500
            ),
        )
        self.epochs = [0]

    # --- small numbers, right and wrong -----------------------------------------------------

    def node(self) -> int:
        return self.rng.choice((1, 2, 3, 4, 4, 9, -1))

    def epoch(self) -> int:
        own = self.probe.machine.epoch
        return self.rng.choice((own, own, own, own + 1, own + 2, max(0, own - 1), 0, -1))

    def leader(self) -> dict[str, int]:
        """Leader and epoch of a response: mostly those of the machine itself."""
        machine = self.probe.machine
        if self.rng.random() < 0.7:
            return {"leader_id": machine.leader_id, "leader_epoch": machine.epoch}
        return {"leader_id": self.node(), "leader_epoch": self.epoch()}

    def offset(self) -> int:
        log = self.probe.log
        end, start = log.end_offset, log.start_offset
        return self.rng.choice((end, end, end - 1, end + 1, end + 5, start, start - 1, 0, -1, 3))

    def directory(self) -> Any:
        return self.rng.choice((directory_of(self.node() % 100), ZERO_UUID, ZERO_UUID))

    def cluster(self) -> str | None:
        return self.rng.choice((CLUSTER_ID,) * 8 + (None, "", "other"))

    def topic(self) -> str:
        return self.rng.choice((METADATA_TOPIC,) * 9 + ("elsewhere",))

    def error(self) -> int:
        codes = (0, 0, 0, 0, 6, 74, 75, 125, 8, 42, -1, 56, 98, 35, 7, 127, 104)
        if self.rng.random() < 0.7:
            return 0
        return self.rng.choice((*codes, self.rng.randint(-(2**15), 2**15 - 1)))

    def some(self, *items: Any) -> tuple[Any, ...]:
        return self.rng.choice((items,) * 9 + ((), items * 2))

    def listeners(self, cls: Any) -> tuple[Any, ...]:
        node = self.node()
        name = self.rng.choice((LISTENER, LISTENER, "ELSEWHERE"))
        return self.some(cls(name=name, host=f"node{node}", port=9_000))

    # --- requests ---------------------------------------------------------------------------

    def request(self) -> tuple[Any, int]:
        kind = self.rng.choice((self.election, self.fetch, self.fetch, self.change))
        return kind()

    def election(self) -> tuple[Any, int]:
        cls: Any = self.rng.choice(
            (VoteRequest, VoteRequest, BeginQuorumEpochRequest, EndQuorumEpochRequest)
        )
        if cls is VoteRequest:
            part = cls.PartitionData(
                partition_index=self.rng.choice((0, 0, 0, 0, 1)),
                replica_epoch=self.epoch(),
                replica_id=self.node(),
                replica_directory_id=self.directory(),
                voter_directory_id=self.directory(),
                last_offset_epoch=self.epoch(),
                last_offset=self.offset(),
                pre_vote=self.rng.random() < 0.5,
            )
            extra = {"voter_id": self.node()}
        elif cls is BeginQuorumEpochRequest:
            part = cls.PartitionData(
                voter_directory_id=self.directory(),
                leader_id=self.node(),
                leader_epoch=self.epoch(),
            )
            extra = {
                "voter_id": self.node(),
                "leader_endpoints": self.listeners(cls.LeaderEndpoint),
            }
        else:
            infos = tuple(
                cls.ReplicaInfo(candidate_id=self.node(), candidate_directory_id=self.directory())
                for _ in range(self.rng.randrange(4))
            )
            part = cls.PartitionData(
                leader_id=self.node(), leader_epoch=self.epoch(), preferred_candidates=infos
            )
            extra = {"leader_endpoints": self.listeners(cls.LeaderEndpoint)}
        topics = self.some(cls.TopicData(topic_name=self.topic(), partitions=self.some(part)))
        return cls(cluster_id=self.cluster(), topics=topics, **extra), cls.latest_version

    def fetch(self) -> tuple[Any, int]:
        if self.rng.random() < 0.3:
            snapshots = [*self.probe.log.snapshots, (self.offset(), self.epoch())]
            end_offset, epoch = self.rng.choice(snapshots)
            part = FetchSnapshotRequest.PartitionSnapshot(
                current_leader_epoch=self.epoch(),
                snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=end_offset, epoch=epoch),
                position=self.rng.choice((0, 0, 100, -1, 1 << 40)),
                replica_directory_id=self.directory(),
            )
            topic = FetchSnapshotRequest.TopicSnapshot(
                name=self.topic(), partitions=self.some(part)
            )
            request = FetchSnapshotRequest(
                cluster_id=self.cluster(),
                replica_id=self.node(),
                max_bytes=self.rng.choice((100, 0, -5, 1 << 20)),
                topics=self.some(topic),
            )
            return request, 1
        fetched = FetchRequest.FetchPartition(
            current_leader_epoch=self.epoch(),
            fetch_offset=self.offset(),
            last_fetched_epoch=self.epoch(),
            replica_directory_id=self.directory(),
            high_watermark=self.offset(),
        )
        topic_id = self.rng.choice((METADATA_TOPIC_ID,) * 9 + (directory_of(5),))
        wanted = FetchRequest.FetchTopic(topic_id=topic_id, partitions=self.some(fetched))
        request = FetchRequest(
            cluster_id=self.cluster(),
            replica_state=FetchRequest.ReplicaState(replica_id=self.node()),
            max_wait_ms=self.rng.choice((0, 500, 500, -1)),
            max_bytes=self.rng.choice((1, 1 << 20)),
            topics=self.some(wanted),
        )
        return request, 18

    def change(self) -> tuple[Any, int]:
        voter = {"cluster_id": self.cluster(), "voter_id": self.node()}
        voter["voter_directory_id"] = self.directory()
        kind = self.rng.randrange(4)
        if kind == 0:
            listeners = self.listeners(AddRaftVoterRequest.Listener)
            acked = self.rng.random() < 0.5
            return AddRaftVoterRequest(listeners=listeners, ack_when_committed=acked, **voter), 1
        if kind == 1:
            return RemoveRaftVoterRequest(**voter), 0
        if kind == 2:
            feature = UpdateRaftVoterRequest.KRaftVersionFeature(
                min_supported_version=0, max_supported_version=self.rng.choice((0, 1))
            )
            listeners = self.listeners(UpdateRaftVoterRequest.Listener)
            request = UpdateRaftVoterRequest(
                current_leader_epoch=self.epoch(),
                listeners=listeners,
                kraft_version_feature=feature,
                **voter,
            )
            return request, 0
        part = DescribeQuorumRequest.PartitionData()
        topic = DescribeQuorumRequest.TopicData(topic_name=self.topic(), partitions=self.some(part))
        return DescribeQuorumRequest(topics=self.some(topic)), self.rng.randrange(3)

    # --- responses --------------------------------------------------------------------------

    def respond(self, send: qx.SendTo) -> Any:
        name = type(send.request).__name__.removesuffix("Request")
        top = self.rng.choice((0,) * 9 + (self.error(),))
        if name == "Fetch":
            return self.fetched(top)
        if name == "FetchSnapshot":
            return self.snapshot_part(send, top)
        if name == "ApiVersions":
            feature = ApiVersionsResponse.SupportedFeatureKey(
                name="kraft.version", min_version=0, max_version=self.rng.choice((0, 1))
            )
            return ApiVersionsResponse(error_code=top, supported_features=self.some(feature))
        if name == "UpdateRaftVoter":
            leader = UpdateRaftVoterResponse.CurrentLeader(
                leader_id=self.node(), leader_epoch=self.epoch(), host="node2", port=9
            )
            return UpdateRaftVoterResponse(error_code=self.error(), current_leader=leader)
        if name in ("AddRaftVoter", "RemoveRaftVoter"):
            add = name == "AddRaftVoter"
            cls: Any = AddRaftVoterResponse if add else RemoveRaftVoterResponse
            return cls(error_code=self.error())
        cls = {
            "Vote": VoteResponse,
            "BeginQuorumEpoch": BeginQuorumEpochResponse,
            "EndQuorumEpoch": EndQuorumEpochResponse,
        }[name]
        extra = {"vote_granted": self.rng.random() < 0.8} if cls is VoteResponse else {}
        part = cls.PartitionData(
            error_code=self.error(), leader_id=self.node(), leader_epoch=self.epoch(), **extra
        )
        topics = self.some(cls.TopicData(topic_name=self.topic(), partitions=self.some(part)))
        return cls(error_code=top, topics=topics, node_endpoints=self.endpoints(cls))

    def endpoints(self, cls: Any) -> tuple[Any, ...]:
        return tuple(
            cls.NodeEndpoint(node_id=i, host=f"node{i}", port=9_000) for i in self.some(1, 2, 3)
        )

    def fetched(self, top: int) -> Any:
        extra: dict[str, Any] = {}
        kind = self.rng.randrange(6)
        if kind == 0:
            extra["diverging_epoch"] = FetchResponse.EpochEndOffset(
                epoch=self.epoch(), end_offset=self.offset()
            )
        elif kind == 1:
            extra["snapshot_id"] = FetchResponse.SnapshotId(
                end_offset=self.offset(), epoch=self.epoch()
            )
        elif kind < 4:
            offset, epoch = max(0, self.offset()), max(0, self.epoch())
            batch = data_batch(offset, epoch, b"x", b"y")
            choices = (Records((batch,)), batch.encoded, batch.encoded[:-3], b"\0" * 30, None)
            extra["records"] = self.rng.choice(choices)
        part = FetchResponse.PartitionData(
            error_code=self.error(),
            high_watermark=self.offset(),
            current_leader=FetchResponse.LeaderIdAndEpoch(**self.leader()),
            **extra,
        )
        topic = FetchResponse.FetchableTopicResponse(
            topic_id=METADATA_TOPIC_ID, partitions=self.some(part)
        )
        return FetchResponse(
            error_code=top,
            responses=self.some(topic),
            node_endpoints=self.endpoints(FetchResponse),
        )

    def snapshot_part(self, send: qx.SendTo, top: int) -> Any:
        requested = send.request.topics[0].partitions[0]
        part = FetchSnapshotResponse.PartitionSnapshot(
            error_code=self.error(),
            snapshot_id=FetchSnapshotResponse.SnapshotId(
                end_offset=self.rng.choice(
                    (requested.snapshot_id.end_offset,) * 4 + (self.offset(),)
                ),
                epoch=self.rng.choice((requested.snapshot_id.epoch,) * 4 + (self.epoch(),)),
            ),
            current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(**self.leader()),
            size=self.rng.choice((len(GOOD_SNAPSHOT), 10, 0, -1)),
            position=self.rng.choice((requested.position, 0)),
            unaligned_records=self.rng.choice((GOOD_SNAPSHOT, b"0123456789", b"", None)),
        )
        topic = FetchSnapshotResponse.TopicSnapshot(name=self.topic(), partitions=self.some(part))
        return FetchSnapshotResponse(error_code=top, topics=self.some(topic))

    # --- one step ---------------------------------------------------------------------------

    def step(self) -> None:
        probe, rng = self.probe, self.rng
        before = len(probe.effects)
        kind = rng.random()
        if kind < 0.45:
            request, version = self.request()
            probe.request(request, version=version)
        elif kind < 0.8 and probe.unread:
            send = rng.choice(probe.unread[-2:])
            if rng.random() < 0.1:
                effects = probe.machine.on_failure(send.correlation_id, probe.now_ms)
                probe.do(effects)
            else:
                probe.respond(send, self.respond(send))
        elif kind < 0.9:
            probe.advance(rng.choice((1, 20, 300, 1_000, 3_000)))
        else:
            self.own_wish()
        for effect in probe.effects[before:]:
            if isinstance(effect, Respond) and effect.token == probe.last_token:
                assert effect.response is not None
        wake = probe.machine.next_wake_ms()
        assert probe.machine.epoch >= self.epochs[-1]
        self.epochs.append(probe.machine.epoch)
        assert wake is None or wake >= probe.now_ms or kind >= 0.9

    def own_wish(self) -> None:
        probe = self.probe
        machine = probe.machine
        try:
            if self.rng.random() < 0.6:
                machine.append(self.epoch(), [b"mine"], probe.now_ms)
            elif self.rng.random() < 0.5:
                machine.resign(self.epoch())
            else:
                snapshot_id = (self.offset(), self.epoch())
                if machine.create_snapshot(snapshot_id, (), probe.now_ms):
                    machine.node.log.delete_before_snapshot(snapshot_id)
        except (NotLeader, IllegalArgument):
            pass
        probe.poll()


@pytest.mark.parametrize("seed", range(40))
def test_e42_no_message_brings_a_machine_down(seed: int) -> None:
    hostile = Hostile(seed)
    for _ in range(400):
        hostile.step()


def test_e42_every_response_can_be_written() -> None:
    """A response fits the version of its request."""
    hostile, written = Hostile(7), 0
    for _ in range(600):
        request, version = hostile.request()
        response = hostile.probe.request(request, version=version)
        if response is not None:
            written += len(encode(response, version)) > 0
        hostile.probe.advance(hostile.rng.choice((0, 10, 700)))
    assert written > 300


def test_the_errors_used_here_are_kafkas() -> None:
    assert ErrorCode(56) is ErrorCode.KAFKA_STORAGE_ERROR
