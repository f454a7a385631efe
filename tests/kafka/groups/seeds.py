"""One seed: what is drawn goes to Kafka's coordinator, and is compared and recorded."""

from __future__ import annotations

import base64
from argparse import Namespace
from collections.abc import Iterator
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
from tests.kafka.program import LineProgram
from tests.kafka.side_by_side import Played
from tests.transcripts.groups.compare import Comparison
from tests.transcripts.groups.steps import Step

START_MS = 1_000_000
PAUSES = 0.8  # of operations that are over before the next one


def play(theirs: LineProgram, options: Namespace, seed: int) -> Played:
    """Play one seed, up to the first difference."""
    work = Workload(seed)
    start = {"do": "start", "config": work.config, "now_ms": START_MS}
    theirs.start(start)
    lines = [{**start, **Step().form()}]
    comparison = Comparison(start)
    numbers = _Numbers()
    for operation in _operations(work, options.count):
        command = numbers.command_of(operation)
        step = Step.of(theirs.send(command))
        lines.append({**command, **step.form()})
        if not comparison.compare(command, step):
            break
        for token, body in step.responses:
            on_response = numbers.sent[token].on_response
            if on_response is not None and body is not None:
                on_response(comparison.response(token, body))
    outcome = comparison.outcome
    text = outcome.difference
    return Played(
        name=f"kafka-{options.kafka}-groups-seed-{seed}",
        lines=lines,
        counts=outcome.counts,
        differences=[] if text is None else [f"operation {outcome.operations}\n{text}"],
    )


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
