"""The record of a run: every event in order, the rows of the trace tables, and one hash over it.

Recording must cost next to nothing, so events keep references to the (immutable) messages; their
canonical text is made when the hash is read, and their JSON form when the run is saved. Memory is
bounded, in rows and in bytes: old events are folded into the hash, and the oldest rows move to a
shelf on disk, which is bounded as well. What it drops is a problem of the run.

An actor whose request meets the bound folds a part. Of a cluster that clients use for long a thread
does, and an actor only where the thread is behind: it has as many events as any other cluster may
have, or twice the bytes.

**Invariant:** what a judge needs of a client's request is taken once, when it is sent, as a small
value; no row is made from a body later (``tests/actors/test_recorded_clients.py``), but those of
many offsets of a group: an actor makes some of them with each request.
**Invariant:** where there is a thread that folds, no actor waits for it unless it is behind
(``tests/actors/test_folding_thread.py``). Lists are appended to by actors and cut in place by who
folds, under ``_lock``, which no actor takes otherwise.
**Invariant:** a recorder ends no cluster. What fails in it is one of its ``problems``, and the run
is unknown where it lacks evidence (``tests/actors/test_recorder_problems.py``).
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from heapq import merge
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from minicluster import trace
from minicluster.actors.recording.bodies import bytes_about, bytes_of_producer, without_records
from minicluster.actors.recording.canonical import canonical
from minicluster.actors.recording.columns import arrow_table
from minicluster.actors.recording.exchange import Exchange, Substitute
from minicluster.actors.recording.folding_thread import FoldingThread
from minicluster.actors.recording.problems import Problems, RecorderProblem
from minicluster.actors.recording.readable import (
    Event,
    is_answered_produce,
    is_reported,
    is_send,
    readable,
    together,
)
from minicluster.actors.recording.rpc_rows import rpc_row
from minicluster.actors.recording.sent_batches import sent_batches
from minicluster.actors.recording.shelf import Shelf, Unsettled
from minicluster.actors.recording.trace_files import write_table
from minicluster.protocol.messages import ProduceRequest

if TYPE_CHECKING:
    import pyarrow as pa

FOLD = "the record of the oldest events"
KEPT_FOR_PEOPLE = 400
FOLD_AT = 20_000  # events
FOLD_EVENTS = 200  # at a time, since the actor that records the last one waits: some 5 ms
FOLD_AT_BYTES = 16 * 1024 * 1024  # of record batches that clients sent
ROWS_IN_MEMORY = 20_000  # of each table; more after a burst
PIECE_ROWS = 100  # that move at a time, while an actor waits: some 5 ms for requests
PIECES_AT_ONCE = 4  # of each table, and a share of what a burst has left
SHARES = 32  # of which one is moved: 10,000 rows too many are 3 pieces more
CLIENT_ROWS_AT_ONCE = PIECES_AT_ONCE * PIECE_ROWS  # some 5 ms: as many as move at a time
BYTES_IN_MEMORY = 32 * 1024 * 1024  # of requests and responses, about
PIECE_BYTES = 512 * 1024
BYTES_ON_DISK = 256 * 1024 * 1024
BEHIND = 2  # times the bound of bytes: from there on actors fold, although a thread does
SHORTER = 4  # times than an actor's is a part of the thread, for which an actor may wait
OWN_RECORDS_MAX = 10_000  # that each of the cluster's own clients keeps in a long run
LOG_ROWS_MAX = 1_000_000  # records in brokers' logs that the trace of a long run lists


class RunFollower(Protocol):
    """A receiver of replicas' and quorum's events and of responses to clients, in order for each
    node. It raises nothing: what fails in it is a problem of the run.
    """

    def on_partition_event(self, row: Mapping[str, Any]) -> None:
        """A row of ``partition_event``."""

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """A row of ``raft_event``."""

    def on_response(
        self, exchange: Exchange, response: Any, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """A response to a client leaves, with its rows of ``client_record``, if they were made."""


class Clock(Protocol):
    """The clock of a cluster: its runtime."""

    @property
    def now_ms(self) -> int: ...


class Recorder:
    """The recorder that all of a cluster's actors share."""

    def __init__(self, run_id: str, clock: Clock) -> None:
        self.run_id = run_id
        self._clock = clock
        self.follower: RunFollower | None = None
        self.fold_at_bytes = FOLD_AT_BYTES
        self.fold_at, self.fold_events = FOLD_AT, FOLD_EVENTS
        self.behind_at = FOLD_AT  # events: from there on actors fold, although a thread does
        self.rows_in_memory, self.piece_rows = ROWS_IN_MEMORY, PIECE_ROWS
        self.bytes_in_memory = BYTES_IN_MEMORY
        self.shelf = Shelf(BYTES_ON_DISK)
        self.log_rows_max: int | None = None
        self.own_records_max: int | None = None  # what each of the cluster's own clients keeps
        self._count = itertools.count(1)
        self._folded = 0
        self._held_bytes = 0
        self._weight = 0  # of the exchanges in memory
        self._client_rows_made = 0
        self.client_rows_left_out = 0  # responses to clients of which there are no rows
        self._lock = threading.RLock()  # of who folds or reads
        self._waiting: deque[None] = deque()  # one for each actor that waits for it
        self._making = threading.Lock()  # of who makes rows of clients
        self.thread: FoldingThread | None = None
        self.exchanges: list[Exchange] = []
        self._client_rows: list[dict[str, Any]] = []
        self._unmade: deque[tuple[Exchange, Iterator[dict[str, Any]]]] = deque()
        self._misled: set[str] = set()  # clients that were told what no node said
        self._on_their_way: list[tuple[Exchange, list[dict[str, Any]]]] = []
        self.rows: dict[str, list[tuple[int, int, str, Mapping[str, Any]]]] = {
            name: [] for name in trace.TABLES if name not in ("rpc", "client_record")
        }  # the events that are rows of a table
        self.fault_hits: dict[str, int] = {}
        self.controller_faults: list[str] = []  # faults that a controller met and survived
        self._events: list[Event] = []
        self._recent: deque[Event] = deque(maxlen=KEPT_FOR_PEOPLE)
        self._recent_sends: deque[Event] = deque(maxlen=KEPT_FOR_PEOPLE)  # would crowd out others
        self._hash = blake2b(digest_size=16)
        self.hashed = True  # False: nobody compares the hash of this run
        self.own_problems = Problems(lambda: clock.now_ms)

    def bound_for_hours(self, bytes_on_disk: int) -> None:
        """Take little memory, for a cluster that clients use for long: its run has no hash."""
        self.hashed = False
        self.fold_at, self.rows_in_memory = 10 * FOLD_EVENTS, 20 * PIECE_ROWS
        self.shelf.bytes_max = bytes_on_disk
        self.log_rows_max, self.own_records_max = LOG_ROWS_MAX, OWN_RECORDS_MAX
        self.fold_in_thread()

    def fold_in_thread(self) -> None:
        """Have a thread fold from now on, until ``close``."""
        if self.thread is None:
            self.thread = FoldingThread(self.fold_part, self._failed_to_fold)

    def close(self) -> None:
        """End the thread that folds; what it has not folded stays in memory."""
        thread, self.thread = self.thread, None  # from here on, an actor folds
        if thread is not None:
            thread.close()

    def lists_logs(self, records: int, where: str) -> bool:
        """Whether the trace gets a row for each record in brokers' logs; else it lacks them."""
        most = self.log_rows_max
        if most is None or records <= most:
            return True
        why = f"the trace table replica_log lacks {where}: {records:,} records, at most {most:,}"
        self.own_problems.lack("replica_log", f"{why} are listed")
        return False

    @property
    def problems(self) -> tuple[RecorderProblem, ...]:
        """The failures of the recorder and of the live checks, and what the bound has cost."""
        most = f"{self.shelf.bytes_max // 1_000_000:,} MB"
        return self.own_problems.so_far() + tuple(
            RecorderProblem(
                table,
                f"the trace table {table} lacks its first {lost.rows:,} rows, up to "
                f"{lost.last_ms / 1000:,.1f} s: a trace takes at most {most} on disk",
            )
            for table, lost in tuple(self.shelf.dropped.items())
        )

    def request(self, exchange: Exchange, fate: str) -> None:
        """Record a request that is sent; its exchange becomes a row of ``rpc``.

        From here on the exchange has sizes in place of its record batches, and what the rows of its
        response need of them. The body itself waits for the hash, up to a number of bytes.
        """
        self.exchanges.append(exchange)
        body = exchange.request
        if body.__class__ is ProduceRequest:
            try:
                self._take_sent(exchange, body)
            except Exception as error:
                self.own_problems.add(f"the record of a {exchange.api}", error, "client_record")
        self._weigh(exchange, exchange.request)
        exchange.send_seq = self.event("request", exchange, (body, exchange.version), fate)
        if self._unmade:
            with self._making:
                self._make_client_rows(CLIENT_ROWS_AT_ONCE)
        # Here and not at each event: no cluster runs for long without a request.
        if self._is_over(self.fold_at):
            self._relieve()

    def relieve(self) -> None:
        """Fold what is too much, where many events come without a request."""
        while len(self._events) >= self.fold_at and self._relieve():
            pass

    def _is_over(self, events: int, times: int = 1) -> bool:
        """Whether there are so many events, or bodies of so many times the bytes that are meant."""
        return (
            len(self._events) >= events
            or self._held_bytes >= times * self.fold_at_bytes
            or self._weight >= times * self.bytes_in_memory
        )

    def _relieve(self) -> bool:
        """Fold a part of what is too much, or have the thread do so; -> whether it is done."""
        thread = self.thread
        folds = thread is None or self._is_over(self.behind_at, BEHIND)
        if folds:
            self._waiting.append(None)  # else the thread would take the lock again and again
            with self._lock:
                self._waiting.pop()
                self._fold(self.fold_events)
        if thread is not None:
            thread.wake()
        return folds

    def fold_part(self) -> bool:
        """Fold a part of what is too much, in a thread; -> whether another part may follow."""
        if self._waiting:
            return False  # the actor that waits folds a part, and then wakes the thread
        with self._lock:
            count = ceil(self.fold_events / SHORTER) if self._is_over(self.fold_at) else 0
            return self._fold_events(count, SHORTER)

    def _failed_to_fold(self, error: Exception) -> None:
        self.own_problems.add(FOLD, error)

    def _weigh(self, exchange: Exchange, body: Any) -> None:
        if exchange.is_shelved:
            return
        try:
            weight = bytes_about(body)
        except Exception as error:
            self.own_problems.add(f"the size of a {exchange.api}", error)
        else:
            exchange.weight += weight
            self._weight += weight

    def _take_sent(self, exchange: Exchange, body: ProduceRequest) -> None:
        self._held_bytes += bytes_of_producer(body)
        exchange.request = without_records(body)
        if exchange.is_of_client and body.acks:  # without acks there is no response
            exchange.sent = sent_batches(body, with_values=self._has_room)

    def changed(self, exchange: Exchange, body: Any) -> None:
        """Record that the node gets another request than its client has sent."""
        exchange.request = body
        if body.__class__ is ProduceRequest:
            with self.own_problems.noted(f"the record of a {exchange.api}", "client_record"):
                self._take_sent(exchange, body)
        self.event("changed", exchange, (body, exchange.version))

    def answer(self, exchange: Exchange, substitute: Substitute) -> None:
        """Record what a client gets in place of what its node says."""
        response = substitute.response
        if substitute.misleads:
            self._misled.add(exchange.client_id)
        text = f"{substitute.by} {substitute.description} {substitute.when}"
        if response is None:
            self.event("answer", exchange, text)
        else:
            exchange.answer = replace(substitute, response=without_records(response))
            self.event("answer", exchange, (response, exchange.version), text)

    def response(self, exchange: Exchange, body: Any, fate: str) -> None:
        """Record a response that is sent; the first one to a client becomes its rows."""
        is_first = exchange.resp_seq is None
        if is_first:
            exchange.response = body  # before the event, which another thread may fold at once
        sequence = self.event("response", exchange, (body, exchange.version), fate)
        if not is_first:
            return
        exchange.resp_seq = sequence
        self._weigh(exchange, body)
        if exchange.is_written:
            late = ValueError("a response left after its row was written")
            self.own_problems.add(f"the record of a {exchange.api}", late, "rpc")
        if exchange.is_of_client:
            rows: list[dict[str, Any]] = []
            try:
                rows = self._add_client_rows(exchange, body)
            except Exception as error:
                self.own_problems.add(f"the record of a {exchange.api}", error, "client_record")
            if self.follower is not None:
                self.follower.on_response(exchange, body, rows)
            exchange.sent = None

    def event(self, *event: Any) -> int:
        """Record an event, which is its kind and details; returns its number."""
        sequence = next(self._count)  # in one step: actors on threads share this recorder
        self._events.append((sequence, self._clock.now_ms) + event)  # noqa: RUF005 (once per event)
        return sequence

    @property
    def sequence(self) -> int:
        """The number of the last event."""
        last = self._events[-1:]  # which another thread may be about to fold
        return last[0][0] if last else self._folded

    def trace(self, table: str, row: Mapping[str, Any]) -> int:
        """Add a row to a trace table; returns its event number.

        A table or a column that is not declared is a problem of the run, which lacks the row.
        """
        sequence = next(self._count)
        event = (sequence, self._clock.now_ms, table, row)
        self._events.append(event)
        try:
            self.rows[table].append(event)
        except KeyError as error:
            self.own_problems.add(f"a row of the trace table {table}", error)
        follower = self.follower
        if follower is not None:
            if table == "raft_event":
                follower.on_raft_event({**row, "seq": sequence})
            elif table == "partition_event":
                follower.on_partition_event({**row, "seq": sequence})
        return sequence

    def fault_hit(self, fault: str, node: int) -> None:
        """Count that a planted fault changed what a machine did."""
        self.fault_hits[fault] = self.fault_hits.get(fault, 0) + 1
        self.trace("fault", {"action": fault, "targets": [node], "phase": "hit"})

    @property
    def trace_hash(self) -> str:
        """A hash over the canonical text of every event so far."""
        assert self.hashed, "this run has no hash"
        with self._lock:
            self._fold()
            return self._hash.copy().hexdigest()

    def last_events(self, count: int = 30, since_ms: int = 0) -> list[str]:
        """The latest events as lines for a person, none of them before a time."""
        with self._lock:
            folded = [*merge(self._recent, self._recent_sends)]
            reported = [event for event in list(self._events) if is_reported(event)]
        events = [
            event
            for event in [*folded, *reported]
            if event[1] >= since_ms and not is_answered_produce(event)
        ]
        lines: list[str] = []
        for of_one_line in together(events)[-count:]:
            with self.own_problems.noted("the text of an event"):
                lines.append(readable(of_one_line))
        return lines

    def _fold(self, count: int | None = None) -> None:
        """Take the events into the hash, keep the latest for people, put old rows on the shelf.

        From then on the messages of these events have sizes in place of their record batches.

        Shapes:  count: of the oldest events, all where none is given.
        """
        with self.own_problems.noted(FOLD):
            self._fold_events(count)

    def _fold_events(self, count: int | None, shorter: int = 1) -> bool:
        """The same; -> whether there was anything to do.

        Shapes:  shorter: how many times fewer rows are moved than by an actor.
        """
        self._note_received()
        events = self._events[:count]
        if events:
            self._folded = events[-1][0]
            del self._events[: len(events)]  # in place: another thread may be about to append
            self._take_in(events)
        return self._shelve_rows(shorter) > 0 or bool(events)

    def _take_in(self, events: Sequence[Event]) -> None:
        """Take events into the hash, and the latest of them among those for people."""
        hashed, update, released = self.hashed, self._hash.update, 0
        for event in events:
            if hashed:
                update(f"{self._canonical(event)}\n".encode())
            kind = event[2]
            if kind in ("request", "changed"):
                released += bytes_of_producer(event[4][0])
            elif kind == "response":
                event[3].response = without_records(event[3].response)
        self._held_bytes = self._held_bytes - released if self._events else 0
        reported = [e for e in events if is_reported(e) and not is_answered_produce(e)]
        sends = [event for event in reported if is_send(event)]
        others = [event for event in reported if not is_send(event)]
        self._recent_sends.extend(sends[-KEPT_FOR_PEOPLE:])
        self._recent.extend(map(_without_records, others[-KEPT_FOR_PEOPLE:]))

    def _shelve_rows(self, shorter: int) -> int:
        """Move the oldest rows to the shelf, where there are more than memory is to have.

        A change of thousands of partitions makes thousands of rows at once: what is left of a burst
        is moved as the next events are.

        Shapes:  shorter: as in ``_fold_events``. -> how many pieces were moved.
        """
        most = self.rows_in_memory + self.piece_rows
        moves: list[tuple[int, Callable[[], None]]] = [
            (self._pieces(rows, most), partial(self._shelve_events, table))
            for table, rows in self.rows.items()
        ]
        moves.append((self._pieces(self._client_rows, most), self._shelve_client_rows))
        of_exchanges = max(self._pieces(self.exchanges, most), self._heavy_pieces())
        moves.append((of_exchanges, self._shelve_exchanges))
        moved = 0
        for pieces, move in moves:
            for _ in range(ceil(pieces / shorter)):
                move()
                moved += 1
        return moved

    def _pieces(self, rows: Sized, most: int) -> int:
        """The number of pieces of a table that are to be moved now.

        Twice as many rows as events are folded, since an event has one row: a lasting load does
        not gather. An event of a client may have thousands; with a share of what is too much more
        are moved the more there are.
        """
        if len(rows) < most:
            return 0
        too_many = (len(rows) - most) // self.piece_rows + 1
        at_once = max(PIECES_AT_ONCE, 2 * self.fold_events // self.piece_rows)
        return min(too_many, at_once + too_many // SHARES)

    def _heavy_pieces(self) -> int:
        """The same by the bytes of exchanges: a piece takes one at least, however large."""
        too_much = self._weight - self.bytes_in_memory
        pieces = 0 if too_much < 0 else 1 + too_much // PIECE_BYTES // SHARES
        return min(pieces, len(self.exchanges))

    def _shelve_events(self, table: str) -> None:
        """Move a piece of the oldest rows of events."""
        rows = self.rows[table]
        self._shelve(table, list(self._rows(table, rows[: self.piece_rows])), {})
        del rows[: self.piece_rows]

    def _shelve_exchanges(self) -> None:
        """Move a piece of the oldest exchanges, fewer where they are large."""
        count = weight = 0
        for exchange in itertools.islice(self.exchanges, self.piece_rows):
            if count and weight + exchange.weight > PIECE_BYTES:
                break
            count += 1
            weight += exchange.weight
        exchanges = self.exchanges[:count]
        # Looked at before their rows are made: another thread may settle one meanwhile.
        open_ones = [(n, each) for n, each in enumerate(exchanges) if not each.is_settled]
        rpcs = list(self._rpc_rows(exchanges, as_text=True))
        unsettled: dict[int, Unsettled] = {}
        if len(rpcs) == len(exchanges):
            unsettled = {
                index: _unsettled(exchange, partial(rpc_row, self.run_id, exchange, as_text=True))
                for index, exchange in open_ones
            }
        self._shelve("rpc", rpcs, unsettled)
        del self.exchanges[:count]
        for exchange in exchanges:
            exchange.is_shelved = True  # a response that comes later adds nothing to the weight
            self._weight -= exchange.weight

    def _shelve_client_rows(self) -> None:
        oldest = self._client_rows[: self.piece_rows]
        on_their_way = {id(row): exchange for exchange, rows in self._on_their_way for row in rows}
        unsettled = {
            index: _unreceived(row, on_their_way[id(row)])
            for index, row in enumerate(oldest)
            if id(row) in on_their_way
        }
        self._shelve("client_record", oldest, unsettled)
        del self._client_rows[: self.piece_rows]

    def _shelve(
        self, table: str, rows: list[dict[str, Any]], unsettled: Mapping[int, Unsettled]
    ) -> None:
        """Put rows on the shelf; where it takes none (a full disk) they are lost."""
        with self.own_problems.noted(f"the move of rows of {table} to disk", table):
            self.shelf.put(table, rows, unsettled)

    def _canonical(self, event: Event) -> str:
        """The text of an event that goes into the hash; without its details where it has none."""
        try:
            return canonical(event)
        except Exception as error:
            self.own_problems.add("the hash of an event", error)
            return f"{event[0]} {event[1]} {event[2]}"

    def write(
        self,
        folder: Path,
        end: Mapping[str, Iterable[pa.Table]],
        on_part: Callable[[str], None] = lambda part: None,
    ) -> dict[str, int]:
        """Write every trace table as Parquet (``trace/<table>.parquet``), even an empty one.

        Shapes:  end: rows of the end of the run, which are no events and not in the hash. on_part:
                 called with the name of each table, and with its rows as they are written.
                 -> how many rows each table has.
        """
        folder.mkdir(parents=True, exist_ok=True)
        counts: dict[str, int] = {}
        write = partial(write_table, piece_rows=self.piece_rows, group_rows=self.shelf.group_rows)
        with self._lock:
            for table in trace.TABLES:
                on_part(table)
                path = folder / f"{table}.parquet"
                rows, last = list(self._kept(table, as_text=True)), end.get(table, ())
                on_rows = partial(_tell_rows, on_part, table)
                try:
                    counts[table] = write(
                        path, table, self.shelf.groups(table), rows, last=last, on_rows=on_rows
                    )
                except OSError:
                    raise  # of the place that the user has named
                except Exception as error:  # a value that is not of its column's type
                    self.own_problems.add(f"the trace table {table}", error, table)
                    counts[table] = write(path, table, (), (), last=())
        return counts

    def at_end(self) -> dict[str, Any]:
        """The columns of the recorder in a row of the end of the run."""
        return {"run_id": self.run_id, "vt": self._clock.now_ms, "seq": self.sequence}

    def table(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a trace table with every column, in order of their event numbers."""
        with self._lock:  # an event of another thread may be about to put rows on the shelf
            return itertools.chain(self.shelf.rows(name), list(self._kept(name)))

    def columns(self, name: str) -> Iterator[pa.Table]:
        """The rows of a trace table as its file has them, some at a time."""
        with self._lock:
            shelved, kept = self.shelf.groups(name), self._kept(name, as_text=True)
            yield from shelved
            while piece := list(itertools.islice(kept, self.piece_rows)):
                yield arrow_table(name, piece)

    def in_memory(self, table: str) -> Iterator[Mapping[str, Any]]:
        """The latest rows of a table, with only the columns that were given."""
        return (event[3] for event in self.rows[table])

    def _kept(self, table: str, *, as_text: bool = False) -> Iterator[dict[str, Any]]:
        """The rows that are in memory.

        Shapes:  as_text: messages as the text of their JSON form.
        """
        if table == "rpc":
            return self._rpc_rows(self.exchanges, as_text=as_text)
        if table == "client_record":
            with self._making:
                while self._unmade:
                    self._make_client_rows(CLIENT_ROWS_AT_ONCE)
            self._note_received()
            return iter(self._client_rows)
        return self._rows(table, self.rows[table])

    @property
    def _has_room(self) -> bool:
        """A run shows the first rows of its clients, up to a number of them."""
        return self._client_rows_made < trace.CLIENT_ROWS_MAX

    def _add_client_rows(self, exchange: Exchange, response: Any) -> list[dict[str, Any]]:
        """Make the rows of a response to a client, whose records nobody keeps.

        Shapes:  -> the rows that the live rules take.
        """
        if not self._has_room:
            self.client_rows_left_out += 1
            return []
        from minicluster.actors.recording.client_records import JUDGED_AT_THE_END, client_rows

        rows = self._rows_of(exchange, client_rows(exchange, response))
        judged: list[dict[str, Any]] = []
        if type(exchange.request) in JUDGED_AT_THE_END:
            rows = map(self._counted, rows)
        else:
            judged = list(rows)
            rows = iter(judged)
        with self._making:
            self._client_rows_made += len(judged)
            self._unmade.append((exchange, rows))
            self._make_client_rows(CLIENT_ROWS_AT_ONCE)
        return judged

    def _rows_of(
        self, exchange: Exchange, returned: Iterator[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """The rows of a response that leaves now, each made as it is read."""
        common = {"run_id": self.run_id, "vt": self._clock.now_ms, "seq": exchange.resp_seq}
        misled = {"misled": True} if exchange.client_id in self._misled else {}

        def complete(row: dict[str, Any]) -> dict[str, Any]:
            return common | trace.row("client_record", row | misled)

        return map(complete, returned)

    def _counted(self, row: dict[str, Any]) -> dict[str, Any]:
        self._client_rows_made += 1
        return row

    def _make_client_rows(self, count: int) -> None:
        """Make rows of the oldest responses that lack some, so that all stay in order."""
        while self._unmade and count > 0:
            exchange, unmade = self._unmade[0]
            rows: list[dict[str, Any]] = []
            try:
                rows += itertools.islice(unmade, count)
            except Exception as error:
                self.own_problems.add(f"the record of a {exchange.api}", error, "client_record")
            if len(rows) < count:
                self._unmade.popleft()
            count -= len(rows)
            if rows:  # which may have been received before they were made
                # First, since another thread may be about to shelve them.
                self._on_their_way.append((exchange, rows))
            self._client_rows += rows

    def _note_received(self) -> None:
        """Complete the rows of responses that have arrived since."""
        waiting = self._on_their_way[:]
        left = [one for one in waiting if one[0].open]
        for exchange, rows in waiting:
            for row in rows:
                row["received_seq"] = exchange.received_seq
        # One that is closed meanwhile is completed the next time. In place, as above.
        self._on_their_way[: len(waiting)] = left

    def _row(self, table: str, event: Event) -> dict[str, Any]:
        sequence, at_ms, _, row = event
        return {"run_id": self.run_id, "vt": at_ms, "seq": sequence, **trace.row(table, row)}

    def _rows(self, table: str, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
        """The rows of events, without those that cannot be made."""
        for event in events:
            try:
                row = self._row(table, event)
            except Exception as error:
                self.own_problems.add(f"a row of the trace table {table}", error, table)
            else:
                yield row

    def _rpc_rows(
        self, exchanges: Iterable[Exchange], *, as_text: bool
    ) -> Iterator[dict[str, Any]]:
        """The rows of exchanges, without those that cannot be made."""
        for exchange in exchanges:
            try:
                row = rpc_row(self.run_id, exchange, as_text=as_text)
            except Exception as error:
                self.own_problems.add("a row of the trace table rpc", error, "rpc")
            else:
                yield row


def _tell_rows(on_part: Callable[[str], None], table: str, rows: int) -> None:
    on_part(f"{table}, {rows:,} rows")


def _unsettled(exchange: Exchange, row: Callable[[], dict[str, Any]]) -> Unsettled:
    """The row of an exchange that may still get a response."""

    def forget() -> None:
        exchange.is_written = True

    return Unsettled(row, lambda: exchange.is_settled, forget)


def _unreceived(row: Mapping[str, Any], exchange: Exchange) -> Unsettled:
    """A row of a response that its client may still receive."""

    def now() -> dict[str, Any]:
        return {**row, "received_seq": exchange.received_seq}

    return Unsettled(now, lambda: not exchange.open)


def _without_records(event: Event) -> Event:
    """The event with sizes in place of record batches."""
    if event[2] not in ("request", "response", "changed", "answer") or len(event[4]) != 2:
        return event
    body, version = event[4]
    return (*event[:4], (without_records(body), version), *event[5:])
