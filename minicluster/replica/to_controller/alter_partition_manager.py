"""A broker's queue of ISR changes: one AlterPartition request in flight, with all that waits.

    submit               -->  waits; leaves at once if nothing is in flight
    response, no error   -->  the items in it complete; the others leave at once
    response, top error  -->  all items wait; they leave 50 ms later or with the next submit

An item that a response leaves out is sent again. Nothing times out. By KIP-497's text the items of
one input leave in one request, at its end.

Source:   KIP-497, KIP-704, KIP-903; AlterPartitionManager.
"""

from __future__ import annotations

from typing import Any

from minicluster.effects import SetTimer
from minicluster.protocol import ErrorCode
from minicluster.protocol.api_versions import highest_version
from minicluster.protocol.messages import AlterPartitionRequest
from minicluster.replica.partition.isr_state import AlterPartitionItem, AlterPartitionResult
from minicluster.replica.state.broker_context import BrokerContext, OnAlterPartition
from minicluster.replica.to_controller.alter_partition_wire import (
    alter_partition_request,
    alter_partition_results,
)
from minicluster.replica.to_controller.controller_client import ControllerClient

RETRY_MS = 50
TIMER = "alter-partition-retry"

_Key = tuple[object, int]


class AlterPartitionManager(ControllerClient):
    """The items that wait, and those that are in flight."""

    def __init__(self, context: BrokerContext) -> None:
        super().__init__(context, name="alter-partition", timer=TIMER)
        self._unsent: dict[_Key, tuple[AlterPartitionItem, OnAlterPartition]] = {}
        self._in_flight: tuple[AlterPartitionItem, ...] | None = None
        self._retry_at_ms: list[int] = []
        self._has_submitted = False

    @property
    def items(self) -> tuple[AlterPartitionItem, ...]:
        """The items without a result, oldest first."""
        return tuple(item for item, _ in self._unsent.values())

    @property
    def in_flight(self) -> bool:
        """A request has no response yet."""
        return self._in_flight is not None

    def submit(self, item: AlterPartitionItem, on_complete: OnAlterPartition, now_ms: int) -> None:
        """Queue an item; a second one for the same partition is refused at once.

        Errors:  the result OPERATION_NOT_ATTEMPTED.
        """
        key = self._key(item)
        if key in self._unsent:
            on_complete(AlterPartitionResult(error=ErrorCode.OPERATION_NOT_ATTEMPTED), now_ms)
            return
        self._unsent[key] = (item, on_complete)
        if self.context.rules.isr_changes_of_one_fetch_leave_together:
            self._has_submitted = True
        else:
            self._send_unsent(now_ms)

    def end_of_input(self, now_ms: int) -> None:
        """Send what one input has submitted, where that leaves together."""
        if self._has_submitted:
            self._has_submitted = False
            self._send_unsent(now_ms)

    def on_completion(self, response: Any | None, now_ms: int) -> None:
        """Complete the items of a response; after a top-level error or none, retry.

        Partitions may submit again on completion. That leaves with what the response left out.

        Source:  AlterPartitionManager.handleAlterPartitionResponse.
        """
        sent = self._in_flight
        if sent is None:
            return
        if response is None or response.error_code != ErrorCode.NONE:
            self._in_flight = None
            self._retry_at_ms.append(now_ms + RETRY_MS)
            self._set_timer()
            return
        results = alter_partition_results(response)
        for item in sent:
            result = results.get((item.topic_id, item.partition))
            if result is None:
                result = results.get((item.topic, item.partition))
            if result is not None:
                _, on_complete = self._unsent.pop(self._key(item))
                on_complete(result, now_ms)
        self._in_flight = None
        self._send_unsent(now_ms)

    def on_retry_timer(self, now_ms: int) -> None:
        """Send again what failed."""
        due = sum(at_ms <= now_ms for at_ms in self._retry_at_ms)
        if due:
            del self._retry_at_ms[:due]
            self._send_unsent(now_ms)
            self._set_timer()

    def _send_unsent(self, now_ms: int) -> None:
        if self._in_flight is not None or not self._unsent:
            return
        self._in_flight = self.items
        context = self.context
        request, version = alter_partition_request(
            self._in_flight,
            broker_id=context.broker_id,
            broker_epoch=context.view.broker_epoch,
            rules=context.rules,
            sends_recovery_state=context.sends_recovery_state,
        )
        if isinstance(request, AlterPartitionRequest):
            version = min(version, highest_version(context.rules, request))
        self._send(request, version, now_ms)

    def _set_timer(self) -> None:
        if self._retry_at_ms:
            self.context.effects.append(SetTimer(TIMER, self._retry_at_ms[0]))

    def _key(self, item: AlterPartitionItem) -> _Key:
        by_id = self.context.rules.proposals_wait_by_topic_id
        return (item.topic_id if by_id else item.topic, item.partition)
