"""The records of the metadata log and of its snapshots, in every version that Kafka 3.0 to 4.3 has.

A metadata record's bytes in the log begin with a frame (``framing``); a control record's do not.
"""

from __future__ import annotations

from minicluster.protocol.records.brokers import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from minicluster.protocol.records.control import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from minicluster.protocol.records.framing import (
    CONTROL_CLASSES,
    RECORD_CLASSES,
    VersionedRecord,
    decode_control,
    decode_record,
    encode_control,
    encode_record,
    record_name,
)
from minicluster.protocol.records.partitions import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from minicluster.protocol.records.security import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from minicluster.protocol.records.settings import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    ProducerIdsRecord,
    ZkMigrationStateRecord,
)
from minicluster.protocol.records.transactions import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)

__all__ = [
    "CONTROL_CLASSES",
    "RECORD_CLASSES",
    "AbortTransactionRecord",
    "AccessControlEntryRecord",
    "BeginTransactionRecord",
    "BrokerRegistrationChangeRecord",
    "ClearElrRecord",
    "ClientQuotaRecord",
    "ConfigRecord",
    "DelegationTokenRecord",
    "EndTransactionRecord",
    "EndTxnMarker",
    "FeatureLevelRecord",
    "FenceBrokerRecord",
    "KRaftVersionRecord",
    "LeaderChangeMessage",
    "NoOpRecord",
    "PartitionChangeRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RegisterBrokerRecord",
    "RegisterControllerRecord",
    "RemoveAccessControlEntryRecord",
    "RemoveDelegationTokenRecord",
    "RemoveTopicRecord",
    "RemoveUserScramCredentialRecord",
    "SnapshotFooterRecord",
    "SnapshotHeaderRecord",
    "TopicRecord",
    "UnfenceBrokerRecord",
    "UnregisterBrokerRecord",
    "UserScramCredentialRecord",
    "VersionedRecord",
    "VotersRecord",
    "ZkMigrationStateRecord",
    "decode_control",
    "decode_record",
    "encode_control",
    "encode_record",
    "record_name",
]
