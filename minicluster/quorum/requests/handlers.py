"""Every request that a quorum node handles, and the steps that all of them take.

A malformed request is refused first; then its epoch is compared with the node's, in one place for
all (``message_epoch``); the handler sees a request of the present epoch only.

Source:  KafkaRaftClient.handleRequest; etcd/raft's Step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    DescribeQuorumRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from minicluster.quorum import wire
from minicluster.quorum.requests import (
    begin_quorum_epoch,
    describe_quorum,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    validation,
    vote,
)
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.voter_changes import (
    add_voter_handler,
    admin_requests,
    remove_voter_handler,
    update_voter_handler,
)


@dataclass(frozen=True, slots=True)
class RequestHandler:
    """The steps of one API's request.

    Shapes:  ``validate`` gives the refusal of a malformed request, else None; ``check_epoch`` the
             error of the epoch that the request names, else None; ``refuse`` the response with that
             error; ``handle`` the response, None if it comes later under the token.
    """

    validate: Callable[[QuorumNode, Any, int], Any | None]
    check_epoch: Callable[[QuorumNode, Any, int], ErrorCode | None]
    refuse: Callable[[QuorumNode, Any, int, ErrorCode], Any]
    handle: Callable[[QuorumNode, Any, int, Any, int], Any | None]


HANDLERS: dict[type, RequestHandler] = {
    VoteRequest: RequestHandler(
        vote.validate, vote.check_epoch, wire.election_response, vote.handle
    ),
    BeginQuorumEpochRequest: RequestHandler(
        validation.refuse_election_request,
        begin_quorum_epoch.check_epoch,
        wire.election_response,
        begin_quorum_epoch.handle,
    ),
    EndQuorumEpochRequest: RequestHandler(
        validation.refuse_election_request,
        end_quorum_epoch.check_epoch,
        wire.election_response,
        end_quorum_epoch.handle,
    ),
    FetchRequest: RequestHandler(fetch.validate, fetch.check_epoch, fetch.refuse, fetch.handle),
    FetchSnapshotRequest: RequestHandler(
        fetch_snapshot.validate,
        fetch_snapshot.check_epoch,
        fetch_snapshot.refuse,
        fetch_snapshot.handle,
    ),
    DescribeQuorumRequest: RequestHandler(
        describe_quorum.validate,
        describe_quorum.check_epoch,
        describe_quorum.refuse,
        describe_quorum.handle,
    ),
    AddRaftVoterRequest: RequestHandler(
        admin_requests.validate,
        admin_requests.check_epoch,
        admin_requests.refuse,
        add_voter_handler.handle,
    ),
    RemoveRaftVoterRequest: RequestHandler(
        admin_requests.validate,
        admin_requests.check_epoch,
        admin_requests.refuse,
        remove_voter_handler.handle,
    ),
    UpdateRaftVoterRequest: RequestHandler(
        update_voter_handler.validate,
        update_voter_handler.check_epoch,
        update_voter_handler.respond,
        update_voter_handler.handle,
    ),
}


def handle(node: QuorumNode, token: Any, request: Any, version: int, now_ms: int) -> None:
    """Handle a request of a peer or an admin; its response comes now, or later under the token.

    Errors:  TypeError for a request that no quorum node handles: the shell's mistake.
    Source:  KafkaRaftClient.handleInboundMessage.
    """
    handler = HANDLERS.get(type(request))
    if handler is None:
        raise TypeError(f"a quorum node does not handle {type(request).__name__}")
    response = handler.validate(node, request, version)
    if response is None:
        error = handler.check_epoch(node, request, now_ms)
        if error is None:
            response = handler.handle(node, request, version, token, now_ms)
        else:
            response = handler.refuse(node, request, version, error)
    if response is not None:
        node.respond(token, response)
