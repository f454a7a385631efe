"""Per rule about groups and transactions: hand-written runs that break it, and near misses."""

from __future__ import annotations

from collections.abc import Callable

from tests.verify.build_run import TOPIC_ID, RunBuilder
from tests.verify.trace_cases_clients import client, holds, leads
from tests.verify.trace_kit import plain_run

Case = Callable[[], RunBuilder]


def history(end: int = 6) -> RunBuilder:
    """Broker 1 leads a log of so many records."""
    run = leads(plain_run(), end=end)
    return holds(run, 1, {offset: f"v{offset}" for offset in range(end)})


# --- groups -----------------------------------------------------------------------------------


def own(run: RunBuilder, member: str, generation: int = 1, **more: object) -> RunBuilder:
    given = {"client_id": member, "connection": None, "group_id": "g", "member_id": member}
    return client(run, "own", **given, generation=generation, received=True, **more)


def offset(run: RunBuilder, kind: str, value: int, sent: int | None = None) -> RunBuilder:
    """A commit or a fetch of the group's offset; its request was sent at an event."""
    seq = run.seq + 1 if sent is None else sent
    return client(run, kind, group_id="g", offset=value, send_seq=seq)


def h1_bad() -> RunBuilder:
    return offset(offset(history(), "commit", 4), "committed", 3)


def h1_forgotten() -> RunBuilder:
    return offset(offset(history(), "commit", 4), "committed", -1)


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


def h1_deleted() -> RunBuilder:
    """The group was deleted; another one has a case."""
    run = offset(offset(history(), "commit", 4), "committed", -1)
    client(run, "forget", topic=None, part=-1, group_id="g")
    client(run, "commit", group_id="h", offset=1, send_seq=run.seq)
    return client(run, "committed", group_id="h", offset=1, send_seq=run.seq + 1)


def h2_bad() -> RunBuilder:
    return own(own(history(), "m1"), "m2")


def h2_near() -> RunBuilder:
    """The next generation gives the partition to another member, and so does another group."""
    run = own(own(own(history(), "m1"), "m1"), "m2", generation=2)
    return client(
        run, "own", client_id="m3", group_id="other", member_id="m3", generation=1, received=True
    )


# --- histories --------------------------------------------------------------------------------


def reads(run: RunBuilder, member: str, *offsets: int, **more: object) -> RunBuilder:
    for at in offsets:
        given = {"client_id": member, "connection": None, "received": True, "visible": True}
        given["send_seq"] = run.seq + 1
        shown = {"value": f"v{at}", "high_watermark": 6, "batch_offset": at, **given, **more}
        client(run, "read", offset=at, **shown)
    return run


def f7_bad() -> RunBuilder:
    return reads(own(history(), "m1"), "m1", 2, 3, 2)


def f7_near() -> RunBuilder:
    """A new assignment begins at the committed offset; a response was lost and came again.

    What was fetched for the assignment before arrives behind the new one, and is ignored.
    """
    run = reads(own(history(), "m1"), "m1", 1, 2)
    reads(run, "m1", 3, received=False)
    reads(run, "m1", 3)
    before = run.seq
    own(run, "m1", 2)
    reads(run, "m1", 4, send_seq=before)
    return reads(run, "m1", 1, 2)


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


def f12_near() -> RunBuilder:
    return reads(own(reads(own(history(), "m1"), "m1", 0, 1), "m1", 2), "m1", 3)


def h8_bad() -> RunBuilder:
    return reads(own(history(), "m1"), "m1", 0, 1, value="same")


def h8_near() -> RunBuilder:
    """Two members see a record at its offset; the copy in an aborted transaction is not seen."""
    run = reads(own(history(), "m1"), "m1", 0, 1)
    reads(own(run, "m2", 2), "m2", 1)
    return reads(run, "m2", 2, value="v1", visible=False)


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


def h6_near() -> RunBuilder:
    """Both came; the second decision is not completed; the marker was written twice."""
    run = batch(batch(batch(history(), 0), 1, "commit"), 2, "commit")
    return decided(decided(run, "PrepareCommit"), "PrepareAbort", completed=False)


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


BAD: dict[str, tuple[Case, ...]] = {
    "F7": (f7_bad,),
    "F10": (f10_bad,),
    "F12": (f12_bad,),
    "H1": (h1_bad, h1_forgotten),
    "H2": (h2_bad,),
    "H3": (h3_bad, h3_open),
    "H4": (h4_bad,),
    "H5": (h5_bad, h5_beyond),
    "H6": (h6_bad, h6_missing),
    "H7": (h7_bad, h7_acknowledged),
    "H8": (h8_bad,),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "F7": (f7_near,),
    "F10": (f10_near,),
    "F12": (f12_near,),
    "H1": (h1_near, h1_deleted),
    "H2": (h2_near,),
    "H3": (h3_near,),
    "H4": (h3_near,),
    "H5": (h5_near,),
    "H6": (h6_near,),
    "H7": (h7_near,),
    "H8": (h8_near,),
}
