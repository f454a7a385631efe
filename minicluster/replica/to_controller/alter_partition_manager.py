"""A broker's queue of ISR proposals: one AlterPartition request in flight, with all that waits.

    submit            -->  waits; leaves at once if nothing is in flight
    answer, no error  -->  named proposals end; what is left leaves at once
    answer, top error -->  all wait on; they leave 50 ms later or with the next submit

A proposal that an answer leaves out is sent again. Nothing times out. Where the rules follow
KIP-497's text, what is submitted in one step leaves in one request, at its end.

Source:   KIP-497, KIP-704, KIP-903; AlterPartitionManager.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.effects import Effect, SetTimer
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.isr_state import AlterPartitionAnswer, ProposalItem
from minicluster.replica.partition.steps import ProposalAnswered
from minicluster.replica.to_controller.alter_partition_wire import (
    IsrRequest,
    IsrResponse,
    isr_answers,
    isr_request,
)
from minicluster.rules import Rules

RETRY_MS = 50
TIMER = "alter-partition-retry"

Key = tuple[object, int]


@dataclass(frozen=True, slots=True)
class SendAlterPartition(Effect):
    """Queue a request to the controller; the answer goes to ``on_response`` or ``on_failure``."""

    request: IsrRequest
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
        if self._rules.isr_changes_of_one_fetch_leave_together:
            return []
        return self._send()

    def send_waiting(self) -> list[Effect]:
        """The step is over in which proposals were submitted."""
        return self._send()

    def on_response(self, now_ms: int, response: IsrResponse) -> list[Effect]:
        """Take the controller's answer.

        Shapes:  -> an answer per partition named, then AnswersGiven; or, after a top-level
                 error, a timer.
        """
        sent = self._sent
        if sent is None:
            return []
        if response.error_code != ErrorCode.NONE:
            return self._retry_later(now_ms)
        answers = isr_answers(response)
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
        request, version = isr_request(
            self._sent,
            broker_id=self.broker_id,
            broker_epoch=self.broker_epoch,
            rules=self._rules,
            sends_recovery_state=self.sends_recovery_state,
        )
        return [SendAlterPartition(request, version)]

    def _retry_later(self, now_ms: int) -> list[Effect]:
        self._sent = None
        self._retry_at_ms.append(now_ms + RETRY_MS)
        return self._timer()

    def _timer(self) -> list[Effect]:
        return [SetTimer(TIMER, self._retry_at_ms[0])] if self._retry_at_ms else []

    def _key(self, item: ProposalItem) -> Key:
        by_id = self._rules.proposals_wait_by_topic_id
        return (item.topic_id if by_id else item.topic, item.partition)
