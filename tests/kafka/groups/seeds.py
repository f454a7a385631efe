"""One seed: what is drawn goes to Kafka's coordinator, and is compared and recorded."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from minicluster.protocol.codec import encode
from minicluster.protocol.records.framing import encode_record
from tests.kafka.groups.drawing import (
    Advance,
    EndTransaction,
    GroupConfig,
    Operation,
    Publish,
    Restart,
    Send,
    Workload,
)
from tests.kafka.groups.theirs import Theirs
from tests.transcripts.groups.compare import Comparison, Outcome
from tests.transcripts.groups.steps import Command, Step

START_MS = 1_000_000
PAUSES = 0.8  # of operations that are over before the next one

Record = Callable[[Command, Step], None]


def play(
    theirs: Theirs, seed: int, operations: int, record: Record = lambda _, __: None
) -> Outcome:
    """Play so many operations, or as many as agree."""
    work = Workload(seed)
    start = {"do": "start", "config": work.config, "now_ms": START_MS}
    record(start, theirs.do(start))
    comparison = Comparison(start)
    numbers = _Numbers()
    for operation in _operations(work, operations):
        command = numbers.command_of(operation)
        step = theirs.do(command)
        record(command, step)
        if not comparison.compare(command, step):
            break
        for token, body in step.responses:
            on_response = numbers.sent[token].on_response
            if on_response is not None and body is not None:
                on_response(comparison.response(token, body))
    return comparison.outcome


def _operations(work: Workload, count: int) -> Iterator[Operation]:
    yield from work.beginning()
    for _ in range(count):
        yield work.next()
        if work.draw.random() < PAUSES:
            yield Advance(0)


class _Numbers:
    """Tokens of requests and offsets of metadata."""

    def __init__(self) -> None:
        self.sent: dict[int, Send] = {}
        self._offset = -1

    def command_of(self, operation: Operation) -> dict[str, Any]:
        """The command of an operation."""
        match operation:
            case Publish(records):
                self._offset += len(records)
                encoded = [_text(encode_record(record)) for record in records]
                return {"do": "metadata", "records": encoded, "offset": self._offset}
            case Send(request, version, client_id):
                token = len(self.sent) + 1
                self.sent[token] = operation
                return {
                    "do": "request",
                    "token": token,
                    "api": type(request).api_key,
                    "version": version,
                    "client": client_id,
                    "body": _text(encode(request, version)),
                }
            case EndTransaction(producer_id, epoch, commit):
                return {
                    "do": "end_txn",
                    "producer_id": producer_id,
                    "epoch": epoch,
                    "commit": commit,
                }
            case Advance(ms):
                return {"do": "advance", "ms": ms}
            case GroupConfig(group_id, config):
                return {"do": "group_config", "group_id": group_id, "config": dict(config)}
            case Restart():
                return {"do": "restart"}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
