"""Messages as they come in: a request to its rule, an answer to the request it belongs to.

A machine never falls over what a peer sends: what contradicts the protocol is answered with an
error, or counted as a failed request (E42).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
from minicluster.quorum.requests import describe_quorum, elections, fetch, fetch_snapshot
from minicluster.quorum.responses import replies
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.voter_changes import (
    add_voter_handler,
    remove_voter_handler,
    update_voter_handler,
)


@dataclass(slots=True)
class Request:
    """A request of a peer or an admin."""

    token: Any
    from_id: int
    request: Any
    version: int


@dataclass(slots=True)
class Response:
    """The answer to a request of this node."""

    correlation_id: int
    response: Any


@dataclass(slots=True)
class Failure:
    """A request of this node that nobody answered."""

    correlation_id: int
    error: ErrorCode


Message = Request | Response | Failure

_AT_ONCE: dict[type, Callable[[QuorumNode, Any, int, int], Any]] = {
    VoteRequest: elections.vote,
    BeginQuorumEpochRequest: elections.begin_epoch,
    EndQuorumEpochRequest: elections.end_epoch,
    FetchSnapshotRequest: fetch_snapshot.fetch_snapshot,
    DescribeQuorumRequest: describe_quorum.describe,
    UpdateRaftVoterRequest: update_voter_handler.update_voter,
}
_MAYBE_LATER: dict[type, Callable[[QuorumNode, Any, Any, int, int], Any | None]] = {
    FetchRequest: fetch.fetch,
    AddRaftVoterRequest: add_voter_handler.add_voter,
    RemoveRaftVoterRequest: remove_voter_handler.remove_voter,
}


def handle(node: QuorumNode, message: Message, now_ms: int) -> None:
    """Handle one message.

    Errors:  TypeError for a request that no quorum node answers: the shell's mistake.
    """
    if isinstance(message, Request):
        _handle_request(node, message, now_ms)
        return
    expected = node.requests.expecting(message.correlation_id)
    if expected is None:
        return
    node_id, api = expected
    if isinstance(message, Response):
        success = replies.handle(node, node_id, api, message.response, now_ms)
    else:
        success = replies.handle_error(node, node_id, api, message.error, now_ms)
    node.requests.on_result(node_id, message.correlation_id, success, now_ms)


def _handle_request(node: QuorumNode, message: Request, now_ms: int) -> None:
    kind = type(message.request)
    response: Any | None
    if kind in _AT_ONCE:
        response = _AT_ONCE[kind](node, message.request, message.version, now_ms)
    elif kind in _MAYBE_LATER:
        response = _MAYBE_LATER[kind](node, message.token, message.request, message.version, now_ms)
    else:
        raise TypeError(f"a quorum node does not answer {kind.__name__}")
    if response is not None:
        node.reply(message.token, response)
