"""The names that a topic's config may have, as Kafka's controller checks them."""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.errors import UserError, instead

# Those of 3.9 and of 4.3 together.
# Source:  LogConfig.configNames, used by ControllerConfigurationValidator.
NAMES = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "internal.segment.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.downconversion.enable",
    "message.format.version",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)


def check_topic_configs(names: Iterable[str]) -> None:
    """Reject a name that no topic config has: setting it would do nothing.

    Errors:  UserError with the name that was meant, if one is near.
    """
    for name in names:
        if name not in NAMES:
            hint = instead(name, NAMES, "write one such as min.insync.replicas")
            raise UserError(f"unknown topic config {name!r}; {hint}")
