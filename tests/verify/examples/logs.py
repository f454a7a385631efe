"""Examples of the rules in `partition/logs.py`."""

from __future__ import annotations

from minicluster.trace import own_value
from minicluster.verify.partition.logs import (
    a_retried_record_is_appended_once,
    every_isr_member_holds_what_is_committed,
    leader_epochs_do_not_decrease_along_a_log,
    replicas_do_not_diverge,
)
from tests.verify.examples.example import breaks, exempts, keeps
from tests.verify.handwritten.clients import behind_a_loss
from tests.verify.handwritten.log import change, cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run


def _runs_with(run: RunBuilder, broker: int, *records: tuple[int, str]) -> RunBuilder:
    """A broker that runs when the run ends, and the records of its replica."""
    run.partition("append", broker=broker, leo=len(records)).replica_log(broker, *records)
    for row in run.rows["replica_log"]:
        row["incarnation"] = f"{row['broker']}-1"
    return run


def _in_isr(run: RunBuilder, *second: tuple[int, str]) -> RunBuilder:
    """1 leads with two committed records; 2 is in the ISR, and does not take them for committed."""
    run.partition("become_leader", leo=0, **EVERYBODY)
    run.partition("hw", leo=2, hw_old=0, hw_new=2, **EVERYBODY)
    run.replica_log(1, (0, "a"), (0, "b"))
    return _runs_with(run, 2, *second)


@breaks(every_isr_member_holds_what_is_committed)
def f2_bad() -> RunBuilder:
    """Leader 1 has two committed records; broker 2 is in the ISR, and has one."""
    return _in_isr(plain_run(), (0, "a"))


@breaks(every_isr_member_holds_what_is_committed)
def f2_other() -> RunBuilder:
    """Leader 1 has two committed records; broker 2 is in the ISR, and has another at offset 1."""
    return _in_isr(plain_run(), (0, "a"), (2, "c"))


@keeps(every_isr_member_holds_what_is_committed)
def f2_near() -> RunBuilder:
    """Broker 2, with one of two committed records, has left the ISR; 3 has another tail above the
    high watermark."""
    run = _in_isr(RunBuilder(cluster().op(change((1, 3)))), (0, "a"))
    return _runs_with(run, 3, (0, "a"), (0, "b"), (0, "z"))


@keeps(every_isr_member_holds_what_is_committed)
def f2_near_shut_down() -> RunBuilder:
    """Broker 2 had an uncommitted record when it was shut down, and truncated it after its
    return."""
    run = _runs_with(plain_run(), 2, (0, "a"), (0, "x"))
    _in_isr(run, (0, "a"), (2, "b"))
    rows = run.rows["replica_log"]
    for row in rows[:2]:
        row["incarnation"] = "2-0"
    for row in rows[2:4]:  # of the leader
        row["leader_epoch"] = 2 if row["offset"] else 0
    return run


@exempts(every_isr_member_holds_what_is_committed)
def f2_near_lost() -> RunBuilder:
    """Broker 1 came back as the last ISR member with an empty log; broker 2, which is in the ISR
    again, has another record of before at offset 0."""
    run = behind_a_loss()
    run.log.op(change((1, 2)))
    records = (1, "other"), (1, "v1"), (2, "v2"), (2, "v3"), (2, "v4"), (2, "v5")
    return _runs_with(run.committed(), 2, *records)


def _committed_to(run: RunBuilder, *high_watermarks: int) -> RunBuilder:
    """The high watermarks of brokers 1, 2, …"""
    for broker, end in enumerate(high_watermarks, 1):
        run.partition("hw", broker=broker, hw_old=0, hw_new=end, leo=end)
    return run


@breaks(replicas_do_not_diverge)
def f4_bad() -> RunBuilder:
    """KIP-279: brokers 1 and 2 have different records at offset 1, and both take it for
    committed."""
    run = _committed_to(plain_run(), 2, 2)
    return run.replica_log(1, (0, "a"), (1, "b")).replica_log(2, (0, "a"), (2, "c"))


@breaks(replicas_do_not_diverge)
def f4_same_epoch() -> RunBuilder:
    """One leader wrote two records at offset 1, of which broker 2 had the one that was
    truncated."""
    run = _committed_to(plain_run(), 1, 1)
    run.replica_log(1, (0, "a"), (1, "b"))
    return run.replica_log(2, (0, "a"), (1, "c"), at="truncate")


@keeps(replicas_do_not_diverge)
def f4_near() -> RunBuilder:
    """Brokers 1 and 2 differ above the high watermark of 2, in epochs of their own."""
    run = _committed_to(plain_run(), 2, 1)
    return run.replica_log(1, (0, "a"), (1, "b")).replica_log(2, (0, "a"), (2, "c"))


@keeps(replicas_do_not_diverge)
def f4_stopped() -> RunBuilder:
    """The tail of a broker that stopped differs from what was committed later, and it truncates
    that."""
    run = _committed_to(plain_run(), 1).replica_log(1, (0, "a"), (1, "b"))
    run.partition("truncate", broker=1, leader_epoch=1, partition_epoch=1, leo=1, offset=1)
    run = _committed_to(run, 2, 2)
    return run.replica_log(1, (0, "a"), (2, "c")).replica_log(2, (0, "a"), (2, "c"))


ONE, OTHER = (own_value("orders", 0, number) for number in (1, 2))


def _led() -> RunBuilder:
    """Broker 1 leads, and appends three records."""
    run = plain_run().partition("become_leader", leo=0, **EVERYBODY)
    return run.partition("append", offset=0, leo=3, **EVERYBODY)


def _sent(run: RunBuilder, number: int, *, idempotent: bool, value: str = "") -> RunBuilder:
    """The cluster's own client has sent a record with its number for a value, or one of a test."""
    row = {"op_id": number, "f": "send", "type": "ok", "topic": "orders", "part": 0}
    value = value or own_value("orders", 0, number)
    return run.row("history", {**row, "value": value, "idempotent": idempotent})


@breaks(a_retried_record_is_appended_once)
def f11_bad() -> RunBuilder:
    """A record of an idempotent producer is at offsets 0 and 2."""
    run = _sent(_led(), 1, idempotent=True)
    return run.replica_log(1, (0, ONE), (0, OTHER), (0, ONE))


@keeps(a_retried_record_is_appended_once)
def f11_near() -> RunBuilder:
    """A record of an idempotent producer is at offset 0, and one of another producer at 1 and 2."""
    run = _sent(_sent(_led(), 1, idempotent=True), 2, idempotent=False)
    records = (0, ONE), (0, OTHER), (0, OTHER)
    return run.replica_log(1, *records).replica_log(2, *records)


@keeps(a_retried_record_is_appended_once)
def f11_value_of_a_test() -> RunBuilder:
    """An idempotent producer has sent a record, and two to which the test gave the same value."""
    run = _sent(_led(), 1, idempotent=True)
    run = _sent(_sent(run, 2, idempotent=True, value="a"), 3, idempotent=True, value="a")
    return run.replica_log(1, (0, ONE), (0, "a"), (0, "a"))


@keeps(a_retried_record_is_appended_once)
def f11_near_lost() -> RunBuilder:
    """A record of an idempotent producer is at offset 0, which may be lost by now, and at 2, where
    it was sent again."""
    run = _sent(behind_a_loss(), 1, idempotent=True)
    for row in run.rows["replica_log"]:
        if row["offset"] in (0, 2):
            row["value_id"] = ONE
    return run


@breaks(leader_epochs_do_not_decrease_along_a_log)
def f17_bad() -> RunBuilder:
    """A replica holds records of leader epochs 0, 2 and 1, in this order."""
    return plain_run().replica_log(1, (0, "a"), (2, "b"), (1, "c"))


@keeps(leader_epochs_do_not_decrease_along_a_log)
def f17_near() -> RunBuilder:
    """A replica holds records of leader epochs 0, 0, 2 and 5, in this order."""
    return plain_run().replica_log(1, (0, "a"), (0, "b"), (2, "c"), (5, "d"))
