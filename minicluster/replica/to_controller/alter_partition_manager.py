"""A broker's queue of ISR changes: one AlterPartition request in flight, with all that waits.

    submit               -->  waits; leaves at once if nothing is in flight
    response, no error   -->  the items in it complete; the others leave at once
    response, top error  -->  all items wait; they leave 50 ms later or with the next submit

An item that a response leaves out is sent again. Nothing times out: an item has no other end than a
result, since its partition stays pending until then. By KIP-497's text the items of one input leave
in one request, at its end.

AlterPartition is the API that shipped. AlterIsr is that of KIP-497's and KIP-704's texts, by
``Rules.isr_changes_by``. KIP-704's response has the committed state. KIP-497's has errors alone and
is sent before anything is decided; no error means that the outcome comes with the metadata.

Versions: AlterPartition v0; v1 adds the leader recovery state (KIP-704); v2 has topic ids in place
          of names; v3 has the broker epoch of each ISR member (KIP-903). Kafka 4 has v2 and v3.
          AlterIsr v0 (KIP-497); v0 and v1, which adds the unclean flag (KIP-704).
Source:   KIP-497, KIP-704, KIP-903; AlterPartitionManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from minicluster.effects import SetTimer
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol.api import highest_version
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.state.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    OnAlterPartition,
)
from minicluster.replica.to_controller.controller_client import ControllerClient
from minicluster.rules import IsrChanges, Rules

RETRY_MS = 50
ITEMS_PER_PART = 400  # of a response: some 20 to 40 ms of the processor
TIMER = "alter-partition-retry"
_NAMES_UNTIL = 1  # the last version that names topics by name
_PLAIN_ISR_UNTIL = 2  # the last version without broker epochs
_RECOVERY_STATE_FROM = 1

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
        """Queue an item; a second one for the same partition is rejected at once.

        Errors:  the result OPERATION_NOT_ATTEMPTED.
        """
        key = self._key(item)
        # Also where metadata has made the earlier one obsolete: its result is still to come, names
        # the partition alone, and would be taken for that of this one.
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
        self.context.carry_out(
            self._complete_items(sent, alter_partition_results(response), now_ms)
        )

    def _complete_items(
        self, sent: Sequence[AlterPartitionItem], results: Results, now_ms: int
    ) -> Iterator[None]:
        """Complete the items that have a result, a part of them with each next()."""
        for number, item in enumerate(sent, 1):
            result = results.get((item.topic_id, item.partition))
            if result is None:
                result = results.get((item.topic, item.partition))
            if result is not None:
                _, on_complete = self._unsent.pop(self._key(item))
                on_complete(result, now_ms)
            if number % ITEMS_PER_PART == 0 and number < len(sent):
                yield
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


# --- requests and responses ---------------------------------------------------------------------


IsrRequest = AlterPartitionRequest | kip_497.AlterIsrRequest | kip_704.AlterIsrRequest
IsrResponse = AlterPartitionResponse | kip_497.AlterIsrResponse | kip_704.AlterIsrResponse
Results = dict[tuple[object, int], AlterPartitionResult]


def alter_partition_request(
    items: Sequence[AlterPartitionItem],
    *,
    broker_id: int,
    broker_epoch: int,
    rules: Rules,
    sends_recovery_state: bool,
) -> tuple[IsrRequest, int]:
    """The request of some items and its version; topics in order of first submission.

    Source:  AlterPartitionManager.buildRequest.
    """
    by_topic: dict[tuple[str, object], list[AlterPartitionItem]] = {}
    for item in items:
        by_topic.setdefault((item.topic, item.topic_id), []).append(item)
    sender = {"broker_id": broker_id, "broker_epoch": broker_epoch}
    groups = list(by_topic.values())
    match rules.isr_changes_by:
        case IsrChanges.ALTER_ISR_OF_KIP_497:
            return _of_kip_497(groups, sender), 0
        case IsrChanges.ALTER_ISR_OF_KIP_704:
            return _of_kip_704(groups, sender), 1 if sends_recovery_state else 0
    lowest = rules.alter_partition_version_lowest
    version = AlterPartitionRequest.latest_version
    if lowest <= _NAMES_UNTIL and any(item.topic_id == ZERO_UUID for item in items):
        version = _NAMES_UNTIL
    return _alter_partition(groups, sender, version, sends_recovery_state), version


def _alter_partition(
    groups: list[list[AlterPartitionItem]],
    sender: dict[str, int],
    version: int,
    sends_recovery_state: bool,
) -> AlterPartitionRequest:
    kind = AlterPartitionRequest
    plain = version <= _PLAIN_ISR_UNTIL
    has_state = sends_recovery_state and version >= _RECOVERY_STATE_FROM

    def data_of(item: AlterPartitionItem) -> AlterPartitionRequest.PartitionData:
        members = () if plain else item.isr
        return kind.PartitionData(
            partition_index=item.partition,
            leader_epoch=item.leader_epoch,
            new_isr=item.members if plain else (),
            new_isr_with_epochs=tuple(
                kind.BrokerState(broker_id=member, broker_epoch=epoch) for member, epoch in members
            ),
            leader_recovery_state=item.recovery_state if has_state else RECOVERED,
            partition_epoch=item.partition_epoch,
        )

    return kind(
        **sender,
        topics=tuple(
            kind.TopicData(
                topic_name=items[0].topic if version <= _NAMES_UNTIL else "",
                topic_id=items[0].topic_id if version > _NAMES_UNTIL else ZERO_UUID,
                partitions=tuple(data_of(item) for item in items),
            )
            for items in groups
        ),
    )


def _of_kip_497(
    groups: list[list[AlterPartitionItem]], sender: dict[str, int]
) -> kip_497.AlterIsrRequest:
    kind = kip_497.AlterIsrRequest
    return kind(
        **sender,
        topics=tuple(
            kind.TopicData(
                topic=items[0].topic,
                partitions=tuple(
                    kind.PartitionData(
                        partition_id=item.partition,
                        leader=item.leader,
                        leader_epoch=item.leader_epoch,
                        isr=item.members,
                        current_zk_version=item.partition_epoch,
                    )
                    for item in items
                ),
            )
            for items in groups
        ),
    )


def _of_kip_704(
    groups: list[list[AlterPartitionItem]], sender: dict[str, int]
) -> kip_704.AlterIsrRequest:
    kind = kip_704.AlterIsrRequest
    return kind(
        **sender,
        topics=tuple(
            kind.TopicData(
                name=items[0].topic,
                partitions=tuple(
                    kind.PartitionData(
                        partition_index=item.partition,
                        leader_epoch=item.leader_epoch,
                        new_isr=item.members,
                        new_is_unclean=item.recovery_state == RECOVERING,
                        current_isr_version=item.partition_epoch,
                    )
                    for item in items
                ),
            )
            for items in groups
        ),
    )


def alter_partition_results(response: IsrResponse) -> Results:
    """The results by (topic id, or name where there is none; partition)."""
    results: Results = {}
    for topic in response.topics:
        match topic:
            case kip_497.AlterIsrResponse.TopicData():
                for part in topic.partitions:
                    error = ErrorCode.for_code(part.error_code)
                    results[(topic.topic, part.partition_id)] = AlterPartitionResult(
                        error=error, acknowledged=error == ErrorCode.NONE
                    )
            case kip_704.AlterIsrResponse.TopicData():
                for data in topic.partitions:
                    results[(topic.name, data.partition_index)] = _result(
                        data,
                        RECOVERING if data.is_unclean else RECOVERED,
                        data.current_isr_version,
                    )
            case _:
                key = topic.topic_name if topic.topic_id == ZERO_UUID else topic.topic_id
                for shipped in topic.partitions:
                    results[(key, shipped.partition_index)] = _result(
                        shipped, shipped.leader_recovery_state, shipped.partition_epoch
                    )
    return results


def _result(data: Any, recovery_state: int, partition_epoch: int) -> AlterPartitionResult:
    error = ErrorCode.for_code(data.error_code)
    if error == ErrorCode.NONE and recovery_state not in (RECOVERED, RECOVERING):
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    if error != ErrorCode.NONE:
        return AlterPartitionResult(error=error)
    return AlterPartitionResult(
        leader=data.leader_id,
        leader_epoch=data.leader_epoch,
        isr=tuple(data.isr),
        recovery_state=recovery_state,
        partition_epoch=partition_epoch,
    )
