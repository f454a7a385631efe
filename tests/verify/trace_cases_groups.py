"""Per rule about groups and transactions: hand-written runs that break it, and near misses."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.protocol.uuids import format_uuid
from tests.verify.build import OTHER_TOPIC
from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_cases_clients import client, holds, leads
from tests.verify.trace_kit import EVERYBODY, plain_run

Case = Callable[[], RunBuilder]


def history(end: int = 6) -> RunBuilder:
    """Broker 1 leads a log of so many records."""
    run = leads(plain_run(), end=end)
    return holds(run, 1, {offset: f"v{offset}" for offset in range(end)})


# --- groups -----------------------------------------------------------------------------------


def own(run: RunBuilder, member: str, generation: int = 1, **more: object) -> RunBuilder:
    given = {"client_id": member, "connection": None, "group_id": "g", "member_id": member}
    received = {"received_seq": run.seq + 1}
    return client(run, "own", **given, **received, generation=generation, **more)


def offset(
    run: RunBuilder, kind: str, value: int, sent: int | None = None, **more: object
) -> RunBuilder:
    """A commit or a fetch of the group's offset; its request was sent at an event."""
    seq = run.seq + 1 if sent is None else sent
    return client(run, kind, group_id="g", offset=value, send_seq=seq, **more)


def pending(run: RunBuilder, value: int, *, epoch: int = 0) -> RunBuilder:
    """The offset in a transaction of a producer."""
    return offset(run, "pending", value, producer_id=7, producer_epoch=epoch)


def ended(run: RunBuilder, *, committed: bool = True, epoch: int = 0) -> RunBuilder:
    """The end of that transaction."""
    of = {"producer_id": 7, "producer_epoch": epoch, "committed": committed}
    return client(run, "end", topic=None, part=-1, **of)


def deleted(run: RunBuilder, kind: str = "forget") -> RunBuilder:
    """The coordinator deletes the group's offset, or the group."""
    place = ("orders", 0) if kind == "forget" else (None, -1)
    row = {"kind": kind, "group_id": "g", "topic": place[0], "part": place[1]}
    return run.row("group_event", row)


def h1_bad() -> RunBuilder:
    return offset(offset(history(), "commit", 4), "committed", 3)


def h1_forgotten() -> RunBuilder:
    return offset(offset(history(), "commit", 4), "committed", -1)


def h1_transaction() -> RunBuilder:
    """The transaction that set the offset is committed."""
    run = ended(pending(offset(history(), "commit", 2), 4))
    return offset(run, "committed", 2, stable=True)


def h1_aborted() -> RunBuilder:
    """The transaction that would set a lower offset is aborted."""
    run = ended(pending(offset(history(), "commit", 4), 2), committed=False)
    return offset(run, "committed", 2, stable=True)


def h1_after_expiry() -> RunBuilder:
    """The offset was committed again after the older one had expired."""
    run = offset(deleted(offset(history(), "commit", 3)), "commit", 4)
    return offset(run, "committed", -1)


def h1_near() -> RunBuilder:
    """A reset by a commit; a fetch that was sent before the commit; one that saw a later commit."""
    run = offset(offset(history(), "commit", 4), "commit", 2)
    offset(run, "committed", 2)
    early = run.seq
    offset(run, "commit", 5)
    offset(run, "committed", 2, sent=early)
    before = run.seq
    offset(run, "committed", 3, sent=before)
    return offset(run, "commit", 3, sent=before)


def h1_expired() -> RunBuilder:
    """The offset has expired; another fetch was sent before that; another group has a case."""
    run = offset(history(), "commit", 4)
    before = run.seq
    offset(deleted(run), "committed", -1)
    offset(run, "committed", -1, sent=before)
    client(run, "commit", group_id="h", offset=1, send_seq=run.seq)
    return client(run, "committed", group_id="h", offset=1, send_seq=run.seq + 1)


def h1_deleted_meanwhile() -> RunBuilder:
    """The offset was deleted while its commit was not acknowledged yet."""
    run = history()
    before = run.seq
    offset(deleted(run), "commit", 4, sent=before)
    offset(run, "committed", -1)
    client(run, "commit", group_id="h", offset=1, send_seq=run.seq)
    return client(run, "committed", group_id="h", offset=1, send_seq=run.seq + 1)


def _topic_before(run: RunBuilder, **more: object) -> RunBuilder:
    """Another topic has had the name of this one."""
    before = {"topic_id": format_uuid(OTHER_TOPIC), **EVERYBODY, **more}
    return run.partition("become_leader", leo=0, **before).partition("delete", leo=0, **before)


def h1_forgotten_in_new_topic() -> RunBuilder:
    """The topic that had the name before has nothing to do with what is lost."""
    run = offset(_topic_before(history()), "commit", 4, topic_id=TOPIC_ID)
    return offset(run, "committed", -1, topic_id=TOPIC_ID)


def h1_expired_in_new_topic() -> RunBuilder:
    """The coordinator deletes the offset by the name, which another topic had as well."""
    run = offset(_topic_before(history()), "commit", 4, topic_id=TOPIC_ID)
    offset(run, "committed", 4, topic_id=TOPIC_ID)
    return offset(deleted(run), "committed", -1, topic_id=TOPIC_ID)


def h1_made_again() -> RunBuilder:
    """The offsets of the topic before it go with it."""
    other = format_uuid(OTHER_TOPIC)
    run = offset(_topic_before(history()), "commit", 4, topic_id=other)
    offset(run, "committed", -1, topic_id=TOPIC_ID)
    return offset(offset(run, "commit", 1, topic_id=TOPIC_ID), "committed", 1, topic_id=TOPIC_ID)


def h1_transactions_near() -> RunBuilder:
    """Transactions that set a lower offset, that are open, or whose markers may be on their way."""
    run = ended(pending(offset(history(), "commit", 4), 2))
    offset(run, "committed", 2, stable=True)
    ended(pending(run, 5, epoch=1), epoch=1)
    offset(run, "committed", 2, stable=False)
    offset(run, "committed", 5, stable=True)
    pending(run, 1, epoch=2)
    return offset(run, "committed", 1, stable=True)


def h2_bad() -> RunBuilder:
    return own(own(history(), "m1"), "m2")


def h2_near() -> RunBuilder:
    """The next generation gives the partition to another member, and so does another group."""
    run = own(own(own(history(), "m1"), "m1"), "m2", generation=2)
    return client(
        run, "own", client_id="m3", group_id="other", member_id="m3", generation=1, received_seq=1
    )


def h2_again() -> RunBuilder:
    """The group ends, and another one of its name begins with its first generation."""
    return own(deleted(own(history(), "m1"), "end"), "m2")


# --- histories --------------------------------------------------------------------------------


def later(run: RunBuilder) -> RunBuilder:
    """Some event that leaves no row."""
    run.seq += 1
    return run


def poll(
    run: RunBuilder, member: str, *offsets: int, at: int | None = None, **more: object
) -> RunBuilder:
    """A fetch at an offset, that of its first record unless another is named, and its records."""
    number = run.seq + 1
    begins = offsets[0] if at is None else at
    given = {"client_id": member, "connection": None, "rpc": number, "send_seq": number}
    given |= {"received_seq": number + len(offsets) + 1, "fetch_offset": begins, **more}
    client(run, "fetch", high_watermark=6, **given)
    for one in offsets:
        shown = {"value": f"v{one}", "batch_offset": one, "visible": True, **given}
        client(run, "read", offset=one, high_watermark=6, **shown)
    return later(run)


def reads(run: RunBuilder, member: str, *offsets: int, **more: object) -> RunBuilder:
    """Each record by a fetch of its own."""
    for at in offsets:
        poll(run, member, at, **more)
    return run


def f7_bad() -> RunBuilder:
    return reads(own(history(), "m1"), "m1", 2, 3, 2)


def f7_near() -> RunBuilder:
    """A new assignment begins at the committed offset; a response was lost and came again.

    What was fetched for the assignment before arrives behind the new one, and is ignored.
    """
    run = reads(own(history(), "m1"), "m1", 1, 2)
    reads(run, "m1", 3, received_seq=None)
    reads(run, "m1", 3)
    before = later(run).seq
    own(run, "m1", 2)
    reads(run, "m1", 4, send_seq=before)
    return reads(run, "m1", 1, 2)


def f7_two_leaders() -> RunBuilder:
    """Two leaders are fetched from at a time, and the response of the first comes last."""
    run = poll(own(history(), "m1"), "m1", 0, 1)
    before = later(run).seq
    poll(run, "m1", 2, 3, 4, send_seq=before)
    poll(run, "m1", 2, 3, send_seq=before)
    return reads(run, "m1", 5)


def f7_offsets_fetched() -> RunBuilder:
    """A fetch of the assignment before is sent between a new assignment and its offsets."""
    run = reads(own(reads(own(history(), "m1"), "m1", 1, 2), "m1", 2), "m1", 3)
    member = {"client_id": "m1", "connection": None, "received_seq": run.seq + 1}
    return reads(offset(run, "committed", 1, **member), "m1", 1, 2)


def f10_bad() -> RunBuilder:
    """The next member begins two records after the last one that the first member read."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    return reads(own(run, "m2", 2), "m2", 3, 4)


def f10_near() -> RunBuilder:
    """The next member reads one record again; compaction has taken another."""
    run = holds(leads(plain_run(), end=6), 1, {at: f"v{at}" for at in (0, 1, 3, 4)})
    reads(own(run, "m1"), "m1", 0, 1)
    return reads(own(run, "m2", 2), "m2", 1, 3, 4)


def f12_bad() -> RunBuilder:
    return reads(own(history(), "m1"), "m1", 0, 1, 3)


def f12_gap() -> RunBuilder:
    """One response leaves a record out."""
    return poll(own(history(), "m1"), "m1", 0, 2)


def f12_begins_late() -> RunBuilder:
    """A response leaves its first record out, and the next fetch goes on behind it."""
    return poll(poll(own(history(), "m1"), "m1", 1, at=0), "m1", 2)


def f12_near() -> RunBuilder:
    """Another member begins later; compaction has taken a record; the last response is lost."""
    run = holds(leads(plain_run(), end=6), 1, {at: f"v{at}" for at in (0, 1, 3, 4, 5)})
    poll(own(run, "m1"), "m1", 0, 1)
    poll(own(run, "m2", 2), "m2", 3, 4, at=2)
    return poll(run, "m2", 5, received_seq=None)


def numbered(run: RunBuilder, at: int, number: int, **more: object) -> RunBuilder:
    """A read of a record with a sequence number of its producer."""
    given = {"producer_id": 7, "producer_epoch": 0, "sequence": number, **more}
    return reads(run, "m1", at, **given)


def h8_bad() -> RunBuilder:
    return numbered(numbered(own(history(), "m1"), 0, 3), 1, 3)


def h8_near() -> RunBuilder:
    """A user sends one value twice; two members see a record at its offset.

    Another epoch and another producer begin anew, and an aborted copy is not seen.
    """
    run = numbered(numbered(own(history(), "m1"), 0, 0, value="same"), 1, 1, value="same")
    numbered(own(run, "m2", 2), 1, 1, client_id="m2")
    numbered(run, 2, 1, producer_epoch=1)
    numbered(run, 3, 1, producer_id=8)
    numbered(run, 4, -1, producer_id=-1)
    return numbered(run, 5, 0, visible=False)


# --- transactions -----------------------------------------------------------------------------


def batch(
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


def decided(run: RunBuilder, state: str, *, epoch: int = 0, completed: bool = True) -> RunBuilder:
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


def seen(run: RunBuilder, *offsets: int, **more: object) -> RunBuilder:
    return reads(run, "m1", *offsets, **{"isolation": 1, "last_stable_offset": 6, **more})


def h3_bad() -> RunBuilder:
    return batch(batch(seen(history(), 0), 0), 1, "abort")


def h3_open() -> RunBuilder:
    return batch(seen(history(), 0), 0)


def h3_near() -> RunBuilder:
    """The aborted one is dropped, the committed one is seen, another producer aborts its own."""
    run = seen(seen(history(), 0, visible=False), 2)
    batch(batch(batch(batch(run, 0), 1, "abort"), 2), 3, "commit")
    return batch(batch(run, 4, producer=8), 5, "abort", producer=8)


def h4_bad() -> RunBuilder:
    return batch(batch(seen(history(), 0, visible=False), 0), 1, "commit")


def h5_bad() -> RunBuilder:
    return client(history(), "fetch", high_watermark=5, last_stable_offset=6)


def h5_beyond() -> RunBuilder:
    return seen(history(), 4, last_stable_offset=4)


def h5_near() -> RunBuilder:
    """read_uncommitted goes beyond; an error has none (-1)."""
    run = client(history(), "fetch", high_watermark=5, last_stable_offset=5)
    client(run, "fetch", high_watermark=5, last_stable_offset=-1)
    return reads(seen(run, 3, last_stable_offset=4), "m2", 4, isolation=0, last_stable_offset=4)


def h6_bad() -> RunBuilder:
    return decided(batch(batch(history(), 0), 1, "abort"), "PrepareCommit")


def h6_missing() -> RunBuilder:
    """Both are decided for one epoch, and the log has the first one only."""
    run = batch(batch(history(), 0), 1, "commit")
    return decided(decided(run, "PrepareCommit"), "PrepareAbort")


def _made_again() -> RunBuilder:
    """A producer writes to a topic whose name another one had before (KIP-890)."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    return batch(run, 0, epoch=1)


def h6_missing_in_new_topic() -> RunBuilder:
    return decided(_made_again(), "PrepareCommit", epoch=2)


def h6_made_again_below_kip_890() -> RunBuilder:
    """The epoch stays, so a marker may be missing here; that it contradicts is seen."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    return decided(batch(batch(run, 0), 1, "abort"), "PrepareCommit")


def h6_near_below_kip_890() -> RunBuilder:
    """One decision was about the topic that had the name before."""
    run = history().partition("become_leader", topic_id=format_uuid(OTHER_TOPIC), leo=0)
    run = decided(batch(batch(run, 0), 1, "commit"), "PrepareAbort")
    return decided(run, "PrepareCommit")


def h6_near() -> RunBuilder:
    """Both came; the second decision is not completed; the marker was written twice."""
    run = batch(batch(batch(history(), 0), 1, "commit"), 2, "commit")
    return decided(decided(run, "PrepareCommit"), "PrepareAbort", completed=False)


def h6_near_made_again() -> RunBuilder:
    """A decision about the topic that had the name before."""
    run = decided(_made_again(), "PrepareAbort", epoch=1)
    return decided(batch(run, 1, "commit", epoch=2), "PrepareCommit", epoch=2)


def h7_bad() -> RunBuilder:
    return batch(batch(history(), 0, epoch=1), 1, epoch=0)


def _given(run: RunBuilder, epoch: int) -> RunBuilder:
    return client(run, "init", topic=None, part=-1, producer_id=7, producer_epoch=epoch)


def h7_acknowledged() -> RunBuilder:
    run = _given(batch(history(), 0), 1)
    sent = {"producer_id": 7, "producer_epoch": 0, "send_seq": run.seq + 1}
    return client(run, "send", offset=1, acks=-1, **sent)


def h7_near() -> RunBuilder:
    """It was sent before the producer was fenced; epochs rise; another producer has its own."""
    run = history()
    before = run.seq
    _given(run, 1)
    sent = {"producer_id": 7, "producer_epoch": 0, "send_seq": before}
    client(run, "send", offset=0, acks=-1, **sent)
    client(run, "send", offset=1, acks=-1, **{**sent, "send_seq": run.seq + 1, "producer_epoch": 1})
    return batch(batch(batch(run, 0), 1, epoch=1), 2, producer=8)


def transformed(run: RunBuilder, at: int, of: int, marker: str = "commit") -> RunBuilder:
    """The record of a place, written to the same topic in a transaction."""
    holds(run, 1, {at: f"orders-0@{of} v{of}"})
    return batch(batch(run, at), at + 1, marker)


def passed(run: RunBuilder, upto: int) -> RunBuilder:
    """The group has read up to an offset, and has committed that in a transaction."""
    poll(own(run, "m1"), "m1", *range(upto))
    member = {"client_id": "its producer", "connection": None}
    member |= {"producer_id": 7, "producer_epoch": 0}
    return ended(offset(run, "pending", upto, **member))


def h9_twice() -> RunBuilder:
    return transformed(transformed(passed(history(), 1), 6, 0), 8, 0)


def h9_not_written() -> RunBuilder:
    return transformed(passed(history(), 2), 6, 0)


def h9_near() -> RunBuilder:
    """A transaction was aborted; what is read behind the committed offset is not written yet."""
    run = transformed(transformed(passed(history(), 1), 6, 0, "abort"), 8, 0)
    return reads(run, "m1", 1)


def h9_made_again() -> RunBuilder:
    """A topic that had the name before had the same record at the same place."""
    run = _topic_before(passed(history(), 1))
    of_it = {"client_id": "m1", "connection": None, "topic_id": format_uuid(OTHER_TOPIC)}
    client(run, "read", offset=0, value="v0", **of_it)
    client(run, "read", offset=0, value="v0", **{**of_it, "topic_id": TOPIC_ID})
    return transformed(transformed(run, 6, 0), 8, 0)


BAD: dict[str, tuple[Case, ...]] = {
    "F7": (f7_bad,),
    "F10": (f10_bad,),
    "F12": (f12_bad, f12_gap, f12_begins_late),
    "H1": (
        h1_bad,
        h1_forgotten,
        h1_forgotten_in_new_topic,
        h1_transaction,
        h1_aborted,
        h1_after_expiry,
    ),
    "H2": (h2_bad,),
    "H3": (h3_bad, h3_open),
    "H4": (h4_bad,),
    "H5": (h5_bad, h5_beyond),
    "H6": (h6_bad, h6_missing, h6_missing_in_new_topic, h6_made_again_below_kip_890),
    "H7": (h7_bad, h7_acknowledged),
    "H8": (h8_bad,),
    "H9": (h9_twice, h9_not_written),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "F7": (f7_near, f7_two_leaders, f7_offsets_fetched),
    "F10": (f10_near,),
    "F12": (f12_near, f7_near, f7_two_leaders),
    "H1": (
        h1_near,
        h1_expired,
        h1_expired_in_new_topic,
        h1_made_again,
        h1_deleted_meanwhile,
        h1_transactions_near,
    ),
    "H2": (h2_near, h2_again),
    "H3": (h3_near,),
    "H4": (h3_near,),
    "H5": (h5_near,),
    "H6": (h6_near, h6_near_made_again, h6_near_below_kip_890),
    "H7": (h7_near,),
    "H8": (h8_near,),
    "H9": (h9_near, h9_made_again),
}
