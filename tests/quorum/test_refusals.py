"""A refusal has its reason: a Vote that is not granted, and every INVALID_REQUEST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    FetchRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum.effects import RequestInvalid, VoteRejected
from minicluster.quorum.errors import InvalidRequest, VoteRejection
from minicluster.quorum.state.voters import VersionRange
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of
from tests.quorum.probe import Probe, log_of


def stored(epoch: int, *, leader: int = -1, voted: int = -1) -> QuorumState:
    return QuorumState(leader_id=leader, leader_epoch=epoch, voted_id=voted, data_version=0)


def with_a_longer_log() -> Probe:
    return Probe(log=log_of((3, 2)), stored=stored(5))


def with_a_vote_for_another() -> Probe:
    return Probe(stored=stored(5, voted=3))


def following() -> Probe:
    return Probe(stored=stored(5, leader=3))


def fetching_from_a_leader() -> Probe:
    probe = following()
    (send,) = probe.sent(FetchRequest)
    probe.respond_to_fetch(send, leader=3, epoch=5)
    return probe


def leading() -> Probe:
    return Probe((1,), stored=stored(4))


def with_vote() -> Probe:
    return Probe(stored=stored(5, voted=1))


def resigned() -> Probe:
    return Probe(stored=stored(5, leader=1))


REFUSALS: dict[VoteRejection, tuple[Callable[[], Probe], bool]] = {
    VoteRejection.LOG_BEHIND: (with_a_longer_log, False),
    VoteRejection.VOTED_FOR_ANOTHER: (with_a_vote_for_another, False),
    VoteRejection.LEADER_KNOWN: (following, False),
    VoteRejection.FETCHED_FROM_LEADER: (fetching_from_a_leader, True),
    VoteRejection.IS_LEADER: (leading, True),
    VoteRejection.IS_CANDIDATE: (with_vote, False),
    VoteRejection.IS_RESIGNED: (resigned, False),
}


@pytest.mark.parametrize("reason", VoteRejection)
def test_a_vote_that_is_not_granted_has_its_reason(reason: VoteRejection) -> None:
    """Source: EpochState.canGrantVote, "Rejecting Vote request … since …"."""
    make, pre_vote = REFUSALS[reason]
    probe = make()
    assert probe.machine.epoch == 5
    assert probe.vote(5, 2, pre=pre_vote) == (ErrorCode.NONE, False)
    rejected = [effect for effect in probe.effects if isinstance(effect, VoteRejected)]
    assert rejected == [VoteRejected(5, 2, pre_vote, reason)]


def test_a_granted_vote_has_no_refusal() -> None:
    probe = Probe(stored=stored(5))
    assert probe.vote(5, 2) == (ErrorCode.NONE, True)
    assert not [effect for effect in probe.effects if isinstance(effect, VoteRejected)]


def test_a_pre_vote_for_a_shorter_log_is_refused_in_every_state() -> None:
    for make in (with_a_vote_for_another, following, with_vote, resigned):
        probe = make()
        probe.log.append(log_of((5, 1)).batches[0])
        assert probe.vote(5, 2, pre=True) == (ErrorCode.NONE, False)
        assert probe.effects[-2] == VoteRejected(5, 2, True, VoteRejection.LOG_BEHIND)


# --- INVALID_REQUEST ----------------------------------------------------------------------------


def a_dynamic_leader() -> Probe:
    probe = Probe((1, 2), dynamic=True)
    epoch = probe.become_leader()
    probe.fetch(2, probe.log.end_offset, epoch)
    return probe


def update(
    probe: Probe, voter: int, *, listener: str = LISTENER, versions: VersionRange | None = None
) -> None:
    versions = versions or VersionRange(0, 1)
    feature = UpdateRaftVoterRequest.KRaftVersionFeature(
        min_supported_version=versions.min, max_supported_version=versions.max
    )
    probe.request(
        UpdateRaftVoterRequest(
            cluster_id=CLUSTER_ID,
            current_leader_epoch=probe.machine.epoch,
            voter_id=voter,
            voter_directory_id=directory_of(voter),
            listeners=(UpdateRaftVoterRequest.Listener(name=listener, host="node", port=9_000),),
            kraft_version_feature=feature,
        )
    )


def a_fetch_of_the_leader_itself(probe: Probe) -> None:
    snapshot_id = (probe.log.end_offset, probe.machine.epoch)
    assert probe.machine.create_snapshot(snapshot_id, (), probe.now_ms)
    probe.fetch_snapshot(1, snapshot_id)


INVALID: dict[InvalidRequest, tuple[Callable[[], Probe], Callable[[Probe], object]]] = {
    InvalidRequest.OTHER_PARTITION: (
        following,
        lambda probe: probe.request(VoteRequest(cluster_id=CLUSTER_ID)),
    ),
    InvalidRequest.IMPOSSIBLE_LOG_END: (following, lambda probe: probe.vote(6, 2, last=(6, 0))),
    InvalidRequest.IMPOSSIBLE_FETCH: (a_dynamic_leader, lambda probe: probe.fetch(2, -1, 0)),
    InvalidRequest.SENDER_WITHOUT_ID: (following, lambda probe: probe.vote(6, -1)),
    InvalidRequest.VOTE_OF_OWN_ID: (following, lambda probe: probe.vote(6, 1)),
    InvalidRequest.SECOND_LEADER: (following, lambda probe: probe.begin(5, 2)),
    InvalidRequest.FETCH_OF_OWN_ID: (a_dynamic_leader, a_fetch_of_the_leader_itself),
    InvalidRequest.VOTER_WITHOUT_DIRECTORY: (
        a_dynamic_leader,
        lambda probe: probe.request(RemoveRaftVoterRequest(cluster_id=CLUSTER_ID, voter_id=2)),
    ),
    InvalidRequest.LISTENER_MISSING: (
        a_dynamic_leader,
        lambda probe: update(probe, 2, listener="ELSEWHERE"),
    ),
    InvalidRequest.IMPOSSIBLE_VERSIONS: (
        a_dynamic_leader,
        lambda probe: update(probe, 2, versions=VersionRange(1, 0)),
    ),
    InvalidRequest.KRAFT_VERSION_UNSUPPORTED: (
        a_dynamic_leader,
        lambda probe: update(probe, 2, versions=VersionRange(0, 0)),
    ),
    InvalidRequest.UPDATE_OF_OWN_ID: (a_dynamic_leader, lambda probe: update(probe, 1)),
}


def test_a_fetch_that_names_the_topic_by_its_name_is_invalid() -> None:
    """Versions below 13 have no topic ids, and the metadata topic is named by its id alone."""
    probe = a_dynamic_leader()
    topic = FetchRequest.FetchTopic(
        topic=METADATA_TOPIC,
        partitions=(FetchRequest.FetchPartition(current_leader_epoch=probe.machine.epoch),),
    )
    request = FetchRequest(cluster_id=CLUSTER_ID, replica_id=2, topics=(topic,))
    assert probe.request(request, version=12).error_code == ErrorCode.INVALID_REQUEST


VOTER_CHANGES = [AddRaftVoterRequest, RemoveRaftVoterRequest, UpdateRaftVoterRequest]


@pytest.mark.parametrize("change", VOTER_CHANGES)
def test_a_voter_has_no_negative_id(change: Any) -> None:
    probe = a_dynamic_leader()
    own = {"current_leader_epoch": probe.machine.epoch}
    request = change(
        cluster_id=CLUSTER_ID,
        voter_id=-1,
        voter_directory_id=directory_of(3),
        **(own if change is UpdateRaftVoterRequest else {}),
    )
    assert probe.request(request).error_code == ErrorCode.INVALID_REQUEST
    assert RequestInvalid(InvalidRequest.VOTER_WITHOUT_DIRECTORY) in probe.effects


@pytest.mark.parametrize("reason", InvalidRequest)
def test_an_invalid_request_has_its_reason(reason: InvalidRequest) -> None:
    make, send = INVALID[reason]
    probe = make()
    send(probe)
    assert probe.effects[-2] == RequestInvalid(reason)
    assert f"error_code={int(ErrorCode.INVALID_REQUEST)}" in repr(probe.effects[-1])
