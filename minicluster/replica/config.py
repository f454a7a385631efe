"""The replica settings of a broker."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

REPLICA_LAG_TIME_MAX_MS = 30_000


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
             have here are deleted; False where partitions come one after the other.
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
