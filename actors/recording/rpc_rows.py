"""The row of a request and its response in the trace table ``rpc``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from minicluster.actors.recording.exchange import Exchange
from minicluster.protocol import ErrorCode
from minicluster.protocol.json_form import to_json, to_json_text
from minicluster.security.principals import Requester


def rpc_row(run_id: str, exchange: Exchange, *, as_text: bool = False) -> dict[str, Any]:
    """The row of an exchange as it is now: what has not happened yet is null.

    Shapes:  as_text: its messages as the text of their JSON form, for a column.
    """
    has_response = exchange.response is not None
    message_json = _message_text if as_text else _message_json
    return {
        "run_id": run_id,
        "vt": exchange.sent_ms,
        "seq": exchange.send_seq,
        "id": exchange.id,
        "api": exchange.api,
        "version": exchange.version,
        "src": exchange.src,
        "dst": exchange.dst,
        "src_incarnation": exchange.src_incarnation,
        "client_id": exchange.client_id if exchange.is_of_client else None,
        "connection": exchange.connection,
        **_of_requester(exchange.requester),
        "send_seq": exchange.send_seq,
        "handle_seq": exchange.handle_seq,
        "resp_seq": exchange.resp_seq,
        "sent_ms": exchange.sent_ms,
        "handled_ms": exchange.handled_ms,
        "completed_ms": exchange.completed_ms,
        "request": message_json(exchange.request, exchange.version),
        "response": message_json(exchange.response, exchange.version) if has_response else None,
        "error": _error_name(exchange.response) if has_response else None,
        "records_written": list(exchange.records_written),
        "high_watermark": exchange.high_watermark,
        "broker_epoch": exchange.broker_epoch,
        "registered_epoch": exchange.registered_epoch,
        "answer": _answer_json(exchange),
    }


def request_rows(exchanges: Iterable[Exchange]) -> Iterator[dict[str, Any]]:
    """Who asked whom for what, and the error of the response; without the messages."""
    for exchange in list(exchanges):
        response = exchange.response
        yield {
            "id": exchange.id,
            "api": exchange.api,
            "src": exchange.src,
            "dst": exchange.dst,
            "sent_ms": exchange.sent_ms,
            "error": None if response is None else _error_name(response),
        }


def _of_requester(requester: Requester | None) -> dict[str, Any]:
    if requester is None:
        return {"principal": None, "host": None, "session_ends_ms": None}
    return {
        "principal": str(requester.principal),
        "host": requester.host,
        "session_ends_ms": requester.session_ends_ms,
    }


def _answer_json(exchange: Exchange) -> dict[str, Any] | None:
    """The response that a client got in place of its node's; None: no other."""
    substitute = exchange.answer
    if substitute is None:
        return None
    response = substitute.response
    return {
        "by": substitute.by,
        "what": substitute.description,
        "when": substitute.when,
        "misleads": substitute.misleads,
        "response": None if response is None else _message_json(response, exchange.version),
    }


def _error_name(response: Any) -> str:
    """The name of a response's top-level error, NONE if it has none."""
    code = getattr(response, "error_code", 0)
    name = getattr(code, "name", None)
    if name is None:
        name = ErrorCode.name_of(code)
    return str(name)


def _message_json(message: Any, version: int) -> Any:
    """Kafka's JSON form of a message, with the sizes of record batches; ZooKeeper's as its text."""
    if not hasattr(message, "valid_versions"):
        return {"text": str(message)}
    return to_json(_without_secrets(message), version, records="size")


def _message_text(message: Any, version: int) -> Any:
    if not hasattr(message, "valid_versions"):
        return _message_json(message, version)
    return to_json_text(_without_secrets(message), version, records="size")


_SECRETS = ("hmac", "salted_password", "auth_bytes")
_WITH_SECRETS = {50, 51, 36, 38, 39, 40, 41}  # the APIs of SCRAM, logins and delegation tokens


def _without_secrets(message: Any) -> Any:
    """A message with nothing by which somebody could log in; a run's folder is shown to others."""
    return _hidden(message) if message.api_key in _WITH_SECRETS else message


def _hidden(part: Any) -> Any:
    values: dict[str, Any] = {}
    for spec in part.schema:
        value = getattr(part, spec.name)
        if spec.name in _SECRETS:
            values[spec.name] = b""
        elif isinstance(value, tuple) and spec.struct is not None:
            values[spec.name] = tuple(map(_hidden, value))
    return replace(part, **values)
