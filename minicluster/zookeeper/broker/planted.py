"""The planted faults of a leader that writes its ISR into ZooKeeper (``minicluster.planting``)."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import plant
from minicluster.zookeeper.broker import isr_writer
from minicluster.zookeeper.broker.isr_writer import IsrWriter
from minicluster.zookeeper.server.operations import ANY_VERSION


@plant(isr_writer.is_notified, "y04_notification_lost")
def _y04(
    right: Callable[..., bool], writer: IsrWriter, partitions: tuple[TopicPartition, ...]
) -> bool:
    writer.hit("Y04")
    return False


@plant(isr_writer.guarding_version, "y05_leader_write_unguarded")
def _y05(right: Callable[..., int], writer: IsrWriter, version: int) -> int:
    writer.hit("Y05")
    return ANY_VERSION
