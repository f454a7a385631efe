"""Messages on their way in: a request to its handler, a response to the request that it belongs to.

No message of a peer brings the machine down: a contradiction gets an error in the response, or
counts as a failed request (E42).

Source:  KafkaRaftClient.handleInboundMessage.
"""

from __future__ import annotations

from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum.requests import handlers as requests
from minicluster.quorum.responses import handlers as responses
from minicluster.quorum.state.node import QuorumNode


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a peer or an admin."""

    token: Any
    request: Any
    version: int


@dataclass(frozen=True, slots=True)
class Response:
    """The response to a request of this node."""

    correlation_id: int
    response: Any


@dataclass(frozen=True, slots=True)
class Failure:
    """The connection of a request of this node has failed."""

    correlation_id: int


Message = Request | Response | Failure


def handle(node: QuorumNode, message: Message, now_ms: int) -> None:
    """Handle one message.

    Errors:  TypeError for a request that no quorum node handles: the shell's mistake.
    """
    if isinstance(message, Request):
        response = requests.handle(node, message.request, message.version, message.token, now_ms)
        if response is not None:
            node.respond(message.token, response)
        return
    outstanding = node.requests.outstanding(message.correlation_id)
    if outstanding is None:
        return  # late: a change of role has dropped the request
    node_id, request_type = outstanding
    if isinstance(message, Response):
        success = responses.handle(node, node_id, request_type, message.response, now_ms)
    else:
        error = ErrorCode.BROKER_NOT_AVAILABLE
        success = responses.handle_error(node, node_id, request_type, error, now_ms)
    node.requests.on_result(node_id, message.correlation_id, success, now_ms)
