"""What the replicas of a broker are told when it starts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from minicluster.replica.fetching.fetcher import FetcherConfig
from minicluster.replica.partition.state import REPLICA_LAG_TIME_MAX_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaManagerConfig:
    """Who this broker is, and its replica settings."""

    broker_id: int
    incarnation: str = ""
    replica_lag_time_max_ms: int = REPLICA_LAG_TIME_MAX_MS
    min_insync_replicas: int = 1
    checkpoint_interval_ms: int = 5_000
    flush_interval_ms: int = 30_000  # Kafka leaves it to the system, which writes back in time
    fetcher: FetcherConfig = field(default_factory=FetcherConfig)
    dir_names: Mapping[str, uuid.UUID] = field(default_factory=dict)  # as log.dirs names them
    metadata_directory: uuid.UUID | None = None  # None: the metadata log has a place of its own
    traced: bool = True
