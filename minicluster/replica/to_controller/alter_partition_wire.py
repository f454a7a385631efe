"""ISR changes as requests to the controller, and the results in its responses.

AlterPartition is the API that shipped. AlterIsr is that of KIP-497's and KIP-704's texts, by
``Rules.isr_changes_by``. KIP-704's response has the committed state. KIP-497's has errors alone and
is sent before anything is decided; no error means that the outcome comes with the metadata.

Versions: AlterPartition v0; v1 adds the leader recovery state (KIP-704); v2 has topic ids in place
          of names; v3 has the broker epoch of each ISR member (KIP-903). Kafka 4 has v2 and v3.
          AlterIsr v0 (KIP-497); v0 and v1, which adds the unclean flag (KIP-704).
Source:   KIP-497, KIP-704, KIP-903; AlterPartitionManager.buildRequest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import AlterPartitionRequest, AlterPartitionResponse
from minicluster.protocol.messages.kip_texts import kip_497, kip_704
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.partition.isr_state import AlterPartitionItem, AlterPartitionResult
from minicluster.rules import IsrChanges, Rules

_NAMES_UNTIL = 1  # the last version that names topics by name
_PLAIN_ISR_UNTIL = 2  # the last version without broker epochs
_RECOVERY_STATE_FROM = 1

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
    """The request of some items and its version; topics in order of first submission."""
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
    found: Results = {}
    for topic in response.topics:
        match topic:
            case kip_497.AlterIsrResponse.TopicData():
                for part in topic.partitions:
                    error = ErrorCode.for_code(part.error_code)
                    found[(topic.topic, part.partition_id)] = AlterPartitionResult(
                        error=error, acknowledged=error == ErrorCode.NONE
                    )
            case kip_704.AlterIsrResponse.TopicData():
                for data in topic.partitions:
                    found[(topic.name, data.partition_index)] = _result(
                        data,
                        RECOVERING if data.is_unclean else RECOVERED,
                        data.current_isr_version,
                    )
            case _:
                key = topic.topic_name if topic.topic_id == ZERO_UUID else topic.topic_id
                for shipped in topic.partitions:
                    found[(key, shipped.partition_index)] = _result(
                        shipped, shipped.leader_recovery_state, shipped.partition_epoch
                    )
    return found


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
