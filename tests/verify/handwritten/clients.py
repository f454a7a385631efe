"""What brokers return to clients, as rows of a run written by hand: producers, consumers, groups.

Unless a row names another broker, broker 1 responds to it; topics are orders and its partition 0.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.uuids import format_uuid
from tests.verify.handwritten.log import OTHER_TOPIC, change
from tests.verify.handwritten.run import EVERYBODY, TOPIC_ID, RunBuilder, plain_run


def client(run: RunBuilder, kind: str, **values: Any) -> RunBuilder:
    """A row of a response of broker 1 to a client, as it names topics."""
    number = run.seq + 1
    defaults = {
        "rpc": number,
        "client_id": "app-1",
        "connection": 1,
        "broker": 1,
        "resp_seq": number,
        "f": kind,
        "topic": "orders",
        "topic_id": TOPIC_ID,
        "part": 0,
    }
    return run.row("client_record", {**defaults, **values})


# --- logs that clients read -----------------------------------------------------------------------


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


def holds(run: RunBuilder, broker: int, values: dict[int, str], *, epoch: int = 0) -> RunBuilder:
    """The records of a replica at the end of the run."""
    seq = run.seq + 1
    for offset, value in values.items():
        row = {"broker": broker, "topic": "orders", "topic_id": TOPIC_ID, "part": 0, "at": "end"}
        record = {"offset": offset, "leader_epoch": epoch, "value_id": value, "seq": seq}
        run.row("replica_log", {**row, **record})
    return run


def history(end: int = 6) -> RunBuilder:
    """Broker 1 leads a log of so many records: v0, v1, …"""
    run = leads(plain_run(), end=end)
    return holds(run, 1, {offset: f"v{offset}" for offset in range(end)})


def behind_a_loss() -> RunBuilder:
    """The last ISR member comes back with an empty log: records 0 and 1 are of that epoch, and may
    be lost by now; 2 to 5 are of the next one."""
    run = plain_run()
    run.log.op(change(isr=(1,)))
    run.committed()
    for epoch, left, end in ((0, 0, 2), (1, 0, 2), (2, 2, 6)):
        process: dict[str, Any] = {"incarnation": f"1-{epoch}", "leader_epoch": epoch}
        process |= {"isr": [1], "maximal_isr": [1]}
        run.partition("become_leader", leo=left, **process)
        run.partition("hw", hw_old=left, hw_new=end, leo=end, **process)
    holds(run, 1, {0: "v0", 1: "v1"}, epoch=1)
    return holds(run, 1, {2: "v2", 3: "v3", 4: "v4", 5: "v5"}, epoch=2)


def same_name_before(run: RunBuilder, **more: Any) -> RunBuilder:
    """Another topic has had the name of this one, and was deleted."""
    before = {"topic_id": format_uuid(OTHER_TOPIC), **EVERYBODY, **more}
    return run.partition("become_leader", leo=0, **before).partition("delete", leo=0, **before)


def later(run: RunBuilder) -> RunBuilder:
    """Some event that leaves no row."""
    run.seq += 1
    return run


# --- records --------------------------------------------------------------------------------------


def sent(run: RunBuilder, offset: int, value: str, *, acks: int = -1, **more: Any) -> RunBuilder:
    """A record of a client is acknowledged."""
    return client(run, "send", offset=offset, value=value, acks=acks, **more)


def read(run: RunBuilder, offset: int, value: str, hw: int = 2, **more: Any) -> RunBuilder:
    """A client receives a record, in a response with a high watermark."""
    return client(run, "read", offset=offset, value=value, high_watermark=hw, **more)


# --- groups ---------------------------------------------------------------------------------------


def own(run: RunBuilder, member: str, generation: int = 1, **more: Any) -> RunBuilder:
    """A member of group g is assigned the partition."""
    names = {"client_id": member, "connection": None, "group_id": "g", "member_id": member}
    received = {"received_seq": run.seq + 1}
    return client(run, "own", **names, **received, generation=generation, **more)


def offset(
    run: RunBuilder, kind: str, value: int, sent: int | None = None, **more: Any
) -> RunBuilder:
    """A commit (``commit``, ``pending`` in a transaction) or a fetch (``committed``) of the offset
    of group g; its request was sent at an event.
    """
    seq = run.seq + 1 if sent is None else sent
    return client(run, kind, group_id="g", offset=value, send_seq=seq, **more)


def ended(run: RunBuilder, *, committed: bool = True, epoch: int = 0) -> RunBuilder:
    """The end of a transaction of producer 7."""
    producer = {"producer_id": 7, "producer_epoch": epoch, "committed": committed}
    return client(run, "end", topic=None, part=-1, **producer)


# --- consumers, fetch by fetch --------------------------------------------------------------------


def poll(
    run: RunBuilder, member: str, *offsets: int, at: int | None = None, **more: Any
) -> RunBuilder:
    """A fetch at an offset, that of its first record unless another is named, and its records."""
    number = run.seq + 1
    begins = offsets[0] if at is None else at
    response = {"client_id": member, "connection": None, "rpc": number, "send_seq": number}
    response |= {"received_seq": number + len(offsets) + 1, "fetch_offset": begins, **more}
    client(run, "fetch", high_watermark=6, **response)
    for read in offsets:
        record = {"value": f"v{read}", "batch_offset": read, "visible": True, **response}
        client(run, "read", offset=read, high_watermark=6, **record)
    return later(run)


def reads(run: RunBuilder, member: str, *offsets: int, **more: Any) -> RunBuilder:
    """Each record by a fetch of its own."""
    for at in offsets:
        poll(run, member, at, **more)
    return run


def read_committed(run: RunBuilder, *offsets: int, **more: Any) -> RunBuilder:
    """A read_committed consumer fetches records."""
    return reads(run, "m1", *offsets, **{"isolation": 1, "last_stable_offset": 6, **more})
