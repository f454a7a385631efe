"""A request and its response as the network carries them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

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


class Exchange(Struct, eq=False):
    """One request and its response: who asks whom, and the caller that waits.

    What is recorded of it is a row of its own (``recording/rpc_rows.py``).

    Shapes:  request: as its node gets it. is_answered: by an answer, in place of its node. change:
             of the response that will come, by an answer. timer: of its timeout.
    """

    id: int
    api: str
    version: int
    src: int
    dst: int
    request: Any
    caller: Any = None
    context: Any = None
    correlation_id: int = 0
    sender: Sender = NODE
    sent_ms: int = 0
    over_tcp: bool = False  # as TCP has it: a cut delays, a loss ends the connection
    open: bool = True  # the caller waits
    is_handled: bool = False  # by its node, which has taken it out of its inbox
    is_responded: bool = False  # by its node
    is_answered: bool = False
    change: Any = None
    timer: Timer | None = None

    def __str__(self) -> str:
        return f"{self.api}#{self.id} {self.src}>{self.dst}"
