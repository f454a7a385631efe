"""A broker's queue of ISR proposals: one AlterPartition request in flight, with all that waits.

    submit            -->  waits; leaves at once if nothing is in flight
    answer, no error  -->  named proposals end; what is left leaves at once
    answer, top error -->  all wait on; they leave 50 ms later or with the next submit

A proposal that an answer leaves out is sent again. Nothing times out.

Versions: AlterPartition v0-v3. A request is capped at v1 if a proposal has no topic id.
Source:   KIP-497, KIP-704, KIP-903; AlterPartitionManager.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.isr_state import (
    RECOVERED,
    RECOVERING,
    AlterPartitionAnswer,
    ProposalItem,
)
from minicluster.replica.partition_steps import ProposalAnswered
from minicluster.rules import Rules

RETRY_MS = 50
TIMER = "alter-partition-retry"

_NAMES_UNTIL = 1  # the last version that names topics by name
_PLAIN_ISR_UNTIL = 2  # the last version without broker epochs
_RECOVERY_STATE_FROM = 1

Key = tuple[object, int]


@dataclass(frozen=True, slots=True)
class SendAlterPartition(Effect):
    """Queue a request to the controller; the answer goes to ``on_response`` or ``on_failure``."""

    request: AlterPartitionRequest
    version: int


@dataclass(frozen=True, slots=True)
class AnswersGiven(Effect):
    """Call ``answers_heard`` once the partitions have heard the answers before this.

    What they submit on hearing them leaves in the same request as what is left.
    """


class AlterPartitionManager:
    """Which proposals wait, and which of them are on their way.

    Shapes:  ``broker_epoch`` is read when a request leaves; set it on registration.
             ``sends_recovery_state`` is false below metadata.version 3.2-IV0.
    """

    def __init__(
        self,
        broker_id: int,
        *,
        broker_epoch: int = -1,
        rules: Rules = Rules.KAFKA_4_3,
        sends_recovery_state: bool = True,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.sends_recovery_state = sends_recovery_state
        self._rules = rules
        self._held: dict[Key, ProposalItem] = {}
        self._sent: tuple[ProposalItem, ...] | None = None
        self._retry_at_ms: list[int] = []

    @property
    def held(self) -> tuple[ProposalItem, ...]:
        """The proposals without an answer, oldest first."""
        return tuple(self._held.values())

    @property
    def in_flight(self) -> bool:
        """Whether a request has no answer yet."""
        return self._sent is not None

    @property
    def retries_at_ms(self) -> tuple[int, ...]:
        """When it will try again, each time of which ``on_timer`` wants to hear."""
        return tuple(self._retry_at_ms)

    def submit(self, item: ProposalItem) -> list[Effect]:
        """Take a proposal; one for a partition that has one already ends at once.

        Shapes:  -> OPERATION_NOT_ATTEMPTED for the partition, or the request, or nothing yet.
        """
        key = self._key(item)
        if key in self._held:
            refusal = AlterPartitionAnswer(error=ErrorCode.OPERATION_NOT_ATTEMPTED)
            return [ProposalAnswered(item, refusal)]
        self._held[key] = item
        return self._send()

    def on_response(self, now_ms: int, response: AlterPartitionResponse) -> list[Effect]:
        """Take the controller's answer.

        Shapes:  -> an answer per partition named, then AnswersGiven; or, after a top-level
                 error, a timer.
        """
        sent = self._sent
        if sent is None:
            return []
        if response.error_code != ErrorCode.NONE:
            return self._retry_later(now_ms)
        answers = _answers(response)
        effects: list[Effect] = []
        for item in sent:
            answer = answers.get((item.topic_id, item.partition))
            if answer is None:
                answer = answers.get((item.topic, item.partition))
            if answer is not None:
                del self._held[self._key(item)]
                effects.append(ProposalAnswered(item, answer))
        return [*effects, AnswersGiven()]

    def answers_heard(self) -> list[Effect]:
        """Send what is left and what has been submitted meanwhile."""
        self._sent = None
        return self._send()

    def on_failure(self, now_ms: int) -> list[Effect]:
        """No answer will come: given up, not authenticated, or a version that is not served."""
        return [] if self._sent is None else self._retry_later(now_ms)

    def on_timer(self, now_ms: int) -> list[Effect]:
        """Send again, when the time has come."""
        due = sum(at_ms <= now_ms for at_ms in self._retry_at_ms)
        if not due:
            return []
        del self._retry_at_ms[:due]
        return [*self._send(), *self._timer()]

    def _send(self) -> list[Effect]:
        """Send everything that waits, unless a request is in flight."""
        if self._sent is not None or not self._held:
            return []
        self._sent = self.held
        version = self._version()
        return [SendAlterPartition(self._request(version), version)]

    def _retry_later(self, now_ms: int) -> list[Effect]:
        self._sent = None
        self._retry_at_ms.append(now_ms + RETRY_MS)
        return self._timer()

    def _timer(self) -> list[Effect]:
        return [SetTimer(TIMER, self._retry_at_ms[0])] if self._retry_at_ms else []

    def _key(self, item: ProposalItem) -> Key:
        by_id = self._rules.proposals_wait_by_topic_id
        return (item.topic_id if by_id else item.topic, item.partition)

    def _version(self) -> int:
        lowest = self._rules.alter_partition_version_lowest
        if lowest <= _NAMES_UNTIL and any(item.topic_id == ZERO_UUID for item in self.held):
            return _NAMES_UNTIL
        return AlterPartitionRequest.latest_version

    def _request(self, version: int) -> AlterPartitionRequest:
        """The request of everything held, topics in order of first submission."""
        by_topic: dict[tuple[str, object], list[ProposalItem]] = {}
        for item in self.held:
            by_topic.setdefault((item.topic, item.topic_id), []).append(item)
        return AlterPartitionRequest(
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            topics=tuple(
                AlterPartitionRequest.TopicData(
                    topic_name=items[0].topic if version <= _NAMES_UNTIL else "",
                    topic_id=items[0].topic_id if version > _NAMES_UNTIL else ZERO_UUID,
                    partitions=tuple(self._partition(item, version) for item in items),
                )
                for items in by_topic.values()
            ),
        )

    def _partition(self, item: ProposalItem, version: int) -> AlterPartitionRequest.PartitionData:
        proposal = item.proposal
        plain = version <= _PLAIN_ISR_UNTIL
        tells_state = self.sends_recovery_state and version >= _RECOVERY_STATE_FROM
        return AlterPartitionRequest.PartitionData(
            partition_index=item.partition,
            leader_epoch=proposal.leader_epoch,
            new_isr=tuple(member for member, _ in proposal.isr) if plain else (),
            new_isr_with_epochs=()
            if plain
            else tuple(
                AlterPartitionRequest.BrokerState(broker_id=member, broker_epoch=epoch)
                for member, epoch in proposal.isr
            ),
            leader_recovery_state=proposal.recovery_state if tells_state else RECOVERED,
            partition_epoch=proposal.partition_epoch,
        )


def _answers(response: AlterPartitionResponse) -> dict[tuple[object, int], AlterPartitionAnswer]:
    """The answers by (topic id, or name where there is none; partition)."""
    return {
        (topic.topic_name if topic.topic_id == ZERO_UUID else topic.topic_id, p.partition_index): (
            _answer(p)
        )
        for topic in response.topics
        for p in topic.partitions
    }


def _answer(data: AlterPartitionResponse.PartitionData) -> AlterPartitionAnswer:
    try:
        error = ErrorCode(data.error_code)
    except ValueError:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error == ErrorCode.NONE and data.leader_recovery_state not in (RECOVERED, RECOVERING):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error != ErrorCode.NONE:
        return AlterPartitionAnswer(error=error)
    return AlterPartitionAnswer(
        leader=data.leader_id,
        leader_epoch=data.leader_epoch,
        isr=tuple(data.isr),
        recovery_state=data.leader_recovery_state,
        partition_epoch=data.partition_epoch,
    )
