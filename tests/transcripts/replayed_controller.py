"""The controller of a transcript as Kafka's records leave it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from minicluster.controller.settings import ControllerSettings
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerHeartbeatManager,
    BrokerIdAndEpoch,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.metadata_version import (
    ELR_VERSION,
    FEATURE_NAME,
    MetadataVersion,
)
from minicluster.protocol.records import FeatureLevelRecord, VersionedRecord
from minicluster.rules import Rules
from tests.controller.applying import apply_record
from tests.transcripts.java_maps import SessionMap

Json = dict[str, Any]


@dataclass(slots=True)
class ReplayedController:
    """The state after Kafka's records so far."""

    state: ClusterState
    heartbeats: BrokerHeartbeatManager
    full_range: range
    level: int
    elr_offered: bool
    sessions: SessionMap = field(default_factory=SessionMap)

    @classmethod
    def of(cls, header: Json, rules: Rules) -> Self:
        """The state before the first operation."""
        settings = ControllerSettings(
            node_id=0,
            cluster_id=header["cluster_id"],
            default_replication_factor=header["default_replication_factor"],
            default_num_partitions=header["default_num_partitions"],
            static_config=header["static_config"],
            broker_session_timeout_ms=header["broker_session_timeout_ms"],
            brokers_with_configs_exist=False,
            validates_configs=False,
            unstable_feature_versions=True,
        )
        state = ClusterState(rules=rules, settings=settings)
        levels = {
            FEATURE_NAME: header["metadata_version_level"],
            ELR_VERSION: header["eligible_leader_replicas_version"],
        }
        for name, level in levels.items():
            if level:
                record = FeatureLevelRecord(name=name, feature_level=level)
                apply_record(state, VersionedRecord(record, 0), -1)
        heartbeats = BrokerHeartbeatManager(rules, settings.broker_session_timeout_ms)
        state.heartbeats = heartbeats
        return cls(
            state,
            heartbeats,
            range(rules.metadata_version_lowest, rules.metadata_version_latest + 1),
            MetadataVersion(header["metadata_version_level"]).level,
            rules.sessions_by_epoch or header["eligible_leader_replicas_version"] > 0,
        )

    def stale_session(self, now_ms: int) -> BrokerIdAndEpoch | None:
        """The first expired session in the order of Kafka's hash map."""
        expired = set(self.heartbeats.expired_sessions(now_ms))
        return next((session for session in self.sessions if session in expired), None)
