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

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from uuid import UUID

from minicluster.channel.backoff import RETRY_BACKOFF_MS
from minicluster.effects import SetTimer
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol.api import highest_version
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    OnAlterPartition,
)
from minicluster.replica.to_controller.controller_client import ControllerClient
from minicluster.rules import IsrChanges, Rules

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
            self._retry_at_ms.append(now_ms + RETRY_BACKOFF_MS)
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
    version = 0
    data_of: Callable[[AlterPartitionItem], Any]
    match rules.isr_changes_by:
        case IsrChanges.ALTER_ISR_OF_KIP_497:
            data_of = _data_of_kip_497
        case IsrChanges.ALTER_ISR_OF_KIP_704:
            version = 1 if sends_recovery_state else 0
            data_of = _data_of_kip_704
        case _:
            version = _version(items, rules)
            data_of = _data_of_alter_partition(version, sends_recovery_state)
    by_topic: dict[tuple[str, UUID], list[Any]] = {}
    for item in items:
        by_topic.setdefault((item.topic, item.topic_id), []).append(data_of(item))
    partitions = {topic: tuple(data) for topic, data in by_topic.items()}
    sender = {"broker_id": broker_id, "broker_epoch": broker_epoch}
    match rules.isr_changes_by:
        case IsrChanges.ALTER_ISR_OF_KIP_497:
            return kip_497.AlterIsrRequest(
                **sender,
                topics=tuple(
                    kip_497.AlterIsrRequest.TopicData(topic=name, partitions=of_topic)
                    for (name, _), of_topic in partitions.items()
                ),
            ), version
        case IsrChanges.ALTER_ISR_OF_KIP_704:
            return kip_704.AlterIsrRequest(
                **sender,
                topics=tuple(
                    kip_704.AlterIsrRequest.TopicData(name=name, partitions=of_topic)
                    for (name, _), of_topic in partitions.items()
                ),
            ), version
    has_names = version <= _NAMES_UNTIL
    return AlterPartitionRequest(
        **sender,
        topics=tuple(
            AlterPartitionRequest.TopicData(
                topic_name=name if has_names else "",
                topic_id=ZERO_UUID if has_names else topic_id,
                partitions=of_topic,
            )
            for (name, topic_id), of_topic in partitions.items()
        ),
    ), version


def _version(items: Sequence[AlterPartitionItem], rules: Rules) -> int:
    lowest = rules.alter_partition_version_lowest
    if lowest <= _NAMES_UNTIL and any(item.topic_id == ZERO_UUID for item in items):
        return _NAMES_UNTIL
    return AlterPartitionRequest.latest_version


def _data_of_alter_partition(
    version: int, sends_recovery_state: bool
) -> Callable[[AlterPartitionItem], AlterPartitionRequest.PartitionData]:
    kind = AlterPartitionRequest
    plain = version <= _PLAIN_ISR_UNTIL
    has_state = sends_recovery_state and version >= _RECOVERY_STATE_FROM
    # Thousands of partitions have the same few members.
    member_of = cache(lambda member, epoch: kind.BrokerState(broker_id=member, broker_epoch=epoch))

    def data_of(item: AlterPartitionItem) -> AlterPartitionRequest.PartitionData:
        return kind.PartitionData(
            partition_index=item.partition,
            leader_epoch=item.leader_epoch,
            new_isr=item.members if plain else (),
            new_isr_with_epochs=() if plain else tuple(member_of(*each) for each in item.isr),
            leader_recovery_state=item.recovery_state if has_state else RECOVERED,
            partition_epoch=item.partition_epoch,
        )

    return data_of


def _data_of_kip_497(item: AlterPartitionItem) -> kip_497.AlterIsrRequest.PartitionData:
    return kip_497.AlterIsrRequest.PartitionData(
        partition_id=item.partition,
        leader=item.leader,
        leader_epoch=item.leader_epoch,
        isr=item.members,
        current_zk_version=item.partition_epoch,
    )


def _data_of_kip_704(item: AlterPartitionItem) -> kip_704.AlterIsrRequest.PartitionData:
    return kip_704.AlterIsrRequest.PartitionData(
        partition_index=item.partition,
        leader_epoch=item.leader_epoch,
        new_isr=item.members,
        new_is_unclean=item.recovery_state == RECOVERING,
        current_isr_version=item.partition_epoch,
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
