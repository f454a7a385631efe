"""The response to every request that a quorum node sends, and the steps that all of them take.

An error of the whole response changes nothing; then the epoch of the response is compared with the
node's, in one place for all (``message_epoch``); the handler sees a response of the present epoch.

Shapes:  every step returns success or failure of the request: a failure holds its node back for
         ``retry_backoff_ms``.
Source:  KafkaRaftClient.handleResponse, handleTopLevelError, maybeHandleCommonResponse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from minicluster.quorum import message_epoch
from minicluster.quorum.message_epoch import ResponseEpoch
from minicluster.quorum.responses import (
    begin_quorum_epoch,
    change_raft_voter,
    election,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    update_raft_voter,
    vote,
)
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.voter_changes import add_voter_handler


def _fail(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class ResponseHandler:
    """The steps of one API's response.

    Shapes:  ``epoch_of`` gives the epoch that the response names, its outcome where the response
             cannot be used, or None where it names the leader that this node follows; an API that
             names no epoch has none. ``errors_by_partition``: an error of the whole response is
             like a lost connection, and both are ``on_error``'s.
    """

    handle: Callable[[QuorumNode, int, Any, int], bool]
    epoch_of: Callable[[QuorumNode, Any], ResponseEpoch | bool | None] | None = None
    on_error: Callable[[QuorumNode, int, ErrorCode, int], bool] = _fail
    errors_by_partition: bool = True


HANDLERS: dict[type, ResponseHandler] = {
    VoteRequest: ResponseHandler(vote.handle, election.epoch_of, vote.on_error),
    BeginQuorumEpochRequest: ResponseHandler(begin_quorum_epoch.handle, election.epoch_of),
    EndQuorumEpochRequest: ResponseHandler(end_quorum_epoch.handle, election.epoch_of),
    FetchRequest: ResponseHandler(fetch.handle, fetch.epoch_of),
    FetchSnapshotRequest: ResponseHandler(fetch_snapshot.handle, fetch_snapshot.epoch_of),
    UpdateRaftVoterRequest: ResponseHandler(
        update_raft_voter.handle,
        update_raft_voter.epoch_of,
        update_raft_voter.on_error,
        errors_by_partition=False,
    ),
    AddRaftVoterRequest: ResponseHandler(change_raft_voter.handle_add, errors_by_partition=False),
    RemoveRaftVoterRequest: ResponseHandler(
        change_raft_voter.handle_remove, errors_by_partition=False
    ),
    ApiVersionsRequest: ResponseHandler(
        add_voter_handler.on_api_versions,
        on_error=add_voter_handler.on_api_versions_error,
        errors_by_partition=False,
    ),
}


def handle(node: QuorumNode, correlation_id: int, response: Any, now_ms: int) -> None:
    """Handle the response to a request of this node, unless a change of role has dropped it.

    Source:  KafkaRaftClient.handleInboundMessage.
    """
    outstanding = node.requests.outstanding(correlation_id)
    if outstanding is not None:
        node_id, request_type = outstanding
        success = _is_success(node, node_id, HANDLERS[request_type], response, now_ms)
        node.requests.on_result(node_id, correlation_id, success, now_ms)


def handle_failure(node: QuorumNode, correlation_id: int, now_ms: int) -> None:
    """Handle the end of a connection, on which a request of this node was sent."""
    outstanding = node.requests.outstanding(correlation_id)
    if outstanding is not None:
        node_id, request_type = outstanding
        error = ErrorCode.BROKER_NOT_AVAILABLE
        success = HANDLERS[request_type].on_error(node, node_id, error, now_ms)
        node.requests.on_result(node_id, correlation_id, success, now_ms)


def _is_success(
    node: QuorumNode, node_id: int, handler: ResponseHandler, response: Any, now_ms: int
) -> bool:
    if response.error_code and handler.errors_by_partition:
        error = ErrorCode.for_code(response.error_code)
        return handler.on_error(node, node_id, error, now_ms)
    if handler.epoch_of is not None:
        named = handler.epoch_of(node, response)
        if isinstance(named, bool):
            return named
        if named is not None:
            outcome = message_epoch.check_response(node, named, now_ms)
            if outcome is not None:
                return outcome
    return handler.handle(node, node_id, response, now_ms)
