"""The event of the folds of exchanges: a request, its response, and what its handling wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from minicluster.verify.histories.traced_run import Row

Struct = dict[str, Any]  # of a message, as Kafka's JSON form has it


class Exchange:
    """A request and what became of it; its fields are columns of ``rpc`` (``trace.py``).

    Shapes:  sender, receiver: nodes. resp_seq: None: no response left. written: the offsets of the
             records that its handling appended. error: the name of the top-level one. principal:
             whose it is, None for the cluster's own. has_other_answer: its client got something in
             place of the response.
    """

    def __init__(self, row: Row) -> None:
        cell: Callable[[str], Any] = row.get
        self.id: int = row["id"]
        self.api: str = row["api"]
        self.version: int = row["version"]
        self.sender: int = row["src"]
        self.receiver: int = row["dst"]
        self.handle_seq: int | None = cell("handle_seq")
        self.resp_seq: int | None = cell("resp_seq")
        self.error: str | None = cell("error")
        self.written: Sequence[int] = cell("records_written") or ()
        self.high_watermark: int | None = cell("high_watermark")
        self.broker_epoch: int | None = cell("broker_epoch")
        self.registered_epoch: int | None = cell("registered_epoch")
        self.principal: str | None = cell("principal")
        self.host: str = cell("host") or ""
        self.session_ends_ms: int | None = cell("session_ends_ms")
        self.send_seq: int = row["send_seq"]
        self.sent_ms: int = cell("sent_ms")
        self.handled_ms: int | None = cell("handled_ms")
        self.has_other_answer: bool = cell("answer") is not None
        self.texts: tuple[str | None, str | None] = row["request"], cell("response")

    @cached_property
    def request(self) -> Struct:
        """The body of the request."""
        return body(self.texts[0])

    @cached_property
    def response(self) -> Struct:
        """The body of the response; an empty one where there is none."""
        return body(self.texts[1])

    @property
    def is_answered(self) -> bool:
        """Its sender got the response of its receiver."""
        return self.resp_seq is not None and not self.has_other_answer

    @property
    def last_written(self) -> int:
        """The offset of its last record; -1: it wrote none."""
        return max(self.written, default=-1)


def body(value: Any) -> Struct:
    """A message as its table has it, a text on disk and the value itself in memory; an empty one
    where there is none, or another value."""
    try:
        read = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def each(struct: Struct, name: str) -> list[Struct]:
    """The structs of a list within a struct."""
    inner = struct.get(name)
    return [one for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []


def topic_key(topic: Struct) -> str | None:
    """What names a topic in a message: its id, in versions before its name."""
    topic_id: str | None = topic.get("topicId")
    return topic.get("topicName") if topic_id is None else topic_id
