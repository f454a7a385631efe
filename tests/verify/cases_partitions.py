"""Per log rule about ISRs, leaders, ELRs and replicas: a log that breaks it and a near miss."""

from __future__ import annotations

from minicluster.metadata.image import directory_id
from minicluster.protocol import records as r
from tests.verify.build import (
    RECOVERED,
    RECOVERING,
    Case,
    LogBuilder,
    change,
    cluster,
    partition,
)
from tests.verify.cases_operations import DIR_A, DIR_B

_ELSEWHERE = directory_id.UNASSIGNED


def leaderless(**settings: object) -> LogBuilder:
    """orders-0 with ISR [1] and no leader: 2 and 3 left, then the last member was fenced."""
    log = cluster(**settings)
    log.fence(2, change((1, 3)))
    log.fence(3, change((1,)))
    return log.fence(1, change(leader=-1))


def recovering() -> LogBuilder:
    """orders-0 recovers under 2, which was elected uncleanly."""
    log = leaderless().unfence(2)
    return log.op(change((2,), leader=2, recovery=RECOVERING))


# --- A -------------------------------------------------------------------------------------------


def a1_bad() -> LogBuilder:
    return cluster().fence(3)


def a1_near() -> LogBuilder:
    # The ISR change follows the fencing, but in the same operation; the last member stays.
    log = cluster()
    log.op(log.registration(3, fenced=1), change((1, 2)))
    log.fence(2, change((1,)))
    return log.fence(1, change(leader=-1))


def a1_stays_bad_through_changes() -> LogBuilder:
    """The wrong member outlives a change of the partition: found again, once each."""
    return cluster().fence(3).op(change((1, 3))).fence(3)


def a2_bad() -> LogBuilder:
    log = cluster()
    return log.op(log.registration(1, shutdown=1), change((1, 2)))


def a2_near() -> LogBuilder:
    log = cluster()
    return log.op(log.registration(1, shutdown=1), change((2, 3), leader=2))


def a3_bad() -> LogBuilder:
    log = cluster().fence(3, change((1, 2)))
    return log.op(change((1, 2, 3)), log.registration(3, fenced=-1))


def a3_near() -> LogBuilder:
    log = cluster().fence(3, change((1, 2)))
    return log.op(log.registration(3, fenced=-1), change((1, 2, 3)))


# --- C -------------------------------------------------------------------------------------------


def c1_bad() -> LogBuilder:
    return recovering().unfence(3).op(change((2, 3)))


def c1_near() -> LogBuilder:
    return recovering().unfence(3).op(change((2, 3), recovery=RECOVERED))


def c3_bad() -> LogBuilder:
    return cluster().op(change((1,), recovery=RECOVERING))


def c3_near() -> LogBuilder:
    return recovering()


def c4_bad() -> LogBuilder:
    return leaderless().unfence(2).op(change((2,), leader=2))


def c4_near() -> LogBuilder:
    """A reassignment ends: its new member leads at once, which is no unclean election."""
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))
    log.op(change((2, 3), leader=3, replicas=(3, 2), adding=(), removing=()))
    log.fence(2, change((3,)))
    log.fence(3, change(leader=-1)).unfence(2)
    return log.op(change((2,), leader=2, recovery=RECOVERING))


def c5_bad() -> LogBuilder:
    return cluster().op(change((2,), leader=-1)).op(change((3,), leader=3, recovery=RECOVERING))


def c5_near() -> LogBuilder:
    """Fencing writes the election before the fence: the old ISR is inactive only afterwards."""
    log = cluster().fence(2, change((1, 3))).fence(3, change((1,))).unfence(2)
    return log.fence(1, change((2,), leader=2, recovery=RECOVERING))


def c5_near_later() -> LogBuilder:
    """The old member is unfenced by another operation, which the same batch happens to hold."""
    log = cluster().op(change((2,), leader=2)).fence(2, change((2,), leader=-1))
    elected = change((3,), leader=3, recovery=RECOVERING)
    return log.op(elected, log.registration(2, fenced=-1))


def c5_near_directory() -> LogBuilder:
    """The one member of the ISR is active, but its directory is offline."""
    good, lost = directory_id.LOST, _ELSEWHERE
    log = LogBuilder(mv=17).brokers(1, 2)
    log.topic(partition((1, 2), (1,), directories=(good, lost)))
    return log.op(change((2,), leader=2, recovery=RECOVERING))


def c5_near_failing() -> LogBuilder:
    """The directory fails in the operation of the election, whose records come first."""
    log = LogBuilder(mv=17).register(1, log_dirs=(DIR_A, DIR_B)).unfence(1).brokers(2)
    log.topic(partition((1, 2), (1,), directories=(DIR_A, _ELSEWHERE)))
    failure = r.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=log.broker_epochs[1], log_dirs=(DIR_B,)
    )
    return log.op(change((2,), leader=2, recovery=RECOVERING), failure)


# --- E1 ------------------------------------------------------------------------------------------


def e10_bad() -> LogBuilder:
    return cluster().op(change((2, 3)))


def e10_near() -> LogBuilder:
    return cluster().op(change((2, 3), leader=2))


def e11_bad() -> LogBuilder:
    return LogBuilder().brokers(1, 2, 3).topic(partition((1, 2))).op(change((1, 2, 3)))


def e11_both() -> LogBuilder:
    return cluster().op(change(replicas=(1, 2, 3), adding=(3,), removing=(3,)))


def e11_elsewhere() -> LogBuilder:
    return LogBuilder().brokers(1, 2, 3).topic(partition((1, 2))).op(change(adding=(3,)))


def e11_twice() -> LogBuilder:
    return cluster().op(change((1, 2, 2)))


def e11_near() -> LogBuilder:
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    log.op(change(replicas=(1, 3, 2), adding=(3,), removing=(2,)))
    return log.op(change((1, 3), replicas=(1, 3), adding=(), removing=(), leader=1))


def e12_bad() -> LogBuilder:
    return cluster().op(change((), leader=-1))


def e12_elr_bad() -> LogBuilder:
    return cluster(elr=True).fence(1).op(change((), leader=-1, elr=(), last_elr=()))


def e12_cleared() -> LogBuilder:
    """ClearElr on a partition with an empty ISR, as Kafka itself writes it."""
    log = cluster(elr=True)
    log.op(change((), leader=-1, elr=(1,), last_elr=(1,)))
    return log.op(r.ClearElrRecord(topic_name="orders"))


def e12_near() -> LogBuilder:
    log = cluster(elr=True)
    log.op(change((1, 2), elr=(3,)))
    log.op(r.ClearElrRecord(topic_name=""))
    return log.op(change((), leader=-1, elr=(1, 2), last_elr=(1,)))


def e13_bad() -> LogBuilder:
    return cluster(elr=True).op(change((1, 2), elr=(2, 3)))


def e13_replicas() -> LogBuilder:
    log = LogBuilder(elr=True).brokers(1, 2, 3).topic(partition((1, 2)))
    return log.op(change((1,), elr=(3,)))


def _with_min_isr(count: int) -> LogBuilder:
    log = cluster(elr=True)
    config = r.ConfigRecord(
        resource_type=4, resource_name="", name="min.insync.replicas", value=str(count)
    )
    return log.op(config)


def e13_min_isr() -> LogBuilder:
    return _with_min_isr(2).op(change((1, 2), elr=(3,)))


def e13_near() -> LogBuilder:
    return _with_min_isr(3).op(change((1, 2), elr=(3,)))


def e14_bad() -> LogBuilder:
    return cluster().op(change((1, 2, 3)))


def e14_empty() -> LogBuilder:
    return cluster().op(change())


def e14_near() -> LogBuilder:
    # Another order is another value; a restated leader raises the epoch.
    return leaderless().op(change((1,), leader=-1))


def e16_bad() -> LogBuilder:
    return cluster().op(change((1, 2), leader=1))


def e16_expansion() -> LogBuilder:
    return cluster(mv=11).op(change((1, 2), leader=1)).op(change((1, 2, 3), leader=1))


def e16_removal() -> LogBuilder:
    return cluster().op(change((1, 2), replicas=(1, 2)))


def e16_old_shrink() -> LogBuilder:
    return cluster(mv=11).op(change((1, 2)))


def e16_near() -> LogBuilder:
    log = cluster(mv=11).op(change((1, 2), leader=1)).op(change((1, 2, 3)))
    log.op(r.FeatureLevelRecord(name="metadata.version", feature_level=12))
    log.op(change((1, 2)))
    return log.op(change(replicas=(1, 2), leader=1))


def e17_bad() -> LogBuilder:
    return LogBuilder().brokers(1, 2).register(3).topic(partition((1, 2, 3), (1, 2, 3)))


def e17_order() -> LogBuilder:
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), leader=2))


def e17_epoch() -> LogBuilder:
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), leader_epoch=1))


def e17_left_out() -> LogBuilder:
    return LogBuilder().brokers(1, 2).topic(partition((1, 2), (1,)))


def e17_near() -> LogBuilder:
    return LogBuilder().brokers(1, 2).register(3).topic(partition((3, 2, 1), (2, 1)))


BAD: dict[str, tuple[Case, ...]] = {
    "A1": (a1_bad, a1_stays_bad_through_changes),
    "A2": (a2_bad,),
    "A3": (a3_bad,),
    "C1": (c1_bad,),
    "C2": (c1_bad,),
    "C3": (c3_bad,),
    "C4": (c4_bad,),
    "C5": (c5_bad,),
    "E10": (e10_bad,),
    "E11": (e11_bad, e11_both, e11_elsewhere, e11_twice),
    "E12": (e12_bad, e12_elr_bad, e12_cleared),
    "E13": (e13_bad, e13_replicas, e13_min_isr),
    "E14": (e14_bad, e14_empty),
    "E16": (e16_bad, e16_expansion, e16_removal, e16_old_shrink),
    "E17": (e17_bad, e17_order, e17_epoch, e17_left_out),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "A1": (a1_near,),
    "A2": (a2_near,),
    "A3": (a3_near,),
    "C1": (c1_near, recovering),
    "C2": (c1_near,),
    "C3": (c3_near,),
    "C4": (c4_near,),
    "C5": (c5_near, c5_near_directory, c5_near_failing, c5_near_later),
    "E10": (e10_near,),
    "E11": (e11_near,),
    "E12": (e12_near,),
    "E13": (e13_near,),
    "E14": (e14_near,),
    "E16": (e16_near,),
    "E17": (e17_near,),
}
