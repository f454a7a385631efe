"""A thread folds for the recorder of a cluster that clients use for long; no actor waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording import recorder as recorder_module
from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.folding_thread import FoldingThread
from minicluster.actors.recording.recorder import BEHIND, Recorder
from minicluster.actors.recording.rpc_rows import rpc_row
from minicluster.actors.recording.shelf import Shelf, Unsettled
from minicluster.actors.runtime.simulated import SimulatedRuntime
from minicluster.protocol.messages import FetchRequest, FetchResponse, MetadataRequest
from minicluster.protocol.messages import OffsetCommitRequest as Commit
from minicluster.protocol.messages import OffsetCommitResponse as Committed
from tests.actors.test_long_runs import files, long_run

LIMIT_S = 60.0  # of what is waited for by name; a failure only


class NeverRuns(FoldingThread):
    """A thread that gets no time from its machine."""

    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        self.woken += 1

    def close(self) -> None:
        pass


class Watched(Shelf):
    """A shelf that tells which thread puts rows into it, and calls a function before."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        super().__init__(1_000_000_000)
        self.put_by: list[str] = []
        self.before = before

    def put(
        self, table: str, rows: Sequence[Mapping[str, Any]], unsettled: Mapping[int, Unsettled]
    ) -> None:
        self.put_by.append(threading.current_thread().name)
        self.before()
        super().put(table, rows, unsettled)


class Gate:
    """Where a thread is held until the test lets it continue."""

    def __init__(self) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self._opened.wait(LIMIT_S)

    def wait_until_reached(self) -> None:
        assert self.reached.wait(LIMIT_S)

    def open(self) -> None:
        self._opened.set()


@contextmanager
def recording(fold_at: int = 100, *, shelf: Shelf | None = None) -> Iterator[Recorder]:
    """A recorder with a small bound."""
    recorder = Recorder("run", SimulatedRuntime())
    recorder.fold_at, recorder.behind_at, recorder.fold_events = fold_at, BEHIND * fold_at, 20
    recorder.rows_in_memory, recorder.piece_rows = 50, 10
    recorder.shelf = shelf or recorder.shelf
    recorder.shelf.group_rows = 40
    yield recorder
    recorder.close()


def metadata_request(recorder: Recorder, number: int) -> Exchange:
    exchange = Exchange(number, "Metadata", 12, -3, 1, MetadataRequest(), None, None, 0, None)
    recorder.request(exchange, "")
    return exchange


def traced(recorder: Recorder, number: int) -> None:
    row = {"node": 1, "incarnation": "a", "offset": number, "epoch": 1, "image_hash": ""}
    recorder.trace("publish", {**row, "manifest": "log", "in_tx": False})


def commit(recorder: Recorder, number: int, count: int) -> None:
    """A client commits offsets, and gets the response a while after its rows were made."""
    partitions = [
        Commit.OffsetCommitRequestPartition(partition_index=n, committed_offset=number)
        for n in range(count)
    ]
    topic = Commit.OffsetCommitRequestTopic(name="orders", partitions=tuple(partitions))
    request = Commit(group_id="g", topics=(topic,))
    exchange = Exchange(number, "OffsetCommit", 8, -3, 1, request, None, None, 0, None, "app", 7)
    recorder.request(exchange, "")
    results = [Committed.OffsetCommitResponsePartition(partition_index=n) for n in range(count)]
    of_topic = Committed.OffsetCommitResponseTopic(name="orders", partitions=tuple(results))
    recorder.response(exchange, Committed(topics=(of_topic,)), "")
    exchange.received_seq = recorder.event("closed", exchange, None)
    exchange.open = False


def load(recorder: Recorder) -> None:
    """Requests with a response and without, rows of the trace, offsets of groups."""
    for number in range(600):
        traced(recorder, number)
        exchange = metadata_request(recorder, number)
        if number % 5:
            exchange.open = False
            recorder.response(exchange, FetchResponse(throttle_time_ms=number), "")
        if number % 50 == 0:
            commit(recorder, 10_000 + number, 30)


def running_recorders() -> int:
    return sum(thread.name == "minicluster-recorder" for thread in threading.enumerate())


def test_a_request_does_not_fold_where_a_thread_does() -> None:
    shelf = Watched()
    with recording(shelf=shelf) as recorder:
        thread = recorder.thread = NeverRuns()
        for number in range(1, BEHIND * recorder.fold_at):  # an event each
            metadata_request(recorder, number)
        assert thread.woken == recorder.fold_at
        assert shelf.put_by == [] and len(recorder.exchanges) == number
        while recorder.fold_part():  # as the thread does
            pass
        assert len(recorder._events) < recorder.fold_at
        assert len(recorder.exchanges) < recorder.rows_in_memory + recorder.piece_rows
        assert [row["id"] for row in recorder.table("rpc")] == list(range(1, number + 1))


def test_the_bound_holds_where_the_thread_gets_no_time() -> None:
    with recording() as recorder:
        recorder.thread = NeverRuns()
        held = []
        for number in range(3_000):
            traced(recorder, number)
            metadata_request(recorder, number)
            held.append(len(recorder._events))
        assert BEHIND * recorder.fold_at - recorder.fold_events <= max(held)
        assert max(held) <= BEHIND * recorder.fold_at
        most = BEHIND * recorder.fold_at + recorder.rows_in_memory + recorder.piece_rows
        assert len(recorder.exchanges) < most and len(recorder.rows["publish"]) < most
        assert [row["offset"] for row in recorder.table("publish")] == list(range(3_000))


@pytest.mark.parametrize("bound", ["bytes_in_memory", "fold_at_bytes"])
def test_bodies_count_twice_as_much_as_well(bound: str) -> None:
    """Few events may have much memory."""
    with recording(fold_at=1_000_000) as recorder:
        thread = recorder.thread = NeverRuns()
        setattr(recorder, bound, 10_000)
        of_recorder = {"bytes_in_memory": "_weight", "fold_at_bytes": "_held_bytes"}[bound]
        metadata_request(recorder, 1)
        setattr(recorder, of_recorder, 10_000)
        metadata_request(recorder, 2)
        assert thread.woken == 1 and len(recorder._events) == 2
        setattr(recorder, of_recorder, 20_000)
        metadata_request(recorder, 3)
        assert thread.woken == 2 and len(recorder._events) == 0


def test_what_is_written_is_the_same_with_a_thread(tmp_path: Path) -> None:
    for name in ("alone", "with a thread"):
        with recording() as recorder:
            if name != "alone":
                recorder.fold_in_thread()
            load(recorder)
            recorder.write(tmp_path / name, {})
            assert not recorder.problems
            assert recorder.shelf.count("rpc") and recorder.shelf.count("client_record")
    assert files(tmp_path / "alone") == files(tmp_path / "with a thread")


def test_the_run_folder_of_a_cluster_is_the_same_with_a_thread(tmp_path: Path) -> None:
    """With timeouts and late responses; so is the hash, where one is wanted."""

    def begun(cluster: MiniCluster) -> None:
        inside(cluster).recorder.fold_in_thread()

    with long_run(128) as alone, long_run(128, prepare=begun) as threaded:
        assert alone.trace_hash == threaded.trace_hash
        left = files(alone.save(tmp_path / "alone"))
        assert left == files(threaded.save(tmp_path / "threaded"))
        assert running_recorders() == 1
    assert running_recorders() == 0, "the thread ends with its cluster"


def test_no_request_waits_while_the_thread_moves_rows() -> None:
    """The thread is held in the midst of a part, with its lock."""
    gate = Gate()
    shelf = Watched(gate.pass_through)
    with recording(shelf=shelf) as recorder:
        recorder.fold_in_thread()
        for number in range(recorder.fold_at):
            metadata_request(recorder, number)
        gate.wait_until_reached()
        commit(recorder, 200, 30)
        for number in range(201, 250):
            metadata_request(recorder, number)
        assert shelf.put_by == ["minicluster-recorder"]
        gate.open()
        recorder.close()
        expected = [*range(recorder.fold_at), *range(200, 250)]
        assert [row["id"] for row in recorder.table("rpc")] == expected
        received = [row["received_seq"] for row in recorder.table("client_record")]
        assert len(received) == 30 and None not in received
        assert set(shelf.put_by) == {"minicluster-recorder"}


def test_an_actor_that_waits_gets_its_turn_after_one_part() -> None:
    """A lock of Python goes to whoever takes it first: mostly the thread that has just left it."""
    gate, waits = Gate(), threading.Event()

    class Waiting:
        """As the recorder has it, with an event."""

        def __init__(self) -> None:
            self.count = 0

        def append(self, one: None) -> None:
            self.count += 1
            waits.set()

        def pop(self) -> None:
            self.count -= 1

        def __len__(self) -> int:
            return self.count

    with recording() as recorder:
        parts: list[str] = []
        take_in = recorder._take_in

        def noted(events: Any) -> None:
            parts.append(threading.current_thread().name)
            if len(parts) == 1:
                gate.pass_through()
            take_in(events)

        recorder._take_in = noted  # type: ignore[method-assign]
        recorder._waiting = Waiting()  # type: ignore[assignment]
        recorder.fold_in_thread()
        for number in range(recorder.fold_at):
            metadata_request(recorder, number)
        gate.wait_until_reached()

        def act() -> None:
            number = 1_000
            while not waits.is_set():
                number += 1
                metadata_request(recorder, number)

        actor = threading.Thread(target=act, name="actor")
        actor.start()
        assert waits.wait(LIMIT_S)
        gate.open()
        actor.join(LIMIT_S)
        assert parts[:2] == ["minicluster-recorder", "actor"]


def test_a_failure_of_the_thread_is_a_problem_of_the_run() -> None:
    """The cluster continues, and so does the thread, with what comes later."""
    folded = threading.Event()
    with recording() as recorder:
        take_in, calls = recorder._take_in, 0

        def failing(events: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise ZeroDivisionError("planted")
            take_in(events)
            folded.set()

        recorder._take_in = failing  # type: ignore[method-assign]
        recorder.fold_in_thread()
        number = 0
        while not folded.is_set() and number < 1_000_000:
            number += 1
            metadata_request(recorder, number)
        [problem] = recorder.problems
        assert problem.lacks is None
        assert "the record of the oldest events crashed at 0 ms: ZeroDivisionError" in problem.why
        recorder.close()
        assert [row["id"] for row in recorder.table("rpc")] == list(range(1, number + 1))


def test_a_thread_that_only_fails_does_not_calculate_for_ever() -> None:
    """It tries again when it is woken, as an actor would with each request."""
    tried: list[None] = []
    failed = threading.Semaphore(0)

    def fold() -> bool:
        tried.append(None)
        raise ZeroDivisionError

    thread = FoldingThread(fold, lambda error: failed.release())
    for number in (1, 2):
        thread.wake()
        assert failed.acquire(timeout=LIMIT_S)
        assert len(tried) == number
    thread.close()
    assert len(tried) == 2


def test_the_end_waits_for_the_part_of_the_thread_and_loses_nothing(tmp_path: Path) -> None:
    gate = Gate()
    with recording(200, shelf=Watched(gate.pass_through)) as recorder:
        recorder.fold_in_thread()
        for number in range(1, 101):  # two events each: the last one wakes it
            traced(recorder, number)
            metadata_request(recorder, number)
        gate.wait_until_reached()
        ending = threading.Thread(target=recorder.close)
        ending.start()
        assert ending.is_alive() and running_recorders() == 1
        gate.open()
        ending.join(LIMIT_S)
        assert not ending.is_alive() and running_recorders() == 0
        traced(recorder, number + 1)  # actors that stop, after the thread
        counts = recorder.write(tmp_path, {})
        assert counts["publish"] == number + 1
        assert [row["offset"] for row in recorder.table("publish")] == list(range(1, number + 2))


def test_a_request_that_ends_while_its_row_is_made_has_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its row is made by one thread, its end comes by another."""
    ended: list[Exchange] = []

    def made(run_id: str, exchange: Exchange, *, as_text: bool = False) -> dict[str, Any]:
        row = rpc_row(run_id, exchange, as_text=as_text)
        if not ended:
            ended.append(exchange)
            recorder.response(exchange, FetchResponse(), "")
            exchange.open = False
        return row

    with recording() as recorder:
        exchanges = [metadata_request(recorder, number) for number in range(70)]
        monkeypatch.setattr(recorder_module, "rpc_row", made)
        recorder.fold_part()
        assert ended == exchanges[:1] and recorder.shelf.count("rpc")
        first = next(iter(recorder.table("rpc")))
        assert first["id"] == 0 and first["response"] is not None


def test_a_client_that_gets_its_response_while_a_file_is_written_has_got_it() -> None:
    exchange = Exchange(1, "OffsetCommit", 8, -3, 1, None, None, None, 0, None, "app", 7)

    def received() -> None:
        exchange.received_seq = 77
        exchange.open = False

    with recording(shelf=Watched(received)) as recorder:
        recorder.shelf.group_rows = recorder.piece_rows
        row = {"rpc": 1, "client_id": "app", "broker": 1, "f": "commit", "part": 0, "seq": 1}
        rows = [{**row, "vt": 0, "run_id": "run", "received_seq": None} for _ in range(100)]
        recorder._on_their_way.append((exchange, rows))
        recorder._client_rows += rows
        recorder.fold_part()
        assert recorder.shelf._groups["client_record"][0].file is not None
        seen = {row["received_seq"] for row in recorder.table("client_record")}
        assert seen == {77}


def test_rows_that_are_shelved_as_soon_as_they_are_made_are_completed_later() -> None:
    """A client may get its response after that."""

    class Shelving(list[dict[str, Any]]):
        def __iadd__(self, rows: Any) -> Any:
            self.extend(rows)
            assert recorder.fold_part()
            return self

    with recording() as recorder:
        recorder._client_rows = Shelving()
        commit(recorder, 1, 100)
        assert recorder.shelf.count("client_record")
        assert None not in {row["received_seq"] for row in recorder.table("client_record")}


def test_a_response_that_comes_when_its_row_is_shelved_weighs_nothing() -> None:
    """Otherwise, after hours of long polls, every request would find the memory full."""
    with recording() as recorder:
        recorder.bytes_in_memory = 1
        partition = FetchRequest.FetchPartition()
        topic = FetchRequest.FetchTopic(topic="orders", partitions=(partition,) * 100)
        request = FetchRequest(topics=(topic,))
        exchange = Exchange(1, "Fetch", 12, 1, 2, request, None, None, 0, None)
        recorder.request(exchange, "")
        assert not recorder.exchanges and recorder._weight == 0
        data = FetchResponse.PartitionData()
        fetched = FetchResponse.FetchableTopicResponse(topic="orders", partitions=(data,) * 100)
        recorder.response(exchange, FetchResponse(responses=(fetched,)), "")
        assert recorder._weight == 0
