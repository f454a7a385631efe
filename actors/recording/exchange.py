"""A request and its response, as the network carries them and the trace shows them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from minicluster.values import dataclass

if TYPE_CHECKING:
    from minicluster.actors.recording.sent_batches import Sent
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Substitute:
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


class Exchange:
    """One request and its response: a row of the ``rpc`` table, and the caller that waits.

    Units:   *_ms virtual milliseconds; *_seq event numbers.
    """

    __slots__ = (
        "answer",
        "api",
        "broker_epoch",
        "caller",
        "change",
        "client_id",
        "completed_ms",
        "connection",
        "context",
        "correlation_id",
        "crosses_socket",
        "dst",
        "handle_seq",
        "handled_ms",
        "high_watermark",
        "id",
        "is_shelved",
        "is_written",
        "open",
        "over_tcp",
        "program",
        "received_seq",
        "records_written",
        "registered_epoch",
        "request",
        "requester",
        "resp_seq",
        "response",
        "send_seq",
        "sent",
        "sent_ms",
        "src",
        "src_incarnation",
        "timer",
        "topic_ids",
        "version",
        "weight",
    )

    def __init__(
        self,
        id: int,
        api: str,
        version: int,
        src: int,
        dst: int,
        request: Any,
        caller: Any,
        context: Any,
        correlation_id: int,
        src_incarnation: str | None,
        client_id: str = "",
        connection: int | None = None,
        crosses_socket: bool = False,
        sent_ms: int = 0,
        program: str | None = None,
        requester: Requester | None = None,
    ) -> None:
        self.id = id
        self.requester = requester  # whom the request is from; None: the cluster itself
        self.api = api
        self.version = version
        self.src = src
        self.dst = dst
        self.request = request  # once it is recorded, with sizes in place of record batches
        self.caller = caller
        self.context = context
        self.correlation_id = correlation_id
        self.src_incarnation = src_incarnation
        self.client_id = client_id
        self.program = program  # the app inside the simulation that has sent it
        self.connection = connection  # of one of Kafka's clients; None: of a node
        self.send_seq = 0
        self.sent_ms = sent_ms
        self.handle_seq: int | None = None
        self.handled_ms: int | None = None
        self.resp_seq: int | None = None
        self.received_seq: int | None = None  # when the caller got the response
        self.completed_ms: int | None = None
        self.response: Any = None
        self.sent: Sent | None = None  # what the rows of a client's Produce need of it
        self.records_written: tuple[int, ...] = ()
        self.high_watermark: int | None = None
        self.broker_epoch: int | None = None
        self.registered_epoch: int | None = None
        # By name, in the image of the broker when it responded; none once the rows have been made.
        self.topic_ids: Mapping[str, UUID] = {}
        self.answer: Substitute | None = None  # what the client got in place of what its node said
        self.change: Any = None  # of the response that will come, by an answer
        self.over_tcp = is_client(src)  # as TCP has it: a cut delays, a loss ends the connection
        self.crosses_socket = crosses_socket  # a real one, whose time is not to be drawn
        self.open = True
        self.timer: Timer | None = None  # of its timeout
        self.weight = 0  # bytes of its bodies in memory, about
        self.is_shelved = False  # its row has left the memory, to which its bodies do not count now
        self.is_written = False  # its row waits for nothing any more

    @property
    def is_of_client(self) -> bool:
        """One of Kafka's clients, or a client of the cluster's own in a group or transaction."""
        return bool(self.client_id) or self.connection is not None

    @property
    def is_settled(self) -> bool:
        """Its row does not change any more: the sender has its response, or there will be none."""
        return not self.open and (self.resp_seq is not None or self.has_no_response)

    @property
    def has_no_response(self) -> bool:
        """A Produce with acks=0, which is not responded to."""
        return self.api == "Produce" and self.request.acks == 0

    def __str__(self) -> str:
        return f"{self.api}#{self.id} {self.src}>{self.dst}"
