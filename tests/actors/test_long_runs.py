"""A long run moves most of its trace to disk; its saved folder is the same as without."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.problems import RecorderWarning
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.protocol.messages import (
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from minicluster.trace import TABLES
from minicluster.verify import Verdict
from tests.verify.in_process import verified

PIECE = 64


def long_run(
    rows_in_memory: int,
    fold_at: int = 500,
    prepare: Callable[[MiniCluster], None] = lambda cluster: None,
) -> MiniCluster:
    """A run under load, with requests that time out and responses that arrive late."""
    cluster = MiniCluster(seed=11)
    prepare(cluster)
    inside(cluster).recorder.fold_at = fold_at
    inside(cluster).recorder.rows_in_memory = rows_in_memory
    inside(cluster).recorder.piece_rows = PIECE
    inside(cluster).recorder.shelf.group_rows = 3 * PIECE
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
    with long_run(2 * PIECE) as spilled, long_run(1_000_000) as whole:
        recorder = inside(spilled).recorder
        most = 3 * PIECE + recorder.fold_at
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
    with long_run(2 * PIECE) as spilled, long_run(1_000_000) as whole:
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


def test_what_a_test_produces_for_long_crowds_out_no_election() -> None:
    """A failing test showed one line, its acknowledged records, and not what had led to them."""
    with MiniCluster(seed=1, controllers=1) as cluster:
        inside(cluster).recorder.fold_at = 500
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.produce(orders, rate=20, lasting="60s")
        cluster.kill(orders[0].leader)
        cluster.run_for("60s")
        lines = inside(cluster).recorder.last_events(25)
        assert "produce orders-0 acknowledged" in lines[-1]
        assert any("become_leader epochs 1/1" in line for line in lines)
        assert [line[:11] for line in lines] == sorted(line[:11] for line in lines)


def test_what_the_bound_on_disk_drops_is_named_and_its_rules_are_unknown(tmp_path: Path) -> None:
    """The oldest rows go of the table with the most bytes; tables with few rows stay whole."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=11) as cluster:
            recorder = inside(cluster).recorder
            recorder.fold_at, recorder.rows_in_memory, recorder.piece_rows = 500, 64, 64
            recorder.shelf.group_rows, recorder.shelf.bytes_max = 64, 150_000
            orders = cluster.create_topic("orders", min_isr=1)
            cluster.produce(orders, rate=20)
            cluster.run_for("20s")
            path = cluster.save(tmp_path / "run")
            rows = list(recorder.table("rpc"))
    assert recorder.shelf.bytes <= recorder.shelf.bytes_max
    lost = recorder.shelf.dropped["rpc"]
    assert rows[0]["seq"] > lost.last_seq and rows[0]["vt"] >= lost.last_ms > 0
    assert lost.rows + len(rows) == max(row["id"] for row in rows)  # ids count the requests
    assert not {"publish", "fault", "refusal"} & recorder.shelf.dropped.keys()
    report = verified(path)
    assert report.rule("D3").verdict is Verdict.UNKNOWN
    [reason] = report.rule("D3").reasons
    assert f"the trace table rpc lacks its first {lost.rows:,} rows, up to" in reason
    assert report.rule("E01").verdict is Verdict.VALID, "the log is whole"
    assert report.rule("E32").verdict is Verdict.VALID, "so is the table publish"
    assert report.verdict is Verdict.UNKNOWN


def test_a_load_that_makes_more_rows_than_are_moved_keeps_twice_its_room_at_most() -> None:
    """A burst is moved a few pieces at a time; all of them stay in order."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.fold_at, recorder.rows_in_memory, recorder.piece_rows = 200, 100, 5
    held = []
    for number in range(3_000):
        row = {"node": 1, "incarnation": "a", "offset": number, "epoch": 1}
        recorder.trace("publish", {**row, "image_hash": "", "manifest": "log", "in_tx": False})
        recorder.relieve()
        held.append(len(recorder.rows["publish"]))
    most = recorder.rows_in_memory + recorder.piece_rows
    assert most < max(held[1_000:]) <= 2 * most + recorder.fold_at
    assert [row["offset"] for row in recorder.table("publish")] == list(range(3_000))


def test_what_a_burst_has_left_is_moved_a_few_pieces_at_a_time() -> None:
    """An actor waits for what its event moves: of 20,000 rows at once that is not all of them."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.fold_at, recorder.rows_in_memory = 100, 100
    for number in range(20_000):
        row = {"node": 1, "incarnation": "a", "offset": number, "epoch": 1}
        recorder.trace("publish", {**row, "image_hash": "", "manifest": "log", "in_tx": False})
    moved = []
    for number in range(200):
        before = recorder.shelf.count("publish")
        exchange = Exchange(number, "Metadata", 12, -3, 1, MetadataRequest(), None, None, 0, None)
        recorder.request(exchange, "")
        moved.append(recorder.shelf.count("publish") - before)
    assert 400 <= max(moved) <= 400 + 20_000 / 32
    assert len(recorder.rows["publish"]) < 300
    assert [row["offset"] for row in recorder.table("publish")] == list(range(20_000))


def test_large_messages_count_by_their_bytes() -> None:
    """A response about ten thousand partitions takes the memory of thousands of others."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.bytes_in_memory = 1_000_000
    for number in range(40):
        exchange = Exchange(number, "Metadata", 12, -3, 1, MetadataRequest(), None, None, 0, None)
        recorder.request(exchange, "")
        partitions = tuple(
            MetadataResponse.MetadataResponsePartition(partition_index=index, leader_id=1)
            for index in range(1_000)
        )
        topic = MetadataResponse.MetadataResponseTopic(name="orders", partitions=partitions)
        recorder.response(exchange, MetadataResponse(topics=(topic,)), "answered")
        exchange.open = False
    assert len(recorder.exchanges) <= 10
    assert recorder.shelf.count("rpc") + len(recorder.exchanges) == 40
    assert [row["id"] for row in recorder.table("rpc")] == list(range(40))


def test_requests_without_an_end_do_not_stay_in_memory() -> None:
    """A day of lost requests is as long as the day; a Produce with acks=0 has no response."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.fold_at, recorder.rows_in_memory, recorder.piece_rows = 100, 50, 50
    recorder.shelf.group_rows, recorder.shelf.unsettled_max = 100, 60
    exchanges = []
    for number in range(1_000):
        request = ProduceRequest(acks=0) if number % 2 else FetchRequest()
        api = "Produce" if number % 2 else "Fetch"
        exchange = Exchange(number, api, 9, 1, 2, request, None, None, number, None)
        recorder.request(exchange, "lost")
        exchange.open = False
        exchanges.append(exchange)
    kept = sum(len(group.unsettled) for group in recorder.shelf._groups["rpc"])
    assert kept <= 60 + 100
    assert [row["id"] for row in recorder.table("rpc")] == list(range(1_000))
    recorder.response(exchanges[800], FetchResponse(), "late")
    [late] = [row for row in recorder.table("rpc") if row["id"] == 800]
    assert late["resp_seq"] is not None and not recorder.problems
    recorder.response(exchanges[0], FetchResponse(), "late")
    [problem] = recorder.problems
    assert problem.lacks == "rpc" and "after its row was written" in problem.why
