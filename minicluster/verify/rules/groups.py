"""Members of groups: what they own, what they commit and read, what they are given back."""

from __future__ import annotations

from minicluster.verify.histories.groups import (
    ConsumerProgress,
    FetchedOffset,
    FetchPosition,
    GroupPassage,
    OwnedPartition,
)
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_OF_READERS = ("client_record", "partition_event", "replica_log", "raft_event")
_OF_GROUPS = ("client_record", "group_event", "partition_event", "raft_event")


@rule("F7", "Positions of consumers do not go back",
      source="KAFKA-2334; Jepsen, Kafka workload: nonmonotonic poll", evidence=Evidence.TRACE,
      at_end=True, tables=_OF_READERS,
      breaks="A consumer fetches at 2, 3 and 2 in one assignment.",
      keeps="A lost response is fetched again; a new assignment begins at its "
      "committed offset, and what was fetched before arrives late.")  # fmt: skip
def positions_do_not_go_back(fetch: FetchPosition) -> Findings:
    """Between two assignments the offsets at which a consumer fetches a partition do not fall."""
    yield CASE
    if fetch.offset < fetch.before:
        yield broken(
            f"a consumer went back to offset {fetch.offset}, which it fetched from broker "
            f"{fetch.broker}",
            broker=fetch.broker,
        )


@rule("F10", "A group leaves no record out",
      source="Jepsen, Kafka workload: lost write, unseen", at_end=True, evidence=Evidence.TRACE,
      tables=_OF_READERS,
      breaks="The first member of a group reads 0 and 1, and the next one begins at 3.",
      keeps="The next member of a group reads one record again, and compaction has "
      "taken another.")  # fmt: skip
def a_group_leaves_no_record_out(passage: GroupPassage) -> Findings:
    """The members of a group together read every record of a partition between the first and the
    last one that they read."""
    if passage.may_seek:
        yield exempt("another client has set offsets of the group")
        return
    if passage.misled:
        yield exempt("a member was told what no node said")
        return
    yield CASE
    if passage.records < passage.in_log:
        yield broken(
            f"the members of a group read {passage.records} records of a partition and left others "
            "between them out",
            broker=passage.broker,
        )


@rule("F12", "Polls skip no record",
      source="Jepsen, Kafka workload: poll skip", at_end=True, evidence=Evidence.TRACE,
      tables=_OF_READERS,
      breaks="A consumer reads 0, 1 and 3, and the log has a record at 2.",
      keeps="A lost response is fetched again; a new assignment begins at its "
      "committed offset, and what was fetched before arrives late.")  # fmt: skip
def polls_skip_no_record(progress: ConsumerProgress) -> Findings:
    """A fetch of a consumer returns the records of a partition from its offset on without a gap,
    and the next fetch begins where they end, or before."""
    yield CASE
    if progress.next_in_log is not None and progress.next_in_log < progress.offset:
        yield broken(
            f"a consumer came to offset {progress.offset} on broker {progress.broker} and had "
            "skipped records before it",
            broker=progress.broker,
        )


@rule("H1", "Committed offsets are not forgotten",
      source="KIP-211, KIP-447, KIP-709; OffsetMetadataManager.fetchOffsets; Jepsen: stale read",
      at_end=True, evidence=Evidence.TRACE, tables=_OF_GROUPS,
      breaks="A commit of 4 is acknowledged, and the group fetches 3.",
      keeps="A commit sets the offset back; one fetch was sent before a commit, and "
      "one saw a commit that was acknowledged later.")  # fmt: skip
def committed_offsets_are_not_forgotten(fetched: FetchedOffset) -> Findings:
    """The offset that a group fetches is not below the last one whose commit, or that of its
    transaction, was acknowledged before, unless it was set later, is expired or was deleted."""
    if fetched.is_lost:  # not below what is left of it, but nobody can know what that is
        yield exempt("the coordinator's log has lost records since the offset was set")
        return
    yield CASE
    if fetched.offset is None or fetched.last_set is None:
        return
    if fetched.offset < fetched.last_set and fetched.offset != fetched.next_set:
        yield broken(
            f"broker {fetched.broker} returned a committed offset of {fetched.offset} to a group "
            "after it had acknowledged a higher one",
            broker=fetched.broker,
        )


@rule("H2", "A partition has one owner in a group",
      source="KIP-848; ConsumerCoordinator, CurrentAssignmentBuilder", evidence=Evidence.TRACE,
      at_end=True, tables=_OF_GROUPS,
      breaks="Two members own orders-0 in generation 1.",
      keeps="The next generation gives orders-0 to another member, and another "
      "group has an owner of its own.")  # fmt: skip
def a_partition_has_one_owner(owned: OwnedPartition) -> Findings:
    """In one generation of a classic group, or at one member epoch of a consumer group, a partition
    is assigned to one member."""
    yield CASE
    if len(owned.owners) > 1:
        yield broken(
            f"two members own the partition in generation {owned.generation} of their group",
            broker=owned.broker,
        )
