"""Each switch does its damage and counts a hit; the other tests show the cluster without."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import minicluster.replica.machine
from minicluster.faults import Faults
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS


def cluster_with(switch: str | None) -> Cluster:
    cluster = Cluster(faults=Faults.of([switch] if switch else []))
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(600)
    return cluster


@pytest.mark.parametrize("switch", ["Z38", None])
def test_z38_a_fetch_of_another_leader_epoch_is_served(switch: str | None) -> None:
    cluster = cluster_with(switch) if switch else Cluster()
    if switch is None:
        cluster.create_topic()
    kind = FetchRequest
    requested = kind.FetchPartition(
        partition=0, fetch_offset=0, current_leader_epoch=5, partition_max_bytes=1_000
    )
    topic = kind.FetchTopic(topic_id=TOPIC_IDS["orders"], partitions=(requested,))
    token = cluster.request(1, kind(topics=(topic,), max_bytes=1_000), 13)
    error = ErrorCode(cluster.fetched(token)[0].error_code)
    assert error == (ErrorCode.NONE if switch else ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert cluster.hits == ([switch] if switch else [])


def test_z45_a_restart_deletes_what_should_stay() -> None:
    cluster = cluster_with("Z45")
    cluster.cuts.add((2, 1))
    cluster.crash(2)
    cluster.start(2, epoch=2_002)
    assert cluster.hits == ["Z45"]
    assert cluster.log_values(2) == []


def test_s30_a_follower_truncates_what_is_committed() -> None:
    cluster = cluster_with("S30")
    cluster.change(leader=2)
    assert "S30" in cluster.hits
    cuts = [row for row in cluster.traces if row["kind"] == "truncate"]
    assert all(row["offset"] < row["hw_old"] for row in cuts)
    assert len(cuts) == 2


def test_no_rule_looks_at_a_planted_fault() -> None:
    """Faults are beside the rules, in the zoo."""
    room = Path(minicluster.replica.machine.__file__).parent
    switches = re.compile(rf"\b({'|'.join(Faults.switches().values())})\b")
    looking = [
        path.name
        for path in sorted(room.rglob("*.py"))
        if switches.search(path.read_text(encoding="utf-8"))
    ]
    assert looking == []
