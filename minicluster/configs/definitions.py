"""The configs of topics, brokers, groups and client metrics, as Kafka 4.3.0 defines them.

The table lies beside this module, a line of JSON for each config; it was written from Kafka's own
ConfigDefs.

Source:  LogConfig, AbstractKafkaConfig, GroupConfig, ClientMetricsConfigs, DynamicBrokerConfig.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from minicluster.configs.config_def import ConfigDef, ConfigKey

TOPIC_SYNONYMS = {
    "segment.bytes": ("log.segment.bytes",),
    "segment.ms": ("log.roll.ms", "log.roll.hours"),
    "segment.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "segment.index.bytes": ("log.index.size.max.bytes",),
    "flush.messages": ("log.flush.interval.messages",),
    "flush.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "retention.bytes": ("log.retention.bytes",),
    "retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "max.message.bytes": ("message.max.bytes",),
    "index.interval.bytes": ("log.index.interval.bytes",),
    "delete.retention.ms": ("log.cleaner.delete.retention.ms",),
    "min.compaction.lag.ms": ("log.cleaner.min.compaction.lag.ms",),
    "max.compaction.lag.ms": ("log.cleaner.max.compaction.lag.ms",),
    "file.delete.delay.ms": ("log.segment.delete.delay.ms",),
    "min.cleanable.dirty.ratio": ("log.cleaner.min.cleanable.ratio",),
    "cleanup.policy": ("log.cleanup.policy",),
    "unclean.leader.election.enable": ("unclean.leader.election.enable",),
    "min.insync.replicas": ("min.insync.replicas",),
    "compression.type": ("compression.type",),
    "compression.gzip.level": ("compression.gzip.level",),
    "compression.lz4.level": ("compression.lz4.level",),
    "compression.zstd.level": ("compression.zstd.level",),
    "preallocate": ("log.preallocate",),
    "message.timestamp.type": ("log.message.timestamp.type",),
    "message.timestamp.before.max.ms": ("log.message.timestamp.before.max.ms",),
    "message.timestamp.after.max.ms": ("log.message.timestamp.after.max.ms",),
    "local.retention.ms": ("log.local.retention.ms",),
    "local.retention.bytes": ("log.local.retention.bytes",),
}
"""A topic's config -> the broker configs behind it, the strongest first.

Source:  ServerTopicConfigSynonyms.
"""

UNIT_MS = {".hours": 3_600_000, ".minutes": 60_000}
"""Broker configs that end so count in these units where a topic's count milliseconds."""

GROUP_SYNONYMS_MISSING = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)
"""Configs of groups without a broker config behind them (ALL_GROUP_CONFIG_SYNONYMS)."""


@cache
def _tables() -> dict[str, ConfigDef]:
    lines = Path(__file__).with_name("kafka_4_3.jsonl").read_text("utf-8").splitlines()
    tables: dict[str, dict[str, ConfigKey]] = {}
    for row in json.loads(f"[{','.join(lines)}]"):  # one call for all lines
        tables.setdefault(row["resource"], {})[row["name"]] = ConfigKey(
            name=row["name"],
            type_=row["type"],
            default=row["default"],
            validator=row.get("validator"),
            documentation=row["documentation"],
            internal=row.get("internal", False),
            required=row.get("required", False),
            dynamic=row.get("dynamic"),
        )
    return {resource: ConfigDef(keys) for resource, keys in tables.items()}


def topic_configs() -> ConfigDef:
    """The configs of topics (LogConfig)."""
    return _tables()["topic"]


def broker_configs() -> ConfigDef:
    """The configs of brokers and controllers (AbstractKafkaConfig)."""
    return _tables()["broker"]


def group_configs() -> ConfigDef:
    """The configs of groups (GroupConfig)."""
    return _tables()["group"]


def client_metrics_configs() -> ConfigDef:
    """The configs of client metrics subscriptions (ClientMetricsConfigs)."""
    return _tables()["client-metrics"]


def in_topic_units(broker_config: str, value: str) -> str:
    """A broker config's value in the units of the topic config behind which it is.

    Source:  ConfigSynonym.HOURS_TO_MILLISECONDS, MINUTES_TO_MILLISECONDS.
    """
    for ending, unit_ms in UNIT_MS.items():
        if broker_config.endswith(ending):
            return str((int(value) if value.strip() else 0) * unit_ms)
    return value


def group_synonym(name: str) -> str | None:
    """The broker config behind a group's config."""
    return None if name in GROUP_SYNONYMS_MISSING else f"group.{name}"
