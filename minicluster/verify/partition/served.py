"""Responses of a partition's replicas to consumers and followers (KIP-98, KIP-207, KIP-392).

subject   a partition: the events of its replicas, their responses to consumers, and, of a run that
          has ended, the Fetches that they handled
keeps     by broker, the high watermark and leader epoch of its replica, and the highest high
          watermark that clients received in its leadership
"""

from __future__ import annotations

from msgspec import Struct

from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import FetchOfPartition, PartitionEvent, Response
from minicluster.verify.partition.replicas import a_leaders_high_watermark_does_not_decrease
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, rule

_TABLES = ("client_record", "partition_event", "raft_event")
READ = "read"
_WITH_EPOCH = ("become_leader", "become_follower", "isr_commit", "hw")


class Serving(Struct):
    """A replica as its broker's latest events have it.

    Shapes:  leadership: incarnation and leader epoch. returned: the highest high watermark that
             clients received in it. epoch_start: its log end as it became leader in that epoch, the
             lowest if it did twice. leader_epoch: the latest.
    """

    high_watermark: int | None = None
    leader_epoch: int | None = None
    leads: bool = False
    leadership: tuple[str | None, int] | None = None
    returned: int | None = None
    epoch_start: int | None = None
    is_deleted: bool = False


class ServedOfPartition:
    """The reads that one partition serves."""

    def __init__(self) -> None:
        self.replicas: dict[int, Serving] = {}

    def on_event(self, event: PartitionEvent) -> Said:
        """An event of a replica. Once it is deleted, responses may still be on their way."""
        replica = self.replicas.get(event.broker)
        if replica is None or (replica.is_deleted and event.kind != "delete"):
            replica = self.replicas[event.broker] = Serving()
        if event.kind == "delete":
            replica.is_deleted = True
            return ()
        if event.hw_new is not None:
            replica.high_watermark = event.hw_new
        if event.leader_epoch is not None and event.kind in _WITH_EPOCH:
            replica.leader_epoch = event.leader_epoch
        if event.kind == "become_leader" or event.kind == "become_follower":
            leadership, before = (event.incarnation, event.leader_epoch), replica.leadership
            replica.leads = event.kind == "become_leader"
            if before is None or before[1] != event.leader_epoch:
                replica.epoch_start = event.leo if replica.leads else None
            elif event.leo is not None and replica.epoch_start is not None:
                replica.epoch_start = min(event.leo, replica.epoch_start)
            if leadership != before:
                replica.leadership, replica.returned = leadership, None
        return ()

    def on_response(self, response: Response) -> Said:
        """A response of a replica."""
        replica = self.replicas.get(response.broker) or Serving()
        if response.f == READ:
            yield from clients_read_committed_records_only(replica, response)
            yield from the_last_stable_offset_bounds_read_committed(response)
        else:
            yield from clients_see_no_higher_high_watermark(replica, response)
            yield from clients_see_no_high_watermark_decrease(replica, response)
            if response.f == "list":
                yield from clients_see_no_end_before_the_epoch(replica, response)
            else:
                yield from the_last_stable_offset_is_at_most_the_high_watermark(response)
        if response.high_watermark is not None:
            replica.returned = max(response.high_watermark, replica.returned or 0)

    def on_fetch(self, fetch: FetchOfPartition) -> Said:
        """A replica handles a Fetch."""
        replica = self.replicas.get(fetch.broker)
        if replica is not None and replica.leader_epoch is not None:
            yield from fetches_with_another_leader_epoch_are_rejected(fetch, replica.leader_epoch)


@rule("F6", "Clients read committed records only",
      source="KIP-392, KIP-207; ReplicaManager.readFromLog, FetchIsolation",
      evidence=Evidence.TRACE, tables=_TABLES,
      breaks="The high watermark is 2, and a consumer gets the record at 2.",
      keeps="A consumer gets the last committed record; follower 2, whose high "
      "watermark is 1, gives the one below it.")  # fmt: skip
def clients_read_committed_records_only(replica: Serving, response: Response) -> Findings:
    """A consumer receives records below the high watermark of the replica that responds, and no
    higher high watermark than the replica has."""
    own, returned = replica.high_watermark, response.high_watermark
    if own is None:
        return
    yield CASE
    if response.offset >= own or (returned is not None and response.offset >= returned):
        yield broken(
            f"broker {response.broker} gave a client the record at offset {response.offset}, which "
            "was not below its high watermark",
            response,
        )


@clients_read_committed_records_only.also
def clients_see_no_higher_high_watermark(replica: Serving, response: Response) -> Findings:
    """A response without records has a high watermark as well."""
    own, returned = replica.high_watermark, response.high_watermark
    if own is None:
        return
    yield CASE
    if returned is not None and returned > own:
        yield broken(
            f"broker {response.broker} returned the high watermark {returned} to a client, above "
            "its own",
            response,
        )


@a_leaders_high_watermark_does_not_decrease.also
def clients_see_no_high_watermark_decrease(replica: Serving, response: Response) -> Findings:
    """The high watermarks of a leader in responses, within one leader epoch (F18)."""
    before, returned = replica.returned, response.high_watermark
    if replica.leads and before is not None and returned is not None and returned < before:
        yield broken(
            f"leader {response.broker} returned the high watermark {returned} to a client after a "
            "higher one in the same leader epoch",
            response,
        )


@a_leaders_high_watermark_does_not_decrease.also
def clients_see_no_end_before_the_epoch(replica: Serving, response: Response) -> Findings:
    """The end offset that a leader returns once its epoch has begun (KIP-207)."""
    end, start, leadership = response.high_watermark, replica.epoch_start, replica.leadership
    if not replica.leads or leadership is None or leadership[1] != response.leader_epoch:
        return
    yield CASE
    if end is not None and start is not None and end < start:
        yield broken(
            f"leader {response.broker} returned end offset {end} to a consumer, which is before "
            "the start of its leader epoch",
            response,
        )


@rule("H5", "The last stable offset is at most the high watermark",
      source="KIP-98; UnifiedLog.lastStableOffset",
      evidence=Evidence.TRACE, tables=_TABLES,
      breaks="The high watermark is 5, and a response has last stable offset 6.",
      keeps="read_uncommitted goes beyond the last stable offset, and a response "
      "with an error has none (-1).")  # fmt: skip
def the_last_stable_offset_is_at_most_the_high_watermark(response: Response) -> Findings:
    """A response has no last stable offset above its high watermark, and one with read_committed no
    record at or above its last stable offset."""
    stable, mark = response.last_stable_offset, response.high_watermark
    if stable is None or stable < 0:
        return
    yield CASE
    if mark is not None and stable > mark:
        yield broken(
            f"broker {response.broker} returned the last stable offset {stable}, above its high "
            "watermark",
            response,
        )


@the_last_stable_offset_is_at_most_the_high_watermark.also
def the_last_stable_offset_bounds_read_committed(response: Response) -> Findings:
    """The records of a response to a consumer that reads what is committed."""
    stable = response.last_stable_offset
    if stable is None or stable < 0 or not response.read_committed:
        return
    yield CASE
    if response.offset >= stable:
        yield broken(
            f"broker {response.broker} gave a consumer with read_committed the record at offset "
            f"{response.offset}, at or above the last stable offset",
            response,
        )


@rule("F15", "Fetches with another leader epoch are rejected",
      source="KIP-320, KAFKA-7395; Partition.localLogWithEpochOrThrow", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc", "partition_event"),
      breaks="The partition is at leader epoch 0, and a Fetch with 1 gets records.",
      keeps="The partition is at leader epoch 0; a Fetch with 1 gets an error, and "
      "one with 0 records.")  # fmt: skip
def fetches_with_another_leader_epoch_are_rejected(fetch: FetchOfPartition, own: int) -> Findings:
    """A Fetch whose current leader epoch is not that of the partition where it is handled returns
    an error."""
    if fetch.error is None:
        return
    yield CASE
    if fetch.error == 0 and fetch.leader_epoch != own:
        yield broken(
            f"a Fetch of broker {fetch.sender} with another leader epoch was accepted (request "
            f"{fetch.request})",
            broker=fetch.sender,
            partition=fetch.part,
        )
