"""Fetches of assigned partitions, each from its leader, and the records that a consumer sees.

With read_committed the leader names the aborted transactions of what it returns. Their records are
dropped here, as Kafka's own consumers do.

Source:  CompletedFetch (consumeAbortedTransactionsUpTo, isBatchAborted), FetchCollector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from minicluster.clients.client import BACKOFF_MS, Client, TopicPartition
from minicluster.log import RecordBatch, Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest
from minicluster.values import Value

_FETCH_VERSION = 12
_LIST_OFFSETS_VERSION = 7
_MAX_WAIT_MS = 500
_MAX_BYTES = 1 << 20
_EARLIEST = -2
_WITHOUT_SESSION = -1
_ABORT = b"\0\0\0\0"


class ConsumedRecord(Value):
    """A record that a consumer has seen.

    Units:   timestamp: milliseconds since 1970, or of a simulated cluster's clock.
    """

    topic: str
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = -1


class Reader:
    """The positions of one consumer, and its fetches."""

    def __init__(
        self,
        client: Client,
        *,
        read_committed: bool,
        on_records: Callable[[Sequence[ConsumedRecord], int], None],
    ) -> None:
        self._client = client
        self._read_committed = read_committed
        self._on_records = on_records
        self._turn = 0  # of an assignment; fetches of an earlier one are ignored
        self._fetching: set[int] = set()  # nodes with a request in flight
        self._finds_leaders = False
        self.positions: dict[TopicPartition, int] = {}

    def start(self, positions: dict[TopicPartition, int]) -> None:
        """Read from these positions on, and nothing else."""
        self.stop()
        self.positions = dict(positions)
        self._fetch_all(self._turn)

    def stop(self) -> None:
        """Read nothing any more."""
        self._turn += 1
        self._fetching.clear()
        self._finds_leaders = False

    def _fetch_all(self, turn: int) -> None:
        """Fetch from every leader of now; one that owes a response gets no second request."""
        if turn == self._turn:
            leaders = {self._client.leaders[place] for place in self.positions}
            for node in sorted(leaders - self._fetching):
                self._fetch(node, turn)

    def _fetch(self, node: int, turn: int) -> None:
        topics: dict[str, list[int]] = {}
        for topic, index in self.positions:
            if self._client.leaders.get((topic, index)) == node:
                topics.setdefault(topic, []).append(index)
        self._fetching.add(node)
        kind = FetchRequest
        request = kind(
            max_wait_ms=_MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            isolation_level=int(self._read_committed),
            session_epoch=_WITHOUT_SESSION,
            topics=tuple(
                kind.FetchTopic(
                    topic=topic,
                    partitions=tuple(
                        kind.FetchPartition(
                            partition=index,
                            current_leader_epoch=self._client.leader_epochs[topic, index],
                            fetch_offset=self.positions[topic, index],
                            partition_max_bytes=_MAX_BYTES,
                        )
                        for index in indexes
                    ),
                )
                for topic, indexes in topics.items()
            ),
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            if turn == self._turn:
                self._fetching.discard(node)
                self._take(node, request, response, at_ms)

        self._client.send(node, request, _FETCH_VERSION, on_end)

    def _take(self, node: int, request: FetchRequest, response: Any | None, now_ms: int) -> None:
        """Take a response, and fetch again; a leader that has moved is looked for.

        The other leaders are read meanwhile, so no response of theirs is lost. What was fetched at
        another position than that of now is ignored: the partition has another leader meanwhile.
        """
        turn = self._turn
        is_lost = response is None
        reset: list[TopicPartition] = []
        records: list[ConsumedRecord] = []
        before = dict(self.positions)
        fetched_at = {
            (topic.topic, partition.partition): partition.fetch_offset
            for topic in request.topics
            for partition in topic.partitions
        }
        for topic in () if response is None else response.responses:
            for data in topic.partitions:
                place = topic.topic, data.partition_index
                if fetched_at[place] != self.positions[place]:
                    continue
                if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    reset.append(place)
                elif data.error_code != ErrorCode.NONE:
                    is_lost = True
                else:
                    records += self._seen(place, data)
        if self.positions != before:  # perhaps past markers alone
            self._on_records(records, now_ms)
            if turn != self._turn:  # it was stopped
                return
        if is_lost:
            self._look_for_leaders(now_ms)
        elif reset:
            self._reset(reset[0], node)
        else:
            self._fetch_all(turn)

    def _seen(self, place: TopicPartition, data: Any) -> Iterator[ConsumedRecord]:
        batches = Records.of(data.records).batches
        position = self.positions[place]
        for batch in visible_batches(batches, data.aborted_transactions):
            for record in batch.records:
                if record.offset >= position:
                    yield ConsumedRecord(
                        *place,
                        offset=record.offset,
                        value=record.value,
                        key=record.key,
                        headers=record.headers,
                        timestamp=record.timestamp,
                    )
        if batches:
            self.positions[place] = batches[-1].next_offset

    def _look_for_leaders(self, now_ms: int) -> None:
        if not self._finds_leaders:
            self._finds_leaders = True
            again = partial(self._find_again, self._turn)
            self._client.after("leaders", BACKOFF_MS, again, now_ms)

    def _find_again(self, turn: int, now_ms: int) -> None:
        """Find the leaders and continue, unless there is another assignment by then."""

        def continue_reading(at_ms: int) -> None:
            if turn == self._turn:
                self._finds_leaders = False
                self._fetch_all(turn)

        if turn == self._turn:
            topics = {topic for topic, _ in self.positions}
            self._client.find_leaders(sorted(topics), continue_reading, now_ms)

    def _reset(self, place: TopicPartition, node: int) -> None:
        """Continue at the first offset that there is (auto.offset.reset=earliest)."""
        turn, (topic, index) = self._turn, place
        self._fetching.add(node)
        kind = ListOffsetsRequest
        request = kind(
            replica_id=-1,
            isolation_level=int(self._read_committed),
            topics=(
                kind.ListOffsetsTopic(
                    name=topic,
                    partitions=(
                        kind.ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=self._client.leader_epochs[place],
                            timestamp=_EARLIEST,
                        ),
                    ),
                ),
            ),
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            if turn != self._turn:
                return
            self._fetching.discard(node)
            listed = None if response is None else response.topics[0].partitions[0]
            if listed is None or listed.error_code != ErrorCode.NONE:
                self._look_for_leaders(at_ms)
                return
            self.positions[place] = listed.offset
            self._on_records((), at_ms)  # its new position
            if turn == self._turn:
                self._fetch_all(turn)

        self._client.send(node, request, _LIST_OFFSETS_VERSION, on_end)


def visible_batches(
    batches: Sequence[RecordBatch], aborted: Sequence[Any] | None
) -> Iterator[RecordBatch]:
    """The batches with records for an application: none of a marker or an aborted transaction.

    Shapes:  aborted: the aborted transactions that a Fetch response names, None with
             read_uncommitted.
    """
    to_come = sorted(aborted or (), key=lambda transaction: transaction.first_offset, reverse=True)
    open_aborted: set[int] = set()
    for batch in batches:
        while to_come and to_come[-1].first_offset <= batch.last_offset:
            open_aborted.add(to_come.pop().producer_id)
        if batch.is_control:
            if batch.records and batch.records[0].key == _ABORT:  # compaction may leave it empty
                open_aborted.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_aborted):
            yield batch
