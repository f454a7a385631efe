"""The rows of the trace table ``rpc``: a request and its response, with the times of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from minicluster.actors.exchange import Exchange, Substitute
from minicluster.protocol import ErrorCode
from minicluster.protocol.json_form import to_json
from minicluster.protocol.messages import ProduceRequest
from minicluster.security.principals import Requester


class RpcRow(Struct, array_like=True, gc=False):
    """The record of an exchange: filled in until it has ended, and not changed from then on.

    Shapes:  request and response: with sizes in place of record batches. weight: of both, in bytes.
    Units:   *_ms virtual milliseconds; *_seq event numbers.
    """

    seq: int  # when it was sent
    vt: int
    id: int
    api: str
    version: int
    src: int
    dst: int
    src_incarnation: str | None
    client_id: str | None  # None: of a node
    connection: int | None
    program: str | None
    requester: Requester | None
    request: Any
    handle_seq: int | None = None
    handled_ms: int | None = None
    resp_seq: int | None = None
    response: Any = None
    received_seq: int | None = None  # when the caller got its node's response
    completed_ms: int | None = None  # when the caller stopped waiting
    records_written: tuple[int, ...] = ()
    high_watermark: int | None = None
    broker_epoch: int | None = None
    registered_epoch: int | None = None
    answer: Substitute | None = None  # what the client got in place of what its node said
    weight: int = 0

    @classmethod
    def of(cls, exchange: Exchange, seq: int, incarnation: str | None) -> RpcRow:
        """The row of an exchange that begins."""
        sender = exchange.sender
        return cls(
            seq,
            exchange.sent_ms,
            exchange.id,
            exchange.api,
            exchange.version,
            exchange.src,
            exchange.dst,
            incarnation,
            sender.client_id if sender.is_client else None,
            sender.connection,
            sender.program,
            sender.requester,
            exchange.request,
        )

    @property
    def has_no_response(self) -> bool:
        """A Produce with acks=0, which is not responded to."""
        return self.request.__class__ is ProduceRequest and self.request.acks == 0

    def row(self, table: str) -> dict[str, Any]:
        """The columns; messages in their JSON form."""
        has_response = self.response is not None
        return {
            "vt": self.vt,
            "seq": self.seq,
            "id": self.id,
            "api": self.api,
            "version": self.version,
            "src": self.src,
            "dst": self.dst,
            "src_incarnation": self.src_incarnation,
            "client_id": self.client_id,
            "connection": self.connection,
            **_of_requester(self.requester),
            "send_seq": self.seq,
            "handle_seq": self.handle_seq,
            "resp_seq": self.resp_seq,
            "sent_ms": self.vt,
            "handled_ms": self.handled_ms,
            "completed_ms": self.completed_ms,
            "request": _message_json(self.request, self.version),
            "response": _message_json(self.response, self.version) if has_response else None,
            "error": _error_name(self.response) if has_response else None,
            "records_written": list(self.records_written),
            "high_watermark": self.high_watermark,
            "broker_epoch": self.broker_epoch,
            "registered_epoch": self.registered_epoch,
            "answer": _answer_json(self.answer, self.version),
        }


def request_rows(rows: Iterable[RpcRow]) -> Iterator[dict[str, Any]]:
    """Who asked whom for what, and the error of the response; without the messages."""
    for row in rows:
        yield {
            "id": row.id,
            "api": row.api,
            "src": row.src,
            "dst": row.dst,
            "sent_ms": row.vt,
            "error": None if row.response is None else _error_name(row.response),
        }


def _of_requester(requester: Requester | None) -> dict[str, Any]:
    if requester is None:
        return {"principal": None, "host": None, "session_ends_ms": None}
    return {
        "principal": str(requester.principal),
        "host": requester.host,
        "session_ends_ms": requester.session_ends_ms,
    }


def _answer_json(substitute: Substitute | None, version: int) -> dict[str, Any] | None:
    """The response that a client got in place of its node's; None: no other."""
    if substitute is None:
        return None
    response = substitute.response
    return {
        "by": substitute.by,
        "what": substitute.description,
        "when": substitute.when,
        "misleads": substitute.misleads,
        "response": None if response is None else _message_json(response, version),
    }


def _error_name(response: Any) -> str:
    """The name of a response's top-level error, NONE if it has none."""
    return ErrorCode.name_of(getattr(response, "error_code", ErrorCode.NONE))


def _message_json(message: Any, version: int) -> Any:
    """Kafka's JSON form of a message, with the sizes of record batches; ZooKeeper's as its text."""
    if not hasattr(message, "valid_versions"):
        return {"text": str(message)}
    return to_json(message, version, records="size")
