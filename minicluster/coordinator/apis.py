"""The APIs of the coordinators, by which a broker routes requests before it has loaded their code.

Source:  KafkaApis.handle.
"""

from __future__ import annotations

GROUP_APIS = frozenset(
    {
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "DeleteGroups",
        "DescribeGroups",
        "Heartbeat",
        "JoinGroup",
        "LeaveGroup",
        "ListGroups",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
        "SyncGroup",
        "TxnOffsetCommit",
    }
)
TRANSACTION_APIS = frozenset(
    {
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "DescribeTransactions",
        "EndTxn",
        "InitProducerId",
        "ListTransactions",
    }
)
WRITE_TXN_MARKERS = "WriteTxnMarkers"
COORDINATOR_APIS = GROUP_APIS | TRANSACTION_APIS | {WRITE_TXN_MARKERS}
