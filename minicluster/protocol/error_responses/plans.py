"""Kafka's rule of each API for a response that carries one error about a whole request.

An API without a row has the error at the top of its response, with the given text. A row names
what Kafka does besides: the items that repeat the error, other fields, another text.

Source:  the getErrorResponse methods of Kafka's requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

NAMES = frozenset(
    {
        "entity_name",
        "entity_type",
        "group_id",
        "index",
        "name",
        "partition",
        "partition_index",
        "producer_id",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "topic_name",
    }
)
"""The fields that identify the thing of an item."""


class Text(Enum):
    """The content of ``error_message``."""

    GIVEN = "the message of the exception, null where it has only the text of its code"
    OF_EXCEPTION = "the message of the exception, or the text of its code"
    OF_CODE = "the text of the code"
    DEFAULT = "the default of the field"


@dataclass(frozen=True, slots=True)
class Each:
    """One item of a response for each item of the request.

    Shapes:  of names the request's arrays, in order, with dots for arrays within arrays. Fields
             that name a thing (``NAMES``) are copied, also from the owners of the array; copies
             maps further fields of the response to the request's. plain is the field for an item
             that is no structure. inside has the arrays within the item, values its fields with
             fixed content. distinct leaves repeated items out, filled those without inner items.
             Where nulls are no option, a null of the request becomes the default.
    """

    of: tuple[str, ...]
    plain: str = ""
    copies: Mapping[str, str] = field(default_factory=dict)
    inside: Mapping[str, Each] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    text: Text = Text.GIVEN
    versions: str = "0+"
    distinct: bool = False
    filled: bool = False
    nulls: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    """The rule of one API: the arrays of its response, further fields at the top, and the text."""

    inside: Mapping[str, Each] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    text: Text = Text.GIVEN


def _states(plan_text: Text) -> Plan:
    """The share coordinator's APIs: topics and their partitions."""
    partitions = Each(("partitions",), text=plan_text)
    return Plan({"results": Each(("topics",), inside={"partitions": partitions})})


def _described(of: str, field_: str, name: str) -> Plan:
    """One description for each name that the request lists."""
    return Plan({name: Each((of,), plain=field_, text=Text.DEFAULT)})


def _altered(name: str) -> Plan:
    return Plan({name: Each(("resources",))})


def _indexes(of: str = "partitions", **more: Any) -> Each:
    """Partitions that the request lists as plain numbers."""
    return Each((of,), plain="partition_index", **more)


_TEXT_OF_CODE = Plan(text=Text.OF_CODE)
_NO_TEXT = Plan(text=Text.DEFAULT)
_COMMITTED = Each(("topics",), inside={"partitions": Each(("partitions",))})
_OF_TOPICS = Plan({"topics": _COMMITTED})
_TXN_TOPIC = Each(("v3_and_below_topics",), inside={"results_by_partition": _indexes()})

PLANS: Mapping[str, Plan] = {
    "AddPartitionsToTxn": Plan({"results_by_topic_v3_and_below": _TXN_TOPIC}),
    "AddRaftVoter": _TEXT_OF_CODE,
    "AlterClientQuotas": Plan(
        {
            "entries": Each(
                ("entries",),
                inside={"entity": Each(("entity",))},
                text=Text.OF_CODE,
            )
        }
    ),
    "AlterConfigs": _altered("responses"),
    "AlterPartitionReassignments": Plan(
        {"responses": Each(("topics",), inside={"partitions": Each(("partitions",))})}
    ),
    "AlterReplicaLogDirs": Plan(
        {
            "results": Each(
                ("dirs.topics",), copies={"topic_name": "name"}, inside={"partitions": _indexes()}
            )
        }
    ),
    "AlterShareGroupOffsets": _TEXT_OF_CODE,
    "AlterUserScramCredentials": Plan(
        {"results": Each(("deletions", "upsertions"), copies={"user": "name"}, distinct=True)}
    ),
    "ConsumerGroupDescribe": _described("group_ids", "group_id", "groups"),
    "ConsumerGroupHeartbeat": _NO_TEXT,
    "ControllerRegistration": _TEXT_OF_CODE,
    "CreateAcls": Plan({"results": Each(("creations",))}),
    "CreateDelegationToken": Plan(
        values={
            "principal_type": "User",
            "principal_name": "ANONYMOUS",
            "token_requester_principal_type": "User",
            "token_requester_principal_name": "ANONYMOUS",
            "issue_timestamp_ms": -1,
            "expiry_timestamp_ms": -1,
            "max_timestamp_ms": -1,
        }
    ),
    "CreatePartitions": Plan({"results": Each(("topics",))}),
    "CreateTopics": Plan({"topics": Each(("topics",))}),
    "DeleteAcls": Plan({"filter_results": Each(("filters",))}),
    "DeleteGroups": _described("groups_names", "group_id", "results"),
    "DeleteRecords": Plan(
        {
            "topics": Each(
                ("topics",),
                inside={"partitions": Each(("partitions",), values={"low_watermark": -1})},
            )
        }
    ),
    "DeleteShareGroupOffsets": _TEXT_OF_CODE,
    "DeleteShareGroupState": _states(Text.DEFAULT),
    "DeleteTopics": Plan(
        {"responses": Each(("topic_names", "topics"), plain="name", text=Text.DEFAULT)}
    ),
    "DescribeClientQuotas": Plan(values={"entries": None}),
    "DescribeConfigs": Plan({"results": Each(("resources",), text=Text.OF_CODE)}),
    "DescribeGroups": _described("groups", "group_id", "groups"),
    "DescribeProducers": Plan(
        {
            "topics": Each(
                ("topics",),
                inside={"partitions": _indexes("partition_indexes", text=Text.DEFAULT)},
            )
        }
    ),
    "DescribeQuorum": _TEXT_OF_CODE,
    "DescribeShareGroupOffsets": Plan({"groups": Each(("groups",), text=Text.OF_EXCEPTION)}),
    "DescribeTopicPartitions": Plan({"topics": Each(("topics",))}),
    "DescribeTransactions": _described(
        "transactional_ids", "transactional_id", "transaction_states"
    ),
    "DescribeUserScramCredentials": Plan({"results": Each(("users",))}),
    "ElectLeaders": Plan(
        {
            "replica_election_results": Each(
                ("topic_partitions",),
                inside={"partition_result": Each(("partitions",), plain="partition_id")},
            )
        }
    ),
    "Fetch": Plan(
        {
            "responses": Each(
                ("topics",),
                inside={
                    "partitions": Each(
                        ("partitions",),
                        copies={"partition_index": "partition"},
                        values={"high_watermark": -1, "records": b""},
                    )
                },
                versions="0-12",
            )
        },
        copies={"session_id": "session_id"},
    ),
    "FindCoordinator": Plan(
        {
            "coordinators": Each(
                ("coordinator_keys",),
                plain="key",
                values={"node_id": -1, "port": -1},
                text=Text.OF_CODE,
            )
        },
        values={"node_id": -1, "port": -1},
        text=Text.OF_CODE,
    ),
    "IncrementalAlterConfigs": _altered("responses"),
    "InitProducerId": Plan(values={"producer_id": -1, "producer_epoch": -1}),
    "InitializeShareGroupState": _states(Text.DEFAULT),
    "JoinGroup": Plan(values={"protocol_name": None}),
    "ListOffsets": _OF_TOPICS,
    "ListPartitionReassignments": Plan(
        {"topics": Each(("topics",), inside={"partitions": _indexes("partition_indexes")})}
    ),
    "Metadata": Plan({"topics": Each(("topics",), nulls=False)}),
    "OffsetCommit": _OF_TOPICS,
    "OffsetFetch": Plan(
        {
            "topics": Each(
                ("topics",),
                inside={
                    "partitions": _indexes("partition_indexes", values={"committed_offset": -1})
                },
                versions="0-1",
            ),
            "groups": Each(("groups",)),
        }
    ),
    "OffsetForLeaderEpoch": _OF_TOPICS,
    "Produce": Plan(
        {
            "responses": Each(
                ("topic_data",),
                inside={
                    "partition_responses": Each(("partition_data",), values={"base_offset": -1})
                },
                filled=True,
            )
        }
    ),
    "ReadShareGroupState": _states(Text.OF_CODE),
    "ReadShareGroupStateSummary": _states(Text.OF_CODE),
    "RemoveRaftVoter": _TEXT_OF_CODE,
    "ShareAcknowledge": _NO_TEXT,
    "ShareFetch": _NO_TEXT,
    "ShareGroupDescribe": _described("group_ids", "group_id", "groups"),
    "ShareGroupHeartbeat": _NO_TEXT,
    "StreamsGroupDescribe": _described("group_ids", "group_id", "groups"),
    "StreamsGroupHeartbeat": _NO_TEXT,
    "TxnOffsetCommit": _OF_TOPICS,
    "UnregisterBroker": Plan(text=Text.OF_EXCEPTION),
    "WriteShareGroupState": _states(Text.OF_CODE),
    "WriteTxnMarkers": Plan(
        {
            "markers": Each(
                ("markers",),
                inside={
                    "topics": Each(
                        ("topics",), inside={"partitions": _indexes("partition_indexes")}
                    )
                },
            )
        }
    ),
    "LeaderAndIsr": Plan(
        {
            "partition_errors": Each(
                ("ungrouped_partition_states", "topic_states.partition_states")
            ),
            "topics": Each(
                ("topic_states",), inside={"partition_errors": Each(("partition_states",))}
            ),
        }
    ),
    "StopReplica": Plan(
        {
            "partition_errors": Each(
                (
                    "ungrouped_partitions",
                    "topics.partition_indexes",
                    "topic_states.partition_states",
                ),
                plain="partition_index",
                copies={"topic_name": "name"},
            )
        }
    ),
}
