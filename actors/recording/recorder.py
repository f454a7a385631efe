"""The record of a run: the rows of its trace tables, the latest events for people, a hash.

An event has a number. One that ends what a row tells adds that row to its table (``tables.py``):
an event of a replica or of the quorum at once, a request with its response when both sides are
done with it, and with it what a client received. Rows keep references to the (immutable) messages;
their columns are made when a row is written or read.

**Invariant:** no row changes once it is in its table. What has not ended when the run is read comes
behind all rows, as it is then (``tests/actors/test_long_runs.py``).
**Invariant:** what a judge needs of a client's request is taken once, when it is sent, as a small
value (``tests/actors/test_recorded_clients.py``).
**Invariant:** no secret is kept of a message (``tests/security/test_no_secret_is_kept.py``).
**Invariant:** a recorder ends no cluster. What fails in it is one of its ``problems``, and the run
is unknown where it lacks evidence (``tests/actors/test_recorder_problems.py``).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from minicluster import trace
from minicluster.actors.exchange import Exchange, Substitute
from minicluster.actors.recording.bodies import bytes_about, without_records
from minicluster.actors.recording.columns import arrow_tables
from minicluster.actors.recording.problems import Problems, RecorderProblem
from minicluster.actors.recording.readable import (
    STEADY_APIS,
    STEADY_KINDS,
    UNTOLD_TABLES,
    Event,
    is_told_of,
    readable,
    sender,
    together,
)
from minicluster.actors.recording.rpc_rows import RpcRow
from minicluster.actors.recording.sent_batches import Sent, sent_batches
from minicluster.actors.recording.tables import Tables, TraceRow
from minicluster.actors.recording.trace_files import write_table
from minicluster.faults import Faults
from minicluster.planting import Planted
from minicluster.protocol.messages import ProduceRequest
from minicluster.security.secret_fields import SECRET_APIS, without_secrets
from minicluster.values import replace

if TYPE_CHECKING:
    import pyarrow as pa

KEPT_FOR_PEOPLE = 2_000  # events: fifty partitions of an internal topic make some hundred
SHOWN_BYTES_MAX = 16 * 1024  # of an exchange whose messages these events have
OPEN_MAX = 10_000  # exchanges that have not ended
ROWS_FOR_HOURS = 2_000  # of each table in memory, for a cluster that clients use for long
OWN_RECORDS_MAX = 10_000  # that each of the cluster's own clients keeps in a long run
LOG_ROWS_MAX = 1_000_000  # records in brokers' logs that the trace of a long run lists


TopicIds = Callable[[], Mapping[str, UUID]]


class RunFollower(Protocol):
    """A receiver of replicas' and quorum's events and of responses to clients, in order for each
    node. It raises nothing: what fails in it is a problem of the run.
    """

    def on_partition_event(self, row: Mapping[str, Any]) -> None:
        """A row of ``partition_event``."""

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """A row of ``raft_event``."""

    def on_response(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """A response to a client leaves: its rows of ``client_record``, with values as long as the
        trace keeps such rows; without ``received_seq``.
        """


class Clock(Protocol):
    """The clock of a cluster: its runtime."""

    @property
    def now_ms(self) -> int: ...


class Recorder:
    """The recorder that all of a cluster's actors share."""

    def __init__(self, run_id: str, clock: Clock, faults: Faults = Faults.NONE) -> None:
        self.run_id = run_id
        self._clock = clock
        self._planted = Planted(faults)
        self.follower: RunFollower | None = None
        self.own_problems = Problems(lambda: clock.now_ms)
        self.tables = Tables(run_id, self.own_problems)
        self.log_rows_max: int | None = None
        self.own_records_max: int | None = None  # what each of the cluster's own clients keeps
        self.fault_hits: dict[str, int] = {}
        self.controller_faults: list[str] = []  # faults that a controller met and survived
        self.sequence = 0  # the number of the last event
        self._numbers = itertools.count(1)
        self._open: dict[int, RpcRow] = {}  # exchanges that have not ended
        self._sent: dict[int, Sent] = {}  # what the rows of a client's Produce need of it
        # When a client's response left, and the columns of its rows.
        self._returned: dict[int, tuple[int, list[dict[str, Any]]]] = {}
        self._client_rows_made = 0
        self.client_rows_left_out = 0  # responses to clients of which there are no rows
        self._misled: set[str | None] = set()  # clients that were told what no node said
        self._told: deque[Event] = deque(maxlen=KEPT_FOR_PEOPLE)
        self._told_sends: deque[Event] = deque(maxlen=KEPT_FOR_PEOPLE)  # would crowd out others

    def bound_for_hours(self, bytes_on_disk: int) -> None:
        """Take little memory, for a cluster that clients use for long: its run has no hash."""
        self.tables.hashed = False
        self.tables.rows_in_memory = ROWS_FOR_HOURS
        self.tables.bytes_on_disk = bytes_on_disk
        self.log_rows_max, self.own_records_max = LOG_ROWS_MAX, OWN_RECORDS_MAX

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
        return self.own_problems.so_far() + tuple(self.tables.dropped())

    # Events.

    def number(self) -> int:
        """The number of an event of which nothing else is recorded here."""
        self.sequence = number = next(self._numbers)  # in one step: threads share this recorder
        return number

    def event(self, kind: str, *details: Any) -> None:
        """Record an event that is not a row, for people."""
        self._told.append((self.number(), self._clock.now_ms, kind, *details))

    def trace(self, table: str, row: Mapping[str, Any]) -> int:
        """Add a row to a trace table; returns its event number.

        A table or a column that is not declared is a problem of the run, which lacks the row.
        """
        self.sequence = number = next(self._numbers)
        now_ms = self._clock.now_ms
        try:
            self.tables.add(table, TraceRow(number, now_ms, row))
        except KeyError as error:
            self.own_problems.add(f"a row of the trace table {table}", error)
        if table == "history":
            self._told_sends.append((number, now_ms, table, row))
        elif table not in UNTOLD_TABLES and row.get("kind") not in STEADY_KINDS:
            self._told.append((number, now_ms, table, row))
        follower = self.follower
        if follower is not None:
            if table == "raft_event":
                follower.on_raft_event({**row, "seq": number})
            elif table == "partition_event":
                follower.on_partition_event({**row, "seq": number})
        return number

    def fault_hit(self, fault: str, node: int) -> None:
        """Count that a planted fault changed what a machine did."""
        self.fault_hits[fault] = self.fault_hits.get(fault, 0) + 1
        self.trace("fault", {"action": fault, "targets": [node], "phase": "hit"})

    # Requests and responses.

    def request(self, exchange: Exchange, incarnation: str | None) -> RpcRow:
        """Record a request before it leaves, and write rows that are too many.

        Here and not at each event: no cluster runs for long without a request.

        Shapes:  incarnation: of its sender's process.
        """
        self.sequence = number = next(self._numbers)
        row = RpcRow.of(exchange, number, incarnation)
        if row.request.__class__ is ProduceRequest:
            self._take_sent(row)
        elif row.api in SECRET_APIS:
            row.request = self._without_secrets(row, row.request)
        self._weigh(row, row.request)
        self._open[row.id] = row
        self.tables.relieve()
        if len(self._open) > OPEN_MAX or self.tables.weight > self.tables.bytes_in_memory:
            self._give_up()
        return row

    def sent(self, row: RpcRow, fate: str) -> None:
        """Tell people of a request that has left; of a Produce only as long as it waits."""
        if row.api not in STEADY_APIS and row.api != "Produce":
            self._tell(row, row.seq, "request", row.request, fate)

    def changed(self, exchange: Exchange) -> None:
        """Record that the node gets another request than its client has sent."""
        number = self.number()
        if (row := self._open.get(exchange.id)) is not None:
            row.request = exchange.request
            if row.request.__class__ is ProduceRequest:
                self._take_sent(row)
            elif row.api in SECRET_APIS:
                row.request = self._without_secrets(row, row.request)
            self._tell(row, number, "changed", row.request)

    def _take_sent(self, row: RpcRow) -> None:
        """Take what is needed of a Produce, so that no record batch is kept."""
        body = row.request
        try:
            row.request = without_records(body)
            # Without acks there is no response, and without room no row.
            if row.client_id is not None and body.acks and self._has_room:
                self._sent[row.id] = sent_batches(body)
        except Exception as error:
            self.own_problems.add(f"the record of a {row.api}", error, "client_record")

    def _without_secrets(self, row: RpcRow, body: Any) -> Any:
        kept = without_secrets(self._planted, body)
        for fault in self._planted.take_hits():
            self.fault_hit(fault, row.dst)
        return kept

    def _weigh(self, row: RpcRow, body: Any) -> None:
        try:
            weight = bytes_about(body)
        except Exception as error:
            self.own_problems.add(f"the size of a {row.api}", error)
        else:
            row.weight += weight
            self.tables.weight += weight

    def handled(self, exchange: Exchange) -> None:
        """Record that a node takes a request out of its inbox."""
        self.sequence = number = next(self._numbers)
        row = self._open.get(exchange.id)
        if row is not None and row.handle_seq is None:
            row.handle_seq, row.handled_ms = number, self._clock.now_ms

    def found(self, exchange: Exchange, **columns: Any) -> None:
        """Record what a controller says of a request that it has not responded to yet."""
        row = self._open.get(exchange.id)
        if row is not None and row.resp_seq is None:
            for name, value in columns.items():
                setattr(row, name, value)

    def lost(self, exchange: Exchange) -> None:
        """Record that a packet was lost on its way."""
        number = self.number()
        if (row := self._open.get(exchange.id)) is not None:
            self._tell(row, number, "lost", "on the way")

    def answer(self, exchange: Exchange, substitute: Substitute) -> None:
        """Record what a client gets in place of what its node says."""
        number = self.number()
        if substitute.misleads:
            self._misled.add(exchange.sender.client_id)
        if (row := self._open.get(exchange.id)) is not None:
            response = without_records(substitute.response)
            if row.api in SECRET_APIS and response is not None:
                response = self._without_secrets(row, response)
            row.answer = replace(substitute, response=response)
            text = f"{substitute.by} {substitute.description} {substitute.when}"
            self._tell(row, number, "answer", response, text)

    def response(
        self, exchange: Exchange, body: Any, fate: str, topic_ids: TopicIds | None
    ) -> None:
        """Record a response that is sent; the first one to a client becomes its rows.

        Shapes:  topic_ids: of the topics by name, as the node has them now; None: no broker.
        """
        self.sequence = number = next(self._numbers)
        row = self._open.get(exchange.id)
        if row is None:
            if not exchange.is_responded:
                late = ValueError("a response left after its row was written")
                self.own_problems.add(f"the record of a {exchange.api}", late, "rpc")
            return
        stripped = without_records(body)
        if row.api in SECRET_APIS:
            stripped = self._without_secrets(row, stripped)
        if row.api not in STEADY_APIS:
            self._tell(row, number, "response", stripped, fate)
        if row.resp_seq is not None:
            return
        row.resp_seq, row.response = number, stripped
        self._weigh(row, stripped)
        if row.client_id is not None:
            with self.own_problems.noted(f"the record of a {row.api}", "client_record"):
                self._return(row, body, {} if topic_ids is None else topic_ids())
        if row.completed_ms is not None:  # its sender did not wait for it
            self._end(row)

    def closed(self, exchange: Exchange, failure: str | None, *, is_own: bool) -> None:
        """Record that a caller waits no more: it has the response, or there was a failure.

        Shapes:  is_own: the response is its node's.
        """
        self.sequence = number = next(self._numbers)
        row = self._open.get(exchange.id)
        if row is None:
            return
        row.completed_ms = self._clock.now_ms
        if failure is not None:
            self._tell(row, number, "closed", failure)
        elif is_own:
            row.received_seq = number
        if row.resp_seq is not None or row.has_no_response:
            self._end(row)

    def _return(self, row: RpcRow, response: Any, topic_ids: Mapping[str, UUID]) -> None:
        """Make the rows of a response to a client, whose records nobody keeps."""
        from minicluster.actors.recording.client_records import JUDGED_AT_THE_END, client_rows

        has_room, is_live = self._has_room, type(row.request) not in JUDGED_AT_THE_END
        sent = self._sent.pop(row.id, {})
        if not has_room:
            self.client_rows_left_out += 1
            if self.follower is None or not is_live:
                return
        rows = list(client_rows(row, sent, response, topic_ids, of_batches=not has_room))
        if row.client_id in self._misled:
            for values in rows:
                values["misled"] = True
        if rows and is_live and self.follower is not None:
            of_event = {"vt": self._clock.now_ms, "seq": row.resp_seq}
            self.follower.on_response([of_event | trace.row("client_record", v) for v in rows])
        if has_room:
            self._client_rows_made += len(rows)
            self._returned[row.id] = self._clock.now_ms, rows

    @property
    def _has_room(self) -> bool:
        """A run shows the first rows of its clients, up to a number of them."""
        return self._client_rows_made < trace.CLIENT_ROWS_MAX

    def _end(self, row: RpcRow) -> None:
        """Write the rows of an exchange, which change no more."""
        del self._open[row.id]
        self.tables.add("rpc", row)
        if row.client_id is not None:
            self._sent.pop(row.id, None)
            for client_row in self._client_rows(row):
                self.tables.add("client_record", client_row)
            self._returned.pop(row.id, None)

    def _client_rows(self, row: RpcRow) -> Iterator[TraceRow]:
        """The rows of what a client got, as far as its exchange has come."""
        left_ms, returned = self._returned.get(row.id, (0, ()))
        for values in returned:
            values["received_seq"] = row.received_seq
            yield TraceRow(row.resp_seq or 0, left_ms, values)

    def _give_up(self) -> None:
        """Write an exchange without an end: a day of lost requests is as long as the day.

        The oldest one, where there are too many; where they take too much memory the oldest whose
        caller waits no more.
        """
        waiting = list(self._open.values())
        if len(waiting) > OPEN_MAX:
            self._end(waiting[0])
        elif not self.tables["rpc"].kept:
            given_up = next((row for row in waiting if row.completed_ms is not None), None)
            if given_up is not None:
                self._end(given_up)

    # For people.

    def _tell(self, row: RpcRow, number: int, kind: str, *details: Any) -> None:
        if row.api not in STEADY_APIS and is_told_of(row, kind, details):
            shown = details if row.weight <= SHOWN_BYTES_MAX else ()
            self._told.append((number, self._clock.now_ms, kind, _named(row), *shown))

    def last_events(self, count: int = 30, since_ms: int = 0) -> list[str]:
        """The latest events as lines for a person, none of them before a time."""
        waiting = [
            (row.seq, row.vt, "request", _named(row), row.request)
            for row in list(self._open.values())
            if row.request.__class__ is ProduceRequest
            and row.resp_seq is None
            and row.completed_ms is None
        ]
        events = sorted(
            (e for e in (*self._told, *self._told_sends, *waiting) if e[1] >= since_ms),
            key=lambda event: event[0],
        )
        lines: list[str] = []
        for of_one_line in together(events)[-count:]:
            with self.own_problems.noted("the text of an event"):
                lines.append(readable(of_one_line))
        return lines

    # The rows so far.

    @property
    def exchanges(self) -> list[RpcRow]:
        """The exchanges in memory, those that have not ended among them, in their order."""
        rows = [*self.tables["rpc"].kept, *list(self._open.values())]
        return sorted(rows, key=lambda row: row.id)

    def in_memory(self, table: str) -> Iterator[TraceRow]:
        """The latest rows of events, with only the columns that were given."""
        return iter(list(self.tables[table].kept))

    def table(self, name: str) -> Iterator[dict[str, Any]]:
        """The rows of a trace table with every column, as what they tell has ended."""
        return self.tables.rows(name, self._unfinished(name))

    def columns(self, name: str) -> Iterator[pa.Table]:
        """The same rows as its file has them, some at a time."""
        return self.tables.columns(name, self._unfinished(name))

    @property
    def trace_hash(self) -> str:
        """A hash over every row so far."""
        return self.tables.digest({name: self._unfinished(name) for name in trace.TABLES})

    def at_end(self) -> dict[str, Any]:
        """The columns of the recorder in a row of the end of the run."""
        return {"run_id": self.run_id, "vt": self._clock.now_ms, "seq": self.sequence}

    def write(
        self,
        folder: Path,
        end: Mapping[str, Iterable[Mapping[str, Any]]],
        on_part: Callable[[str], None] = lambda part: None,
    ) -> dict[str, int]:
        """Write every trace table as Parquet (``trace/<table>.parquet``), even an empty one.

        Shapes:  end: rows of the end of the run, which are neither events nor in the hash. on_part:
                 called with the name of each table, and with its rows as they are written.
                 -> how many rows each table has.
        """
        folder.mkdir(parents=True, exist_ok=True)
        counts: dict[str, int] = {}
        for table in trace.TABLES:
            on_part(table)
            path = folder / f"{table}.parquet"
            last = arrow_tables(table, end.get(table, ()), self.tables.piece_rows)
            content = chain(self.columns(table), last)
            try:
                counts[table] = write_table(
                    path, table, content, partial(_tell_rows, on_part, table)
                )
            except OSError:
                raise  # of the place that the user has named
            except Exception as error:  # a value that is not of its column's type
                self.own_problems.add(f"the trace table {table}", error, table)
                counts[table] = write_table(path, table, ())
        return counts

    def _unfinished(self, table: str) -> Sequence[RpcRow | TraceRow]:
        """The rows of what has not ended."""
        if table == "rpc":
            return list(self._open.values())
        if table == "client_record":
            return [each for row in list(self._open.values()) for each in self._client_rows(row)]
        return ()


def _named(row: RpcRow) -> str:
    return f"{row.api}#{row.id} {sender(row)}>{row.dst}"


def _tell_rows(on_part: Callable[[str], None], table: str, rows: int) -> None:
    on_part(f"{table}, {rows:,} rows")
