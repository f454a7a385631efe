"""Examples of the rules in `consumers.py`."""

from __future__ import annotations

from typing import Any

from minicluster.verify.group.consumers import polls_skip_no_record, positions_do_not_go_back
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.clients import (
    behind_a_loss,
    history,
    holds,
    later,
    leads,
    offset,
    own,
    poll,
    reads,
)
from tests.verify.handwritten.run import RunBuilder, plain_run


@breaks(positions_do_not_go_back)
def f7_bad() -> RunBuilder:
    """A consumer fetches at 2, 3 and 2 in one assignment."""
    return reads(own(history(), "m1"), "m1", 2, 3, 2)


@keeps(positions_do_not_go_back, polls_skip_no_record)
def f7_near() -> RunBuilder:
    """A lost response is fetched again; a new assignment begins at its committed offset, and what
    was fetched before arrives late."""
    run = reads(own(history(), "m1"), "m1", 1, 2)
    reads(run, "m1", 3, received_seq=None)
    reads(run, "m1", 3)
    before = later(run).seq
    own(run, "m1", 2)
    reads(run, "m1", 4, send_seq=before)
    return reads(run, "m1", 1, 2)


@keeps(positions_do_not_go_back, polls_skip_no_record)
def f7_two_leaders() -> RunBuilder:
    """A consumer fetches from two leaders at a time, and the response of the first comes last."""
    run = poll(own(history(), "m1"), "m1", 0, 1)
    before = later(run).seq
    poll(run, "m1", 2, 3, 4, send_seq=before)
    poll(run, "m1", 2, 3, send_seq=before)
    return reads(run, "m1", 5)


@keeps(positions_do_not_go_back)
def f7_offsets_fetched() -> RunBuilder:
    """A fetch of the assignment before is sent between a new assignment and the fetch of its
    offsets."""
    run = reads(own(reads(own(history(), "m1"), "m1", 1, 2), "m1", 2), "m1", 3)
    member: dict[str, Any] = {"client_id": "m1", "connection": None, "received_seq": run.seq + 1}
    return reads(offset(run, "committed", 1, **member), "m1", 1, 2)


@breaks(polls_skip_no_record)
def f12_bad() -> RunBuilder:
    """A consumer reads 0, 1 and 3, and the log has a record at 2."""
    return reads(own(history(), "m1"), "m1", 0, 1, 3)


@breaks(polls_skip_no_record)
def f12_gap() -> RunBuilder:
    """One response has the records at 0 and 2, and leaves out 1."""
    return poll(own(history(), "m1"), "m1", 0, 2)


@breaks(polls_skip_no_record)
def f12_begins_late() -> RunBuilder:
    """A fetch at 0 returns the record at 1, and the next fetch is at 2."""
    return poll(poll(own(history(), "m1"), "m1", 1, at=0), "m1", 2)


@keeps(polls_skip_no_record)
def f12_near() -> RunBuilder:
    """Compaction has taken a record; another member begins later, and its last response is lost."""
    run = holds(leads(plain_run(), end=6), 1, {at: f"v{at}" for at in (0, 1, 3, 4, 5)})
    poll(own(run, "m1"), "m1", 0, 1)
    poll(own(run, "m2", 2), "m2", 3, 4, at=2)
    return poll(run, "m2", 5, received_seq=None)


@keeps(polls_skip_no_record)
def f12_behind_a_loss() -> RunBuilder:
    """The last ISR member comes back with an empty log; a response has records of that epoch, which
    may be lost by now, and of the next one."""
    return poll(own(behind_a_loss(), "m1"), "m1", 0, 1, 2, 3)
