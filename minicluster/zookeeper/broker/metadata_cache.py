"""The metadata cache: what a broker on ZooKeeper shows to clients.

The newest UpdateMetadata of each partition counts, even where LeaderAndIsr has brought another
state to the replicas here: the leader of a partition shows its ISR change when the controller has
distributed it, and a follower, which no LeaderAndIsr follows for it, shows it as well.

Source:  kafka.server.metadata.ZkMetadataCache (release 3.9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.image.topics import TopicsImage
from minicluster.protocol.messages import UpdateMetadataRequest
from minicluster.protocol.records import VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.znodes.partition_state import LEADER_DURING_DELETE
from minicluster.zookeeper.znodes.records import (
    first_records,
    id_of_name,
    no_topic_record,
    partition_record,
    topic_record,
)

_State = UpdateMetadataRequest.UpdateMetadataPartitionState


class MetadataCache:
    """The partitions of the requests so far, and the controller of the last one."""

    def __init__(self) -> None:
        self.controller: int | None = None
        self._image = MetadataImage.EMPTY
        self._states: dict[str, dict[int, _State]] = {}
        self._apply(first_records())

    @property
    def topics(self) -> TopicsImage:
        """The topics with their partitions."""
        return self._image.topics

    def offline_replicas(self, topic: str, partition: int) -> tuple[int, ...]:
        """The replicas that the controller takes for offline."""
        state = self._states.get(topic, {}).get(partition)
        return () if state is None else state.offline_replicas

    def update(self, request: UpdateMetadataRequest) -> None:
        """Take the partitions of a request; those with the leader -2 are deleted."""
        self.controller = request.controller_id if request.controller_id >= 0 else None
        for topic in request.topic_states:
            self._update(topic.topic_name, topic.topic_id, topic.partition_states)

    def _update(self, name: str, topic_id: UUID, states: Iterable[_State]) -> None:
        states_of_topic = self._states.setdefault(name, {})
        changed: dict[int, _State] = {}
        deleted = False
        for state in states:
            index = state.partition_index
            if state.leader == LEADER_DURING_DELETE:
                deleted |= states_of_topic.pop(index, None) is not None
                changed.pop(index, None)
            else:
                states_of_topic[index] = changed[index] = state
        known = self.topics.named(name)
        wanted = id_of_name(name) if topic_id == ZERO_UUID else topic_id
        if known is not None and (deleted or known.id != wanted):
            # The image takes no single partition away: those that remain are put again.
            self._apply([no_topic_record(known.id)])
            known, changed = None, states_of_topic
        if not states_of_topic:
            del self._states[name]
            return
        records = [] if known is not None else [topic_record(name, wanted)]
        records += [
            partition_record(wanted, index, **_values(state)) for index, state in changed.items()
        ]
        self._apply(records)

    def _apply(self, records: list[VersionedRecord]) -> None:
        for record in records:
            self._image = apply(self._image, record)


def _values(state: _State) -> Mapping[str, Any]:
    return {
        "replicas": state.replicas,
        "isr": state.isr,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.zk_version,
    }
