"""Per rule about a trace: a hand-written run that breaks it, and a near miss that does not."""

from __future__ import annotations

import json
from collections.abc import Callable

from minicluster.protocol import records as r
from tests.verify import trace_cases_clients as clients
from tests.verify import trace_cases_groups as groups
from tests.verify import trace_cases_logs as logs
from tests.verify import trace_cases_quorum as quorum
from tests.verify import trace_cases_replicas as replicas
from tests.verify import trace_cases_time as of_time
from tests.verify.build import LogBuilder, change, cluster
from tests.verify.build_run import RunBuilder
from tests.verify.cases_partitions import recovering
from tests.verify.trace_kit import plain_run

Case = Callable[[], RunBuilder]

REFUSED = 107  # INELIGIBLE_REPLICA


def _shrunk() -> RunBuilder:
    """3 left the ISR of orders-0 at the log's last record."""
    return RunBuilder(cluster().op(change((1, 2))))


def _grown() -> RunBuilder:
    """3 left the ISR and came back."""
    return RunBuilder(cluster().op(change((1, 2))).op(change((1, 2, 3))))


# --- A5, A6 --------------------------------------------------------------------------------------


def a5_bad() -> RunBuilder:
    run = RunBuilder(cluster().fence(3, change((1, 2))))
    run.publish(1)
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known={3: (5, 0, -1)})


def a5_old_epoch() -> RunBuilder:
    run = RunBuilder(cluster().op(change((1, 2))))
    run.publish(1)
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known={3: (5, 0, 1)})


def a5_near() -> RunBuilder:
    """The leader's broker has not published the fencing yet."""
    log = cluster().op(change((1, 2)))
    before = log.offset - 1
    log.fence(3)
    run = RunBuilder(log)
    return _proposes_3(run.publish(1, before).publish(2))


def _proposes_3(run: RunBuilder) -> RunBuilder:
    known = {3: (5, 0, run.log.broker_epochs[3])}
    return run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], known=known)


def a5_near_pending() -> RunBuilder:
    """Proposed before the fencing is published; then the leader applies what it had already."""
    run = a5_near()
    run.publish(1)
    return _proposes_3(run)


def a6_bad() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(1, (1, 2), error_code=REFUSED, written=(run.log.offset - 1,))


def a6_whole() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(1, (1, 2), error="UNKNOWN_SERVER_ERROR", written=(3,))


def a6_revert() -> RunBuilder:
    return _shrunk().partition("isr_revert", isr=[1], maximal_isr=[1], error="NOT_CONTROLLER")


def a6_near() -> RunBuilder:
    """NEW_LEADER_ELECTED is the response to a change that was made."""
    run = _shrunk()
    run.alter_partition(1, (1, 2), error_code=108, written=(run.log.offset - 1,))
    run.partition("isr_revert", isr=[1], maximal_isr=[1], error="INELIGIBLE_REPLICA")
    return run.alter_partition(1, (1, 2), error_code=REFUSED)


# --- B -------------------------------------------------------------------------------------------


def b1_bad() -> RunBuilder:
    """A shrink is applied while the controller's ISR is still the old one."""
    run = RunBuilder(cluster()).committed()
    run.partition("become_leader", isr=[1, 2, 3], maximal_isr=[1, 2, 3])
    return run.partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1, 2])


def b1_committed_under_it() -> RunBuilder:
    """An expansion is committed that the leader does not count on."""
    run = _grown()
    run.committed(run.log.offset - 1)
    run.partition("isr_commit", isr=[1, 2], maximal_isr=[1, 2], partition_epoch=1)
    return run.committed()


def b1_no_change_under_way() -> RunBuilder:
    run = RunBuilder(cluster()).committed()
    return run.partition("isr_commit", isr=[1, 2, 3], maximal_isr=[1, 2, 3, 4])


def b1_near() -> RunBuilder:
    """The expansion counts from the proposal on; the state of a deposed leader does not count."""
    log = cluster().op(change((1, 2))).op(change((1, 2, 3)))
    grown = log.offset
    log.op(change(leader=2))
    run = RunBuilder(log).committed(grown - 1)
    run.partition("isr_pending", isr=[1, 2], maximal_isr=[1, 2, 3], partition_epoch=1)
    run.committed(grown)
    run.partition("isr_commit", isr=[1, 2, 3], maximal_isr=[1, 2, 3], partition_epoch=2)
    run.committed()
    return run.partition("isr_pending", isr=[1, 2, 3], maximal_isr=[1], partition_epoch=2)


def _watermark(**known: tuple[int, int, int]) -> RunBuilder:
    return RunBuilder(cluster()).partition(
        "hw",
        isr=[1, 2, 3],
        maximal_isr=[1, 2, 3],
        leo=10,
        hw_old=0,
        hw_new=8,
        known={int(broker[1:]): reported for broker, reported in known.items()},
    )


def b2_bad() -> RunBuilder:
    return _watermark(b2=(8, 0, 5), b3=(7, 0, 5))


def b2_other_epoch() -> RunBuilder:
    return _watermark(b2=(8, 0, 5), b3=(9, -1, 5))


def b2_unknown() -> RunBuilder:
    return _watermark(b2=(8, 0, 5))


def b2_near() -> RunBuilder:
    return _watermark(b2=(8, 0, 5), b3=(9, 0, 5), b4=(0, -1, -1))


def _logged(**known: int) -> RunBuilder:
    """The brokers' own logs, beside a leader that counts 8 of each."""
    run = RunBuilder(cluster())
    for broker, end in known.items():
        run.partition("append", broker=int(broker[1:]), leo=end)
    later = _watermark(b2=(8, 0, 5), b3=(8, 0, 5))
    run.rows["partition_event"] += [{**r, "seq": 9} for r in later.rows["partition_event"]]
    return run


def b2_shorter_log() -> RunBuilder:
    """The leader counts a record that 3 has not appended."""
    return _logged(b2=8, b3=7)


def b2_truncated_log() -> RunBuilder:
    run = _logged(b2=8, b3=8)
    return run.partition("truncate", broker=3, leo=7, offset=7)


def b2_near_logs() -> RunBuilder:
    """Records that 3 loses by a crash which the leader cannot see."""
    run = _logged(b2=8, b3=9)
    return run.partition("become_follower", broker=3, incarnation="3-2", leo=5)


def b4_bad() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(1, (1, 2), partition_epoch=1, written=(run.log.offset - 1,))


def b4_leader_epoch() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(1, (1, 2), leader_epoch=1, written=(run.log.offset - 1,))


def b4_other_leader() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(2, (1, 2), written=(run.log.offset - 1,))


def b4_broker_epoch() -> RunBuilder:
    run = _shrunk()
    return run.alter_partition(1, (1, 2), registered_epoch=99, written=(run.log.offset - 1,))


def b4_near() -> RunBuilder:
    run = _grown()
    run.alter_partition(1, (1, 2), written=(run.log.offset - 2,))
    return run.alter_partition(1, (1, 2, 3), partition_epoch=1, written=(run.log.offset - 1,))


# --- C6, D3, E24 ---------------------------------------------------------------------------------


def _recovered() -> RunBuilder:
    return RunBuilder(recovering().op(change(recovery=0)))


def c6_bad() -> RunBuilder:
    run = _recovered()
    return run.rpc("BrokerHeartbeat", 2, written=(run.log.offset - 1,))


def c6_nobody() -> RunBuilder:
    return _recovered()


def c6_near() -> RunBuilder:
    run = _recovered()
    return run.alter_partition(
        2, (2,), leader_epoch=2, partition_epoch=4, written=(run.log.offset - 1,)
    )


def c6_near_without_response() -> RunBuilder:
    """The response was lost with the controller; the trace has only the leader's request."""
    return _recovered().alter_partition(2, (2,), resp_seq=None, response=None)


def d3_bad() -> RunBuilder:
    run = RunBuilder(cluster())
    return run.rpc("BrokerHeartbeat", 1, broker_epoch=1, registered_epoch=5)


def d3_written() -> RunBuilder:
    run = RunBuilder(cluster())
    return run.rpc(
        "AlterPartition",
        1,
        broker_epoch=1,
        registered_epoch=5,
        error="STALE_BROKER_EPOCH",
        written=(3,),
    )


def d3_near() -> RunBuilder:
    run = RunBuilder(cluster())
    run.rpc("BrokerHeartbeat", 1, broker_epoch=1, registered_epoch=5, error="STALE_BROKER_EPOCH")
    return run.rpc("BrokerHeartbeat", 1, broker_epoch=5, registered_epoch=5)


def _unfenced(broker: int, applied: int, api: str = "BrokerHeartbeat") -> RunBuilder:
    log = LogBuilder().register(1)
    log.unfence(1)
    printed = json.dumps({"currentMetadataOffset": log.offset + applied})
    return RunBuilder(log).rpc(api, broker, written=(log.offset - 1,), request=printed)


def e24_bad() -> RunBuilder:
    return _unfenced(1, -3)


def e24_other() -> RunBuilder:
    return _unfenced(2, -1)


def e24_near() -> RunBuilder:
    return _unfenced(1, -2)


# --- E3, E4 --------------------------------------------------------------------------------------


def e32_bad() -> RunBuilder:
    return RunBuilder(cluster()).committed().publish(2, image_hash="else")


def e32_near() -> RunBuilder:
    log = cluster().op(r.BeginTransactionRecord(name="x"), change((1, 2)))
    log.op(r.AbortTransactionRecord(reason="no"))
    run = RunBuilder(log).committed()
    log.batches, every = log.batches[:-2], log.batches
    reported = run.image_hash(log.offset)
    log.batches = every
    return run.publish(2, image_hash=reported)


def e33_bad() -> RunBuilder:
    run = RunBuilder(cluster()).committed()
    end = run.log.offset - 1
    return run.publish(2).publish(2, end - 2)


def e33_inside_a_batch() -> RunBuilder:
    run = RunBuilder(cluster()).committed()
    return run.publish(2, run.log.offset - 2)


def e33_too_early() -> RunBuilder:
    run = RunBuilder(cluster())
    run.committed(run.log.offset - 1)
    return run.publish(2).committed()


def e33_empty() -> RunBuilder:
    return RunBuilder(cluster()).committed().publish(2, -1)


def e33_nothing_yet() -> RunBuilder:
    """A batch has ended, but it holds nothing but the leader's first words."""
    return RunBuilder(cluster()).committed().publish(2, 0)


def e33_in_transaction() -> RunBuilder:
    return RunBuilder(cluster()).committed().publish(2, in_tx=True)


def e33_near() -> RunBuilder:
    """A new incarnation begins again; the other nodes have their own pace."""
    run = RunBuilder(cluster()).committed()
    first = run.log.batches[1].last_offset
    run.publish(2).publish(3, first).publish(2, first, incarnation="2-2")
    return run.publish(3).publish(3)


def e40_bad() -> RunBuilder:
    run = _shrunk()
    last = run.log.offset - 1
    return run.rpc("CreateTopics", 7, written=(last,), high_watermark=last)


def e40_near() -> RunBuilder:
    run = _shrunk()
    last = run.log.offset - 1
    run.rpc("CreateTopics", 7, written=(last,), high_watermark=last, error="NOT_CONTROLLER")
    return run.rpc("CreateTopics", 7, written=(last,), high_watermark=last + 1)


# --- F, X ----------------------------------------------------------------------------------------


def _high() -> RunBuilder:
    return _watermark(b2=(8, 0, 5), b3=(8, 0, 5))


def f5_bad() -> RunBuilder:
    return _high().partition("truncate", broker=2, offset=7)


def f5_near() -> RunBuilder:
    return _high().partition("truncate", broker=2, offset=8)


def f5_near_unclean() -> RunBuilder:
    """The others truncate what the leader of an unclean election lacks."""
    return _elected_uncleanly(2)


def f5_unclean_without_loss() -> RunBuilder:
    """The leader of an unclean election has all that was committed."""
    return _elected_uncleanly(8)


def f5_below_the_loss() -> RunBuilder:
    """It has more than what another truncates to."""
    return _elected_uncleanly(4)


def _elected_uncleanly(end: int) -> RunBuilder:
    """2 leads with a log of some records, and 3 truncates to two; 8 were committed."""
    run = RunBuilder(recovering())
    run.rows = _high().rows
    run.seq = 100
    run.partition("truncate", broker=3, offset=8, leader_epoch=1).committed()
    run.partition(
        "become_leader", broker=2, incarnation="2-2", leo=end, leader_epoch=2, partition_epoch=4
    )
    return run.partition("truncate", broker=3, offset=2, leader_epoch=2)


def _deposed(truncates_to: int) -> RunBuilder:
    """Broker 2 led epoch 0 and went on alone; in epoch 1 others came to agree on 8 records."""
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


def f5_below_its_own() -> RunBuilder:
    return _deposed(4)


def f5_near_deposed() -> RunBuilder:
    """A deposed leader's record on no other replica is not committed, at any offset."""
    return _deposed(5)


def _acknowledged(isr: list[int], **known: tuple[int, int, int]) -> RunBuilder:
    return RunBuilder(cluster()).partition(
        "ack",
        isr=isr,
        maximal_isr=isr,
        min_isr=2,
        leo=10,
        offset=8,
        known={int(broker[1:]): reported for broker, reported in known.items()},
    )


def f8_bad() -> RunBuilder:
    return _acknowledged([1, 2], b2=(8, 0, 5))


def f8_too_few() -> RunBuilder:
    return _acknowledged([1], b2=(9, 0, 5))


def f8_near() -> RunBuilder:
    return _acknowledged([1, 2], b2=(9, 0, 5), b3=(0, 0, 5))


def x1_bad() -> RunBuilder:
    return RunBuilder(cluster(), repeat_trace_hash="b")


def x1_near() -> RunBuilder:
    return RunBuilder(cluster(), repeat_trace_hash="a")


def e41_bad() -> RunBuilder:
    return plain_run(stale_indexes=[101])


def e41_near() -> RunBuilder:
    return plain_run(stale_indexes=[])


def e42_bad() -> RunBuilder:
    return plain_run(crashes=["broker-1: KeyError"])


def e42_fault() -> RunBuilder:
    return plain_run(controller_faults=["controller 101: it resigns from epoch 1: an index …"])


def e42_near() -> RunBuilder:
    return plain_run(crashes=[], controller_faults=[])


BAD: dict[str, tuple[Case, ...]] = {
    "A5": (a5_bad, a5_old_epoch),
    "A6": (a6_bad, a6_whole, a6_revert),
    "B1": (b1_bad, b1_committed_under_it, b1_no_change_under_way),
    "B2": (
        *(b2_bad, b2_other_epoch, b2_unknown, b2_shorter_log, b2_truncated_log),
        *(logs.b2_other_records, logs.b2_lost_and_fetched),
    ),
    "B4": (b4_bad, b4_leader_epoch, b4_other_leader, b4_broker_epoch),
    "C6": (c6_bad, c6_nobody),
    "D3": (d3_bad, d3_written),
    "E24": (e24_bad, e24_other),
    "E32": (e32_bad,),
    "E33": (
        e33_bad,
        e33_inside_a_batch,
        e33_too_early,
        e33_empty,
        e33_nothing_yet,
        e33_in_transaction,
    ),
    "E40": (e40_bad,),
    "F5": (f5_bad, f5_below_its_own, f5_unclean_without_loss, f5_below_the_loss),
    "F8": (f8_bad, f8_too_few),
    "X1": (x1_bad,),
    "E41": (e41_bad,),
    "E42": (e42_bad, e42_fault),
    **replicas.BAD,
    **logs.BAD,
    **clients.BAD,
    **groups.BAD,
    **of_time.BAD,
    **{rule: logs.BAD.get(rule, ()) + cases for rule, cases in quorum.BAD.items()},
}
NEAR: dict[str, tuple[Case, ...]] = {
    "A5": (a5_near, a5_near_pending),
    "A6": (a6_near,),
    "B1": (b1_near,),
    "B2": (b2_near, b2_near_logs, logs.b2_near_epochs, replicas.b2_near_left_out),
    "B4": (b4_near,),
    "C6": (c6_near, c6_near_without_response),
    "D3": (d3_near,),
    "E24": (e24_near,),
    "E32": (e32_near,),
    "E33": (e33_near,),
    "E40": (e40_near,),
    "F5": (f5_near, f5_near_unclean, f5_near_deposed),
    "F8": (f8_near, replicas.f8_near_left_out),
    "X1": (x1_near,),
    "E41": (e41_near,),
    "E42": (e42_near,),
    **replicas.NEAR,
    **logs.NEAR,
    **clients.NEAR,
    **groups.NEAR,
    **of_time.NEAR,
    **{rule: logs.NEAR.get(rule, ()) + cases for rule, cases in quorum.NEAR.items()},
}
