"""The partitions of an internal topic that a broker leads, by the published metadata.

Source:  BrokerMetadataPublisher.updateCoordinator.
"""

from __future__ import annotations

from minicluster.coordinator.runtime.runtime import CoordinatorRuntime, S
from minicluster.metadata.image.delta import MetadataDelta


def follow_leadership(
    runtime: CoordinatorRuntime[S],
    topic: str,
    delta: MetadataDelta,
    broker_id: int,
    now_ms: int,
) -> None:
    """Load the shards of partitions that this broker leads now, drop those that it does not."""
    before, after = delta.before.topics.named(topic), delta.after.topics.named(topic)
    if before is after:
        return
    if before is not None and (after is None or after.id != before.id):
        for index in before.partitions:
            runtime.on_resigned(index, None, now_ms)
    for index, partition in () if after is None else after.items():
        if partition.leader == broker_id:
            runtime.on_elected(index, partition.leader_epoch, now_ms)
        else:
            runtime.on_resigned(index, partition.leader_epoch, now_ms)
