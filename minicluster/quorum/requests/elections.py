"""Vote, BeginQuorumEpoch and EndQuorumEpoch.

Versions: Vote 0-2, BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1.
Source:   KafkaRaftClient.handleVoteRequest,
          handleBeginQuorumEpochRequest, handleEndQuorumEpochRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from minicluster.quorum import transitions, wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.epoch_election import election_backoff_ms
from minicluster.quorum.state.epoch_state import FollowerState, ProspectiveState, UnattachedState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints, ReplicaKey

Asked = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest


def _refuse_whole(node: QuorumNode, request: Asked) -> ErrorCode | None:
    if not validation.is_this_cluster(node, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if wire.only_partition(request) is None:
        return ErrorCode.INVALID_REQUEST
    return None


def vote(node: QuorumNode, request: VoteRequest, version: int, now_ms: int) -> Any:
    """Grant or refuse a vote or a pre-vote; a higher epoch moves the node first, come what may."""
    if (whole := _refuse_whole(node, request)) is not None:
        return wire.election_error(request, whole)
    asked = wire.only_partition(request)
    assert asked is not None

    def answer(error: ErrorCode, *, granted: bool = False) -> Any:
        return wire.election_answer(request, version, error, node, granted=granted)

    epoch, pre_vote = asked.replica_epoch, asked.pre_vote
    last = asked.last_offset_epoch
    too_high = last > epoch if pre_vote else last >= epoch
    if asked.last_offset < 0 or last < 0 or too_high:
        return answer(ErrorCode.INVALID_REQUEST)
    refusal = validation.refuse_voter_request(node, asked.replica_id, epoch)
    if refusal is not None:
        return answer(refusal)
    of_itself = asked.replica_id == node.key.id
    if of_itself and not node.rules.contradicting_request_is_fatal:
        return answer(ErrorCode.INVALID_REQUEST)
    if epoch > node.epoch:
        transitions.to_unattached(node, epoch, None, now_ms)
    named = ReplicaKey.of(request.voter_id, asked.voter_directory_id)
    if not validation.is_meant_for(node, request.voter_id, named):
        return answer(ErrorCode.INVALID_VOTER_KEY)

    candidate = ReplicaKey.of(asked.replica_id, asked.replica_directory_id)
    granted = _grants(node, candidate, (last, asked.last_offset), pre_vote)
    if granted and not pre_vote and isinstance(node.role, UnattachedState | ProspectiveState):
        if of_itself and node.role.voted is None:  # as shipped, only this is one vote too many
            return answer(validation.contradiction(node, "a candidate of this node's own id"))
        transitions.grant_vote(node, candidate, now_ms)
    return answer(ErrorCode.NONE, granted=granted)


def _grants(node: QuorumNode, candidate: ReplicaKey, end: tuple[int, int], pre_vote: bool) -> bool:
    up_to_date = end >= (node.log.last_epoch, node.log.end_offset)
    granted = node.role.can_grant(candidate, up_to_date, pre_vote)
    if not granted and not up_to_date and node.faults.s23_vote_for_shorter_log:
        granted = node.role.can_grant(candidate, True, pre_vote)
        if granted:
            node.hit("S23")
    return granted


def begin_epoch(
    node: QuorumNode, request: BeginQuorumEpochRequest, version: int, now_ms: int
) -> Any:
    """Follow the leader that announces itself; a wrong voter key is refused after that."""
    if (whole := _refuse_whole(node, request)) is not None:
        return wire.election_error(request, whole)
    asked = wire.only_partition(request)
    assert asked is not None
    error = _follow(node, request, asked, now_ms)
    named = ReplicaKey.of(request.voter_id, asked.voter_directory_id)
    if error is None and not validation.is_meant_for(node, request.voter_id, named):
        error = ErrorCode.INVALID_VOTER_KEY
    return wire.election_answer(request, version, error or ErrorCode.NONE, node)


def end_epoch(node: QuorumNode, request: EndQuorumEpochRequest, version: int, now_ms: int) -> Any:
    """Stand for election as soon as the resigned leader's list says, if it was followed."""
    if (whole := _refuse_whole(node, request)) is not None:
        return wire.election_error(request, whole)
    asked = wire.only_partition(request)
    assert asked is not None
    error = _follow(node, request, asked, now_ms)
    role = node.role
    if error is None and isinstance(role, FollowerState) and role.leader_id == asked.leader_id:
        wait_ms = election_backoff_ms(
            _position(node, asked), _candidates(asked), node.settings.election_backoff_max_ms
        )
        role.fetch_deadline_ms = now_ms + wait_ms
    return wire.election_answer(request, version, error or ErrorCode.NONE, node)


def _follow(
    node: QuorumNode,
    request: BeginQuorumEpochRequest | EndQuorumEpochRequest,
    asked: Any,
    now_ms: int,
) -> ErrorCode | None:
    """Follow the leader that a request names, unless that is refused."""
    refusal = validation.refuse_voter_request(node, asked.leader_id, asked.leader_epoch)
    if refusal is not None:
        return refusal
    endpoints: Endpoints = wire.named_endpoints(request.leader_endpoints)
    if not endpoints:
        endpoints = node.history.voters.endpoints_of(asked.leader_id)
    is_news = asked.leader_epoch > node.epoch or node.role.leader_id is None
    if is_news and not endpoints and isinstance(request, BeginQuorumEpochRequest):
        validation.contradiction(node, f"leader {asked.leader_id} is nowhere to be found")
    if not transitions.follow_message(node, asked.leader_id, asked.leader_epoch, endpoints, now_ms):
        return validation.contradiction(
            node, f"epoch {asked.leader_epoch} has another leader than {asked.leader_id}"
        )
    return None


def _position(node: QuorumNode, asked: Any) -> int | None:
    keys = [
        ReplicaKey.of(each.candidate_id, each.candidate_directory_id)
        for each in asked.preferred_candidates
    ] or [ReplicaKey(each) for each in asked.preferred_successors]
    for position, key in enumerate(keys):
        if key.stands_for(node.key):
            return position
    return None


def _candidates(asked: Any) -> int:
    return len(asked.preferred_candidates) or len(asked.preferred_successors)
