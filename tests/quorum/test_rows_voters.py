"""Rows I83-I86 of the conformance cases: voters added, removed and updated (KIP-853).

Where Kafka 4.3 differs from the tests the rows were taken from, the rows are those of 4.3: with
kraft.version 0 an UpdateRaftVoter is kept in the leader's memory.
"""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.effects import Respond
from minicluster.log.control import control_records
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from minicluster.protocol.records import KRaftVersionRecord, VotersRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.quorum.errors import IllegalArgument, InconsistentState
from minicluster.rules import Rules
from tests.quorum.network import CLUSTER_ID, LISTENER, directory_of
from tests.quorum.probe import Probe


def leading(*voters: int, committed: bool = True, **kwargs: Any) -> tuple[Probe, int]:
    kwargs.setdefault("dynamic", True)
    probe = Probe(voters, **kwargs)
    epoch = probe.become_leader()
    if committed:
        commit(probe)
    return probe, epoch


def commit(probe: Probe) -> None:
    """Every other voter fetches up to the end."""
    for voter in probe.machine.voters.ids:
        if voter != probe.local:
            probe.fetch(voter, probe.log.end_offset, probe.log.last_epoch)


def add(node: int, *, directory: bool = True, listener: str = LISTENER, **kwargs: Any) -> Any:
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=1_000,
        voter_id=node,
        voter_directory_id=directory_of(node) if directory else ZERO_UUID,
        listeners=(AddRaftVoterRequest.Listener(name=listener, host=f"node{node}", port=9090),),
        **kwargs,
    )


def remove(node: int, *, directory: bool = True) -> Any:
    return RemoveRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        voter_id=node,
        voter_directory_id=directory_of(node) if directory else ZERO_UUID,
    )


def update(node: int, epoch: int, *, port: int = 7_000, max_version: int = 1, **kwargs: Any) -> Any:
    listener = UpdateRaftVoterRequest.Listener(name=LISTENER, host=f"node{node}", port=port)
    return UpdateRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        current_leader_epoch=epoch,
        voter_id=node,
        voter_directory_id=kwargs.get("directory", directory_of(node)),
        listeners=(listener,),
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=0, max_supported_version=max_version
        ),
    )


def supports(max_version: int = 1) -> ApiVersionsResponse:
    feature = ApiVersionsResponse.SupportedFeatureKey(
        name="kraft.version", min_version=0, max_version=max_version
    )
    return ApiVersionsResponse(supported_features=(feature,))


def error_of(response: Any) -> ErrorCode:
    assert response is not None, "no response yet"
    return ErrorCode(response.error_code)


def last_voters(probe: Probe) -> tuple[int, ...]:
    records = control_records(probe.log.batches[-1])
    assert isinstance(records[-1].message, VotersRecord)
    return tuple(voter.voter_id for voter in records[-1].message.voters)


# --- adding -------------------------------------------------------------------------------------


def test_i83_a_voter_is_added_when_it_has_caught_up_and_the_response_leaves_at_the_commit() -> None:
    probe, epoch = leading(1, 2)
    probe.fetch(4, probe.log.end_offset, epoch)
    assert probe.request(add(4)) is None
    token = probe.last_token
    (send,) = probe.sent(ApiVersionsRequest)
    assert send.to == 4 and send.host == "node4"
    probe.respond(send, supports())
    assert probe.machine.voters.ids == (1, 2, 4)
    assert last_voters(probe) == (1, 2, 4)
    assert token not in probe.responses
    end = probe.log.end_offset
    probe.fetch(2, end, epoch)
    assert error_of(probe.responses[token]) is ErrorCode.NONE
    assert probe.machine.high_watermark == end


def test_i83_without_ack_when_committed_the_response_comes_with_the_append() -> None:
    probe, epoch = leading(1, 2)
    probe.fetch(4, probe.log.end_offset, epoch)
    probe.request(add(4, ack_when_committed=False))
    token = probe.last_token
    probe.respond(probe.sent(ApiVersionsRequest)[0], supports())
    assert error_of(probe.responses[token]) is ErrorCode.NONE
    assert error_of(probe.request(add(5))) is ErrorCode.REQUEST_TIMED_OUT
    commit(probe)
    probe.fetch(5, probe.log.end_offset, epoch)
    assert probe.request(add(5)) is None
    assert sum(isinstance(e, Respond) and e.token == token for e in probe.effects) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (add(2), ErrorCode.DUPLICATE_VOTER),
        (add(4, directory=False), ErrorCode.INVALID_REQUEST),
        (add(4, listener="ELSEWHERE"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_i83_refusals_of_adding_a_voter(request_: Any, error: ErrorCode) -> None:
    probe, _ = leading(1, 2)
    assert error_of(probe.request(request_)) is error


def test_i83_a_voter_without_the_version_or_behind_is_refused() -> None:
    probe, _epoch = leading(1, 2)
    for response, error in (
        (supports(0), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(), ErrorCode.INVALID_REQUEST),
        (ApiVersionsResponse(error_code=-1), ErrorCode.REQUEST_TIMED_OUT),
        (supports(), ErrorCode.REQUEST_TIMED_OUT),  # it never fetched
    ):
        assert probe.request(add(4)) is None
        token = probe.last_token
        probe.respond(probe.sent(ApiVersionsRequest)[0], response)
        assert error_of(probe.responses[token]) is error
        assert probe.machine.voters.ids == (1, 2)
        probe.advance(20)
        commit(probe)


def test_i83_adding_waits_for_the_epochs_own_records() -> None:
    probe, _ = leading(1, 2, committed=False)
    assert error_of(probe.request(add(4))) is ErrorCode.REQUEST_TIMED_OUT


def test_i83_adding_a_voter_times_out() -> None:
    probe, epoch = leading(1, 2)
    probe.fetch(4, probe.log.end_offset, epoch)
    probe.request(add(4))
    token = probe.last_token
    probe.advance(1_999)
    assert token not in probe.responses
    probe.advance(1)
    assert error_of(probe.responses[token]) is ErrorCode.REQUEST_TIMED_OUT


# --- removing -----------------------------------------------------------------------------------


def test_i85b_a_leader_that_is_removed_commits_that_and_resigns() -> None:
    probe, epoch = leading(1, 2, 3)
    assert probe.request(remove(1)) is None
    token = probe.last_token
    assert probe.machine.voters.ids == (2, 3)
    assert probe.role == "Leader"
    end = probe.log.end_offset
    probe.fetch(2, end, epoch)
    assert token not in probe.responses
    probe.fetch(3, end, epoch)
    assert error_of(probe.responses[token]) is ErrorCode.NONE
    assert probe.where == ("Resigned", epoch, 1)
    assert {send.to for send in probe.sent(EndQuorumEpochRequest)} == {2, 3}
    probe.advance(2_000)
    assert probe.where == ("Unattached", epoch + 1, -1)
    assert not probe.machine.is_voter


def test_i85c_only_the_leader_removes_voters() -> None:
    follower = Probe(dynamic=True)
    follower.begin(3, 2)
    assert error_of(follower.request(remove(3))) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_i85c_one_change_at_a_time() -> None:
    probe, epoch = leading(1, 2, 3)
    probe.request(remove(3))
    assert error_of(probe.request(remove(2))) is ErrorCode.REQUEST_TIMED_OUT
    adding, epoch = leading(1, 2, 3)
    adding.fetch(4, adding.log.end_offset, epoch)
    adding.request(add(4))
    assert error_of(adding.request(remove(2))) is ErrorCode.REQUEST_TIMED_OUT


def test_i85c_removing_waits_for_the_epochs_own_records() -> None:
    probe, _ = leading(1, 2, 3, committed=False)
    assert error_of(probe.request(remove(3))) is ErrorCode.REQUEST_TIMED_OUT


def test_i85c_static_voters_are_not_removed() -> None:
    probe, _ = leading(1, 2, 3, dynamic=False)
    assert error_of(probe.request(remove(3))) is ErrorCode.UNSUPPORTED_VERSION


def test_i85c_removing_a_voter_times_out() -> None:
    probe, _ = leading(1, 2, 3)
    probe.request(remove(3))
    token = probe.last_token
    probe.advance(1_999)
    assert token not in probe.responses
    probe.advance(1)
    assert error_of(probe.responses[token]) is ErrorCode.REQUEST_TIMED_OUT


def test_i85c_losing_leadership_fails_what_is_pending() -> None:
    probe, epoch = leading(1, 2, 3)
    probe.request(remove(3))
    token = probe.last_token
    probe.begin(epoch + 1, 2)
    assert error_of(probe.responses[token]) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_i85c_an_unknown_voter_or_the_last_one_is_not_found() -> None:
    probe, _ = leading(1, 2, 3)
    assert error_of(probe.request(remove(9))) is ErrorCode.VOTER_NOT_FOUND
    assert error_of(probe.request(remove(3, directory=False))) is ErrorCode.INVALID_REQUEST
    alone, _ = leading(1)
    assert error_of(alone.request(remove(1))) is ErrorCode.VOTER_NOT_FOUND


def test_z57_a_late_begin_acknowledgement_of_a_removed_voter_changes_nothing() -> None:
    """Kafka 4.3 falls over it (``late_begin_acknowledgement_is_fatal``)."""
    for rules in (Rules.KAFKA_4_3, Rules.KAFKA_4_3.as_shipped()):
        probe, epoch = leading(1, 2, 3, rules=rules)
        late = next(s for s in probe.sent(BeginQuorumEpochRequest) if s.to == 3)
        probe.request(remove(3))
        probe.fetch(2, probe.log.end_offset, epoch)
        if rules is Rules.KAFKA_4_3:
            probe.respond_to_epoch(late)
            assert probe.where == ("Leader", epoch, 1)
        else:
            with pytest.raises(InconsistentState):
                probe.respond_to_epoch(late)


# --- updating -----------------------------------------------------------------------------------


def test_i86_an_update_is_written_and_acknowledged_at_once() -> None:
    probe, epoch = leading(1, 2, 3)
    assert error_of(probe.request(update(2, epoch))) is ErrorCode.NONE
    entry = probe.machine.voters.get(2)
    assert entry is not None and entry.endpoints[0].port == 7_000
    assert error_of(probe.request(update(3, epoch))) is ErrorCode.REQUEST_TIMED_OUT
    commit(probe)
    assert error_of(probe.request(update(3, epoch))) is ErrorCode.NONE


def test_i86_refusals_of_updating_a_voter() -> None:
    probe, epoch = leading(1, 2, 3)
    assert error_of(probe.request(update(2, epoch - 1))) is ErrorCode.FENCED_LEADER_EPOCH
    assert error_of(probe.request(update(2, epoch + 1))) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error_of(probe.request(update(2, epoch, max_version=0))) is ErrorCode.INVALID_REQUEST
    assert error_of(probe.request(update(9, epoch))) is ErrorCode.VOTER_NOT_FOUND
    other = update(2, epoch, directory=directory_of(9))
    assert error_of(probe.request(other)) is ErrorCode.VOTER_NOT_FOUND
    nameless = update(2, epoch, directory=ZERO_UUID)
    assert error_of(probe.request(nameless)) is ErrorCode.INVALID_REQUEST
    early, epoch = leading(1, 2, 3, committed=False)
    assert error_of(early.request(update(2, epoch))) is ErrorCode.REQUEST_TIMED_OUT
    follower = Probe(dynamic=True)
    follower.begin(3, 2)
    assert error_of(follower.request(update(3, 3))) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_i86_an_update_waits_for_a_pending_add() -> None:
    probe, epoch = leading(1, 2, 3)
    probe.fetch(4, probe.log.end_offset, epoch)
    probe.request(add(4))
    assert error_of(probe.request(update(2, epoch))) is ErrorCode.REQUEST_TIMED_OUT


def test_i86_with_static_voters_an_update_is_kept_in_memory() -> None:
    probe, epoch = leading(1, 2, 3, dynamic=False)
    end = probe.log.end_offset
    assert error_of(probe.request(update(2, epoch))) is ErrorCode.NONE
    assert probe.log.end_offset == end
    assert error_of(probe.request(update(9, epoch))) is ErrorCode.VOTER_NOT_FOUND


def test_kraft_version_1_needs_every_voters_directory_and_then_writes_the_voters() -> None:
    probe, epoch = leading(1, 2, 3, dynamic=False)
    probe.request(update(2, epoch))
    with pytest.raises(IllegalArgument, match="not all of the voters"):
        probe.machine.upgrade_kraft_version(epoch, 1, probe.now_ms)
    probe.request(update(3, epoch))
    assert probe.machine.upgrade_kraft_version(epoch, 1, probe.now_ms, validate_only=True)
    assert probe.machine.upgrade_kraft_version(epoch, 1, probe.now_ms)
    assert error_of(probe.request(update(2, epoch))) is ErrorCode.REQUEST_TIMED_OUT
    probe.poll()
    messages = [record.message for record in control_records(probe.log.batches[-1])]
    assert [type(message) for message in messages] == [KRaftVersionRecord, VotersRecord]
    assert probe.machine.kraft_version == 1
    directories = [voter.key.directory_id for voter in probe.machine.voters.voters]
    assert directories == [directory_of(1), directory_of(2), directory_of(3)]
    commit(probe)
    assert probe.machine.high_watermark == probe.log.end_offset
    assert not probe.machine.upgrade_kraft_version(epoch, 1, probe.now_ms)
    with pytest.raises(IllegalArgument):
        probe.machine.upgrade_kraft_version(epoch, 0, probe.now_ms)
