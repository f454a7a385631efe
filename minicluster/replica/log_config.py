"""The configs of one topic's logs as they hold on a broker.

Source:  LogConfig; ReplicaManager.updateLogConfig.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from minicluster.configs.definitions import TOPIC_SYNONYMS
from minicluster.configs.effective import BrokerLevels, effective_topic_config
from minicluster.log.format.compression import Codec

_LONGEST = (1 << 63) - 1
_SYNONYMS = frozenset(name for names in TOPIC_SYNONYMS.values() for name in names) - {
    "min.insync.replicas",
    "unclean.leader.election.enable",
}
_CODECS = {codec.name.lower(): codec for codec in Codec if codec is not Codec.NONE}


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
            return DEFAULT  # most logs, and Kafka's table of configs need not be read for them

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


DEFAULT = LogConfig()
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
