"""Transcripts of a broker's AlterPartition manager, event by event.

``completed`` counts as a set, up to the numbers that resubmissions get.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from minicluster.effects import Effect
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.replica.partition.isr_state import IsrProposal, ProposalItem
from minicluster.replica.partition.steps import ProposalAnswered
from minicluster.replica.to_controller.alter_partition_manager import (
    AlterPartitionManager,
    AnswersGiven,
    SendAlterPartition,
)
from minicluster.rules import Rules
from tests.transcripts.report import NotBuilt

Json = dict[str, Any]


def _topic_id(topic: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, topic)


class ManagerPlayer:
    """The manager and the owners of its proposals, some of which submit again."""

    def __init__(self, header: Mapping[str, Any], rules: Rules) -> None:
        self._manager = AlterPartitionManager(header["broker_id"], broker_epoch=100, rules=rules)
        self._topics: dict[uuid.UUID, str] = {}
        self._resubmits: dict[int, bool] = {}
        self._again = 0  # resubmissions are numbered downwards from -1
        self._retries_ms: list[int] = []
        self._requests: list[Json] = []
        self._completed: list[Json] = []
        self._now_ms: int = header["start_ms"]

    def play(self, line: Mapping[str, Any]) -> Json:
        """Play one event; what came of it has the form of the transcript's line."""
        event, until_ms = line["event"], line["now_ms"]
        self._requests, self._completed = [], []
        if event["kind"] == "advance":
            self._advance(until_ms)
        elif event["kind"] == "broker_epoch":
            self._manager.broker_epoch = event["epoch"]
        elif event["kind"] == "submit":
            self._submit(event)
        elif event["kind"] == "response":
            self._respond(event)
        else:
            raise NotBuilt(f"there is no {event['kind']}")
        held = sorted(f"{item.topic}-{item.partition}" for item in self._manager.held)
        return {
            "requests": self._requests,
            "completed": self._completed,
            "state": {"in_flight": self._manager.in_flight, "held": held},
        }

    def _advance(self, until_ms: int) -> None:
        while self._retries_ms and self._retries_ms[0] <= until_ms:
            self._now_ms = self._retries_ms.pop(0)
            self._carry_out(self._manager.on_timer(self._now_ms))
        self._now_ms = until_ms

    def _submit(self, event: Json) -> None:
        proposal = IsrProposal(
            leader=1,
            leader_epoch=event["leader_epoch"],
            partition_epoch=event["partition_epoch"],
            isr=tuple((member, epoch) for member, epoch in event["isr"]),
            recovery_state=event["recovery_state"],
        )
        item = ProposalItem(
            id=event["id"],
            topic=event["topic"],
            topic_id=_topic_id(event["topic"]),
            partition=event["partition"],
            proposal=proposal,
        )
        self._topics[item.topic_id] = item.topic
        self._resubmits[item.id] = event["resubmits_unknown_server_error"]
        self._carry_out(self._manager.submit(item))

    def _respond(self, event: Json) -> None:
        if event["outcome"] != "answered":
            self._carry_out(self._manager.on_failure(self._now_ms))
            return
        response = AlterPartitionResponse(
            error_code=ErrorCode[event["error"]],
            topics=tuple(
                AlterPartitionResponse.TopicData(
                    topic_id=_topic_id(answer["topic"]), partitions=(_answer(answer),)
                )
                for answer in event["partitions"]
            ),
        )
        self._carry_out(self._manager.on_response(self._now_ms, response))

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendAlterPartition):
                self._requests.append(_request_json(effect.request, self._topics))
            elif isinstance(effect, AnswersGiven):
                self._carry_out(self._manager.answers_heard())
            elif isinstance(effect, ProposalAnswered):
                self._hear(effect)
        self._retries_ms = sorted(self._manager.retries_at_ms)

    def _hear(self, effect: ProposalAnswered) -> None:
        item, answer = effect.item, effect.answer
        ended: Json = {"id": item.id, "error": answer.error.name}
        if answer.error == ErrorCode.NONE:
            ended |= {
                "leader": answer.leader,
                "leader_epoch": answer.leader_epoch,
                "partition_epoch": answer.partition_epoch,
                "recovery_state": answer.recovery_state,
                "isr": sorted(answer.isr),
            }
        self._completed.append(ended)
        if answer.error == ErrorCode.UNKNOWN_SERVER_ERROR and self._resubmits.pop(item.id, False):
            self._again -= 1
            ended["submits"] = self._again
            again = ProposalItem(
                id=self._again,
                topic=item.topic,
                topic_id=item.topic_id,
                partition=item.partition,
                proposal=item.proposal,
            )
            self._carry_out(self._manager.submit(again))


def compare_manager(line: Mapping[str, Any], found: Json) -> list[str]:
    """What differs between a transcript's line and what was found, one sentence each."""
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


def _answer(answer: Json) -> AlterPartitionResponse.PartitionData:
    return AlterPartitionResponse.PartitionData(
        partition_index=answer["partition"],
        error_code=ErrorCode[answer["error"]],
        leader_id=answer.get("leader", 0),
        leader_epoch=answer.get("leader_epoch", 0),
        isr=tuple(answer.get("isr", ())),
        leader_recovery_state=answer.get("recovery_state", 0),
        partition_epoch=answer.get("partition_epoch", 0),
    )
