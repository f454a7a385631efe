"""Transcripts of a broker's AlterPartition manager, event by event.

``completed`` counts as a set, up to the numbers that resubmissions get.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

from minicluster.effects import Send, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    BrokerView,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.to_controller.alter_partition_manager import TIMER, AlterPartitionManager
from minicluster.rules import Rules
from tests.replica.manager_kit import Outbox
from tests.transcripts.report import NotBuilt

Json = dict[str, Any]


def _topic_id(topic: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, topic)


class ManagerPlayer:
    """The manager and the owners of its items, some of which submit again."""

    def __init__(self, header: Mapping[str, Any], rules: Rules) -> None:
        config = ReplicaManagerConfig(broker_id=header["broker_id"])
        self._context = BrokerContext(config, rules=rules)
        self._context.view = BrokerView(100)
        self._manager = AlterPartitionManager(self._context)
        self._manager.channel = Outbox()  # type: ignore[assignment]
        self._topics: dict[uuid.UUID, str] = {}
        self._resubmits: dict[int, bool] = {}
        self._again = 0  # resubmissions are numbered downwards from -1
        self._requests: list[Json] = []
        self._completed: list[Json] = []
        self._timer_ms: int | None = None
        self._now_ms: int = header["start_ms"]

    def play(self, line: Mapping[str, Any]) -> Json:
        """Play one event; what came of it has the form of the transcript's line."""
        event, until_ms = line["event"], line["now_ms"]
        self._completed, self._requests = [], []
        if event["kind"] == "advance":
            self._advance(until_ms)
        elif event["kind"] == "broker_epoch":
            self._context.view = BrokerView(event["epoch"])
        elif event["kind"] == "submit":
            self._submit(event)
        elif event["kind"] == "response":
            self._respond(event)
        else:
            raise NotBuilt(f"there is no {event['kind']}")
        self._take()
        return {
            "requests": self._requests,
            "completed": self._completed,
            "state": {
                "in_flight": self._manager.in_flight,
                "held": sorted(f"{item.topic}-{item.partition}" for item in self._manager.items),
            },
        }

    def _take(self) -> None:
        """Carry out the manager's effects."""
        for effect in self._context.take_effects():
            if isinstance(effect, Send):
                self._requests.append(_request_json(effect.request, self._topics))
            elif isinstance(effect, SetTimer):
                self._timer_ms = effect.at_ms

    def _due(self, until_ms: int) -> int | None:
        """The time of the timer, if it fires by then."""
        self._take()
        if self._timer_ms is None or self._timer_ms > until_ms:
            return None
        timer_ms, self._timer_ms = self._timer_ms, None
        return timer_ms

    def _advance(self, until_ms: int) -> None:
        while (timer_ms := self._due(until_ms)) is not None:
            self._now_ms = timer_ms
            self._manager.on_timer(TIMER, self._now_ms)
        self._now_ms = until_ms

    def _submit(self, event: Json) -> None:
        item = AlterPartitionItem(
            topic=event["topic"],
            topic_id=_topic_id(event["topic"]),
            partition=event["partition"],
            leader=1,
            leader_epoch=event["leader_epoch"],
            partition_epoch=event["partition_epoch"],
            isr=tuple((member, epoch) for member, epoch in event["isr"]),
            recovery_state=event["recovery_state"],
        )
        self._topics[item.topic_id] = item.topic
        self._resubmits[event["id"]] = event["resubmits_unknown_server_error"]
        self._submit_item(event["id"], item)

    def _submit_item(self, number: int, item: AlterPartitionItem) -> None:
        on_complete = partial(self._complete, number, item)
        self._manager.submit(item, on_complete, self._now_ms)

    def _respond(self, event: Json) -> None:
        if event["outcome"] != "answered":
            self._manager.on_completion(None, self._now_ms)
            return
        response = AlterPartitionResponse(
            error_code=ErrorCode[event["error"]],
            topics=tuple(
                AlterPartitionResponse.TopicData(
                    topic_id=_topic_id(outcome["topic"]), partitions=(_outcome(outcome),)
                )
                for outcome in event["partitions"]
            ),
        )
        self._manager.on_completion(response, self._now_ms)

    def _complete(
        self, number: int, item: AlterPartitionItem, result: AlterPartitionResult, now_ms: int
    ) -> None:
        ended: Json = {"id": number, "error": result.error.name}
        if result.error == ErrorCode.NONE:
            ended |= {
                "leader": result.leader,
                "leader_epoch": result.leader_epoch,
                "partition_epoch": result.partition_epoch,
                "recovery_state": result.recovery_state,
                "isr": sorted(result.isr),
            }
        self._completed.append(ended)
        if result.error == ErrorCode.UNKNOWN_SERVER_ERROR and self._resubmits.pop(number, False):
            self._again -= 1
            ended["submits"] = self._again
            self._submit_item(self._again, item)


def compare_manager(line: Mapping[str, Any], found: Json) -> list[str]:
    """Differences between a transcript's line and the result, one sentence each."""
    different = []
    for name in ("requests", "completed", "state"):
        theirs, ours = _shown(name, line[name]), _shown(name, found[name])
        if theirs != ours:
            different.append(f"{name}: Kafka {theirs}, here {ours}")
    return different


def _shown(name: str, value: Any) -> Any:
    if name != "completed":
        return value
    return sorted(
        str(
            {
                key: sorted(part) if key == "isr" else part
                for key, part in sorted(ended.items())
                if key not in ("id", "submits")
            }
        )
        for ended in value
    )


def _request_json(request: AlterPartitionRequest, topics: Mapping[uuid.UUID, str]) -> Json:
    partitions = [
        {
            "topic": topics[topic.topic_id],
            "partition": data.partition_index,
            "leader_epoch": data.leader_epoch,
            "partition_epoch": data.partition_epoch,
            "recovery_state": data.leader_recovery_state,
            "isr": [[state.broker_id, state.broker_epoch] for state in data.new_isr_with_epochs],
        }
        for topic in request.topics
        for data in topic.partitions
    ]
    return {
        "broker_id": request.broker_id,
        "broker_epoch": request.broker_epoch,
        "partitions": sorted(partitions, key=lambda p: (p["topic"], p["partition"])),
    }


def _outcome(response: Json) -> AlterPartitionResponse.PartitionData:
    return AlterPartitionResponse.PartitionData(
        partition_index=response["partition"],
        error_code=ErrorCode[response["error"]],
        leader_id=response.get("leader", 0),
        leader_epoch=response.get("leader_epoch", 0),
        isr=tuple(response.get("isr", ())),
        leader_recovery_state=response.get("recovery_state", 0),
        partition_epoch=response.get("partition_epoch", 0),
    )
