"""A long run has most of its trace in files; its saved folder is the same as without."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Exchange
from minicluster.actors.recording import recorder as recorder_module
from minicluster.actors.recording.problems import RecorderWarning
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.recording.tables import BURST, Table
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


def long_run(rows_in_memory: int) -> MiniCluster:
    """A run under load, with requests that time out and responses that arrive late."""
    cluster = MiniCluster(seed=11)
    tables = inside(cluster).recorder.tables
    tables.rows_in_memory, tables.piece_rows = rows_in_memory, PIECE
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
        tables = inside(spilled).recorder.tables
        assert all(len(tables[name].kept) < 4 * PIECE for name in TABLES)
        assert len(inside(whole).recorder.exchanges) > 20 * PIECE
        assert spilled.trace_hash == whole.trace_hash
        left = files(spilled.save(tmp_path / "spilled"))
        right = files(whole.save(tmp_path / "whole"))
        assert left == right
        spilled.run_for("5s")
        whole.run_for("5s")
        again = files(spilled.save(tmp_path / "spilled"))
        assert again == files(whole.save(tmp_path / "whole")) != left


def _listed(row: dict[str, Any]) -> dict[str, Any]:
    """A row with lists, which are what columns have."""
    return {name: list(v) if isinstance(v, tuple) else v for name, v in row.items()}


def test_rows_are_read_back_as_they_were_written() -> None:
    with long_run(2 * PIECE) as spilled, long_run(1_000_000) as whole:
        for table in TABLES:
            read, kept = (
                [_listed(row) for row in inside(run).recorder.table(table)]
                for run in (spilled, whole)
            )
            assert len(read) == len(kept)
            if table != "raft_event":  # whose checksums are worked out as they are written
                assert read == kept
        exchanges = list(inside(spilled).recorder.table("rpc"))
        late = [row for row in exchanges if row["resp_seq"] is None]
        assert late, "each request has a response"


def test_a_row_comes_when_its_exchange_has_ended_and_does_not_change() -> None:
    """Not while its caller waits, nor before its node has responded: what came late is in it."""
    with MiniCluster(seed=11) as cluster:
        orders = cluster.create_topic("orders", min_isr=1)
        cluster.wait_until(orders[0].fully_in_sync, within="30s")
        kept = inside(cluster).recorder.tables["rpc"].kept
        follower, leader = orders[0].followers[0], orders[0].leader
        cluster.hold(leader, follower)
        cluster.hold(follower, cluster.controllers)
        cluster.run_for("35s")
        before = [asdict(row) for row in kept]
        cluster.release()
        cluster.run_for("5s")
        assert [asdict(row) for row in kept[: len(before)]] == before
        late = [row for row in kept[len(before) :] if row.completed_ms < row.handled_ms]
        assert late and all(row.resp_seq is not None for row in late)
        assert all(row.completed_ms is not None for row in kept)


def test_what_a_test_produces_for_long_crowds_out_no_election() -> None:
    """A failing test showed one line, its acknowledged records, and not what had led to them."""
    with MiniCluster(seed=1, controllers=1) as cluster:
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
            tables = recorder.tables
            tables.rows_in_memory, tables.piece_rows, tables.bytes_on_disk = 64, 64, 150_000
            orders = cluster.create_topic("orders", min_isr=1)
            cluster.produce(orders, rate=20)
            cluster.run_for("20s")
            path = cluster.save(tmp_path / "run")
            ids = {row["id"] for row in recorder.table("rpc")}
    assert tables.bytes <= tables.bytes_on_disk
    lost = tables["rpc"].dropped
    assert lost + len(ids) == max(ids)  # ids count the requests
    assert not any(tables[name].dropped for name in ("publish", "fault", "refusal"))
    report = verified(path)
    assert report.rule("D3").verdict is Verdict.UNKNOWN
    [reason] = report.rule("D3").reasons
    assert f"the trace table rpc lacks its first {lost:,} rows, up to" in reason
    assert report.rule("E01").verdict is Verdict.VALID, "the log is whole"
    assert report.rule("E32").verdict is Verdict.VALID, "so is the table publish"
    assert report.verdict is Verdict.UNKNOWN


def rows_in_files(table: Table) -> int:
    return sum(file.rows for file in table.files)


def published(recorder: Recorder, number: int) -> None:
    row = {"node": 1, "incarnation": "a", "offset": number, "epoch": 1}
    recorder.trace("publish", {**row, "image_hash": "", "manifest": "log", "in_tx": False})


def request(recorder: Recorder, number: int, body: Any = None, api: str = "Metadata") -> Exchange:
    exchange = Exchange(number, api, 9, -3, 1, body or MetadataRequest())
    recorder.request(exchange, None)
    return exchange


def test_what_a_burst_has_left_is_written_a_few_pieces_at_a_time() -> None:
    """An actor waits for what its request writes, which is not all of 20,000 rows."""
    recorder = Recorder("run", SimulatedRuntime())
    table, recorder.tables.rows_in_memory, piece = recorder.tables["publish"], 100, 100
    recorder.tables.piece_rows = piece
    for number in range(20_000):
        published(recorder, number)
    written = []
    for number in range(200):
        before = rows_in_files(table)
        request(recorder, number)
        written.append(rows_in_files(table) - before)
    assert max(written) == written[0] <= (1 + 20_000 / piece / BURST) * piece
    assert len(table.kept) < 200
    assert [row["offset"] for row in recorder.table("publish")] == list(range(20_000))


def test_large_messages_count_by_their_bytes() -> None:
    """A response about ten thousand partitions takes the memory of thousands of others."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.tables.bytes_in_memory = 1_000_000
    for number in range(40):
        exchange = request(recorder, number)
        partitions = tuple(
            MetadataResponse.MetadataResponsePartition(partition_index=index, leader_id=1)
            for index in range(1_000)
        )
        topic = MetadataResponse.MetadataResponseTopic(name="orders", partitions=partitions)
        recorder.response(exchange, MetadataResponse(topics=(topic,)), "answered", None)
        recorder.closed(exchange, None, is_own=True)
    assert len(recorder.exchanges) <= 10
    assert rows_in_files(recorder.tables["rpc"]) + len(recorder.exchanges) == 40
    assert [row["id"] for row in recorder.table("rpc")] == list(range(40))


def test_requests_without_an_end_do_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of lost requests is as long as the day; a Produce with acks=0 has no response."""
    monkeypatch.setattr(recorder_module, "OPEN_MAX", 60)
    recorder = Recorder("run", SimulatedRuntime())
    recorder.tables.rows_in_memory, recorder.tables.piece_rows = 50, 50
    exchanges = []
    for number in range(1_000):
        if number % 2:
            exchange = request(recorder, number, ProduceRequest(acks=0), "Produce")
        else:
            exchange = request(recorder, number, FetchRequest(), "Fetch")
        recorder.closed(exchange, "timeout", is_own=True)
        exchanges.append(exchange)
    assert len(recorder.exchanges) <= 60 + 2 * 50
    assert sorted(row["id"] for row in recorder.table("rpc")) == list(range(1_000))
    recorder.response(exchanges[998], FetchResponse(), "late", None)
    [late] = [row for row in recorder.table("rpc") if row["id"] == 998]
    assert late["resp_seq"] is not None and not recorder.problems
    recorder.response(exchanges[0], FetchResponse(), "late", None)
    [problem] = recorder.problems
    assert problem.lacks == "rpc" and "after its row was written" in problem.why


def test_timed_out_requests_that_are_large_do_not_fill_the_memory() -> None:
    recorder = Recorder("run", SimulatedRuntime())
    recorder.tables.bytes_in_memory = 100_000
    topic = FetchRequest.FetchTopic(partitions=(FetchRequest.FetchPartition(),) * 1_000)
    for number in range(20):
        exchange = request(recorder, number, FetchRequest(topics=(topic,)), "Fetch")
        recorder.closed(exchange, "timeout", is_own=True)
    assert len(recorder.exchanges) <= 3 and rows_in_files(recorder.tables["rpc"]) >= 17
