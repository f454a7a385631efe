"""One quorum machine under the lens: the test is its clock, its peers and its state machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.effects import Effect, Respond
from minicluster.faults import Faults
from minicluster.log.batch import Record, RecordBatch
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.log.records import Records
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    VoteRequest,
    VoteResponse,
)
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID, ZERO_UUID
from minicluster.quorum import effects as qx
from minicluster.quorum import wire
from minicluster.quorum.machine import QuorumMachine
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.node import Draws
from minicluster.quorum.state.voters import Node, ReplicaKey, VoterSet
from minicluster.rules import Rules
from tests.quorum.bootstrap import bootstrap_checkpoint
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of, endpoints_of, voter_of

NEWEST = {
    VoteRequest: 2,
    BeginQuorumEpochRequest: 1,
    EndQuorumEpochRequest: 1,
    FetchRequest: 18,
    FetchSnapshotRequest: 1,
}
JITTER_MS = 7
ELECTION_MS = 1000 + JITTER_MS


def data_batch(base: int, epoch: int, *values: bytes) -> RecordBatch:
    """A batch of data records."""
    records = [Record(base + i, 0, None, value) for i, value in enumerate(values)]
    return RecordBatch.of(records, leader_epoch=epoch)


def log_of(*epochs: tuple[int, int]) -> Log:
    """A flushed log: (epoch, how many records) one batch after another."""
    log = Log()
    for epoch, count in epochs:
        values = [b"%d" % (log.end_offset + i) for i in range(count)]
        log.append(data_batch(log.end_offset, epoch, *values))
    log.flush()
    return log


class Probe:
    """A machine with a clock that the test moves."""

    def __init__(
        self,
        voters: Iterable[int] = (1, 2, 3),
        *,
        local: int = 1,
        stored: QuorumState | None = None,
        log: Log | None = None,
        dynamic: bool = False,
        settings: QuorumSettings | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        listener: str | None = "",
        start: bool = True,
    ) -> None:
        self.local = local
        self.now_ms = 1_000_000
        self.voters = tuple(voters)
        self.dynamic = dynamic
        self.voter_set = VoterSet.of(voter_of(i, dynamic=dynamic) for i in self.voters)
        self.log = log if log is not None else Log()
        if dynamic and not self.log.snapshots:
            self.log.snapshots[(0, 0)] = bootstrap_checkpoint(self.voter_set)
        self.settings = settings or QuorumSettings(append_linger_ms=0)
        self.effects: list[Effect] = []
        self.unread: list[qx.SendTo] = []
        self.responses: dict[Any, Any] = {}
        self.stored = stored
        self._tokens = 0
        self.machine = QuorumMachine(
            node_id=local,
            directory_id=directory_of(local),
            cluster_id=CLUSTER_ID,
            log=self.log,
            draws=Draws(lambda _: JITTER_MS, lambda _: 0),
            voters=None if dynamic else self.voter_set,
            bootstrap_servers=[
                Node(-2 - k, f"node{i}", 9090 + i) for k, i in enumerate(self.voters)
            ],
            endpoints=endpoints_of(local),
            persisted=stored,
            settings=self.settings,
            rules=rules,
            faults=faults,
        )
        if start:
            self.do(self.machine.start(self.now_ms, listener=listener))

    # --- driving ----------------------------------------------------------------------------

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, qx.SendTo):
                self.unread.append(effect)
            elif isinstance(effect, Respond):
                self.responses[effect.token] = effect.response
            elif isinstance(effect, qx.Persist):
                self.stored = effect.state

    def advance(self, ms: int) -> None:
        """Let time pass, and poll the machine at its wake times."""
        end = self.now_ms + ms
        while (wake := self.machine.next_wake_ms()) is not None and wake <= end:
            self.now_ms = max(self.now_ms, wake)
            self.do(self.machine.poll(self.now_ms))
        self.now_ms = end

    def poll(self) -> None:
        self.do(self.machine.poll(self.now_ms))

    def append(self, *values: bytes) -> int:
        offset = self.machine.append(self.machine.epoch, list(values), self.now_ms)
        self.poll()
        return offset

    # --- its state --------------------------------------------------------------------------

    @property
    def role(self) -> str:
        return self.machine.role

    @property
    def where(self) -> tuple[str, int, int]:
        """Role, epoch, leader."""
        return self.machine.role, self.machine.epoch, self.machine.leader_id

    @property
    def committed(self) -> list[bytes | None]:
        return [
            record.value
            for effect in self.effects
            if isinstance(effect, qx.Commit) and effect.listener == ""
            for batch in effect.batches
            if not batch.is_control
            for record in batch.records
        ]

    def leader_changes(self, listener: str = "") -> list[tuple[int, int]]:
        return [
            (effect.leader_id, effect.epoch)
            for effect in self.effects
            if isinstance(effect, qx.LeaderChange) and effect.listener == listener
        ]

    def sent(self, kind: type) -> list[qx.SendTo]:
        """The requests of a kind not looked at before; others stay."""
        found = [send for send in self.unread if isinstance(send.request, kind)]
        self.unread = [send for send in self.unread if send not in found]
        return found

    # --- requests --------------------------------------------------------------------------

    def request(self, request: Any, *, version: int | None = None) -> Any:
        """The response; None if it is deferred (its token is then ``last_token``)."""
        self._tokens += 1
        token = self._tokens
        newest = NEWEST.get(type(request), type(request).latest_version)
        chosen = newest if version is None else version
        self.do(self.machine.on_request(token, request, chosen, self.now_ms))
        return self.responses.get(token)

    @property
    def last_token(self) -> int:
        return self._tokens

    def vote(
        self,
        epoch: int,
        candidate: int,
        *,
        last: tuple[int, int] = (0, 0),
        pre: bool = False,
        cluster_id: str | None = CLUSTER_ID,
        voter: ReplicaKey | None = None,
    ) -> tuple[ErrorCode, bool]:
        """Request a vote; -> (error of the partition or the whole, granted)."""
        request = wire.vote_request(
            cluster_id=CLUSTER_ID,
            voter=voter or ReplicaKey(self.local, directory_of(self.local)),
            candidate=ReplicaKey(candidate, directory_of(candidate)),
            epoch=epoch,
            last_epoch=last[0],
            end_offset=last[1],
            pre_vote=pre,
        )
        request = VoteRequest(
            cluster_id=cluster_id, voter_id=request.voter_id, topics=request.topics
        )
        response = self.request(request)
        if response.error_code:
            return ErrorCode(response.error_code), False
        part = response.topics[0].partitions[0]
        return ErrorCode(part.error_code), part.vote_granted

    def begin(
        self,
        epoch: int,
        leader: int,
        *,
        voter: ReplicaKey | None = None,
        cluster_id: str | None = CLUSTER_ID,
    ) -> ErrorCode:
        request = wire.begin_epoch_request(
            cluster_id=CLUSTER_ID,
            voter=voter or ReplicaKey(self.local, directory_of(self.local)),
            leader_id=leader,
            epoch=epoch,
            endpoints=endpoints_of(leader),
        )
        response = self.request(
            BeginQuorumEpochRequest(
                cluster_id=cluster_id,
                voter_id=request.voter_id,
                topics=request.topics,
                leader_endpoints=request.leader_endpoints,
            ),
        )
        if response.error_code:
            return ErrorCode(response.error_code)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def end(
        self,
        epoch: int,
        leader: int,
        preferred: Sequence[int] = (),
        *,
        cluster_id: str | None = CLUSTER_ID,
    ) -> ErrorCode:
        request = wire.end_epoch_request(
            cluster_id=CLUSTER_ID,
            leader_id=leader,
            epoch=epoch,
            preferred=[ReplicaKey(i, directory_of(i)) for i in preferred],
        )
        response = self.request(EndQuorumEpochRequest(cluster_id=cluster_id, topics=request.topics))
        if response.error_code:
            return ErrorCode(response.error_code)
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def fetch(
        self,
        replica: int,
        offset: int,
        last_epoch: int,
        *,
        epoch: int | None = None,
        wait_ms: int = 0,
        cluster_id: str | None = CLUSTER_ID,
        high_watermark: int | None = None,
    ) -> FetchResponse.PartitionData | None:
        """A fetch of a replica; None if it is parked."""
        if high_watermark is None:
            high_watermark = max(-1, self.machine.high_watermark)
        base = wire.fetch_request(
            cluster_id=CLUSTER_ID,
            replica=ReplicaKey(replica, directory_of(replica)),
            epoch=self.machine.epoch if epoch is None else epoch,
            offset=offset,
            last_epoch=last_epoch,
            high_watermark=high_watermark,
            max_wait_ms=wait_ms,
            max_bytes=1 << 20,
        )
        request = FetchRequest(
            cluster_id=cluster_id,
            replica_state=base.replica_state,
            max_wait_ms=wait_ms,
            max_bytes=base.max_bytes,
            topics=base.topics,
        )
        response = self.request(request)
        if response is None:
            return None
        if response.error_code:
            return FetchResponse.PartitionData(error_code=response.error_code)
        return response.responses[0].partitions[0]

    def fetch_snapshot(
        self,
        replica: int,
        snapshot_id: tuple[int, int],
        *,
        position: int = 0,
        epoch: int | None = None,
        max_bytes: int = 1 << 20,
        topic: str = METADATA_TOPIC,
    ) -> Any:
        base = wire.fetch_snapshot_request(
            cluster_id=CLUSTER_ID,
            replica=ReplicaKey(replica, directory_of(replica)),
            epoch=self.machine.epoch if epoch is None else epoch,
            snapshot_id=snapshot_id,
            position=position,
            max_bytes=max_bytes,
        )
        part = base.topics[0].partitions[0]
        topics = (FetchSnapshotRequest.TopicSnapshot(name=topic, partitions=(part,)),)
        request = FetchSnapshotRequest(
            cluster_id=CLUSTER_ID, replica_id=replica, max_bytes=max_bytes, topics=topics
        )
        response = self.request(request)
        return response.topics[0].partitions[0]

    # --- responses -----------------------------------------------------------------------

    def respond(self, send: qx.SendTo, response: Any) -> None:
        self.do(self.machine.on_response(send.correlation_id, response, self.now_ms))

    def grant(self, send: qx.SendTo, *, granted: bool = True) -> None:
        """Respond to a vote request, in its epoch."""
        epoch = send.request.topics[0].partitions[0].replica_epoch
        part = VoteResponse.PartitionData(leader_id=-1, leader_epoch=epoch, vote_granted=granted)
        topic = VoteResponse.TopicData(topic_name=METADATA_TOPIC, partitions=(part,))
        self.respond(send, VoteResponse(topics=(topic,)))

    def respond_to_epoch(
        self,
        send: qx.SendTo,
        *,
        error: ErrorCode = ErrorCode.NONE,
        leader: int | None = None,
        epoch: int | None = None,
    ) -> None:
        """Respond to a BeginQuorumEpoch or EndQuorumEpoch."""
        begin = isinstance(send.request, BeginQuorumEpochRequest)
        cls: Any = BeginQuorumEpochResponse if begin else EndQuorumEpochResponse
        part = cls.PartitionData(
            error_code=int(error),
            leader_id=self.machine.leader_id if leader is None else leader,
            leader_epoch=self.machine.epoch if epoch is None else epoch,
        )
        nodes = ()
        if leader is not None and leader >= 0:
            nodes = (cls.NodeEndpoint(node_id=leader, host=f"node{leader}", port=9090 + leader),)
        topic = cls.TopicData(topic_name=METADATA_TOPIC, partitions=(part,))
        self.respond(send, cls(topics=(topic,), node_endpoints=nodes))

    def respond_to_fetch(
        self,
        send: qx.SendTo,
        *batches: RecordBatch,
        leader: int,
        epoch: int,
        high_watermark: int = -1,
        error: ErrorCode = ErrorCode.NONE,
        diverging: tuple[int, int] | None = None,
        snapshot_id: tuple[int, int] | None = None,
    ) -> None:
        extra: dict[str, Any] = {}
        if diverging is not None:
            extra["diverging_epoch"] = FetchResponse.EpochEndOffset(
                epoch=diverging[0], end_offset=diverging[1]
            )
        if snapshot_id is not None:
            extra["snapshot_id"] = FetchResponse.SnapshotId(
                end_offset=snapshot_id[0], epoch=snapshot_id[1]
            )
        part = FetchResponse.PartitionData(
            error_code=int(error),
            high_watermark=high_watermark,
            current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            records=Records(batches),
            **extra,
        )
        topic = FetchResponse.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(part,))
        nodes = ()
        if leader >= 0:
            node = FetchResponse.NodeEndpoint(
                node_id=leader, host=f"node{leader}", port=9090 + leader
            )
            nodes = (node,)
        self.respond(send, FetchResponse(responses=(topic,), node_endpoints=nodes))

    # --- stories ----------------------------------------------------------------------------

    def become_candidate(self) -> list[qx.SendTo]:
        """Through election timeout and pre-votes; -> the vote requests."""
        while self.role != "Prospective":
            wake = self.machine.next_wake_ms()
            assert wake is not None
            self.advance(max(0, wake - self.now_ms))
        self.poll()
        for send in self.sent(VoteRequest)[: len(self.voters) // 2]:
            self.grant(send)
        assert self.role == "Candidate", self.where
        return self.sent(VoteRequest)

    def become_leader(self) -> int:
        """-> the epoch it leads."""
        if self.role != "Leader":
            for send in self.become_candidate()[: len(self.voters) // 2]:
                self.grant(send)
        assert self.role == "Leader", self.where
        return self.machine.epoch


__all__ = [
    "CLUSTER_ID",
    "ELECTION_MS",
    "LISTENER",
    "ZERO_UUID",
    "Probe",
    "data_batch",
    "log_of",
]
