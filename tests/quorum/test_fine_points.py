"""Fine points of Kafka 4.3 that are seldom met and that hardly a transcript shows."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.log.format.limits import MAX_BATCH_BYTES
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from minicluster.protocol.records import ConfigRecord, KRaftVersionRecord, VersionedRecord
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum import effects as qx
from minicluster.quorum.errors import (
    IllegalArgument,
    InconsistentState,
    NotLeader,
    RecordBatchTooLarge,
)
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.epoch_state import FetchingSnapshot, FollowerState
from minicluster.quorum.state.leader_state import LeaderState, ReplicaState
from minicluster.quorum.state.voters import ReplicaKey, VoterSet
from minicluster.rules import Rules
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of, voter_of
from tests.quorum.probe import Probe, data_batch, log_of


def leader_of(probe: Probe) -> LeaderState:
    role = probe.machine.node.role
    assert isinstance(role, LeaderState)
    return role


def update(epoch: int, *, lowest: int, highest: int) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=epoch,
        voter_id=2,
        voter_directory_id=directory_of(2),
        listeners=(UpdateRaftVoterRequest.Listener(name=LISTENER, host="node2", port=7_000),),
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=lowest, max_supported_version=highest
        ),
    )


@pytest.mark.parametrize(("lowest", "highest"), [(-1, 1), (0, -1), (1, 0)])
def test_an_update_with_a_range_that_is_none_is_invalid_whatever_else_is_pending(
    lowest: int, highest: int
) -> None:
    """The range's own shape is looked at before the high watermark is."""
    probe = Probe(dynamic=True)
    epoch = probe.become_leader()
    assert probe.machine.high_watermark == -1
    response = probe.request(update(epoch, lowest=lowest, highest=highest))
    assert response.error_code == ErrorCode.INVALID_REQUEST


def test_an_update_with_a_range_above_the_present_level_waits_its_turn_to_be_invalid() -> None:
    probe = Probe(dynamic=True)
    epoch = probe.become_leader()
    assert (
        probe.request(update(epoch, lowest=2, highest=3)).error_code == ErrorCode.REQUEST_TIMED_OUT
    )
    probe.fetch(2, probe.log.end_offset, epoch)
    assert probe.request(update(epoch, lowest=2, highest=3)).error_code == ErrorCode.INVALID_REQUEST


def test_an_observers_fetch_shows_that_those_who_have_fetched_are_a_majority_by_now() -> None:
    """The voters became fewer; one voter's fetch is enough, once anybody fetches again."""
    probe = Probe((1, 2, 3, 4, 5), dynamic=True)
    epoch = probe.become_leader()
    probe.fetch(2, probe.log.end_offset, epoch)
    role = leader_of(probe)
    deadline = role.check_quorum_deadline_ms
    probe.advance(100)
    role.set_voters(VoterSet.of(voter_of(i, dynamic=True) for i in (1, 2, 3)))
    assert role.check_quorum_deadline_ms == deadline
    probe.fetch(9, probe.log.end_offset, epoch)
    assert role.check_quorum_deadline_ms == deadline + 100


def test_of_an_id_that_comes_back_with_another_directory_nothing_is_kept() -> None:
    probe = Probe(dynamic=True)
    epoch = probe.become_leader()
    probe.fetch(2, probe.log.end_offset, epoch)
    role = leader_of(probe)
    other = ReplicaKey(2, directory_of(12))
    voters = [voter_of(i, dynamic=True) for i in (1, 3)]
    role.set_voters(VoterSet.of([*voters, voter_of(2, dynamic=True).__class__(key=other)]))
    assert role.voters[2] == ReplicaState(key=other)
    assert ReplicaKey(2, directory_of(2)) not in role.observers


def test_a_resigned_leader_notifies_the_voters_also_in_the_turn_in_which_its_time_is_over() -> None:
    settings = QuorumSettings(append_linger_ms=0, request_timeout_ms=1_000)
    probe = Probe(settings=settings)
    epoch = probe.become_leader()
    probe.machine.resign(epoch)
    probe.poll()
    assert [send.to for send in probe.sent(EndQuorumEpochRequest)] == [2, 3]
    probe.now_ms += 3_000  # at once, past the request timeout and the election timeout
    probe.poll()
    assert [send.to for send in probe.sent(EndQuorumEpochRequest)] == [2, 3]
    assert probe.role == "Prospective" and probe.machine.epoch == epoch + 1


def follower(**kwargs: Any) -> Probe:
    return Probe(stored=QuorumState(leader_id=2, leader_epoch=5), **kwargs)


def test_a_snapshot_that_is_here_already_ends_the_download_of_another() -> None:
    probe = follower(log=log_of((1, 4)))
    probe.log.snapshots[(2, 1)] = b"kept"
    role = probe.machine.node.role
    assert isinstance(role, FollowerState)
    (send,) = probe.sent(FetchRequest)
    role.fetching_snapshot = FetchingSnapshot(snapshot_id=(9, 4))
    probe.respond_to_fetch(send, leader=2, epoch=5, snapshot_id=(2, 1))
    assert role.fetching_snapshot is None


@pytest.mark.parametrize(("end_offset", "sends"), [(2, False), (3, True), (4, True)])
def test_a_snapshot_is_fetched_unless_it_ends_below_what_is_committed_here(
    end_offset: int, sends: bool
) -> None:
    probe = follower()
    (send,) = probe.sent(FetchRequest)
    batch = data_batch(0, 1, b"a", b"b", b"c")
    probe.respond_to_fetch(send, batch, leader=2, epoch=5, high_watermark=3)
    (send,) = probe.sent(FetchRequest)
    probe.respond_to_fetch(send, leader=2, epoch=5, snapshot_id=(end_offset, 4))
    role = probe.machine.node.role
    assert isinstance(role, FollowerState) and role.high_watermark == 3
    wanted = None if role.fetching_snapshot is None else role.fetching_snapshot.snapshot_id
    assert wanted == ((end_offset, 4) if sends else None)


def test_nothing_committed_is_truncated_for_an_epoch_that_is_unknown_here() -> None:
    """E42: the diverging offset is above the high watermark, but the logs share less."""
    probe = follower()
    (send,) = probe.sent(FetchRequest)
    batches = data_batch(0, 1, b"a", b"b"), data_batch(2, 4, b"c", b"d")
    probe.respond_to_fetch(send, *batches, leader=2, epoch=5, high_watermark=4)
    (send,) = probe.sent(FetchRequest)
    probe.respond_to_fetch(send, leader=2, epoch=5, diverging=(3, 4))
    assert probe.log.end_offset == 4
    assert not [effect for effect in probe.effects if isinstance(effect, qx.Truncated)]


def test_a_snapshot_is_found_among_several_topics() -> None:
    probe = Probe(log=log_of((1, 4)))
    epoch = probe.become_leader()
    probe.log.snapshots[(4, 1)] = b"content"
    part = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(end_offset=4, epoch=1),
    )
    topics = tuple(
        FetchSnapshotRequest.TopicSnapshot(name=name, partitions=(part,))
        for name in ("other", METADATA_TOPIC)
    )
    request = FetchSnapshotRequest(
        cluster_id=CLUSTER_ID, replica_id=2, max_bytes=100, topics=topics
    )
    response = probe.request(request)
    assert response.topics[0].partitions[0].unaligned_records == b"content"
    both = FetchSnapshotRequest.TopicSnapshot(name="other", partitions=(part, part))
    neither = FetchSnapshotRequest(cluster_id=CLUSTER_ID, replica_id=2, topics=(both, both))
    assert probe.request(neither).error_code == ErrorCode.INVALID_REQUEST


def test_a_batch_holds_eight_mebibytes_and_no_more() -> None:
    probe = Probe((1,))
    epoch = probe.machine.epoch
    with pytest.raises(RecordBatchTooLarge):
        probe.machine.append(epoch, [bytes(MAX_BATCH_BYTES), b"x"], probe.now_ms)
    value = "v" * 32_767
    record = VersionedRecord(ConfigRecord(resource_name="t", name="n", value=value), 0)
    with pytest.raises(RecordBatchTooLarge):
        probe.machine.append(epoch, [record] * 257, probe.now_ms)
    assert probe.machine.append(epoch, [record] * 250, probe.now_ms) > 0


def test_a_shutdown_that_ends_when_its_time_is_over_has_timed_out() -> None:
    probe = Probe((1,))
    probe.machine.shutdown(0, probe.now_ms)
    probe.poll()
    assert probe.effects[-1] == qx.ShutDown(timed_out=True)


def test_an_upgrade_of_kraft_version_for_another_epoch_is_refused_like_an_append() -> None:
    probe = Probe(dynamic=False)
    epoch = probe.become_leader()
    with pytest.raises(NotLeader):
        probe.machine.upgrade_kraft_version(epoch - 1, 1, probe.now_ms)
    with pytest.raises(IllegalArgument):
        probe.machine.upgrade_kraft_version(epoch + 1, 1, probe.now_ms)


def test_a_log_without_limits_is_not_cleaned() -> None:
    probe = Probe((1,), log=log_of((1, 4)))
    probe.append(b"x")
    for end in (4, probe.log.end_offset):
        snapshot_id = (end, probe.log.last_epoch if end > 4 else 1)
        assert probe.machine.create_snapshot(snapshot_id, (), probe.now_ms)
    content = probe.machine.log.snapshots
    assert not probe.machine.clean(-1, -1, probe.now_ms) and len(content) == 2
    assert probe.machine.clean(-1, 0, probe.now_ms) and len(content) == 1


def test_an_empty_list_of_preferred_candidates_starts_an_election_at_once() -> None:
    """10.5: a leader that stopped and started again resigns without a list."""
    probe = follower(log=log_of((1, 4)))
    assert probe.end(5, 2, preferred=()) is ErrorCode.NONE
    probe.poll()
    assert probe.role == "Prospective"


def test_a_follower_that_the_list_leaves_out_waits_the_longest() -> None:
    settings = QuorumSettings(election_backoff_max_ms=300)
    probe = follower(log=log_of((1, 4)), settings=settings)
    assert probe.end(5, 2, preferred=(3,)) is ErrorCode.NONE
    probe.advance(299)
    assert probe.role == "Follower"
    probe.advance(1)
    assert probe.role == "Prospective"


def test_a_fetch_inside_a_batch_shows_only_what_is_before_the_batch() -> None:
    probe = Probe(log=log_of((1, 2), (1, 4)))
    epoch = probe.become_leader()
    reported = probe.fetch(9, 4, 1, epoch=epoch)
    assert reported is not None and reported.error_code == ErrorCode.NONE
    (progress,) = leader_of(probe).observers.values()
    assert (progress.key.id, progress.end_offset) == (9, 2)


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, Rules.KAFKA_4_3.as_shipped()])
def test_a_candidate_of_the_nodes_own_id_is_fatal_only_where_it_would_get_the_vote(
    rules: Rules,
) -> None:
    """10.16, item 11 (d)."""
    probe = Probe(log=log_of((1, 4)), rules=rules)
    refused = ErrorCode.NONE if rules.contradicting_request_is_fatal else ErrorCode.INVALID_REQUEST
    assert probe.vote(5, 1, last=(0, 0)) == (refused, False)
    assert probe.vote(5, 1, last=(1, 4), pre=True)[0] is refused
    if rules.contradicting_request_is_fatal:
        with pytest.raises(InconsistentState):
            probe.vote(5, 1, last=(1, 4))


def test_what_is_appended_after_control_records_is_written_a_turn_later() -> None:
    """The write that control records force ends with them."""
    accumulator = BatchAccumulator(epoch=1, next_offset=0, linger_ms=5)
    accumulator.append(1, [b"before"], 10)
    version = KRaftVersionRecord(version=0, kraft_version=1)
    assert accumulator.append_control([version], 11) == 1
    assert accumulator.append(1, [b"after"], 12) == 2
    assert accumulator.due_ms == 11
    assert [batch.base_offset for batch in accumulator.drain()] == [0, 1]
    assert accumulator.due_ms == 12 + 5
    assert [batch.base_offset for batch in accumulator.drain()] == [2]
    assert accumulator.due_ms is None


def test_an_update_that_was_sent_to_another_voter_than_is_there_holds_nobody_back() -> None:
    """After INVALID_VOTER_KEY, as in any other response, the next Fetch is sent at once."""
    probe = follower(log=log_of((1, 4)))
    sends: list[qx.SendTo] = []
    while not sends:
        for fetch in probe.sent(FetchRequest):
            probe.respond_to_fetch(fetch, leader=2, epoch=5)
        probe.advance(100)
        assert probe.role == "Follower"
        sends = probe.sent(UpdateRaftVoterRequest)
    leader = UpdateRaftVoterResponse.CurrentLeader(leader_id=2, leader_epoch=5)
    error = ErrorCode.INVALID_VOTER_KEY
    probe.respond(sends[0], UpdateRaftVoterResponse(error_code=error, current_leader=leader))
    probe.advance(1)
    assert [send.to for send in probe.sent(FetchRequest)] == [2]


@pytest.mark.parametrize("voters", [(1,), (1, 2, 3)])
def test_a_leader_flushes_before_its_high_watermark_counts_what_it_wrote(
    voters: tuple[int, ...],
) -> None:
    """A crash of the leader would lose what it alone has, and what it counted would be gone."""
    probe = Probe(voters)
    probe.become_leader()
    for n in range(3):
        written = len(probe.effects)
        probe.append(b"%d" % n)
        end_offset = probe.log.end_offset
        kinds = [
            type(effect)
            for effect in probe.effects[written:]
            if isinstance(effect, qx.Appended | qx.Flushed | qx.HighWatermarkChanged)
        ]
        assert kinds[:2] == [qx.Appended, qx.Flushed]
        assert probe.log.flushed_offset == end_offset
        if len(voters) == 1:
            assert kinds[2:] == [qx.HighWatermarkChanged]
