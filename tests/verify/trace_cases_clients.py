"""Per rule about responses to Kafka's clients: hand-written runs that break it, and near misses."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.uuids import format_uuid
from tests.verify.build import OTHER_TOPIC, TOPIC, change, partition
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_cases_logs import (
    f18_bad,
    f18_listed,
    f18_listed_early,
    f18_listed_in_new_topic,
    f18_listed_made_again,
    f18_near,
)
from tests.verify.trace_kit import EVERYBODY, plain_run

Case = Callable[[], RunBuilder]


def client(run: RunBuilder, kind: str, **values: object) -> RunBuilder:
    """A row of a response of broker 1 to a client, by the topic's name."""
    number = run.seq + 1
    defaults = {
        "rpc": number,
        "client_id": "app-1",
        "connection": 1,
        "broker": 1,
        "resp_seq": number,
        "f": kind,
        "topic": "orders",
        "part": 0,
    }
    return run.row("client_record", {**defaults, **values})


def leads(
    run: RunBuilder, *, broker: int = 1, epoch: int = 0, end: int = 2, commit: bool = True
) -> RunBuilder:
    """A leader whose log ends, and whose high watermark is, at an offset; one record elects it."""
    if epoch and commit:
        run.log.op(change(leader=broker))
    run.partition("become_leader", broker=broker, leader_epoch=epoch, leo=end, **EVERYBODY)
    known = dict.fromkeys((1, 2, 3), (end, epoch, 5))
    return run.partition(
        "hw", broker=broker, leader_epoch=epoch, leo=end, hw_old=0, hw_new=end, known=known,
        **EVERYBODY,
    )  # fmt: skip


def holds(run: RunBuilder, broker: int, values: dict[int, str]) -> RunBuilder:
    """The records of a replica at the end of the run."""
    seq = run.seq + 1
    for offset, value in values.items():
        row = {"broker": broker, "topic": "orders", "topic_id": TOPIC_ID, "part": 0, "at": "end"}
        more = {"offset": offset, "leader_epoch": 0, "value_id": value, "seq": seq}
        run.row("replica_log", {**row, **more})
    return run


def sent(run: RunBuilder, offset: int, value: str, *, acks: int = -1) -> RunBuilder:
    return client(run, "send", offset=offset, value=value, acks=acks)


def read(run: RunBuilder, offset: int, value: str, hw: int = 2, **more: object) -> RunBuilder:
    return client(run, "read", offset=offset, value=value, high_watermark=hw, **more)


def f1_bad() -> RunBuilder:
    """The next leader's log ends below what the first one acknowledged."""
    run = sent(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=1), 2, {0: "a"})


def f1_other() -> RunBuilder:
    """The next leader has another record at that offset."""
    run = sent(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {0: "a", 1: "c"})


def f1_near() -> RunBuilder:
    """acks=1 may be lost; compaction took offset 0; 1 lost its copy, but no longer leads."""
    run = sent(sent(leads(plain_run(), end=3), 0, "a"), 1, "b")
    sent(run, 2, "c", acks=1)
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {1: "b"})


def f1_deleted() -> RunBuilder:
    """The leader's replica was deleted with its topic."""
    run = sent(sent(leads(plain_run(), end=2), 0, "a"), 1, "b")
    run.partition("delete", broker=1, leo=0)
    # Another partition stays, so that there is a case.
    run.partition("become_leader", broker=1, part=1, leo=2, **EVERYBODY)
    return client(run, "send", offset=0, value="x", acks=-1, part=1)


def _made_again(acknowledged: int) -> RunBuilder:
    """orders is deleted and made again; each time one record, or more, is acknowledged."""
    run = sent(leads(plain_run(), end=5), 4, "e")
    run.partition("delete", broker=1, leo=0)
    run.log.op(r.RemoveTopicRecord(topic_id=TOPIC))
    run.log.topic(partition(topic_id=OTHER_TOPIC), topic_id=OTHER_TOPIC)
    new = {"topic_id": format_uuid(OTHER_TOPIC), **EVERYBODY}
    run.partition("become_leader", leo=0, **new)
    run.partition("hw", leo=1, hw_old=0, hw_new=1, **new)
    return sent(run, acknowledged, "a")


def f1_made_again() -> RunBuilder:
    """The topic that has the name now lost what it acknowledged."""
    return _made_again(1)


def f1_made_again_near() -> RunBuilder:
    """The records that the topic before it acknowledged went with it."""
    return _made_again(0)


def _own(run: RunBuilder, offset: int, value: str, **more: object) -> RunBuilder:
    """The cluster's own client gets a response of broker 1, which notes what all replicas have."""
    if {"acks": -1, "type": "ok", **more}.items() >= {("acks", -1), ("type", "ok")}:
        run.partition("ack", leo=2, offset=offset, **EVERYBODY)
    row = {"op_id": run.seq, "f": "send", "type": "ok", "topic": "orders", "part": 0, "acks": -1}
    more = {"idempotent": False, "complete_seq": run.seq + 1, **more}
    return run.row("history", {**row, "offset": offset, "value": value, **more})


def f1_own_client() -> RunBuilder:
    run = _own(leads(plain_run(), end=2), 1, "b")
    return holds(leads(run, broker=2, epoch=1, end=1), 2, {0: "a"})


def f1_own_client_near() -> RunBuilder:
    """acks=1 may be lost, and what failed was not acknowledged."""
    run = _own(_own(leads(plain_run(), end=3), 0, "a"), 2, "c", acks=1)
    _own(run, 2, "d", type="fail")
    return holds(leads(run, broker=2, epoch=1, end=2), 2, {0: "a", 1: "b"})


def f1_numbered() -> RunBuilder:
    """A producer with an id; a later leader has written another record at the offset."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    holds(leads(run, broker=2, epoch=1), 2, {0: "a", 1: "c"})
    run.rows["replica_log"][-1]["leader_epoch"] = 1
    return run


def f1_numbered_near() -> RunBuilder:
    """It sent another batch under a sequence number again: the log has the first one."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    return holds(leads(run, broker=2, epoch=1), 2, {0: "a", 1: "c"})


def f6_bad() -> RunBuilder:
    return read(leads(plain_run()), 2, "c", hw=3)


def f6_beyond_the_response() -> RunBuilder:
    return read(leads(plain_run()), 1, "b", hw=1)


def f6_raised() -> RunBuilder:
    """No record, but a high watermark that the replica does not have."""
    run = read(leads(plain_run()), 1, "b")
    return client(run, "fetch", high_watermark=3)


def f6_near() -> RunBuilder:
    """The last committed record, by the topic's id; a follower has a lower high watermark."""
    run = read(leads(plain_run()), 1, "b", topic=None, topic_id=TOPIC_ID)
    run.partition("become_follower", broker=2, leo=2)
    run.partition("hw", broker=2, leo=2, hw_old=0, hw_new=1)
    read(run, 0, "a", hw=1, broker=2)
    return client(run, "list", high_watermark=2)


def f9_bad() -> RunBuilder:
    return read(read(leads(plain_run()), 1, "b"), 1, "c", client_id="app-2")


def f9_acknowledged() -> RunBuilder:
    return read(sent(leads(plain_run()), 1, "b"), 1, "c")


def f9_near() -> RunBuilder:
    """acks=1 promises no offset; another partition has its own records."""
    run = sent(read(leads(plain_run()), 1, "b"), 1, "c", acks=1)
    run.partition("become_leader", part=1, leo=2, **EVERYBODY)
    return read(read(run, 1, "c", part=1), 1, "b")


def under_one_name(*topic_ids: str) -> RunBuilder:
    """Topics come one after the other under one name; a client reads another value of each."""
    run = plain_run()
    for topic_id in topic_ids:
        of_it = {"topic_id": topic_id, **EVERYBODY}
        run.partition("become_leader", leo=1, **of_it)
        known = dict.fromkeys((1, 2, 3), (1, 0, 5))
        run.partition("hw", leo=1, hw_old=0, hw_new=1, known=known, **of_it)
        read(run, 0, f"of {topic_id}", hw=1, topic_id=topic_id)
        run.partition("delete", topic_id=topic_id, leo=0)
    return run


TOPIC_IDS = tuple(format_uuid(UUID(int=0xABC0 + number)) for number in range(3))


def f9_in_a_deleted_topic() -> RunBuilder:
    """Two values at one offset of the first topic; the name went to others afterwards."""
    run = under_one_name(*TOPIC_IDS)
    return read(run, 0, "another", hw=1, topic_id=TOPIC_IDS[0])


def f9_made_again() -> RunBuilder:
    return under_one_name(*TOPIC_IDS)


def f9_same_sequence() -> RunBuilder:
    """A producer sends another batch under a sequence number again: the first offset is its own."""
    run = client(leads(plain_run()), "send", offset=1, value="b", acks=-1, producer_id=7)
    client(run, "send", offset=1, value="c", acks=-1, producer_id=7)
    return read(run, 1, "b")


def f18_client() -> RunBuilder:
    run = client(leads(plain_run(), end=5), "fetch", high_watermark=5)
    return client(run, "list", high_watermark=4)


def f18_client_near() -> RunBuilder:
    """The next leader may begin below, and so may a follower."""
    run = client(leads(plain_run(), end=5), "fetch", high_watermark=5)
    client(leads(run, broker=2, epoch=1, end=4), "fetch", high_watermark=4, broker=2)
    run.partition("become_follower", broker=3, leo=5)
    run.partition("hw", broker=3, leo=5, hw_old=0, hw_new=3)
    return client(run, "fetch", high_watermark=3, broker=3)


BAD: dict[str, tuple[Case, ...]] = {
    "F1": (f1_bad, f1_other, f1_made_again, f1_own_client, f1_numbered),
    "F6": (f6_bad, f6_beyond_the_response, f6_raised),
    "F9": (f9_bad, f9_acknowledged, f9_in_a_deleted_topic),
    "F18": (f18_bad, f18_listed_early, f18_listed_in_new_topic, f18_client),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "F1": (f1_near, f1_deleted, f1_made_again_near, f1_own_client_near, f1_numbered_near),
    "F6": (f6_near,),
    "F9": (f9_near, f9_same_sequence, f9_made_again),
    "F18": (f18_near, f18_listed, f18_listed_made_again, f18_client_near),
}
