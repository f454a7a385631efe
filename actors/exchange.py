"""A request and its response as the network carries them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from minicluster.values import Value

if TYPE_CHECKING:
    from minicluster.actors.runtime.runtime import Timer
    from minicluster.security.principals import Requester

OWN_CLIENT = -1  # the cluster's own client; the nodes of Kafka's clients have ids below it


def is_client(node: int) -> bool:
    """True for the node of one of Kafka's clients, whose links are connections of TCP."""
    return node < OWN_CLIENT


class End(Enum):
    """The end of an exchange without a response."""

    DROP = "drop"
    CLOSE = "close"
    RESET = "reset"


class Substitute(Value, kw_only=True):
    """A response that a client gets in place of its node's.

    Shapes:  by: the action. description: for people. response: None: there is none. of_node: it is
             what the node says, but for errors. misleads: it is neither that nor an error, so that
             what the client does from here on shows nothing. later_ms: how much later it comes.
    """

    by: str
    description: str
    when: str
    response: Any = None
    end: End | None = None
    of_node: bool = False
    misleads: bool = False
    later_ms: int = 0


class Sender(Value, kw_only=True):
    """Who sends a request.

    Shapes:  connection: of one of Kafka's clients, or of a node outside; None: of a node.
             crosses_socket: a real socket carries it besides; its packets take no time here.
             program: the app inside the simulation that sends it. requester: who is logged in;
             None: the cluster itself, which may do everything.
    """

    client_id: str = ""
    connection: int | None = None
    crosses_socket: bool = False
    program: str | None = None
    requester: Requester | None = None

    @property
    def is_client(self) -> bool:
        """One of Kafka's clients, or a client of the cluster's own in a group or transaction."""
        return bool(self.client_id) or self.connection is not None


NODE = Sender()


class Exchange:
    """One request and its response: who asks whom, and the caller that waits.

    What is recorded of it is a row of its own (``recording/rpc_rows.py``).
    """

    __slots__ = (
        "api",
        "caller",
        "change",
        "context",
        "correlation_id",
        "dst",
        "id",
        "is_answered",
        "is_handled",
        "is_responded",
        "open",
        "over_tcp",
        "request",
        "sender",
        "sent_ms",
        "src",
        "timer",
        "version",
    )

    def __init__(
        self,
        id: int,
        api: str,
        version: int,
        src: int,
        dst: int,
        request: Any,
        caller: Any = None,
        context: Any = None,
        correlation_id: int = 0,
        sender: Sender | None = None,
        sent_ms: int = 0,
    ) -> None:
        self.id = id
        self.api = api
        self.version = version
        self.src = src
        self.dst = dst
        self.request = request  # as its node gets it
        self.caller = caller
        self.context = context
        self.correlation_id = correlation_id
        self.sender = sender or NODE
        self.sent_ms = sent_ms
        self.over_tcp = is_client(src)  # as TCP has it: a cut delays, a loss ends the connection
        self.open = True  # the caller waits
        self.is_handled = False  # by its node, which has taken it out of its inbox
        self.is_responded = False  # by its node
        self.is_answered = False  # by an answer, in place of its node
        self.change: Any = None  # of the response that will come, by an answer
        self.timer: Timer | None = None  # of its timeout

    def __str__(self) -> str:
        return f"{self.api}#{self.id} {self.src}>{self.dst}"
