"""A checkpoint of a large cluster, for those who begin from one."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from minicluster.log.checkpoint import Snapshot, checkpoint_name, encode_snapshot
from minicluster.protocol import records as r

BROKERS, OF_TOPIC = 9, 100
END, EPOCH, AT_MS = 500_000, 3, 1_700_000_000_000


def directory(broker: int) -> UUID:
    return UUID(int=1_000 + broker)


def checkpoint_of(folder: Path, partitions: int) -> Path:
    """A checkpoint of nine unfenced brokers in three racks, and topics of 100 partitions each."""
    level = r.FeatureLevelRecord(name="metadata.version", feature_level=27)
    records = [r.VersionedRecord(level, 0)]
    feature = r.RegisterBrokerRecord.BrokerFeature
    for broker in range(BROKERS):
        registration = r.RegisterBrokerRecord(
            broker_id=broker, incarnation_id=UUID(int=100 + broker), broker_epoch=1_000 + broker,
            features=(feature(name=level.name, min_supported_version=7, max_supported_version=30),),
            rack=f"r{broker % 3}", fenced=False, log_dirs=(directory(broker),),
        )  # fmt: skip
        records.append(r.VersionedRecord(registration, 3))
    for topic in range(partitions // OF_TOPIC):
        topic_id = UUID(int=10_000 + topic)
        records.append(r.VersionedRecord(r.TopicRecord(name=f"t{topic}", topic_id=topic_id), 0))
        for index in range(OF_TOPIC):
            replicas = tuple((topic + index + n) % BROKERS for n in range(3))
            partition = r.PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas,
                leader=replicas[0], leader_epoch=EPOCH, partition_epoch=8,
                directories=tuple(map(directory, replicas)),
            )  # fmt: skip
            records.append(r.VersionedRecord(partition, 1))
    snapshot = Snapshot(records=tuple(records), last_contained_log_timestamp=AT_MS)
    path = folder / checkpoint_name((END, EPOCH))
    path.write_bytes(encode_snapshot(snapshot, epoch=EPOCH, timestamp_ms=AT_MS))
    return path
