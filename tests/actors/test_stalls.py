"""A process that did not run for hours: sessions go on, and the date comes back.

The clock leaves the stall out, and what clients see goes by the time of day. Stalls are planted.
"""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.runtime import paced
from minicluster.actors.runtime.paced import PacedRuntime
from minicluster.actors.runtime.runtime import Runtime
from minicluster.actors.runtime.threaded import ThreadedRuntime
from minicluster.actors.runtime.wall_clock import LATE_MAX_S, WallClock

HOUR_MS = 3_600_000
DAY_S = 1_700_000_000.0


def stalled(monkeypatch: pytest.MonkeyPatch, by_ms: int) -> None:
    """The clock of every cluster is so far behind the time of day from now on."""
    monkeypatch.setattr(Runtime, "behind_ms", by_ms)


def timestamps(cluster: MiniCluster, topic: str) -> list[int]:
    leader = inside(cluster).leader_id(topic, 0)
    assert leader is not None
    log = inside(cluster).disks[leader].log(f"{topic}-0")
    return [batch.max_timestamp for batch in log.batches]


def test_after_a_stall_records_have_the_date_and_no_session_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Records of clients are two hours ahead of the clock: INVALID_TIMESTAMP by it (1 hour)."""
    config = {"offsets.topic.num.partitions": 1}
    with MiniCluster(brokers=3, controllers=1, seed=11, config=config) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        appended = cluster.create_topic(
            "appended", configs={"message.timestamp.type": "LogAppendTime"}
        )
        cluster.consume("orders", group="readers")
        (group,) = inside(cluster).groups
        cluster.produce(orders)
        cluster.wait_until(lambda: group.seen == 1)
        leader_epochs = orders[0].leader_epoch, appended[0].leader_epoch
        joined = [row for row in inside(cluster).recorder.table("rpc") if row["api"] == "JoinGroup"]

        stalled(monkeypatch, 2 * HOUR_MS)
        outcomes = [cluster.produce(topic)[0] for topic in (orders, appended)]
        cluster.run_for("60s")

        assert all(one.ok for one in outcomes)
        for topic in ("orders", "appended"):
            assert timestamps(cluster, topic)[-1] == pytest.approx(2 * HOUR_MS, abs=60_000)
        assert group.seen == 2 and orders[0].isr == [1, 2, 3]
        assert (orders[0].leader_epoch, appended[0].leader_epoch) == leader_epochs
        assert not any(broker.is_fenced for broker in cluster.brokers)
        again = [row for row in inside(cluster).recorder.table("rpc") if row["api"] == "JoinGroup"]
        assert len(again) == len(joined)


def test_retention_goes_by_the_date(monkeypatch: pytest.MonkeyPatch) -> None:
    with MiniCluster(brokers=1, controllers=1, seed=11) as cluster:
        cluster.create_topic("orders", replicas=1, configs={"retention.ms": HOUR_MS})
        cluster.produce("orders", count=3)
        stalled(monkeypatch, 2 * HOUR_MS)
        cluster.run_for("6m")
        assert not timestamps(cluster, "orders")


class Wall:
    """The machine's clocks, which a test moves: the one that counts, and the date."""

    def __init__(self) -> None:
        self.passed_s = 100.0

    def monotonic_s(self) -> float:
        return self.passed_s

    def date_s(self) -> float:
        return DAY_S + self.passed_s


@pytest.mark.parametrize("stall_s", [3.0, 4 * 3_600.0])
def test_the_clock_of_threads_is_behind_by_what_the_machine_did_not_run(stall_s: float) -> None:
    wall, runtime = Wall(), ThreadedRuntime()
    runtime.clock, runtime.wall_s = WallClock(wall.monotonic_s), wall.date_s
    runtime.begin_at(0)
    assert runtime.behind_ms == 0  # no client has come: there is no date
    runtime.epoch_ms = int(wall.date_s() * 1000)
    wall.passed_s += LATE_MAX_S
    assert runtime.now_ms == LATE_MAX_S * 1000 and runtime.behind_ms == 0
    wall.passed_s += stall_s
    assert runtime.now_ms == 2 * LATE_MAX_S * 1000
    assert runtime.behind_ms == (stall_s - LATE_MAX_S) * 1000
    assert runtime.record_time_ms() == int(wall.date_s() * 1000)


def test_a_laptop_that_slept_has_the_date_although_no_clock_has_counted() -> None:
    """The monotonic clock of Linux stands still in a suspended machine."""
    wall, runtime = Wall(), ThreadedRuntime()
    runtime.clock = WallClock(lambda: 100.0)
    runtime.wall_s = wall.date_s
    runtime.begin_at(0)
    runtime.epoch_ms = int(wall.date_s() * 1000)
    wall.passed_s += 8 * 3_600
    assert runtime.now_ms == 0 and runtime.record_time_ms() == int(wall.date_s() * 1000)


@pytest.mark.parametrize("pace", [1.0, 10.0])
def test_a_paced_clock_is_behind_by_what_it_has_left_out(
    pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall, runtime = Wall(), PacedRuntime(pace=pace)
    monkeypatch.setattr(paced, "_monotonic", wall.monotonic_s)
    monkeypatch.setattr(PacedRuntime, "runs_alone", True)
    runtime.wall_s, runtime.epoch_ms = wall.date_s, int(wall.date_s() * 1000)
    runtime.begin_pace()
    runtime.post(1_000, lambda _: None, None)
    wall.passed_s += 60.0
    assert runtime._wall_ms() == 1_000  # the timer that was due is fired first, in its own time
    assert runtime.now_ms == 0
    assert runtime.behind_ms == (60_000 if pace == 1 else pace * 60_000 - 1_000)
