"""Groups that transform what they read, with their offsets in transactions (KIP-98, KIP-447).

The cluster's own members that transform name, in each value that they write, the place of the
record that it is of; other clients may write what they like.

subject   a group: what its members have read, and written to the logs of the last leaders
keeps     the batches of its committed transactions by value; the records that it has passed
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from minicluster.verify.group.event import ClientEvent
from minicluster.verify.group.groups import Group
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import Place
from minicluster.verify.producers.producers import Batch
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule


class Transform:
    """A group that commits its offsets in transactions: what it has written of what it read.

    Shapes:  written: by topic id and value, the batches of committed transactions. read: what it
             has read, once each.
    Units:   passed: by partition, the highest offset that it has committed.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.written: dict[tuple[str, str | None], list[Batch]] = defaultdict(list)
        self.read: set[tuple[Place, int, int, int | None, str | None]] = set()
        self.passed = {
            place: max(known.offset or 0 for known in sets if known.shown is not None)
            for place, sets in group.sets.items()
            if any(known.shown is not None for known in sets)
        }

    def on_read(self, event: ClientEvent) -> Said:
        """A member reads a record; what is below a committed offset it has passed."""
        # The value counts: a record may be in the response twice only by an error of its own.
        record = event.place, event.seq, event.broker, event.offset, event.value
        if record not in self.read and (event.offset or 0) < self.passed.get(event.place, -1):
            self.read.add(record)
            yield from a_transform_leaves_no_record_out(event, self.values)

    def at_end(self, sources: Mapping[str | None, set[str]]) -> Said:
        """The run has ended; ``sources``: by value the topics that had such a record."""
        for (_, value), copies in self.written.items():
            for batch in copies:
                several = len(sources.get(value, ())) or 1
                yield from a_transform_writes_each_record_once(batch, len(copies), several)

    @cached_property
    def values(self) -> set[str | None]:
        """All that it wrote."""
        return {value for _, value in self.written}


def transformed(event: ClientEvent) -> str:
    """The value that a member writes for a record that it has read."""
    return f"{event.topic}-{event.part}@{event.offset} {event.value}"


@rule("H9", "A transform writes each record once",
      source="KIP-98, KIP-447; KafkaProducer.sendOffsetsToTransaction",
      at_end=True, evidence=Evidence.TRACE,
      tables=("client_record", "group_event", "log_batch", "partition_event", "raft_event",
              "replica_log"),
      breaks="A transforming group has written the record of orders-0@0 twice, in two committed "
      "transactions.",
      keeps="The first of two transactions is aborted, and what is read behind the "
      "committed offset is not written yet.")  # fmt: skip
def a_transform_writes_each_record_once(batch: Batch, copies: int, sources: int) -> Findings:
    """Each record that a transforming group has passed is in one committed transaction of its
    members, and no record is in two."""
    yield CASE
    # A name may have had several topics, one after the other, each with a record at the place.
    if copies > sources:
        yield broken(
            f"a transforming group wrote the record at offset {batch.base_offset} more than once",
            batch,
        )


@a_transform_writes_each_record_once.also
def a_transform_leaves_no_record_out(read: ClientEvent, written: set[str | None]) -> Findings:
    """A member has read it, and the group has committed an offset behind it."""
    yield CASE
    if transformed(read) not in written:
        yield broken(
            f"a transforming group has passed the record at offset {read.offset}, and wrote "
            "nothing for it",
            read,
        )


@a_transform_writes_each_record_once.also
def a_transform_that_was_given_another_offset_promises_nothing(excuses: list[str]) -> Findings:
    """It begins there, and writes again what it has written, or leaves out what it has not."""
    if excuses:
        yield exempt(excuses[0])
