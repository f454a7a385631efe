"""Examples of the rules in `groups.py`."""

from __future__ import annotations

from typing import Any

from minicluster.protocol.records import TopicRecord
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.group.groups import (
    a_group_leaves_no_record_out,
    a_partition_has_one_owner,
    committed_offsets_are_not_forgotten,
)
from tests.verify.examples.consumers import f12_behind_a_loss
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.clients import (
    client,
    ended,
    history,
    holds,
    leads,
    offset,
    own,
    reads,
    same_name_before,
)
from tests.verify.handwritten.log import OTHER_TOPIC, partition
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder, plain_run


@breaks(a_group_leaves_no_record_out)
def f10_bad() -> RunBuilder:
    """The first member of a group reads 0 and 1, and the next one begins at 3."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    return reads(own(run, "m2", 2), "m2", 3, 4)


@keeps(a_group_leaves_no_record_out)
def f10_near() -> RunBuilder:
    """The next member of a group reads one record again, and compaction has taken another."""
    run = holds(leads(plain_run(), end=6), 1, {at: f"v{at}" for at in (0, 1, 3, 4)})
    reads(own(run, "m1"), "m1", 0, 1)
    return reads(own(run, "m2", 2), "m2", 1, 3, 4)


@keeps(a_group_leaves_no_record_out)
def f10_near_another_group() -> RunBuilder:
    """A client reads 0 and 1 as a member of g, and 3 and 4 as one of h."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    of_h = {"client_id": "m1", "connection": None, "group_id": "h", "member_id": "m1"}
    client(run, "own", generation=1, received_seq=run.seq + 1, **of_h)
    return reads(run, "m1", 3, 4)


@keeps(a_group_leaves_no_record_out)
def f10_behind_a_loss() -> RunBuilder:
    """A group reads records that may be lost by now, and the ones behind them."""
    return f12_behind_a_loss()


@exempts(a_group_leaves_no_record_out)
def f10_near_sought() -> RunBuilder:
    """Another client sets the offset of the group to 3, where its next member begins."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    offset(run, "commit", 3, client_id="admin")
    return reads(own(run, "m2", 2), "m2", 3, 4)


@exempts(a_group_leaves_no_record_out)
def f10_near_misled() -> RunBuilder:
    """A fault tells a member another offset than its group has, and it begins there."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    own(run, "m2", 2, misled=True)
    return reads(run, "m2", 3, 4)


@breaks(committed_offsets_are_not_forgotten)
def h1_bad() -> RunBuilder:
    """A commit of 4 is acknowledged, and the group fetches 3."""
    return offset(offset(history(), "commit", 4), "committed", 3)


@breaks(committed_offsets_are_not_forgotten)
def h1_forgotten() -> RunBuilder:
    """A commit of 4 is acknowledged, and the group fetches no offset."""
    return offset(offset(history(), "commit", 4), "committed", -1)


@breaks(committed_offsets_are_not_forgotten)
def h1_forgotten_in_new_topic() -> RunBuilder:
    """A commit of 4 is acknowledged, and the group fetches none; a topic before had the same
    name."""
    run = offset(same_name_before(history()), "commit", 4, topic_id=TOPIC_ID)
    return offset(run, "committed", -1, topic_id=TOPIC_ID)


def _pending(run: RunBuilder, value: int, *, epoch: int = 0) -> RunBuilder:
    """The offset in a transaction of a producer."""
    return offset(run, "pending", value, producer_id=7, producer_epoch=epoch)


@breaks(committed_offsets_are_not_forgotten)
def h1_transaction() -> RunBuilder:
    """A transaction that set the offset to 4 is committed, and the group fetches 2."""
    run = ended(_pending(offset(history(), "commit", 2), 4))
    return offset(run, "committed", 2, stable=True)


@breaks(committed_offsets_are_not_forgotten)
def h1_aborted() -> RunBuilder:
    """A transaction that would set the offset back to 2 is aborted, and the group fetches 2."""
    run = ended(_pending(offset(history(), "commit", 4), 2), committed=False)
    return offset(run, "committed", 2, stable=True)


def _deleted(run: RunBuilder, kind: str = "forget") -> RunBuilder:
    """The coordinator deletes the group's offset, or the group."""
    place = ("orders", 0) if kind == "forget" else (None, -1)
    row = {"kind": kind, "group_id": "g", "topic": place[0], "part": place[1]}
    return run.row("group_event", row)


@breaks(committed_offsets_are_not_forgotten)
def h1_after_expiry() -> RunBuilder:
    """An offset expires, 4 is committed after that, and the group fetches none."""
    run = offset(_deleted(offset(history(), "commit", 3)), "commit", 4)
    return offset(run, "committed", -1)


@keeps(committed_offsets_are_not_forgotten)
def h1_near() -> RunBuilder:
    """A commit sets the offset back; one fetch was sent before a commit, and one saw a commit that
    was acknowledged later."""
    run = offset(offset(history(), "commit", 4), "commit", 2)
    offset(run, "committed", 2)
    early = run.seq
    offset(run, "commit", 5)
    offset(run, "committed", 2, sent=early)
    before = run.seq
    offset(run, "committed", 3, sent=before)
    return offset(run, "commit", 3, sent=before)


@keeps(committed_offsets_are_not_forgotten)
def h1_expired() -> RunBuilder:
    """The offset has expired; one fetch was sent before that, and another group has its own."""
    run = offset(history(), "commit", 4)
    before = run.seq
    offset(_deleted(run), "committed", -1)
    offset(run, "committed", -1, sent=before)
    client(run, "commit", group_id="h", offset=1, send_seq=run.seq)
    return client(run, "committed", group_id="h", offset=1, send_seq=run.seq + 1)


@keeps(committed_offsets_are_not_forgotten)
def h1_expired_in_new_topic() -> RunBuilder:
    """The coordinator deletes the offset by the topic's name, which another topic had before."""
    run = offset(same_name_before(history()), "commit", 4, topic_id=TOPIC_ID)
    offset(run, "committed", 4, topic_id=TOPIC_ID)
    return offset(_deleted(run), "committed", -1, topic_id=TOPIC_ID)


@keeps(committed_offsets_are_not_forgotten)
def h1_made_again() -> RunBuilder:
    """orders is created again, and the offsets of the topic before it are gone."""
    other = format_uuid(OTHER_TOPIC)
    run = offset(same_name_before(history()), "commit", 4, topic_id=other)
    offset(run, "committed", -1, topic_id=TOPIC_ID)
    return offset(offset(run, "commit", 1, topic_id=TOPIC_ID), "committed", 1, topic_id=TOPIC_ID)


@keeps(committed_offsets_are_not_forgotten)
def h1_deleted_meanwhile() -> RunBuilder:
    """The offset was deleted before its commit was acknowledged."""
    run = history()
    before = run.seq
    offset(_deleted(run), "commit", 4, sent=before)
    offset(run, "committed", -1)
    client(run, "commit", group_id="h", offset=1, send_seq=run.seq)
    return client(run, "committed", group_id="h", offset=1, send_seq=run.seq + 1)


@keeps(committed_offsets_are_not_forgotten)
def h1_transactions_near() -> RunBuilder:
    """Transactions set a lower offset, are open, or have markers that may still be on their way."""
    run = ended(_pending(offset(history(), "commit", 4), 2))
    offset(run, "committed", 2, stable=True)
    ended(_pending(run, 5, epoch=1), epoch=1)
    offset(run, "committed", 2, stable=False)
    offset(run, "committed", 5, stable=True)
    _pending(run, 1, epoch=2)
    return offset(run, "committed", 1, stable=True)


def _coordinator_lost(run: RunBuilder) -> RunBuilder:
    """The last ISR member of ``__consumer_offsets-0`` comes back with an empty log."""
    place: dict[str, Any] = {"topic": GROUP_METADATA_TOPIC, "topic_id": format_uuid(OTHER_TOPIC)}
    alone: dict[str, Any] = {**place, "isr": [1], "maximal_isr": [1]}
    topic = TopicRecord(name=GROUP_METADATA_TOPIC, topic_id=OTHER_TOPIC)
    run.log.op(topic, partition((1,), topic_id=OTHER_TOPIC))
    run.committed().partition("become_leader", leo=0, **alone)
    run.partition("hw", hw_old=0, hw_new=3, leo=3, **alone)
    return run.partition("become_leader", incarnation="1-2", leo=0, leader_epoch=1, **alone)


@exempts(committed_offsets_are_not_forgotten)
def h1_lost() -> RunBuilder:
    """The coordinator has lost the group's log; 4 is committed after that, and the group fetches
    none."""
    run = _coordinator_lost(offset(history(), "commit", 3))
    return offset(offset(run, "commit", 4), "committed", -1)


def coordinates(run: RunBuilder, kind: str, broker: int, epoch: int) -> RunBuilder:
    """A broker begins to lead ``__consumer_offsets-0``, or to follow, in a leader epoch."""
    place = {"topic": GROUP_METADATA_TOPIC, "topic_id": format_uuid(OTHER_TOPIC)}
    return run.partition(kind, broker=broker, leader_epoch=epoch, leo=0, **place)


def after_another_coordinator(*, heard: bool) -> RunBuilder:
    """Broker 1 returns the offset 3 after broker 2, the next coordinator, has acknowledged 4.

    Shapes:  heard: broker 1 has heard of broker 2.
    """
    run = offset(coordinates(history(), "become_leader", 1, 0), "commit", 3)
    offset(coordinates(run, "become_leader", 2, 1), "commit", 4, broker=2)
    if heard:
        coordinates(run, "become_follower", 1, 1)
    return offset(run, "committed", 3)


@exempts(committed_offsets_are_not_forgotten)
def h1_cut_off() -> RunBuilder:
    """A broker that is cut off does not know of the next coordinator, which has acknowledged 4, and
    returns 3 (seed 500611)."""
    return after_another_coordinator(heard=False)


@exempts(committed_offsets_are_not_forgotten)
def h1_behind() -> RunBuilder:
    """A broker begins to coordinate in an old leader epoch, and does not know of the next
    coordinator, which has acknowledged 4."""
    run = offset(coordinates(history(), "become_leader", 2, 1), "commit", 4, broker=2)
    return offset(coordinates(run, "become_leader", 1, 0), "committed", 3)


@breaks(committed_offsets_are_not_forgotten)
def h1_heard() -> RunBuilder:
    """A broker follows the next coordinator, which has acknowledged 4, and returns 3."""
    return after_another_coordinator(heard=True)


@breaks(a_partition_has_one_owner)
def h2_bad() -> RunBuilder:
    """Two members own orders-0 in generation 1."""
    return own(own(history(), "m1"), "m2")


@keeps(a_partition_has_one_owner)
def h2_near() -> RunBuilder:
    """The next generation gives orders-0 to another member, and another group has an owner of its
    own."""
    run = own(own(own(history(), "m1"), "m1"), "m2", generation=2)
    return client(
        run, "own", client_id="m3", group_id="other", member_id="m3", generation=1, received_seq=1
    )


@keeps(a_partition_has_one_owner)
def h2_static() -> RunBuilder:
    """A static member restarts, and is given what it had under another member id (KIP-345)."""
    run = own(own(history(), "m1", instance_id="s"), "m2", instance_id="s")
    return own(run, "m2")


@keeps(a_partition_has_one_owner)
def h2_again() -> RunBuilder:
    """A group ends, and another one of its name begins with its first generation."""
    return own(_deleted(own(history(), "m1"), "end"), "m2")


@exempts(a_partition_has_one_owner)
def h2_lost() -> RunBuilder:
    """The coordinator loses the group's log, and the group begins again with generation 1."""
    return own(_coordinator_lost(own(history(), "m1")), "m2")


@keeps(a_partition_has_one_owner)
def h2_cut_off() -> RunBuilder:
    """A broker that does not know of the next coordinator, which has given the partition to m2,
    gives it to m1 in the same generation."""
    run = coordinates(coordinates(history(), "become_leader", 1, 0), "become_leader", 2, 1)
    return own(own(run, "m2", broker=2), "m1")
