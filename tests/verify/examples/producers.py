"""Examples of the rules in `producers/`."""

from __future__ import annotations

from typing import Any

from minicluster.protocol.uuids import format_uuid
from minicluster.verify.producers.producers import (
    a_fenced_producer_writes_nothing,
    markers_are_what_the_coordinator_decided,
    no_record_is_seen_at_two_offsets,
    read_committed_leaves_no_committed_record_out,
    read_committed_sees_no_aborted_record,
)
from minicluster.verify.producers.transforms import a_transform_writes_each_record_once
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.examples.groups import after_another_coordinator
from tests.verify.handwritten.clients import (
    behind_a_loss,
    client,
    ended,
    history,
    holds,
    offset,
    own,
    poll,
    read_committed,
    reads,
    same_name_before,
)
from tests.verify.handwritten.log import OTHER_TOPIC
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder


def _batch(
    run: RunBuilder, base: int, marker: str | None = None, *, epoch: int = 0, producer: int = 7
) -> RunBuilder:
    """A batch of the last leader's log: of a transaction, or its marker."""
    return run.row(
        "log_batch",
        {
            "broker": 1,
            "topic": "orders",
            "topic_id": TOPIC_ID,
            "part": 0,
            "base_offset": base,
            "last_offset": base,
            "producer_id": producer,
            "producer_epoch": epoch,
            "transactional": True,
            "marker": marker,
            "seq": run.seq + 1,
        },
    )


@breaks(read_committed_sees_no_aborted_record)
def h3_bad() -> RunBuilder:
    """A read_committed consumer gets a record whose transaction is aborted."""
    return _batch(_batch(read_committed(history(), 0), 0), 1, "abort")


@breaks(read_committed_sees_no_aborted_record)
def h3_open() -> RunBuilder:
    """A read_committed consumer gets a record whose transaction is still open."""
    return _batch(read_committed(history(), 0), 0)


@keeps(read_committed_sees_no_aborted_record, read_committed_leaves_no_committed_record_out)
def h3_near() -> RunBuilder:
    """The aborted record is dropped and the committed one seen; another producer aborts its own."""
    run = read_committed(read_committed(history(), 0, visible=False), 2)
    _batch(_batch(_batch(_batch(run, 0), 1, "abort"), 2), 3, "commit")
    return _batch(_batch(run, 4, producer=8), 5, "abort", producer=8)


@breaks(read_committed_leaves_no_committed_record_out)
def h4_bad() -> RunBuilder:
    """A transaction is committed, and a response lists it as aborted."""
    return _batch(_batch(read_committed(history(), 0, visible=False), 0), 1, "commit")


@exempts(read_committed_sees_no_aborted_record, read_committed_leaves_no_committed_record_out)
def h3_near_lost() -> RunBuilder:
    """A consumer with read_committed reads a record that may be lost by now."""
    return read_committed(behind_a_loss(), 0)


def _decided(run: RunBuilder, state: str, *, epoch: int = 0, completed: bool = True) -> RunBuilder:
    """A decision of the coordinator, on broker 2, about a transaction of producer 7."""
    return run.row(
        "transaction_decision",
        {
            "broker": 2,
            "offset": 0,
            "transactional_id": "bank",
            "producer_id": 7,
            "producer_epoch": epoch,
            "state": state,
            "completed": completed,
            "topic": "orders",
            "part": 0,
            "seq": run.seq + 1,
        },
    )


@breaks(markers_are_what_the_coordinator_decided)
def h6_bad() -> RunBuilder:
    """The coordinator decides to commit, and the log has an abort marker."""
    return _decided(_batch(_batch(history(), 0), 1, "abort"), "PrepareCommit")


@breaks(markers_are_what_the_coordinator_decided)
def h6_missing() -> RunBuilder:
    """The coordinator completes a commit and an abort in one epoch, and the log has the commit
    marker alone."""
    run = _batch(_batch(history(), 0), 1, "commit")
    return _decided(_decided(run, "PrepareCommit"), "PrepareAbort")


def _in_new_topic() -> RunBuilder:
    """A producer writes to a topic whose name another one had before (KIP-890)."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    return _batch(run, 0, epoch=1)


@breaks(markers_are_what_the_coordinator_decided)
def h6_missing_in_new_topic() -> RunBuilder:
    """The coordinator completes a commit whose marker is not in a log; its topic's name was
    another's before."""
    return _decided(_in_new_topic(), "PrepareCommit", epoch=2)


@breaks(markers_are_what_the_coordinator_decided)
def h6_made_again_below_kip_890() -> RunBuilder:
    """A commit was decided and the log has an abort marker, although the topic's name was another's
    before."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    return _decided(_batch(_batch(run, 0), 1, "abort"), "PrepareCommit")


@keeps(markers_are_what_the_coordinator_decided)
def h6_near() -> RunBuilder:
    """A commit marker is written twice, and the abort that follows is not completed."""
    run = _batch(_batch(_batch(history(), 0), 1, "commit"), 2, "commit")
    return _decided(_decided(run, "PrepareCommit"), "PrepareAbort", completed=False)


@keeps(markers_are_what_the_coordinator_decided)
def h6_near_made_again() -> RunBuilder:
    """The one decision was about the topic that had the name before, the next one has its
    marker."""
    run = _decided(_in_new_topic(), "PrepareAbort", epoch=1)
    return _decided(_batch(run, 1, "commit", epoch=2), "PrepareCommit", epoch=2)


@keeps(markers_are_what_the_coordinator_decided)
def h6_near_below_kip_890() -> RunBuilder:
    """Two decisions in one epoch, of which one was about the topic that had the name before."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    run = _decided(_batch(_batch(run, 0), 1, "commit"), "PrepareAbort")
    return _decided(run, "PrepareCommit")


@exempts(markers_are_what_the_coordinator_decided)
def h6_near_lost() -> RunBuilder:
    """The markers of a transaction are in a partition that has lost records, and one was there
    twice."""
    run = _batch(_batch(_batch(behind_a_loss(), 2), 3, "commit"), 4, "commit")
    return _decided(run, "PrepareCommit")


@breaks(a_fenced_producer_writes_nothing)
def h7_bad() -> RunBuilder:
    """A batch of epoch 0 follows one of epoch 1 of the same producer."""
    return _batch(_batch(history(), 0, epoch=1), 1, epoch=0)


def _initialized(run: RunBuilder, epoch: int) -> RunBuilder:
    """InitProducerId gives an epoch of producer 7 out."""
    return client(run, "init", topic=None, part=-1, producer_id=7, producer_epoch=epoch)


@breaks(a_fenced_producer_writes_nothing)
def h7_acknowledged() -> RunBuilder:
    """Epoch 1 is given out, and a record of epoch 0 that is sent after that is acknowledged."""
    run = _initialized(_batch(history(), 0), 1)
    sent = {"producer_id": 7, "producer_epoch": 0, "send_seq": run.seq + 1}
    return client(run, "send", offset=1, acks=-1, **sent)


@keeps(a_fenced_producer_writes_nothing)
def h7_near() -> RunBuilder:
    """A record of epoch 0 was sent before epoch 1 was given out; epochs rise, and another producer
    has its own."""
    run = history()
    before = run.seq
    _initialized(run, 1)
    sent = {"producer_id": 7, "producer_epoch": 0, "send_seq": before}
    client(run, "send", offset=0, acks=-1, **sent)
    client(run, "send", offset=1, acks=-1, **{**sent, "send_seq": run.seq + 1, "producer_epoch": 1})
    return _batch(_batch(_batch(run, 0), 1, epoch=1), 2, producer=8)


@keeps(a_fenced_producer_writes_nothing)
def h7_near_lost() -> RunBuilder:
    """A partition that has lost records has a batch of epoch 0 behind one of epoch 1; what producer
    8 has in it was acknowledged under its epoch."""
    run = _batch(_batch(behind_a_loss(), 2, epoch=1), 3, epoch=0)
    client(run, "init", topic=None, part=-1, producer_id=8, producer_epoch=0)
    sent = {"producer_id": 8, "producer_epoch": 0, "send_seq": run.seq + 1}
    return client(run, "send", offset=4, acks=-1, **sent)


def _numbered(run: RunBuilder, at: int, number: int, **more: Any) -> RunBuilder:
    """A read of a record with a sequence number of its producer."""
    numbers = {"producer_id": 7, "producer_epoch": 0, "sequence": number, **more}
    return reads(run, "m1", at, **numbers)


@breaks(no_record_is_seen_at_two_offsets)
def h8_bad() -> RunBuilder:
    """Sequence number 3 of a producer's epoch is read at offsets 0 and 1."""
    return _numbered(_numbered(own(history(), "m1"), 0, 3), 1, 3)


@keeps(no_record_is_seen_at_two_offsets)
def h8_near() -> RunBuilder:
    """A user sends one value twice, two members see it; other epochs and producers count from 0, an
    aborted copy is not seen."""
    run = _numbered(_numbered(own(history(), "m1"), 0, 0, value="same"), 1, 1, value="same")
    _numbered(own(run, "m2", 2), 1, 1, client_id="m2")
    _numbered(run, 2, 1, producer_epoch=1)
    _numbered(run, 3, 1, producer_id=8)
    _numbered(run, 4, -1, producer_id=-1)
    return _numbered(run, 5, 0, visible=False)


def _transformed(run: RunBuilder, at: int, of: int, marker: str = "commit") -> RunBuilder:
    """The record of a place, written to the same topic in a transaction."""
    holds(run, 1, {at: f"orders-0@{of} v{of}"})
    return _batch(_batch(run, at), at + 1, marker)


def _passed(run: RunBuilder, upto: int) -> RunBuilder:
    """The group has read up to an offset, and has committed that in a transaction."""
    poll(own(run, "m1"), "m1", *range(upto))
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    producer |= {"client_id": "its producer", "connection": None}
    return ended(offset(run, "pending", upto, **producer))


@breaks(a_transform_writes_each_record_once)
def h9_twice() -> RunBuilder:
    """A transforming group has written the record of orders-0@0 twice, in two committed
    transactions."""
    return _transformed(_transformed(_passed(history(), 1), 6, 0), 8, 0)


@breaks(a_transform_writes_each_record_once)
def h9_not_written() -> RunBuilder:
    """A transforming group has passed two records, and written the first alone."""
    return _transformed(_passed(history(), 2), 6, 0)


@keeps(a_transform_writes_each_record_once)
def h9_near() -> RunBuilder:
    """The first of two transactions is aborted, and what is read behind the committed offset is not
    written yet."""
    run = _transformed(_transformed(_passed(history(), 1), 6, 0, "abort"), 8, 0)
    return reads(run, "m1", 1)


@exempts(a_transform_writes_each_record_once)
def h9_cut_off() -> RunBuilder:
    """A transforming group was given an offset by a broker that did not know of the next
    coordinator, and has written a record twice."""
    run = _passed(after_another_coordinator(heard=False), 1)
    return _transformed(_transformed(run, 6, 0), 8, 0)


@keeps(a_transform_writes_each_record_once)
def h9_made_again() -> RunBuilder:
    """The record of orders-0@0 is written twice, once for the topic that had the name before."""
    run = same_name_before(_passed(history(), 1))
    first_topic = {"client_id": "m1", "connection": None, "topic_id": format_uuid(OTHER_TOPIC)}
    client(run, "read", offset=0, value="v0", **first_topic)
    client(run, "read", offset=0, value="v0", **{**first_topic, "topic_id": TOPIC_ID})
    return _transformed(_transformed(run, 6, 0), 8, 0)
