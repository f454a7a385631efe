"""The events of the folds of a partition: of its replicas, and of their responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec.json import Decoder

from minicluster.values import Value
from minicluster.verify.exchange.exchange import Exchange, each
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row

Ids = tuple[int, ...]
Place = tuple[str, int]  # topic id as the trace has it, partition
SERVED = ("fetch", "list", "read")  # what a broker responds out of a replica
_NOWHERE = -1  # log end and leader epoch of a follower that has not fetched


class FetchState(Value):
    """The last fetch of a follower, as its leader knows it: it may have crashed since.

    Units:   log_end: where the fetch began. leader_epoch: the leader's epoch then. broker_epoch: of
             the broker that fetched, None where it does not say.
    """

    log_end: int
    leader_epoch: int
    broker_epoch: int | None


NEVER_FETCHED = FetchState(_NOWHERE, _NOWHERE, None)


class PartitionEvent:
    """An event of a replica; its fields are columns of ``partition_event`` (``trace.py``).

    Shapes:  isr, maximal_isr: None where the replica does not lead. hw_new: after the event, if it
             is known. error: of a rejected proposal. A column that a row does not have is None.
    """

    __slots__ = (
        "_known", "at_ms", "broker", "epochs", "error", "hw_new", "hw_old", "incarnation", "isr",
        "kind", "leader_epoch", "leo", "maximal_isr", "min_isr", "offset", "part",
        "partition_epoch", "seq", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, row: Row) -> None:
        cell: Callable[[str], Any] = row.get
        self.seq: int = row["seq"]
        self.at_ms: int = cell("vt")
        self.broker: int = row["broker"]
        self.incarnation: str | None = cell("incarnation")
        self.topic: str = row["topic"]
        self.topic_id: str = row["topic_id"]
        self.part: int = row["part"]
        self.kind: str = row["kind"]
        self.leader_epoch: int = cell("leader_epoch")
        self.partition_epoch: int = cell("partition_epoch")
        self.isr = _ids(cell("isr"))
        self.maximal_isr = _ids(cell("maximal_isr"))
        self.min_isr: int | None = cell("min_isr")
        self.hw_old: int = cell("hw_old")
        self.hw_new: int = cell("hw_new")
        self.leo: int = cell("leo")
        self.offset: Any = cell("offset")  # None: an append empties the log first
        self.error: str | None = cell("error")
        self.epochs = _ids(cell("epochs"))
        self._known: str | None = cell("follower_leos")

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic_id, self.part

    @property
    def followers(self) -> Mapping[int, FetchState] | None:
        """A leader's knowledge of its followers, by their broker ids; None: not recorded."""
        return None if self._known is None else _parsed(self._known)

    def fetch_state(self, member: int) -> FetchState:
        """The last fetch of a follower."""
        return (self.followers or {}).get(member, NEVER_FETCHED)

    @property
    def joining(self) -> Ids:
        """The replicas that a leader proposes to add to its ISR."""
        members, isr = self.maximal_isr or (), self.isr or ()
        return tuple(dict.fromkeys(member for member in members if member not in isr))

    def is_led_as(self, committed: CommittedPartition) -> bool:
        """The broker leads in the committed state, in the leader epoch of the event."""
        leadership = committed.after.leader, committed.leader_epoch
        return leadership == (self.broker, self.leader_epoch)


class Response:
    """A part of a response to a consumer, about a partition; columns of ``client_record``.

    Shapes:  f: fetch, list (its end, with the leader epoch), or read: one record of a fetch.
    """

    __slots__ = (
        "broker", "f", "high_watermark", "last_stable_offset", "leader_epoch", "offset", "part",
        "read_committed", "seq", "topic",
    )  # fmt: skip

    def __init__(self, row: Row, topic: str) -> None:
        self.seq: int = row["seq"]
        self.broker: int = row["broker"]
        self.topic, self.part = topic, row["part"]
        self.f: str = row["f"]
        self.offset: int = row["offset"]
        self.high_watermark: int | None = row["high_watermark"]
        self.leader_epoch: int | None = row.get("leader_epoch")
        self.last_stable_offset: int | None = row.get("last_stable_offset")
        self.read_committed = row.get("isolation") == 1


def _ids(numbers: list[int] | None) -> Ids | None:
    return None if numbers is None else tuple(numbers)


@lru_cache(maxsize=256)  # a leader repeats them from event to event
def _parsed(text: str) -> Mapping[int, FetchState]:
    return {broker: _state(*numbers) for broker, numbers in _decoded(text).items()}


_decoded = Decoder(dict[int, list[int | None]]).decode


def _state(
    log_end: int | None = None, leader_epoch: int | None = None, broker_epoch: int | None = None
) -> FetchState:
    return FetchState(
        _NOWHERE if log_end is None else log_end,
        _NOWHERE if leader_epoch is None else leader_epoch,
        broker_epoch,
    )


class FetchOfPartition(Value):
    """One partition of a Fetch that names a leader epoch, as a broker handled it.

    Shapes:  error: None where the response leaves the partition out.
    """

    request: int
    sender: int
    broker: int
    part: int
    leader_epoch: int
    error: int | None


def fetches_in(fetch: Exchange) -> Iterator[tuple[str, FetchOfPartition]]:
    """The partitions of a Fetch by topic id; one that names topics (below version 13) has none."""
    errors: dict[tuple[str | None, int | None], int | None] = {}
    asked = each(fetch.request, "topics")  # none, where a session continues as it was
    for topic in each(fetch.response, "responses") if asked else ():
        for partition in each(topic, "partitions"):
            place = topic.get("topicId"), partition.get("partitionIndex")
            errors.setdefault(place, partition.get("errorCode"))
    for topic in asked:
        for partition in each(topic, "partitions"):
            topic_id, number = topic.get("topicId"), partition.get("partition")
            epoch = partition.get("currentLeaderEpoch")
            if topic_id is not None and number is not None and epoch is not None and epoch >= 0:
                error = errors.get((topic_id, number))
                yield (
                    topic_id,
                    FetchOfPartition(fetch.id, fetch.sender, fetch.receiver, number, epoch, error),
                )
