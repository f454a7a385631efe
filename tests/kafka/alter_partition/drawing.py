"""Events of an AlterPartition manager, drawn from a seed."""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
BROKER_ID, RETRY_MS, START_MS = 1, 50, 1_000_000
TOPICS = ("t0", "t1", "t2")
PARTITIONS = range(3)
OF_REQUEST = (*["NONE"] * 8, "STALE_BROKER_EPOCH", "NOT_CONTROLLER", "REQUEST_TIMED_OUT")
OF_PARTITION = (
    *["NONE"] * 6,
    "UNKNOWN_SERVER_ERROR",
    "FENCED_LEADER_EPOCH",
    "INVALID_UPDATE_VERSION",
    "INELIGIBLE_REPLICA",
    "NEW_LEADER_ELECTED",
    "UNKNOWN_TOPIC_ID",
)


class Events:
    """The events of one seed: next draws one, follow takes what came of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.draw = random.Random(seed)
        self._submitted = 0
        self._epoch = 100
        self._in_flight = False
        self._sent: list[Json] = []  # the partitions of the latest request

    def header(self, kafka: str) -> Json:
        """The first line of the transcript."""
        return {
            "transcript": "alter_partition_manager",
            "kafka": kafka,
            "seed": self.seed,
            "broker_id": BROKER_ID,
            "retry_ms": RETRY_MS,
            "start_ms": START_MS,
        }

    def follow(self, line: Json) -> None:
        """Take what came of the event."""
        self._in_flight = line["state"]["in_flight"]
        if line["requests"]:
            self._sent = line["requests"][-1]["partitions"]

    def next(self) -> Json:
        """The next event."""
        draw = self.draw
        kind = draw.random()
        if kind < 0.45:
            return self._submit()
        if kind < 0.8 and self._in_flight:
            return self._response()
        if kind < 0.95:
            return {"kind": "advance", "ms": draw.choice((1, 10, 30, 50, 85))}
        self._epoch += 1
        return {"kind": "broker_epoch", "epoch": self._epoch}

    def _submit(self) -> Json:
        draw = self.draw
        self._submitted += 1
        members = draw.sample((2, 3, 4), draw.randint(0, 3))
        return {
            "kind": "submit",
            "id": self._submitted,
            "topic": draw.choice(TOPICS),
            "partition": draw.choice(PARTITIONS),
            "leader_epoch": draw.randint(0, 3),
            "partition_epoch": draw.randint(0, 20),
            "recovery_state": draw.choice((0, 0, 0, 1)),
            "resubmits_unknown_server_error": draw.random() < 0.6,
            "isr": [[member, draw.choice((-1, 100 + member))] for member in (1, *sorted(members))],
        }

    def _response(self) -> Json:
        draw, sent = self.draw, self._sent
        outcome = draw.choice((*["answered"] * 12, "version_mismatch", "authentication_failed"))
        if outcome != "answered":
            return {"kind": "response", "outcome": outcome}
        error = draw.choice(OF_REQUEST)
        answered = [each for each in sent if draw.random() < 0.85] if error == "NONE" else []
        if answered and draw.random() < 0.05:  # one that was not asked for
            answered.append({"topic": draw.choice(TOPICS), "partition": 9})
        return {
            "kind": "response",
            "outcome": outcome,
            "error": error,
            "partitions": [self._answer(each["topic"], each["partition"]) for each in answered],
        }

    def _answer(self, topic: str, partition: int) -> Json:
        draw = self.draw
        error = draw.choice(OF_PARTITION)
        answer: Json = {"topic": topic, "partition": partition, "error": error}
        if error == "NONE":
            answer |= {
                "leader": draw.choice((1, 1, 2)),
                "leader_epoch": draw.randint(0, 4),
                "partition_epoch": draw.randint(0, 25),
                "recovery_state": draw.choice((0, 0, 1, 2)) if draw.random() < 0.3 else 0,
                "isr": draw.sample((1, 2, 3, 4), draw.randint(1, 3)),
            }
        return answer
