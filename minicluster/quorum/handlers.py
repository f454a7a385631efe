"""Every message that a quorum node handles, and the steps that all of them take.

A malformed request is rejected first; an error of a whole response changes nothing. Then the epoch
of the message is compared with the node's, in one place for all (``message_checks``); the handler
sees a message of the present epoch only.

Source:  KafkaRaftClient.handleInboundMessage, handleRequest, handleResponse, handleTopLevelError,
         maybeHandleCommonResponse; etcd/raft's Step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from minicluster.quorum import (
    describe_quorum,
    elections,
    joining,
    message_checks,
    replication,
    snapshots,
    voter_changes,
    wire,
)
from minicluster.quorum.message_checks import ResponseEpoch
from minicluster.quorum.state.node import QuorumNode
from minicluster.values import Value

# --- requests of peers and admins -----------------------------------------------------------------


class RequestHandler(Value):
    """The steps of one API's request.

    Shapes:  ``validate`` gives the response to a malformed request, else None; ``check_epoch`` the
             error of the epoch that the request names, else None; ``error_response`` the response
             with that error; ``handle`` the response, None if it comes later under the token.
    """

    validate: Callable[[QuorumNode, Any, int], Any | None]
    check_epoch: Callable[[QuorumNode, Any, int], ErrorCode | None]
    error_response: Callable[[QuorumNode, Any, int, ErrorCode], Any]
    handle: Callable[[QuorumNode, Any, int, Any, int], Any | None]


REQUEST_HANDLERS: dict[type, RequestHandler] = {
    VoteRequest: RequestHandler(
        elections.validate_vote,
        elections.check_vote_epoch,
        wire.election_response,
        elections.handle_vote_request,
    ),
    BeginQuorumEpochRequest: RequestHandler(
        elections.validate,
        elections.check_begin_epoch,
        wire.election_response,
        elections.handle_begin_request,
    ),
    EndQuorumEpochRequest: RequestHandler(
        elections.validate,
        elections.check_end_epoch,
        wire.election_response,
        elections.handle_end_request,
    ),
    FetchRequest: RequestHandler(
        replication.validate_request,
        replication.check_request_epoch,
        replication.error_response,
        replication.handle_request,
    ),
    FetchSnapshotRequest: RequestHandler(
        snapshots.validate_request,
        snapshots.check_request_epoch,
        snapshots.error_response,
        snapshots.handle_request,
    ),
    DescribeQuorumRequest: RequestHandler(
        describe_quorum.validate,
        describe_quorum.check_epoch,
        describe_quorum.error_response,
        describe_quorum.handle,
    ),
    AddRaftVoterRequest: RequestHandler(
        voter_changes.validate_admin_request,
        voter_changes.check_admin_epoch,
        voter_changes.admin_error_response,
        voter_changes.handle_add,
    ),
    RemoveRaftVoterRequest: RequestHandler(
        voter_changes.validate_admin_request,
        voter_changes.check_admin_epoch,
        voter_changes.admin_error_response,
        voter_changes.handle_remove,
    ),
    UpdateRaftVoterRequest: RequestHandler(
        voter_changes.validate_update,
        voter_changes.check_update_epoch,
        voter_changes.respond_to_update,
        voter_changes.handle_update,
    ),
}


def handle_request(node: QuorumNode, token: Any, request: Any, version: int, now_ms: int) -> None:
    """Handle a request of a peer or an admin; its response comes now, or later under the token.

    Errors:  TypeError for a request that no quorum node handles: the shell's mistake.
    Source:  KafkaRaftClient.handleInboundMessage.
    """
    handler = REQUEST_HANDLERS.get(type(request))
    if handler is None:
        raise TypeError(f"a quorum node does not handle {type(request).__name__}")
    response = handler.validate(node, request, version)
    if response is None:
        error = handler.check_epoch(node, request, now_ms)
        if error is None:
            response = handler.handle(node, request, version, token, now_ms)
        else:
            response = handler.error_response(node, request, version, error)
    if response is not None:
        node.respond(token, response)


# --- responses to the node's own requests ---------------------------------------------------------


def _fail(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    return False


class ResponseHandler(Value):
    """The steps of one API's response.

    Every step returns success or failure of the request: a failure makes the node wait for
    ``retry_backoff_ms`` before it sends to that peer again.

    Shapes:  ``epoch_of`` gives the epoch that the response names, its outcome where the response
             cannot be used, or None where it names the leader that this node follows; an API that
             names no epoch has none. ``errors_by_partition``: an error of the whole response is
             like a lost connection, and both are ``on_error``'s.
    """

    handle: Callable[[QuorumNode, int, Any, int], bool]
    epoch_of: Callable[[QuorumNode, Any], ResponseEpoch | bool | None] | None = None
    on_error: Callable[[QuorumNode, int, ErrorCode, int], bool] = _fail
    errors_by_partition: bool = True


RESPONSE_HANDLERS: dict[type, ResponseHandler] = {
    VoteRequest: ResponseHandler(
        elections.handle_vote_response, elections.epoch_of_response, elections.on_vote_error
    ),
    BeginQuorumEpochRequest: ResponseHandler(
        elections.handle_begin_response, elections.epoch_of_response
    ),
    EndQuorumEpochRequest: ResponseHandler(
        elections.handle_end_response, elections.epoch_of_response
    ),
    FetchRequest: ResponseHandler(replication.handle_response, replication.epoch_of_response),
    FetchSnapshotRequest: ResponseHandler(snapshots.handle_response, snapshots.epoch_of_response),
    UpdateRaftVoterRequest: ResponseHandler(
        joining.handle_update_response,
        joining.epoch_of_update_response,
        joining.on_update_error,
        errors_by_partition=False,
    ),
    AddRaftVoterRequest: ResponseHandler(joining.handle_add_response, errors_by_partition=False),
    RemoveRaftVoterRequest: ResponseHandler(
        joining.handle_remove_response, errors_by_partition=False
    ),
    ApiVersionsRequest: ResponseHandler(
        voter_changes.on_api_versions,
        on_error=voter_changes.on_api_versions_error,
        errors_by_partition=False,
    ),
}


def handle_response(node: QuorumNode, correlation_id: int, response: Any, now_ms: int) -> None:
    """Handle the response to a request of this node, unless a change of role has dropped it.

    Source:  KafkaRaftClient.handleInboundMessage.
    """
    outstanding = node.requests.outstanding(correlation_id)
    if outstanding is not None:
        node_id, request_type = outstanding
        success = _is_success(node, node_id, RESPONSE_HANDLERS[request_type], response, now_ms)
        node.requests.on_result(node_id, correlation_id, success, now_ms)


def handle_failure(node: QuorumNode, correlation_id: int, now_ms: int) -> None:
    """Handle the end of a connection, on which a request of this node was sent."""
    outstanding = node.requests.outstanding(correlation_id)
    if outstanding is not None:
        node_id, request_type = outstanding
        error = ErrorCode.BROKER_NOT_AVAILABLE
        success = RESPONSE_HANDLERS[request_type].on_error(node, node_id, error, now_ms)
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
            outcome = message_checks.check_response(node, named, now_ms)
            if outcome is not None:
                return outcome
    return handler.handle(node, node_id, response, now_ms)
