"""Examples of the rules in `clients.py`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.partition.clients import (
    acknowledged_records_are_not_lost,
    clients_see_one_value_at_each_offset,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.clients import behind_a_loss, client, holds, leads, read, sent
from tests.verify.handwritten.log import OTHER_TOPIC, TOPIC, cluster, partition
from tests.verify.handwritten.run import EVERYBODY, TOPIC_ID, RunBuilder, plain_run


@breaks(acknowledged_records_are_not_lost)
def f1_bad() -> RunBuilder:
    """Offset 1 is acknowledged with acks=all, and the log of the next leader ends at 1."""
    run = sent(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=1), 2, {0: "a"})


@breaks(acknowledged_records_are_not_lost)
def f1_other() -> RunBuilder:
    """Offset 1 is acknowledged with acks=all, and the next leader has another record there."""
    run = sent(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {0: "a", 1: "c"})


def _created_again(acknowledged: int) -> RunBuilder:
    """orders is deleted and created again, and acknowledges a record each time."""
    run = sent(leads(plain_run(), end=5), 4, "e")
    run.partition("delete", broker=1, leo=0)
    run.log.op(r.RemoveTopicRecord(topic_id=TOPIC))
    run.log.topic(partition(topic_id=OTHER_TOPIC), topic_id=OTHER_TOPIC)
    new = {"topic_id": format_uuid(OTHER_TOPIC), **EVERYBODY}
    run.partition("become_leader", leo=0, **new)
    run.partition("hw", leo=1, hw_old=0, hw_new=1, **new)
    return sent(run, acknowledged, "a", topic_id=new["topic_id"])


@breaks(acknowledged_records_are_not_lost)
def f1_made_again() -> RunBuilder:
    """orders is deleted and created again, and loses a record that it acknowledged since."""
    return _created_again(1)


def _own_client_sends(run: RunBuilder, offset: int, value: str, **more: Any) -> RunBuilder:
    """The cluster's own client gets a response of broker 1, which notes what all replicas have."""
    row = {"f": "send", "type": "ok", "topic": "orders", "part": 0, "acks": -1, **more}
    if (row["type"], row["acks"]) == ("ok", -1):
        run.partition("ack", leo=2, offset=offset, **EVERYBODY)
    seen = {"op_id": run.seq, "idempotent": False, "complete_seq": run.seq + 1}
    return run.row("history", {**row, **seen, "offset": offset, "value": value})


@breaks(acknowledged_records_are_not_lost)
def f1_own_client() -> RunBuilder:
    """The cluster's own client has offset 1 acknowledged, and the log of the next leader ends at
    1."""
    run = _own_client_sends(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=1), 2, {0: "a"})


@breaks(acknowledged_records_are_not_lost)
def f1_numbered() -> RunBuilder:
    """A producer with an id has offset 1 acknowledged, and a later leader has written another
    record there."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    holds(leads(run, broker=2, epoch=1), 2, {0: "a", 1: "c"})
    run.rows["replica_log"][-1]["leader_epoch"] = 1
    return run


def _numbered(producer_id: int, marker: str | None = None) -> RunBuilder:
    """Producer 7 has offset 1 acknowledged, where a batch has another value."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    row = {"broker": 1, "topic": "orders", "topic_id": TOPIC_ID, "part": 0, "marker": marker}
    run.row("log_batch", {**row, "base_offset": 1, "last_offset": 2, "producer_id": producer_id})
    return holds(run, 1, {0: "a", 1: "c", 2: "d"})


@breaks(acknowledged_records_are_not_lost)
def f1_of_another_producer() -> RunBuilder:
    """Producer 7 has offset 1 acknowledged, and the log has a batch of producer 8 there."""
    return _numbered(8)


@breaks(acknowledged_records_are_not_lost)
def f1_marker() -> RunBuilder:
    """Producer 7 has offset 1 acknowledged, and the log has the marker of its transaction there."""
    return _numbered(7, marker="commit")


@keeps(acknowledged_records_are_not_lost)
def f1_numbered_near_batch() -> RunBuilder:
    """Producer 7 sends another batch under a sequence number again: the log has its first one."""
    return _numbered(7)


@keeps(acknowledged_records_are_not_lost)
def f1_near() -> RunBuilder:
    """The next leader lacks a record of acks=1, and one that was compacted; broker 1 lost its copy,
    and leads no more."""
    run = sent(sent(leads(plain_run(), end=3), 0, "a"), 1, "b")
    sent(run, 2, "c", acks=1)
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {1: "b"})


@keeps(acknowledged_records_are_not_lost)
def f1_deleted() -> RunBuilder:
    """The leader's replica is deleted with its topic; another partition keeps its record."""
    run = sent(sent(leads(plain_run(), end=2), 0, "a"), 1, "b")
    run.partition("delete", broker=1, leo=0)
    run.partition("become_leader", broker=1, part=1, leo=2, **EVERYBODY)
    return client(run, "send", offset=0, value="x", acks=-1, part=1)


@keeps(acknowledged_records_are_not_lost)
def f1_made_again_near() -> RunBuilder:
    """orders is deleted and created again; what was acknowledged before went with the first
    topic."""
    return _created_again(0)


@keeps(acknowledged_records_are_not_lost)
def f1_own_client_near() -> RunBuilder:
    """The next leader lacks a record that the cluster's own client sent with acks=1, and one whose
    send failed."""
    run = _own_client_sends(_own_client_sends(leads(plain_run(), end=3), 0, "a"), 2, "c", acks=1)
    _own_client_sends(run, 2, "d", type="fail")
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {0: "a", 1: "b"})


@keeps(acknowledged_records_are_not_lost)
def f1_numbered_near() -> RunBuilder:
    """A producer with an id sends another batch under a sequence number again: the log has the
    first one."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    return holds(leads(run, broker=2, epoch=1), 2, {0: "a", 1: "c"})


@breaks(clients_see_one_value_at_each_offset)
def f9_bad() -> RunBuilder:
    """Two consumers read different values at offset 1."""
    return read(read(leads(plain_run()), 1, "b"), 1, "c", client_id="app-2")


@breaks(clients_see_one_value_at_each_offset)
def f9_acknowledged() -> RunBuilder:
    """A value is acknowledged at offset 1 with acks=all, and a consumer reads another there."""
    return read(sent(leads(plain_run()), 1, "b"), 1, "c")


def _under_one_name(*topic_ids: str) -> RunBuilder:
    """Topics come one after the other under one name; a client reads another value of each."""
    run = plain_run()
    for topic_id in topic_ids:
        topic = {"topic_id": topic_id, **EVERYBODY}
        run.partition("become_leader", leo=1, **topic)
        known = dict.fromkeys((1, 2, 3), (1, 0, 5))
        run.partition("hw", leo=1, hw_old=0, hw_new=1, known=known, **topic)
        read(run, 0, f"of {topic_id}", hw=1, topic_id=topic_id)
        run.partition("delete", topic_id=topic_id, leo=0)
    return run


_TOPIC_IDS = tuple(format_uuid(UUID(int=0xABC0 + number)) for number in range(3))


@breaks(clients_see_one_value_at_each_offset)
def f9_in_a_deleted_topic() -> RunBuilder:
    """Two values are read at one offset of a topic whose name went to others afterwards."""
    run = _under_one_name(*_TOPIC_IDS)
    return read(run, 0, "another", hw=1, topic_id=_TOPIC_IDS[0])


@keeps(clients_see_one_value_at_each_offset)
def f9_near() -> RunBuilder:
    """acks=1 promises no offset, and another partition has its own records."""
    run = sent(read(leads(plain_run()), 1, "b"), 1, "c", acks=1)
    run.partition("become_leader", part=1, leo=2, **EVERYBODY)
    return read(read(run, 1, "c", part=1), 1, "b")


@keeps(clients_see_one_value_at_each_offset)
def f9_same_sequence() -> RunBuilder:
    """A producer sends another batch under a sequence number again, and is acknowledged the offset
    of the first."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    client(run, "send", offset=1, value="c", acks=-1, producer_id=7)
    return read(run, 1, "b")


@keeps(clients_see_one_value_at_each_offset)
def f9_made_again() -> RunBuilder:
    """Three topics come one after the other under one name, each with its own value at offset 0."""
    return _under_one_name(*_TOPIC_IDS)


@keeps(acknowledged_records_are_not_lost)
def f1_near_lost() -> RunBuilder:
    """Of two acknowledged records the last ISR member lost one, when it came back with an empty
    log."""
    run = behind_a_loss()
    return sent(sent(run, 0, "before"), 2, "v2")


@keeps(acknowledged_records_are_not_lost)
def f1_near_lost_tail() -> RunBuilder:
    """Leader 1 loses what it had not flushed, leads on in its epoch (below 3.3), and writes another
    record in that place, where follower 2, which leads next, has the first one (seed 501331)."""
    run = RunBuilder(cluster(mv=4)).committed()
    process: dict[str, Any] = dict(EVERYBODY)
    for left, end in ((0, 3), (2, 3)):
        run.partition("become_leader", leo=left, hw_new=left, **process)
        run.partition("append", leo=end, offset=left, epochs=[0, left], **process)
        run.partition("hw", leo=end, hw_old=left, hw_new=2, **process)
        process["incarnation"] = "1-2"
    sent(sent(run, 0, "a"), 2, "other")
    return holds(leads(run, broker=2, epoch=1, end=3), 2, {0: "a", 1: "b", 2: "first"})
