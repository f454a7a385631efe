"""A refusal with its reason, since one error code has several: INVALID_REQUEST has seven.

Source:  the log lines of ReplicationControlManager and ClusterControlManager.
"""

from __future__ import annotations

from enum import StrEnum

from minicluster.lazy_dataclass import dataclass
from minicluster.protocol import ErrorCode


class Reason(StrEnum):
    """Why a controller refuses a request of a broker, or a partition of it."""

    # The sender.
    NOT_REGISTERED = "not registered"
    BROKER_EPOCH_MISMATCH = "broker epoch mismatch"
    CLUSTER_ID_MISMATCH = "cluster id mismatch"
    DUPLICATE_REGISTRATION = "duplicate registration"
    ZK_BROKER = "ZooKeeper broker"
    INVALID_DIRECTORIES = "invalid directories"
    UNSUPPORTED_FEATURE_LEVEL = "unsupported feature level"
    UNSUPPORTED_METADATA_VERSION = "unsupported metadata.version"
    API_NOT_SERVED = "API not served"
    # The partition.
    UNKNOWN_TOPIC = "unknown topic"
    UNKNOWN_PARTITION = "unknown partition"
    LEADER_EPOCH_AHEAD = "leader epoch ahead of the controller"
    PARTITION_EPOCH_AHEAD = "partition epoch ahead of the controller"
    STALE_LEADER_EPOCH = "stale leader epoch"
    STALE_PARTITION_EPOCH = "stale partition epoch"
    NOT_LEADER = "not the leader"
    NOT_A_REPLICA = "not a replica"
    # The proposed ISR.
    DUPLICATE_IN_ISR = "duplicate in ISR"
    NOT_IN_REPLICAS = "not in replicas"
    LEADER_NOT_IN_ISR = "leader not in ISR"
    ISR_GROWS_WHILE_RECOVERING = "ISR of several while recovering"
    RECOVERED_TO_RECOVERING = "recovered to recovering"
    SHUTTING_DOWN = "shutting down"
    FENCED = "fenced"
    REPLICA_OFFLINE = "replica offline"
    REFUSED_WITH_ANOTHER = "refused with another partition"
    LEADER_CHANGED = "leader changed by this request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One refusal of a request, or of one partition of it.

    Shapes:  message is what Kafka logs; topic is empty and partition -1 for a whole request.
    """

    error: ErrorCode
    reason: Reason
    message: str
    topic: str = ""
    partition: int = -1
