"""Planted faults that no cluster can show, because what they write is refused where it is read."""

from __future__ import annotations

import pytest

from minicluster.controller.periodic_tasks import maybe_fence_stale_broker
from minicluster.controller.state.broker_heartbeat_manager import BrokerIdAndEpoch
from minicluster.faults import Faults
from minicluster.log.batch import metadata_batch
from minicluster.log.control import control_batch
from minicluster.protocol import records as r
from minicluster.verify import LiveJudge
from tests.controller.kit import Cluster


def judged(cluster: Cluster, *more: r.VersionedRecord) -> list[str]:
    """The rules that a controller's log breaks, with records at its end that it did not append."""
    judge = LiveJudge()
    judge.commit(control_batch(0, 1, 0, (r.LeaderChangeMessage(leader_id=101),)))
    for offset, record in cluster.log.items():
        judge.commit(metadata_batch(offset, 1, 0, [record]))
    for offset, record in enumerate(more, cluster.end):
        judge.commit(metadata_batch(offset, 1, 0, [record]))
    return [finding.rule for finding in judge.findings]


@pytest.mark.parametrize("fault", [None, "S16"])
def test_s16_a_session_that_is_over_fences_nobody_else(fault: str | None) -> None:
    """D4. The next incarnation registers after the session, and before that is noticed."""
    cluster = Cluster(faults=Faults.of([fault] if fault else []))
    cluster.start(1, 2)
    old_epoch = cluster.epoch(1)
    cluster.now_ms += 9_001
    assert cluster.register(1, number=1).error_code == 0
    state = cluster.machine.state
    decided = maybe_fence_stale_broker(state, cluster.now_ms, first=BrokerIdAndEpoch(1, old_epoch))

    assert state.take_hits() == ([fault] if fault else [])
    assert len(decided.records) == (1 if fault else 0)
    assert judged(cluster) == []
    assert judged(cluster, *decided.records) == (["D4"] if fault else [])


def test_s16_what_it_writes_is_refused_where_it_is_applied() -> None:
    """No log of a cluster can hold the record, for the fold has a later broker epoch."""
    cluster = Cluster(faults=Faults.of(["S16"]))
    cluster.start(1)
    cluster.now_ms += 9_001
    assert cluster.register(1, number=1).error_code == 0
    expired = maybe_fence_stale_broker(cluster.machine.state, cluster.now_ms)
    before = cluster.end
    cluster.run(cluster.now_ms + 2_000)

    assert len(expired.records) == 1
    later = [record for offset, record in cluster.log.items() if offset >= before]
    assert not any(record in expired.records for record in later)
