"""The APIs of the coordinators: each request, and the function that handles it.

A broker routes requests by these tables, and advertises them, before it has loaded any code of a
coordinator: most clusters have neither a group nor a transaction. So a function stands here by its
module and its name, and ``load`` finds it once a coordinator is made.

Source:  KafkaApis.handle.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from minicluster.protocol import Message
from minicluster.protocol import messages as m

GROUP_APIS: Mapping[type[Message], str] = {
    m.ConsumerGroupDescribeRequest: "groups:handle_consumer_group_describe",
    m.ConsumerGroupHeartbeatRequest: "consumer_group_heartbeat:handle_consumer_group_heartbeat",
    m.DeleteGroupsRequest: "groups:handle_delete_groups",
    m.DescribeGroupsRequest: "groups:handle_describe_groups",
    m.HeartbeatRequest: "classic_members:handle_heartbeat",
    m.JoinGroupRequest: "classic_members:handle_join_group",
    m.LeaveGroupRequest: "classic_members:handle_leave_group",
    m.ListGroupsRequest: "groups:handle_list_groups",
    m.OffsetCommitRequest: "offset_commit:handle_offset_commit",
    m.OffsetDeleteRequest: "offset_delete:handle_offset_delete",
    m.OffsetFetchRequest: "offset_fetch:handle_offset_fetch",
    m.SyncGroupRequest: "classic_members:handle_sync_group",
    m.TxnOffsetCommitRequest: "offset_commit:handle_txn_offset_commit",
}
TRANSACTION_APIS: Mapping[type[Message], str] = {
    m.AddOffsetsToTxnRequest: "add_partitions_to_txn:handle_add_offsets_to_txn",
    m.AddPartitionsToTxnRequest: "add_partitions_to_txn:handle_add_partitions_to_txn",
    m.DescribeTransactionsRequest: "transactions:handle_describe_transactions",
    m.EndTxnRequest: "end_txn:handle_end_txn",
    m.InitProducerIdRequest: "init_producer_id:handle_init_producer_id",
    m.ListTransactionsRequest: "transactions:handle_list_transactions",
}
COORDINATOR_APIS = frozenset({*GROUP_APIS, *TRANSACTION_APIS, m.WriteTxnMarkersRequest})
"""Markers are for the logs of partitions, of which one may be that of groups."""


def load(table: Mapping[type[Message], str], package: str) -> dict[type[Message], Any]:
    """The functions of a table, from the modules of a package."""
    places = {request: place.partition(":") for request, place in table.items()}
    return {
        request: getattr(import_module(f"{package}.{module}"), function)
        for request, (module, _, function) in places.items()
    }
