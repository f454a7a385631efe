"""The configs that replicas obey: those of a broker, its fetchers', and those of a topic's logs.

Source:  KafkaConfig, ReplicationConfigs; LogConfig, ReplicaManager.updateLogConfig.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache

from minicluster.configs.definitions import TOPIC_SYNONYMS
from minicluster.configs.effective import BrokerLevels, effective_topic_config
from minicluster.configs.views import broker_config, topic_config, topic_default, values_of
from minicluster.log.format.compression import Codec
from minicluster.values import dataclass

MIN_INSYNC_REPLICAS: int = topic_default("min.insync.replicas")
_SMALL_SEGMENTS = "internal.segment.bytes"
_NEVER = str((1 << 63) - 1)
_SYNONYMS = frozenset(name for names in TOPIC_SYNONYMS.values() for name in names) - {
    "min.insync.replicas",
    "unclean.leader.election.enable",
}
_CODECS = {codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}


def _unless_never(text: str | None) -> int | None:
    return None if text in (None, _NEVER) else int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherConfig:
    """Kafka's replica.fetch.* settings, and the versions of a follower's requests."""

    max_wait_ms: int = broker_config("replica.fetch.wait.max.ms")
    min_bytes: int = broker_config("replica.fetch.min.bytes")
    max_bytes: int = broker_config("replica.fetch.response.max.bytes")
    partition_max_bytes: int = broker_config("replica.fetch.max.bytes")
    backoff_ms: int = broker_config("replica.fetch.backoff.ms")
    request_timeout_ms: int = broker_config("request.timeout.ms")
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
    replica_lag_time_max_ms: int = broker_config("replica.lag.time.max.ms")
    min_insync_replicas: int = broker_config("min.insync.replicas")
    static: Mapping[str, str] = field(default_factory=dict)
    checkpoint_interval_ms: int = broker_config("replica.high.watermark.checkpoint.interval.ms")
    flush_interval_ms: int = 30_000  # Kafka leaves flushing to the operating system
    initial_task_delay_ms: int = broker_config("log.initial.task.delay.ms")
    retention_check_interval_ms: int = broker_config("log.retention.check.interval.ms")
    cleans: bool = broker_config("log.cleaner.enable")
    cleaner_backoff_ms: int = broker_config("log.cleaner.backoff.ms")
    # None: no log is flushed by its age (flush.ms).
    flush_check_interval_ms: int | None = broker_config(
        "log.flush.scheduler.interval.ms", _unless_never
    )
    producer_id_expiration_ms: int = broker_config("producer.id.expiration.ms")
    producer_id_expiration_check_interval_ms: int = broker_config(
        "producer.id.expiration.check.interval.ms"
    )
    fetch_max_bytes: int = broker_config("fetch.max.bytes")
    fetch_session_slots: int = broker_config("max.incremental.fetch.session.cache.slots")
    replica_selector: str | None = broker_config("replica.selector.class")
    replication_quota_samples: int = broker_config("replication.quota.window.num")
    replication_quota_window_s: int = broker_config("replication.quota.window.size.seconds")
    alter_log_dirs_quota_samples: int = broker_config("alter.log.dirs.replication.quota.window.num")
    alter_log_dirs_quota_window_s: int = broker_config(
        "alter.log.dirs.replication.quota.window.size.seconds"
    )
    fetcher: FetcherConfig = field(default_factory=FetcherConfig)
    dir_names: Mapping[str, uuid.UUID] = field(default_factory=dict)
    metadata_directory: uuid.UUID | None = None
    listener: str = "PLAINTEXT"
    traced: bool = True
    removes_strays: bool = True


# --- configs of a topic's logs ------------------------------------------------------------------


def _has_policy(policy: str) -> Callable[[str | None], bool]:
    return lambda text: policy in {name.strip() for name in (text or "").split(",")}


def _compression(text: str | None) -> Codec | None:
    name = (text or "").strip()
    if name == "uncompressed":
        return Codec.NONE
    return _CODECS.get(name)  # none for "producer"


def _is_log_append_time(text: str | None) -> bool:
    return (text or "").strip() == "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The topic configs that a log acts on.

    Shapes:  compression is None for the producer's codec; Codec.NONE is ``uncompressed``.
    Units:   *_ms milliseconds, *_bytes bytes; -1 in retention_* is none.
    """

    max_message_bytes: int = topic_config("max.message.bytes")
    compacted: bool = topic_config("cleanup.policy", _has_policy("compact"))
    deleted: bool = topic_config("cleanup.policy", _has_policy("delete"))
    compression: Codec | None = topic_config("compression.type", _compression)
    log_append_time: bool = topic_config("message.timestamp.type", _is_log_append_time)
    timestamp_before_max_ms: int = topic_config("message.timestamp.before.max.ms")
    timestamp_after_max_ms: int = topic_config("message.timestamp.after.max.ms")
    segment_bytes: int = topic_config("segment.bytes")
    segment_ms: int = topic_config("segment.ms")
    index_interval_bytes: int = topic_config("index.interval.bytes")
    retention_bytes: int = topic_config("retention.bytes")
    retention_ms: int = topic_config("retention.ms")
    delete_retention_ms: int = topic_config("delete.retention.ms")
    min_compaction_lag_ms: int = topic_config("min.compaction.lag.ms")
    max_compaction_lag_ms: int = topic_config("max.compaction.lag.ms")
    min_cleanable_dirty_ratio: float = topic_config("min.cleanable.dirty.ratio")
    flush_messages: int = topic_config("flush.messages")
    flush_ms: int = topic_config("flush.ms")

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
        def text_of(name: str) -> str | None:
            return effective_topic_config(name, of_topic, broker).value

        values = values_of(cls, text_of)
        # Smaller segments than users may have, for Kafka's own tests and for ours.
        if _SMALL_SEGMENTS in of_topic:
            values["segment_bytes"] = int(of_topic[_SMALL_SEGMENTS])
        return cls(**values)


DEFAULT_LOG_CONFIG = LogConfig()
_Items = frozenset[tuple[str, str]]


@lru_cache(maxsize=256)
def _log_config(of_topic: _Items, own: _Items, cluster: _Items, static: _Items) -> LogConfig:
    """The configs of one content, remembered: a topic has a log for each of its partitions."""
    broker = BrokerLevels(dict(own), dict(cluster), dict(static))
    return LogConfig._of(dict(of_topic), broker)
