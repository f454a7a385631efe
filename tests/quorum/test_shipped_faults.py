"""Faults of Kafka 4.3's client that no zoo entry names: mended, and as shipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    FetchSnapshotRequest,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum.errors import InconsistentState
from minicluster.rules import Rules
from tests.quorum.network import CLUSTER_ID, directory_of
from tests.quorum.probe import ELECTION_MS, Probe, data_batch
from tests.quorum.test_rows_voters import leading, update

SHIPPED = Rules.KAFKA_4_3.as_shipped()
BOTH = pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["mended", "as shipped"])


def following(rules: Rules) -> Probe:
    probe = Probe(rules=rules)
    assert probe.begin(3, 2) is ErrorCode.NONE
    return probe


def follower_receives_another_leader(rules: Rules) -> Any:
    return following(rules).begin(3, 3)


def follower_receives_the_end_of_another_leader(rules: Rules) -> Any:
    return following(rules).end(3, 3)


def follower_receives_itself_as_leader(rules: Rules) -> Any:
    return following(rules).begin(3, 1)


def a_candidate_has_this_nodes_id(rules: Rules) -> Any:
    return following(rules).vote(4, 1)[0]


def the_leader_fetches_a_snapshot_from_itself(rules: Rules) -> Any:
    probe, epoch = leading(1, 2, 3, rules=rules)
    end = (probe.log.end_offset, epoch)
    probe.log.snapshots[end] = b"content"
    return ErrorCode(probe.fetch_snapshot(1, end).error_code)


def a_snapshot_is_fetched_of_no_topic(rules: Rules) -> Any:
    probe, _ = leading(1, 2, 3, rules=rules)
    response = probe.request(FetchSnapshotRequest(cluster_id=CLUSTER_ID, replica_id=2, topics=()))
    return ErrorCode(response.error_code)


def the_leader_sends_itself_its_endpoints(rules: Rules) -> Any:
    probe, epoch = leading(1, 2, 3, rules=rules)
    return ErrorCode(probe.request(update(1, epoch)).error_code)


@BOTH
@pytest.mark.parametrize(
    "send",
    [
        follower_receives_another_leader,
        follower_receives_the_end_of_another_leader,
        follower_receives_itself_as_leader,
        a_candidate_has_this_nodes_id,
        the_leader_fetches_a_snapshot_from_itself,
        a_snapshot_is_fetched_of_no_topic,
        the_leader_sends_itself_its_endpoints,
    ],
)
def test_a_request_that_cannot_be_true_is_refused_or_fatal(
    send: Callable[[Rules], Any], rules: Rules
) -> None:
    """Item 11 (d)."""
    if rules is SHIPPED:
        with pytest.raises(InconsistentState):
            send(rules)
    else:
        assert send(rules) is ErrorCode.INVALID_REQUEST


@BOTH
def test_a_vote_that_was_found_invalid_is_requested_again_or_fatal(rules: Rules) -> None:
    """Item 11 (d)."""
    probe = Probe(rules=rules)
    probe.advance(ELECTION_MS)
    send = probe.sent(VoteRequest)[0]
    part = VoteResponse.PartitionData(
        error_code=ErrorCode.INVALID_REQUEST, leader_id=-1, leader_epoch=probe.machine.epoch
    )
    topic = VoteResponse.TopicData(topic_name=METADATA_TOPIC, partitions=(part,))
    if rules is SHIPPED:
        with pytest.raises(InconsistentState):
            probe.respond(send, VoteResponse(topics=(topic,)))
    else:
        probe.respond(send, VoteResponse(topics=(topic,)))
        assert probe.role == "Prospective"


@BOTH
def test_a_leader_without_update_voter_gets_the_request_once_or_for_ever(rules: Rules) -> None:
    """Item 11 (e). With kraft.version 0 a voter sends UpdateRaftVoter until the leader has it."""
    probe = following(rules)
    requested = 0
    for _ in range(200):
        for send in probe.sent(FetchRequest):
            probe.respond_to_fetch(send, leader=2, epoch=3)
        for send in probe.sent(UpdateRaftVoterRequest):
            requested += 1
            response = UpdateRaftVoterResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                current_leader=UpdateRaftVoterResponse.CurrentLeader(leader_id=-1, leader_epoch=-1),
            )
            probe.respond(send, response)
        probe.advance(100)
    assert probe.where == ("Follower", 3, 2)
    assert requested == 1 if rules is not SHIPPED else requested > 5


@BOTH
def test_a_leader_that_is_found_again_outside_the_voters_is_followed_or_fatal(rules: Rules) -> None:
    """A node starts with a leader whose endpoints its log lacks, and asks the bootstrap servers."""
    stored = QuorumState(leader_id=9, leader_epoch=3, data_version=1)
    probe = Probe(stored=stored, dynamic=True, rules=rules)
    assert probe.where == ("Unattached", 3, 9)
    (fetch,) = probe.sent(FetchRequest)
    records = data_batch(0, 3, b"one")
    if rules is SHIPPED:
        with pytest.raises(InconsistentState):
            probe.respond_to_fetch(fetch, records, leader=9, epoch=3, high_watermark=1)
    else:
        probe.respond_to_fetch(fetch, records, leader=9, epoch=3, high_watermark=1)
        assert probe.where == ("Follower", 3, 9)
        assert probe.committed == [b"one"]
        assert [send.to for send in probe.sent(FetchRequest)] == [9]


@BOTH
def test_a_candidate_that_was_removed_from_the_voters_starts_again_or_never(rules: Rules) -> None:
    """QuorumState.initialize: the vote for itself comes before the leader of the epoch."""
    stored = QuorumState(
        leader_id=2,
        leader_epoch=4,
        voted_id=1,
        voted_directory_id=directory_of(1),
        data_version=1,
    )
    if rules is SHIPPED:
        with pytest.raises(InconsistentState):
            Probe((2, 3, 4), local=1, dynamic=True, stored=stored, rules=rules)
    else:
        probe = Probe((2, 3, 4), local=1, dynamic=True, stored=stored, rules=rules)
        assert probe.where == ("Follower", 4, 2)
