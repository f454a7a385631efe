"""The order of partitions in a Produce response: that of the maps that Kafka collects them in.

    appended   a mutable Scala map, copied into a java.util.HashMap
    refused    mutable Scala maps: partitions that are not there, then records that cannot be taken
    together   an immutable Scala map; a mutable one once a coordinator has verified partitions

Source:  KafkaApis.handleProduceRequest (sendResponseCallback), ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from minicluster.java_order import (
    hash_map_order,
    scala_copy_order,
    scala_map_order,
    topic_id_partition_hash,
    topic_partition_hash,
)
from minicluster.protocol import ErrorCode
from minicluster.replica.appending.append_records import AppendStatus
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
_Named = tuple[uuid.UUID, str, int]


def in_produce_order(
    state: ReplicaManagerState, statuses: Sequence[AppendStatus], *, verified: bool
) -> list[AppendStatus]:
    """The statuses as the response lists them; verified: a coordinator was involved."""
    if len(statuses) < 2:
        return list(statuses)
    by_id = state.rules.produce_by_topic_id

    def code(named: _Named) -> int:
        return topic_id_partition_hash(named) if by_id else topic_partition_hash(named[1:])

    appended: dict[_Named, AppendStatus] = {}
    not_there: dict[_Named, AppendStatus] = {}
    invalid: dict[_Named, AppendStatus] = {}
    for status in statuses:
        is_not_there = status.error in _NOT_THERE
        refused = not_there if is_not_there else invalid
        chosen = refused if status.batch is None else appended
        chosen[_named(state, status)] = status
    copied = scala_map_order(appended, code, made_from=len(appended))
    together = list(
        dict.fromkeys(
            [
                *hash_map_order(copied, code),
                *scala_map_order(not_there, code),
                *scala_map_order(invalid, code),
            ]
        )
    )
    if verified:
        together = scala_map_order(together, code, made_from=len(together))
    else:
        together = scala_copy_order(together, code)
    all_ = {**appended, **not_there, **invalid}
    return [all_[named] for named in together]


def _named(state: ReplicaManagerState, status: AppendStatus) -> _Named:
    """A partition by the topic id of the request or of the metadata, and by its name."""
    if status.key is None:
        return status.topic_id, status.topic, status.index
    return status.key[0], state.topic_name(status.key[0]) or status.topic, status.index
