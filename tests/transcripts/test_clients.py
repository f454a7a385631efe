"""A cluster of one broker responds to clients as one Apache Kafka node did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts.clients import play
from tests.transcripts.report import DIFFER, NOT_BUILT, OTHER_MESSAGE, Tally

DATA = Path(__file__).parents[1] / "data" / "clients-transcripts"
AGREES_IN_FULL = {
    "admin": (
        "AlterClientQuotas",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "AlterReplicaLogDirs",
        "AlterUserScramCredentials",
        "CreatePartitions",
        "CreateTopics",
        "DeleteTopics",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeDelegationToken",
        "DescribeQuorum",
        "DescribeUserScramCredentials",
        "ElectLeaders",
        "IncrementalAlterConfigs",
        "ListConfigResources",
        "ListGroups",
        "ListPartitionReassignments",
        "Metadata",
        "UpdateFeatures",
    ),
    "classic": (
        "ConsumerGroupDescribe",
        "CreateTopics",
        "DeleteGroups",
        "DescribeGroups",
        "FindCoordinator",
        "Heartbeat",
        "JoinGroup",
        "LeaveGroup",
        "ListGroups",
        "Metadata",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
        "SyncGroup",
    ),
    "consumer": (
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "CreatePartitions",
        "CreateTopics",
        "DeleteGroups",
        "DescribeGroups",
        "FindCoordinator",
        "ListGroups",
        "Metadata",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
    ),
    "data": (
        "(connection closed)",
        "CreateTopics",
        "DeleteRecords",
        "DeleteTopics",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "Fetch",
        "InitProducerId",
        "ListOffsets",
        "OffsetForLeaderEpoch",
        "Produce",
    ),
    "odd": (
        "AlterClientQuotas",
        "AlterConfigs",
        "AlterPartitionReassignments",
        "AlterReplicaLogDirs",
        "AlterUserScramCredentials",
        "ConsumerGroupDescribe",
        "CreatePartitions",
        "CreateTopics",
        "DeleteGroups",
        "DeleteRecords",
        "DeleteTopics",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "DescribeUserScramCredentials",
        "ElectLeaders",
        "FindCoordinator",
        "IncrementalAlterConfigs",
        "InitProducerId",
        "ListConfigResources",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetCommit",
        "OffsetDelete",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "UnregisterBroker",
        "UpdateFeatures",
    ),
    "transactions": (
        "AddOffsetsToTxn",
        "AddPartitionsToTxn",
        "CreateTopics",
        "DescribeProducers",
        "DescribeTransactions",
        "EndTxn",
        "Fetch",
        "FindCoordinator",
        "InitProducerId",
        "ListOffsets",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "Produce",
        "TxnOffsetCommit",
    ),
}
SECURED = DATA.parent / "security" / "client-answers"
RACES = {
    # Between an abort and its markers.
    "secured-seed-3": {"AddOffsetsToTxn": 1},
    # A marker that was written within 8 ms; elsewhere in the recordings none was after 7 ms.
    "transactions-seed-1": {"DescribeProducers": 1},
    # A topic that the node has created, and has not published yet.
    "transactions-seed-3": {"Metadata": 1},
}
"""Responses that came before or after something else that the recorded node was about to do."""


@pytest.mark.parametrize(
    "path", sorted(DATA.glob("*.gz")), ids=lambda path: path.name.removesuffix(".jsonl.gz")
)
def test_a_recording_agrees(path: Path) -> None:
    tally = Tally()
    tally.add(play(path), show=3)
    played = [api for api in AGREES_IN_FULL[path.name.split("-")[0]] if api in tally.counts]
    assert played
    for api in played:  # a seed leaves some APIs out
        row = tally.counts[api]
        races = RACES.get(path.name.removesuffix(".jsonl.gz"), {}).get(api, 0)
        assert row[DIFFER] == races, (api, tally.as_text())
        assert row[NOT_BUILT] == row[OTHER_MESSAGE] == 0, (api, tally.as_text())


@pytest.mark.parametrize(
    "path", sorted(SECURED.glob("*.gz")), ids=lambda path: path.name.removesuffix(".jsonl.gz")
)
def test_a_node_with_an_authorizer_agrees(path: Path) -> None:
    """Every error at its level, and nothing shown that may not be seen.

    ApiVersions alone differs: by the APIs that are not here.
    """
    tally = Tally()
    tally.add(play(path), show=3)
    races = RACES.get(path.name.removesuffix(".jsonl.gz"), {})
    assert len(tally.counts) > 50
    for api, row in tally.counts.items():
        assert row[DIFFER] == races.get(api, 0), (api, tally.as_text())
        assert row[OTHER_MESSAGE] == 0, (api, tally.as_text())
        assert row[NOT_BUILT] == 0 or api == "ApiVersions", (api, tally.as_text())
