"""The configs that replicas obey: those of a broker, its fetchers', and those of a topic's logs.

Source:  KafkaConfig, ReplicationConfigs; LogConfig, ReplicaManager.updateLogConfig.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from minicluster.configs.definitions import TOPIC_SYNONYMS
from minicluster.configs.effective import BrokerLevels, effective_topic_config
from minicluster.log.format.compression import Codec

REPLICA_LAG_TIME_MAX_MS = 30_000
_LONGEST = (1 << 63) - 1
_SYNONYMS = frozenset(name for names in TOPIC_SYNONYMS.values() for name in names) - {
    "min.insync.replicas",
    "unclean.leader.election.enable",
}
_CODECS = {codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherConfig:
    """Kafka's replica.fetch.* settings, and the versions of a follower's requests."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 * 1024 * 1024
    partition_max_bytes: int = 1024 * 1024
    backoff_ms: int = 1_000
    request_timeout_ms: int = 30_000
    fetch_version: int = 17
    list_offsets_version: int = 9
    epoch_version: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaManagerConfig:
    """The broker's id and incarnation, and its replica settings.

    Shapes:  dir_names maps the names in log.dirs to directory ids; metadata_directory is None where
             the metadata log has a place of its own. static has the broker's static configs by
             Kafka's names. removes_strays: the first image is complete, and logs that it does not
             have here are deleted; on ZooKeeper partitions come one LeaderAndIsr after the other.
    """

    broker_id: int
    incarnation: str = ""
    replica_lag_time_max_ms: int = REPLICA_LAG_TIME_MAX_MS
    min_insync_replicas: int = 1
    static: Mapping[str, str] = field(default_factory=dict)
    checkpoint_interval_ms: int = 5_000
    flush_interval_ms: int = 30_000  # Kafka leaves flushing to the operating system
    initial_task_delay_ms: int = 30_000
    retention_check_interval_ms: int = 300_000
    cleans: bool = True  # log.cleaner.enable
    cleaner_backoff_ms: int = 15_000
    flush_check_interval_ms: int | None = None  # None: no log is flushed by its age (flush.ms)
    producer_id_expiration_ms: int = 86_400_000
    producer_id_expiration_check_interval_ms: int = 600_000
    fetcher: FetcherConfig = field(default_factory=FetcherConfig)
    dir_names: Mapping[str, uuid.UUID] = field(default_factory=dict)
    metadata_directory: uuid.UUID | None = None
    listener: str = "PLAINTEXT"
    traced: bool = True
    removes_strays: bool = True


# --- configs of a topic's logs ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The topic configs that a log acts on; the defaults are Kafka's.

    Shapes:  compression is None for the producer's codec; Codec.NONE is ``uncompressed``.
    Units:   *_ms milliseconds, *_bytes bytes; -1 in retention_* is no limit.
    """

    max_message_bytes: int = 1_048_588
    compacted: bool = False
    deleted: bool = True
    compression: Codec | None = None
    log_append_time: bool = False
    timestamp_before_max_ms: int = _LONGEST
    timestamp_after_max_ms: int = 3_600_000
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    index_interval_bytes: int = 4_096
    retention_bytes: int = -1
    retention_ms: int = 604_800_000
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _LONGEST
    min_cleanable_dirty_ratio: float = 0.5
    flush_messages: int = _LONGEST
    flush_ms: int = _LONGEST

    @property
    def max_segment_ms(self) -> int:
        """The longest time between the records of a segment, so that compaction gets to them."""
        if self.compacted and self.max_compaction_lag_ms > 0:
            return min(self.max_compaction_lag_ms, self.segment_ms)
        return self.segment_ms

    @classmethod
    def of(cls, of_topic: Mapping[str, str], broker: BrokerLevels) -> LogConfig:
        """The configs of a topic: its own, else a broker's, else the default."""
        if not of_topic and all(_SYNONYMS.isdisjoint(level) for _, level in broker.levels()):
            # Most logs: Kafka's table of configs need not be asked for each of them.
            return DEFAULT_LOG_CONFIG

        levels = (frozenset(level.items()) for _, level in broker.levels())
        return _log_config(frozenset(of_topic.items()), *levels)

    @classmethod
    def _of(cls, of_topic: Mapping[str, str], broker: BrokerLevels) -> LogConfig:
        def text(name: str) -> str:
            return effective_topic_config(name, of_topic, broker).value or ""

        policies = {policy.strip() for policy in text("cleanup.policy").split(",")}
        return cls(
            max_message_bytes=int(text("max.message.bytes")),
            compacted="compact" in policies,
            deleted="delete" in policies,
            compression=_compression(text("compression.type").strip()),
            log_append_time=text("message.timestamp.type").strip() == "LogAppendTime",
            timestamp_before_max_ms=int(text("message.timestamp.before.max.ms")),
            timestamp_after_max_ms=int(text("message.timestamp.after.max.ms")),
            segment_bytes=int(of_topic.get("internal.segment.bytes") or text("segment.bytes")),
            segment_ms=int(text("segment.ms")),
            index_interval_bytes=int(text("index.interval.bytes")),
            retention_bytes=int(text("retention.bytes")),
            retention_ms=int(text("retention.ms")),
            delete_retention_ms=int(text("delete.retention.ms")),
            min_compaction_lag_ms=int(text("min.compaction.lag.ms")),
            max_compaction_lag_ms=int(text("max.compaction.lag.ms")),
            min_cleanable_dirty_ratio=float(text("min.cleanable.dirty.ratio")),
            flush_messages=int(text("flush.messages")),
            flush_ms=int(text("flush.ms")),
        )


DEFAULT_LOG_CONFIG = LogConfig()
_Items = frozenset[tuple[str, str]]


@lru_cache(maxsize=256)
def _log_config(of_topic: _Items, own: _Items, cluster: _Items, static: _Items) -> LogConfig:
    """The configs of one content, remembered: a topic has a log for each of its partitions."""
    broker = BrokerLevels(dict(own), dict(cluster), dict(static))
    return LogConfig._of(dict(of_topic), broker)


def _compression(name: str) -> Codec | None:
    if name == "uncompressed":
        return Codec.NONE
    return _CODECS.get(name)  # none for "producer"
