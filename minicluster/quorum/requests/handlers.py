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
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.message_epoch import RequestEpoch
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

    Shapes:  ``validate`` gives the refusal of a malformed request, else None; ``epoch_of`` the
             epoch that the request names; ``refuse`` the response with an error of the epoch;
             ``handle`` the response, None if it comes later under the token.
    """

    validate: Callable[[QuorumNode, Any, int], Any | None]
    epoch_of: Callable[[Any], RequestEpoch]
    refuse: Callable[[QuorumNode, Any, int, ErrorCode], Any]
    handle: Callable[[QuorumNode, Any, int, Any, int], Any | None]


HANDLERS: dict[type, RequestHandler] = {
    VoteRequest: RequestHandler(vote.validate, vote.epoch_of, wire.election_response, vote.handle),
    BeginQuorumEpochRequest: RequestHandler(
        validation.refuse_election_request,
        begin_quorum_epoch.epoch_of,
        wire.election_response,
        begin_quorum_epoch.handle,
    ),
    EndQuorumEpochRequest: RequestHandler(
        validation.refuse_election_request,
        end_quorum_epoch.epoch_of,
        wire.election_response,
        end_quorum_epoch.handle,
    ),
    FetchRequest: RequestHandler(fetch.validate, fetch.epoch_of, fetch.refuse, fetch.handle),
    FetchSnapshotRequest: RequestHandler(
        fetch_snapshot.validate,
        fetch_snapshot.epoch_of,
        fetch_snapshot.refuse,
        fetch_snapshot.handle,
    ),
    DescribeQuorumRequest: RequestHandler(
        describe_quorum.validate,
        describe_quorum.epoch_of,
        describe_quorum.refuse,
        describe_quorum.handle,
    ),
    AddRaftVoterRequest: RequestHandler(
        admin_requests.validate,
        admin_requests.epoch_of,
        admin_requests.refuse,
        add_voter_handler.handle,
    ),
    RemoveRaftVoterRequest: RequestHandler(
        admin_requests.validate,
        admin_requests.epoch_of,
        admin_requests.refuse,
        remove_voter_handler.handle,
    ),
    UpdateRaftVoterRequest: RequestHandler(
        update_voter_handler.validate,
        update_voter_handler.epoch_of,
        update_voter_handler.respond,
        update_voter_handler.handle,
    ),
}


def handle(node: QuorumNode, request: Any, version: int, token: Any, now_ms: int) -> Any | None:
    """Handle a request; -> its response, None if it comes later under the token.

    Errors:  TypeError for a request that no quorum node handles.
    """
    handler = HANDLERS.get(type(request))
    if handler is None:
        raise TypeError(f"a quorum node does not handle {type(request).__name__}")
    refusal = handler.validate(node, request, version)
    if refusal is not None:
        return refusal
    error = message_epoch.check_request(node, handler.epoch_of(request), now_ms)
    if error is not None:
        return handler.refuse(node, request, version, error)
    return handler.handle(node, request, version, token, now_ms)
