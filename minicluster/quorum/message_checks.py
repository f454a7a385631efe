"""The checks of a message before its handler runs: its cluster, and its epoch.

A message of a higher epoch moves the node to that epoch first: an epoch has one leader, and the
node must not act on an election that is over. A request of a lower epoch is rejected, so that its
sender learns the present one; a response of a lower epoch is dropped (Raft, section 5.1).

Source:  KafkaRaftClient.hasValidClusterId, validateVoterOnlyRequest, validateLeaderOnlyRequest,
         maybeHandleCommonResponse, maybeTransition, hasConsistentLeader.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import transitions
from minicluster.quorum.effects import RequestInvalid
from minicluster.quorum.errors import InconsistentState, InvalidRequest
from minicluster.quorum.state.epoch_state import UnattachedState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints
from minicluster.quorum.transitions import Event
from minicluster.values import Value


class VoterRequestEpoch(Value):
    """The epoch of a request between voters (Vote, BeginQuorumEpoch, EndQuorumEpoch).

    Shapes:  ``leader_id`` is None in a Vote, which names no leader.
    """

    epoch: int
    sender_id: int
    leader_id: int | None = None
    endpoints: Endpoints = ()
    announces_leader: bool = False


class ResponseEpoch(Value):
    """The error, leader and epoch that a response names."""

    error: ErrorCode
    leader_id: int | None
    epoch: int
    endpoints: Endpoints = ()


def check_voter_request(
    node: QuorumNode, named: VoterRequestEpoch, now_ms: int
) -> ErrorCode | None:
    """Compare the epoch of a request with the node's; -> the rejection, None to handle the request.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    if named.epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if named.sender_id < 0:
        return invalid(node, InvalidRequest.SENDER_WITHOUT_ID)
    # A vote for oneself that comes over the wire is another node with this one's id. Where the rule
    # is on, ``elections`` ends the node instead, and only if it would give away its vote.
    if (
        named.leader_id is None
        and named.sender_id == node.key.id
        and not node.rules.contradicting_request_is_fatal
    ):
        return invalid(node, InvalidRequest.VOTE_OF_OWN_ID)
    if not _maybe_transition(
        node,
        named.leader_id,
        named.epoch,
        named.endpoints,
        now_ms,
        announces_leader=named.announces_leader,
    ):
        return contradiction(node, InvalidRequest.SECOND_LEADER)
    return None


def check_leader_request(node: QuorumNode, epoch: int | None) -> ErrorCode | None:
    """Reject a request that this node cannot serve as the leader of that epoch.

    A higher epoch does not move the node: only voters and the leader itself announce epochs.

    Shapes:  ``epoch`` is None where an admin sends the request to the leader of whatever epoch.
    """
    role = node.role
    # The epoch before the role: a deposed leader tells its followers that the epoch has moved.
    if epoch is not None and epoch != role.epoch:
        is_past = epoch < role.epoch
        return ErrorCode.FENCED_LEADER_EPOCH if is_past else ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(role, LeaderState):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    # It resigns with its next turn: what it promised now, it could not keep.
    if node.is_shutting_down:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return None


def check_response(node: QuorumNode, named: ResponseEpoch, now_ms: int) -> bool | None:
    """Compare the epoch of a response with the node's; -> None to handle the response.

    Shapes:  -> otherwise, success or failure of the request.
    """
    error, leader_id, role = named.error, named.leader_id, node.role
    if named.epoch < role.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if named.epoch > role.epoch or error in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ):
        return _maybe_transition(node, leader_id, named.epoch, named.endpoints, now_ms)
    if leader_id is not None and leader_id != node.key.id and _is_looked_for(node, named):
        _maybe_transition(node, leader_id, named.epoch, named.endpoints, now_ms)
        return None if error is ErrorCode.NONE else True
    if error is ErrorCode.INVALID_REQUEST:
        raise_if_fatal(node, f"a request in epoch {named.epoch} was found invalid")
        return False
    if error is ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    # The peer has another directory than the request names, and is reachable. Otherwise, if this
    # were a failure, a follower's next Fetch would wait for the back-off of its UpdateRaftVoter.
    if error is ErrorCode.INVALID_VOTER_KEY:
        return True
    return None


def _is_looked_for(node: QuorumNode, named: ResponseEpoch) -> bool:
    """Where the leader of the present epoch is unknown, or only where it is.

    A node starts without endpoints of a leader that its log has not among the voters.
    """
    role = node.role
    if role.leader_id is None:
        return True
    if not isinstance(role, UnattachedState) or node.rules.leader_found_again_is_fatal:
        return False
    return named.leader_id == role.leader_id and bool(named.endpoints)


def _maybe_transition(
    node: QuorumNode,
    leader_id: int | None,
    epoch: int,
    endpoints: Endpoints,
    now_ms: int,
    *,
    announces_leader: bool = False,
) -> bool:
    """Move to a higher epoch, or to the leader of the present one; -> False for a second leader.

    More endpoints of a known leader count as news: the node may reach the leader only there.
    """
    if not _has_consistent_leader(node, leader_id, epoch):
        return False
    if leader_id is not None and not endpoints:
        endpoints = node.history.voters.endpoints_of(leader_id)
    role = node.role
    if epoch > role.epoch or (
        epoch == role.epoch
        and leader_id is not None
        and (role.leader_id is None or len(endpoints) > len(role.leader_endpoints))
    ):
        if leader_id is not None and endpoints:
            transitions.to_follower(node, Event.LEADER, epoch, leader_id, endpoints, now_ms)
        else:
            if announces_leader:
                raise_if_fatal(node, f"leader {leader_id} has no endpoints")
            transitions.to_unattached(node, Event.EPOCH, epoch, leader_id, now_ms)
    return True


def _has_consistent_leader(node: QuorumNode, leader_id: int | None, epoch: int) -> bool:
    """An epoch has one leader, and a node is first to learn that it leads an epoch itself."""
    if leader_id is None:
        return True
    if leader_id == node.key.id:
        return epoch <= node.epoch and (epoch < node.epoch or node.role.leader_id == leader_id)
    return epoch != node.epoch or node.role.leader_id in (None, leader_id)


# --- cluster, and requests that cannot be true --------------------------------------------------


def has_valid_cluster_id(node: QuorumNode, cluster_id: str | None) -> bool:
    """A request without a cluster id is valid: the first versions carried none."""
    return cluster_id is None or cluster_id == node.cluster_id


def invalid(node: QuorumNode, reason: InvalidRequest) -> ErrorCode:
    """INVALID_REQUEST, with its reason as an effect."""
    node.emit(RequestInvalid(reason))
    return ErrorCode.INVALID_REQUEST


def contradiction(node: QuorumNode, reason: InvalidRequest) -> ErrorCode:
    """Reject what cannot be true: one leader per epoch, no node is its own peer.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    raise_if_fatal(node, reason.value)
    return invalid(node, reason)


def raise_if_fatal(node: QuorumNode, reason: str) -> None:
    """End the node over what cannot be true, as Kafka does.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    if node.rules.contradicting_request_is_fatal:
        raise InconsistentState(reason)
