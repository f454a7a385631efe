"""A long run moves most of its trace to disk; its saved folder is the same as without."""

from __future__ import annotations

from pathlib import Path

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.protocol.messages import FetchRequest
from minicluster.trace import TABLES

CHUNK = 64


def long_run(rows_in_memory: int, fold_at: int = 500) -> MiniCluster:
    """A run under load, with requests that time out and responses that arrive late."""
    cluster = MiniCluster(seed=11)
    inside(cluster).recorder.fold_at = fold_at
    inside(cluster).recorder.rows_in_memory = rows_in_memory
    inside(cluster).recorder.chunk_rows = CHUNK
    cluster.start()
    orders = cluster.create_topic("orders", min_isr=1)
    cluster.produce(orders, rate=5)
    follower, leader = orders[0].followers[0], orders[0].leader
    cluster.hold(leader, follower)
    cluster.run_for("35s")
    cluster.release()
    cluster.cut(follower, leader)
    cluster.run_for("10s")
    cluster.heal()
    cluster.kill(leader)
    cluster.run_for("10s")
    return cluster


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_run_whose_rows_went_to_disk_saves_the_same_folder(tmp_path: Path) -> None:
    with long_run(2 * CHUNK) as spilled, long_run(1_000_000) as whole:
        recorder = inside(spilled).recorder
        most = 3 * CHUNK + recorder.fold_at
        assert all(len(rows) < most for rows in (recorder.exchanges, *recorder.rows.values()))
        assert len(inside(whole).recorder.exchanges) > 2 * most
        assert spilled.trace_hash == whole.trace_hash
        left = files(spilled.save(tmp_path / "spilled"))
        right = files(whole.save(tmp_path / "whole"))
        assert left == right
        spilled.run_for("5s")
        whole.run_for("5s")
        again = files(spilled.save(tmp_path / "spilled"))
        assert again == files(whole.save(tmp_path / "whole")) != left


def test_rows_are_read_back_as_they_were_written() -> None:
    with long_run(2 * CHUNK) as spilled, long_run(1_000_000) as whole:
        for table in TABLES:
            left = list(inside(spilled).recorder.table(table))
            assert len(left) == len(list(inside(whole).recorder.table(table)))
            assert [(row["seq"], row["vt"]) for row in left] == [
                (row["seq"], row["vt"]) for row in inside(whole).recorder.table(table)
            ]
        exchanges = list(inside(spilled).recorder.table("rpc"))
        assert exchanges == list(inside(whole).recorder.table("rpc"))
        late = [row for row in exchanges if row["resp_seq"] is None]
        assert late, "each request has a response"


def test_no_event_waits_until_all_before_it_are_folded() -> None:
    """A fold of 100,000 events took seconds, in which no actor took a step."""
    whole, bounded = (Recorder("run", SimulatedRuntime()) for _ in range(2))
    bounded.fold_at, bounded.fold_events = 500, 20
    held = []
    for number in range(1_000):
        for recorder in (whole, bounded):
            recorder.event("crash", number)
            request = FetchRequest()
            exchange = Exchange(number, "Fetch", 17, 1, 2, request, None, None, number, None)
            recorder.request(exchange, "")
        held.append(len(bounded._events))
    assert max(held) < bounded.fold_at
    assert min(held[bounded.fold_at :]) >= bounded.fold_at - bounded.fold_events
    assert bounded.last_events(50) == whole.last_events(50)
    assert bounded.trace_hash == whole.trace_hash
