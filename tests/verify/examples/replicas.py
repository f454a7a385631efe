"""Examples of the rules in `partition/replicas.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.protocol.uuids import format_uuid
from minicluster.verify.partition.replicas import (
    a_leaders_high_watermark_does_not_decrease,
    a_new_replica_begins_empty,
    acks_all_waits_for_the_maximal_isr,
    committed_records_are_not_truncated,
    one_writer_per_leader_epoch,
    partition_epochs_never_decrease_on_a_broker,
    the_high_watermark_waits_for_min_isr,
    the_high_watermark_waits_for_the_maximal_isr,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.examples.partitions import recovering
from tests.verify.handwritten.clients import client, leads
from tests.verify.handwritten.log import OTHER_TOPIC, LogBuilder, change, cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, plain_run


def _advances_to_8(**known: tuple[int, int, int]) -> RunBuilder:
    """Leader 1, whose maximal ISR is [1, 2, 3], advances its high watermark.

    Shapes:  known: what it knows of broker 2 (``b2``), …: log end, leader epoch, broker epoch.
    """
    return RunBuilder(cluster()).partition(
        "hw",
        isr=[1, 2, 3],
        maximal_isr=[1, 2, 3],
        leo=10,
        hw_old=0,
        hw_new=8,
        known=_by_id(known),
    )


def _by_id(known: Mapping[str, tuple[int, int, int]]) -> dict[int, tuple[int, int, int]]:
    return {int(broker[1:]): follower for broker, follower in known.items()}


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_bad() -> RunBuilder:
    """The high watermark goes to 8, and broker 3 of the maximal ISR has fetched up to 7."""
    return _advances_to_8(b2=(8, 0, 5), b3=(7, 0, 5))


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_other_epoch() -> RunBuilder:
    """The high watermark goes to 8, and broker 3 of the maximal ISR has fetched in another leader
    epoch."""
    return _advances_to_8(b2=(8, 0, 5), b3=(9, -1, 5))


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_unknown() -> RunBuilder:
    """The high watermark goes to 8, and of broker 3 in the maximal ISR no fetch is known."""
    return _advances_to_8(b2=(8, 0, 5))


def _at_8() -> RunBuilder:
    """The high watermark of leader 1 is 8, as it must be."""
    return _advances_to_8(b2=(8, 0, 5), b3=(8, 0, 5))


def _beside_own_logs(**log_ends: int) -> RunBuilder:
    """The brokers' own logs, beside a leader that counts 8 records of each at event 9."""
    run = RunBuilder(cluster())
    for broker, log_end in log_ends.items():
        run.partition("append", broker=int(broker[1:]), leo=log_end)
    advance = _at_8().rows["partition_event"]
    run.rows["partition_event"] += [{**row, "seq": 9} for row in advance]
    return run


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_shorter_log() -> RunBuilder:
    """The high watermark goes to 8; leader 1 counts 8 records of broker 3, whose own log ends at
    7."""
    return _beside_own_logs(b2=8, b3=7)


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_truncated_log() -> RunBuilder:
    """The high watermark goes to 8; leader 1 counts 8 records of broker 3, which has truncated to
    7."""
    run = _beside_own_logs(b2=8, b3=8)
    return run.partition("truncate", broker=3, leo=7, offset=7)


def _with_epochs(run: RunBuilder, *logs: tuple[int, list[int], str]) -> RunBuilder:
    """Logs of 8 records each, with their leader epochs, before 1 advances its high watermark.

    Shapes:  logs: broker, pairs of leader epoch and start offset in one list, incarnation.
    """
    for broker, epochs, incarnation in logs:
        process: dict[str, Any] = {"broker": broker, "incarnation": f"{broker}-{incarnation}"}
        run.partition("append", leo=8, offset=7, epochs=epochs, leader_epoch=3, **process)
    known = {2: (8, 3, 5), 3: (8, 3, 5)}
    return run.partition("hw", leo=10, hw_old=0, hw_new=8, known=known, leader_epoch=3, **EVERYBODY)


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_other_records() -> RunBuilder:
    """The high watermark goes to 8; broker 3 has 8 records, the last ones of an epoch that the
    leader never had."""
    logs = (1, [0, 0, 3, 5], "1"), (2, [0, 0, 3, 5], "1"), (3, [0, 0, 2, 5], "1")
    return _with_epochs(RunBuilder(cluster()), *logs)


@breaks(the_high_watermark_waits_for_the_maximal_isr)
def b2_lost_and_fetched() -> RunBuilder:
    """The high watermark goes to 8; broker 3 has lost records by a crash and fetched since, so that
    the leader can see it."""
    run = _with_epochs(RunBuilder(cluster()), (3, [0, 0, 3, 5], "1"))
    run.rows["partition_event"].pop()
    run.partition("become_follower", broker=3, incarnation="3-2", leo=5, epochs=[0, 0])
    run.partition("append", broker=3, incarnation="3-2", leo=6, offset=5, epochs=[3, 5])
    return _with_epochs(run, (1, [0, 0, 3, 5], "1"), (2, [0, 0, 3, 5], "1"))


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near() -> RunBuilder:
    """The high watermark goes to 8; brokers 2 and 3 have fetched that, and 4 is not in the maximal
    ISR."""
    return _advances_to_8(b2=(8, 0, 5), b3=(9, 0, 5), b4=(0, -1, -1))


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near_logs() -> RunBuilder:
    """The high watermark goes to 8; broker 3 has lost records by a crash, which the leader cannot
    see."""
    run = _beside_own_logs(b2=8, b3=9)
    return run.partition("become_follower", broker=3, incarnation="3-2", leo=5)


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near_deleted() -> RunBuilder:
    """The high watermark goes to 8; broker 3 has fetched that, and deleted its replica since: it
    has heard before the leader that the topic is deleted."""
    run = _with_epochs(RunBuilder(cluster()), (2, [0, 0], "1"), (3, [0, 0], "1"))
    run.partition("delete", broker=3, leo=8)
    return _with_epochs(run, (1, [0, 0], "1"))


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near_epochs() -> RunBuilder:
    """The high watermark goes to 8; broker 3 lost its tail by a crash, and 2 follows a later
    leader: this one sees neither yet."""
    run = _with_epochs(RunBuilder(cluster()), (2, [0, 0, 2, 5], "1"), (3, [0, 0, 3, 5], "1"))
    run.rows["partition_event"].pop()
    run.partition("become_follower", broker=3, incarnation="3-2", leo=5, epochs=[0, 0])
    run.partition("become_follower", broker=2, leo=8, leader_epoch=4)
    return _with_epochs(run, (1, [0, 0, 3, 5], "1"))


def _left_out(kind: str, **values: Any) -> RunBuilder:
    """On ZooKeeper, where no log has the partition: 3 is not a replica any more; the ISR has it."""
    everybody = {**EVERYBODY, "leo": 8, "known": {2: (8, 0, 5)}, **values}
    return RunBuilder(LogBuilder().brokers(1, 2, 3)).partition(kind, **everybody)


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near_left_out() -> RunBuilder:
    """On ZooKeeper the high watermark does not wait for broker 3, which is in the ISR and no
    replica any more."""
    return _left_out("hw", hw_old=0, hw_new=8)


@keeps(the_high_watermark_waits_for_the_maximal_isr)
def b2_near_left_out_with_less() -> RunBuilder:
    """On ZooKeeper the log of broker 3, in the ISR and no replica any more, ends below the new high
    watermark."""
    run = _left_out("append", broker=3, leo=5)
    advance = _left_out("hw", hw_old=0, hw_new=8).rows["partition_event"]
    run.rows["partition_event"] += [{**row, "seq": 9} for row in advance]
    return run


def _led_by_2() -> LogBuilder:
    """2 leads orders-0 now, in leader epoch 1 and partition epoch 1."""
    return cluster().op(change(leader=2))


@breaks(partition_epochs_never_decrease_on_a_broker)
def b6_bad() -> RunBuilder:
    """Broker 1 applies partition epoch 1, and then 0."""
    run = RunBuilder(_led_by_2())
    run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)
    return run.partition("become_leader", broker=1, leo=0, **EVERYBODY)


@breaks(partition_epochs_never_decrease_on_a_broker)
def b6_two_meanings() -> RunBuilder:
    """Broker 1 applies partition epoch 1 with leader epoch 0, and then with 1."""
    run = RunBuilder(_led_by_2())
    run.partition("become_follower", broker=1, leader_epoch=0, partition_epoch=1, leo=0)
    return run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)


@keeps(partition_epochs_never_decrease_on_a_broker)
def b6_near() -> RunBuilder:
    """Broker 1 applies partition epochs 0, 0 and 1; another incarnation of it applies 0."""
    run = RunBuilder(_led_by_2())
    run.partition("become_leader", broker=1, leo=0, **EVERYBODY)
    run.partition("become_leader", broker=1, leo=0, **EVERYBODY)
    run.partition("become_follower", broker=1, leader_epoch=1, partition_epoch=1, leo=0)
    return run.partition("become_leader", broker=1, incarnation="1-2", leo=0, **EVERYBODY)


def _high_watermark(isr: list[int], *, old: int = 0, new: int = 8) -> RunBuilder:
    """The high watermark of leader 1 moves, with min.insync.replicas 2."""
    return plain_run().partition(
        "hw",
        isr=isr,
        maximal_isr=isr,
        min_isr=2,
        leo=8,
        hw_old=old,
        hw_new=new,
        known={2: (8, 0, 5), 3: (8, 0, 5)},
    )


@breaks(the_high_watermark_waits_for_min_isr)
def b10_bad() -> RunBuilder:
    """min.insync.replicas is 2, the ISR [1], and the high watermark goes from 0 to 8."""
    return _high_watermark([1])


@keeps(the_high_watermark_waits_for_min_isr)
def b10_near() -> RunBuilder:
    """min.insync.replicas is 2, the ISR [1, 2], and the high watermark goes from 0 to 8."""
    return _high_watermark([1, 2])


@breaks(a_new_replica_begins_empty)
def e27_bad() -> RunBuilder:
    """Broker 2 creates a replica whose log ends at 4."""
    return plain_run().partition("become_follower", broker=2, leo=4)


@breaks(a_new_replica_begins_empty)
def e27_vanished() -> RunBuilder:
    """Broker 2 had 8 records, and has none without a restart or a truncation."""
    run = (
        plain_run()
        .partition("become_follower", broker=2, leo=0)
        .partition("append", broker=2, leo=8)
    )
    return run.partition("become_follower", broker=2, leo=0)


@keeps(a_new_replica_begins_empty)
def e27_near() -> RunBuilder:
    """Broker 2 restarts with the 4 records that it had, deletes its replica, and begins another at
    0."""
    run = plain_run().partition("become_follower", broker=2, leo=0)
    run.partition("append", broker=2, leo=4)
    run.partition("become_follower", broker=2, incarnation="2-2", leo=4)
    run.partition("delete", broker=2, incarnation="2-2", leo=4)
    return run.partition("become_follower", broker=2, incarnation="2-2", leo=0)


@breaks(committed_records_are_not_truncated)
def f5_bad() -> RunBuilder:
    """The high watermark is 8, and broker 2 truncates to 7."""
    return _at_8().partition("truncate", broker=2, offset=7)


def _deposed(truncates_to: int) -> RunBuilder:
    """Broker 2 led epoch 0 and appended alone; in epoch 1 the others committed 8 records."""
    run = RunBuilder(cluster())
    run.partition("hw", broker=2, hw_old=0, hw_new=5, leo=5)
    run.partition("append", broker=2, hw_old=5, hw_new=5, leo=50)
    run.partition(
        "hw",
        leader_epoch=1,
        isr=[1, 3],
        maximal_isr=[1, 3],
        hw_old=5,
        hw_new=8,
        leo=8,
        known={3: (8, 1, 5)},
    )
    return run.partition("truncate", broker=2, leader_epoch=1, offset=truncates_to)


@breaks(committed_records_are_not_truncated)
def f5_below_its_own() -> RunBuilder:
    """Broker 2 was deposed with high watermark 5, and truncates to 4."""
    return _deposed(4)


def _elected_uncleanly(end: int) -> RunBuilder:
    """2 leads with a log of some records, and 3 truncates to two; 8 were committed."""
    run = RunBuilder(recovering())
    run.rows = _at_8().rows
    run.seq = 100
    run.partition("truncate", broker=3, offset=8, leader_epoch=1).committed()
    run.partition(
        "become_leader", broker=2, incarnation="2-2", leo=end, leader_epoch=2, partition_epoch=4
    )
    return run.partition("truncate", broker=3, offset=2, leader_epoch=2)


@breaks(committed_records_are_not_truncated)
def f5_unclean_without_loss() -> RunBuilder:
    """A leader is elected uncleanly with all 8 committed records, and broker 3 truncates to 2."""
    return _elected_uncleanly(8)


@breaks(committed_records_are_not_truncated)
def f5_below_the_loss() -> RunBuilder:
    """A leader is elected uncleanly with 4 of 8 committed records, and broker 3 truncates to 2."""
    return _elected_uncleanly(4)


@keeps(committed_records_are_not_truncated)
def f5_near() -> RunBuilder:
    """The high watermark is 8, and broker 2 truncates to 8."""
    return _at_8().partition("truncate", broker=2, offset=8)


@keeps(committed_records_are_not_truncated)
def f5_near_unclean() -> RunBuilder:
    """A leader is elected uncleanly with 2 of 8 committed records, and broker 3 truncates to 2."""
    return _elected_uncleanly(2)


@keeps(committed_records_are_not_truncated)
def f5_near_alone() -> RunBuilder:
    """Leader 1, which has its partition for itself, comes back with an empty log, and broker 2
    truncates to 0; no log shows the ISR, since all of them begin later."""
    run = RunBuilder(cluster())
    alone: dict[str, Any] = {"isr": [1], "maximal_isr": [1]}
    run.partition("hw", hw_old=0, hw_new=8, leo=8, **alone)
    run.partition("truncate", broker=2, offset=8)
    run.partition("become_leader", incarnation="1-2", leo=0, leader_epoch=1, **alone)
    return run.partition("truncate", broker=2, offset=0, leader_epoch=1)


@keeps(committed_records_are_not_truncated)
def f5_near_deposed() -> RunBuilder:
    """Broker 2 was deposed with high watermark 5 and truncates to 5: what only it had was not
    committed."""
    return _deposed(5)


def _acknowledged(isr: list[int], **known: tuple[int, int, int]) -> RunBuilder:
    """Leader 1 acknowledges offset 8, with min.insync.replicas 2.

    Shapes:  known: as above.
    """
    return RunBuilder(cluster()).partition(
        "ack",
        isr=isr,
        maximal_isr=isr,
        min_isr=2,
        leo=10,
        offset=8,
        known=_by_id(known),
    )


@breaks(acks_all_waits_for_the_maximal_isr)
def f8_bad() -> RunBuilder:
    """acks=all succeeds for offset 8, and broker 2 of the ISR has fetched up to 8."""
    return _acknowledged([1, 2], b2=(8, 0, 5))


@breaks(acks_all_waits_for_the_maximal_isr)
def f8_too_few() -> RunBuilder:
    """acks=all succeeds with ISR [1], and min.insync.replicas is 2."""
    return _acknowledged([1], b2=(9, 0, 5))


@keeps(acks_all_waits_for_the_maximal_isr)
def f8_near() -> RunBuilder:
    """acks=all succeeds for offset 8; broker 2 has fetched up to 9, and 3 is not in the ISR."""
    return _acknowledged([1, 2], b2=(9, 0, 5), b3=(0, 0, 5))


def _acknowledged_again(offset: int) -> RunBuilder:
    """Leader 1 begins to lead with high watermark 8, and acknowledges before anybody fetches."""
    begun = plain_run().partition("become_leader", leo=9, hw_new=8, **EVERYBODY)
    known = dict.fromkeys((2, 3), (-1, -1, None))
    return begun.partition("ack", offset=offset, leo=9, hw_new=8, known=known, **EVERYBODY)


@keeps(acks_all_waits_for_the_maximal_isr)
def f8_near_sent_again() -> RunBuilder:
    """A batch at 7 is sent again to a leader that began with high watermark 8 (seed 500163)."""
    return _acknowledged_again(7)


@breaks(acks_all_waits_for_the_maximal_isr)
def f8_sent_again_too_early() -> RunBuilder:
    """A batch at 8 is sent again to a leader that began with high watermark 8."""
    return _acknowledged_again(8)


@keeps(acks_all_waits_for_the_maximal_isr)
def f8_near_left_out() -> RunBuilder:
    """On ZooKeeper acks=all does not wait for broker 3, which is in the ISR and no replica any
    more."""
    return _left_out("ack", offset=7)


def _writes(run: RunBuilder, broker: int, epoch: int) -> RunBuilder:
    """A leader appends a record of a client."""
    return run.partition(
        "append", broker=broker, leader_epoch=epoch, leo=1, offset=0, isr=[1], maximal_isr=[1]
    )


@breaks(one_writer_per_leader_epoch)
def f16_bad() -> RunBuilder:
    """Brokers 1 and 2 both append records of clients in leader epoch 0."""
    return _writes(_writes(plain_run(), 1, 0), 2, 0)


@keeps(one_writer_per_leader_epoch)
def f16_near() -> RunBuilder:
    """Broker 1 appends records of clients in leader epoch 0, and 2 in 1; broker 3 appends what it
    fetched."""
    run = _writes(_writes(plain_run(), 1, 0), 2, 1)
    return run.partition("append", broker=3, leo=1, offset=0)


@breaks(a_leaders_high_watermark_does_not_decrease)
def f18_bad() -> RunBuilder:
    """Leader 1 moves its high watermark from 8 back to 7."""
    return _high_watermark([1, 2], old=8, new=7)


def _listed(end: int, *, began_before: int | None = None) -> RunBuilder:
    """A client asks for the end of orders-0; leader 1, whose epoch 0 began at 6, responds.

    Shapes:  began_before: where that epoch of an earlier topic of the name began.
    """
    run = plain_run()
    if began_before is not None:
        before = {"topic_id": format_uuid(OTHER_TOPIC), "leader_epoch": 0, **EVERYBODY}
        run.partition("become_leader", leo=began_before, **before)
        run.partition("delete", leo=began_before, topic_id=format_uuid(OTHER_TOPIC))
    run.partition("become_leader", leo=6, leader_epoch=0, hw_new=9, **EVERYBODY)
    run.partition("become_leader", leo=9, leader_epoch=0, hw_new=9, **EVERYBODY)
    return client(run, "list", high_watermark=end, leader_epoch=0)


@breaks(a_leaders_high_watermark_does_not_decrease)
def f18_listed_early() -> RunBuilder:
    """Leader 1 returns end offset 5 to a consumer, and its epoch began at 6."""
    return _listed(5)


@breaks(a_leaders_high_watermark_does_not_decrease)
def f18_listed_in_new_topic() -> RunBuilder:
    """Leader 1 returns end offset 5, and its epoch began at 6; that of the topic before of this
    name began at 0."""
    return _listed(5, began_before=0)


@breaks(a_leaders_high_watermark_does_not_decrease)
def f18_client() -> RunBuilder:
    """Leader 1 returns high watermark 5 to a client, and then 4."""
    run = client(leads(plain_run(), end=5), "fetch", high_watermark=5)
    return client(run, "list", high_watermark=4)


@keeps(a_leaders_high_watermark_does_not_decrease)
def f18_near() -> RunBuilder:
    """Leader 1 has high watermark 8, and follower 2 moves its own from 8 back to 7."""
    return _high_watermark([1, 2]).partition("hw", broker=2, hw_old=8, hw_new=7, leo=8)


@keeps(a_leaders_high_watermark_does_not_decrease)
def f18_listed() -> RunBuilder:
    """Leader 1, whose epoch began at 6, returns end offset 6, and follower 2 returns 5."""
    run = _listed(6).partition("become_follower", broker=2, leo=5, leader_epoch=0, hw_new=5)
    return client(run, "list", high_watermark=5, leader_epoch=0, broker=2)


@keeps(a_leaders_high_watermark_does_not_decrease)
def f18_listed_made_again() -> RunBuilder:
    """Leader 1 returns end offset 6, where its epoch began; that of the topic before of this name
    began at 9."""
    return _listed(6, began_before=9)


@keeps(a_leaders_high_watermark_does_not_decrease)
def f18_client_near() -> RunBuilder:
    """Clients see high watermark 5 of leader 1, 4 of the next leader, and 3 of a follower."""
    run = client(leads(plain_run(), end=5), "fetch", high_watermark=5)
    client(leads(run, broker=2, epoch=1, end=4), "fetch", high_watermark=4, broker=2)
    run.partition("become_follower", broker=3, leo=5)
    run.partition("hw", broker=3, leo=5, hw_old=0, hw_new=3)
    return client(run, "fetch", high_watermark=3, broker=3)
