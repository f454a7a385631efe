"""Per log rule: a hand-written log that breaks it, and a near miss that does not."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.log.batch import metadata_batch
from minicluster.metadata.image import directory_id
from minicluster.protocol import records as r
from tests.verify import cases_operations
from tests.verify.build import (
    OTHER_TOPIC,
    RECOVERED,
    RECOVERING,
    TOPIC,
    LogBuilder,
    change,
    cluster,
    partition,
)

Case = Callable[[], LogBuilder]

_NO_OP = r.NoOpRecord()
DIR_A, DIR_B = cases_operations.DIR_A, cases_operations.DIR_B
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


# --- D, E0 ---------------------------------------------------------------------------------------


def d4_bad() -> LogBuilder:
    log = cluster()
    return log.op(change((1, 2)), log.registration(3, fenced=1, epoch=1))


def d4_near() -> LogBuilder:
    log = cluster().fence(3, change((1, 2)))
    return log.register(3, incarnation=2).unfence(3)


def e01_bad() -> LogBuilder:
    log = cluster()
    return log.op(_NO_OP, base=log.offset + 1)


def e01_near() -> LogBuilder:
    return cluster().op(_NO_OP).op(_NO_OP, _NO_OP).op(_NO_OP)


def e02_bad() -> LogBuilder:
    log = cluster().lead(102, epoch=4)
    log.epoch = 3
    return log.op(_NO_OP)


def e02_near() -> LogBuilder:
    return cluster().lead(102, epoch=4).op(_NO_OP)


def e03_bad() -> LogBuilder:
    log = cluster()
    log.epoch = 2
    return log.op(_NO_OP)


def e03_two_leaders() -> LogBuilder:
    return cluster().lead(102, epoch=2).op(_NO_OP).lead(103, epoch=2).lead(103, epoch=2)


def e03_near() -> LogBuilder:
    return cluster().lead(102, epoch=2).op(_NO_OP).lead(101, epoch=5)


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
    """What Kafka itself does: ClearElr on a partition with an empty ISR."""
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


# --- E2 ------------------------------------------------------------------------------------------


def e20_bad() -> LogBuilder:
    log = cluster().fence(3, change((1, 2)))
    return log.register(3, incarnation=2, epoch=log.broker_epochs[3])


def e20_ahead() -> LogBuilder:
    log = LogBuilder()
    return log.register(1, epoch=log.offset + 1)


def e20_near() -> LogBuilder:
    """Clean-up records come first, so the epoch lies below the registration's own offset."""
    log = cluster()
    return log.register(3, incarnation=2, before=[change((1, 2)), change((1,))])


def e21_bad() -> LogBuilder:
    return LogBuilder().brokers(1).unfence(1)


def e21_near() -> LogBuilder:
    log = LogBuilder().brokers(1)
    return log.fence(1).fence(1).unfence(1)


def e22_bad() -> LogBuilder:
    log = LogBuilder().brokers(1)
    return log.register(1, epoch=log.broker_epochs[1], fenced=True)


def e22_epoch() -> LogBuilder:
    return LogBuilder().brokers(1).register(1, fenced=False)


def e22_near() -> LogBuilder:
    log = LogBuilder().brokers(1)
    return log.register(1, epoch=log.broker_epochs[1], fenced=False)


def e23_bad() -> LogBuilder:
    log = LogBuilder().register(1)
    log.op(r.UnregisterBrokerRecord(broker_id=1, broker_epoch=log.broker_epochs[1]))
    return log.unfence(1)


def e23_near() -> LogBuilder:
    log = LogBuilder().register(1)
    log.op(r.UnregisterBrokerRecord(broker_id=1, broker_epoch=log.broker_epochs[1]))
    return log.register(1, incarnation=2).unfence(1)


def e25_bad() -> LogBuilder:
    log = cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.op(r.TopicRecord(name="again", topic_id=TOPIC))


def e25_name() -> LogBuilder:
    return cluster().topic(name="orders", topic_id=OTHER_TOPIC)


def e25_late() -> LogBuilder:
    log = LogBuilder().brokers(1)
    return log.op(partition((1,)), r.TopicRecord(name="orders", topic_id=TOPIC))


def e25_near() -> LogBuilder:
    log = cluster().op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.topic(partition(topic_id=OTHER_TOPIC), topic_id=OTHER_TOPIC)


def e26_bad() -> LogBuilder:
    return cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)).op(change((1, 2)))


def e26_unknown() -> LogBuilder:
    return cluster().op(partition(topic_id=OTHER_TOPIC))


def e26_unknown_partition() -> LogBuilder:
    return cluster().op(change((1, 2), part=7))


def e26_removed_twice() -> LogBuilder:
    gone = r.RemoveTopicRecord(topic_id=TOPIC)
    return cluster().op(gone).op(gone)


def e26_near() -> LogBuilder:
    return cluster().op(change((1, 2))).op(r.RemoveTopicRecord(topic_id=TOPIC))


BAD: dict[str, tuple[Case, ...]] = {
    "A1": (a1_bad, a1_stays_bad_through_changes),
    "A2": (a2_bad,),
    "A3": (a3_bad,),
    "C1": (c1_bad,),
    "C2": (c1_bad,),
    "C3": (c3_bad,),
    "C4": (c4_bad,),
    "C5": (c5_bad,),
    "D4": (d4_bad,),
    "E01": (e01_bad,),
    "E02": (e02_bad,),
    "E03": (e03_bad, e03_two_leaders),
    "E10": (e10_bad,),
    "E11": (e11_bad, e11_both, e11_elsewhere, e11_twice),
    "E12": (e12_bad, e12_elr_bad, e12_cleared),
    "E13": (e13_bad, e13_replicas, e13_min_isr),
    "E14": (e14_bad, e14_empty),
    "E16": (e16_bad, e16_expansion, e16_removal, e16_old_shrink),
    "E17": (e17_bad, e17_order, e17_epoch, e17_left_out),
    "E20": (e20_bad, e20_ahead),
    "E21": (e21_bad,),
    "E22": (e22_bad, e22_epoch),
    "E23": (e23_bad,),
    "E25": (e25_bad, e25_name, e25_late),
    "E26": (e26_bad, e26_unknown, e26_unknown_partition, e26_removed_twice),
    **cases_operations.BAD,
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
    "D4": (d4_near,),
    "E01": (e01_near,),
    "E02": (e02_near,),
    "E03": (e03_near,),
    "E10": (e10_near,),
    "E11": (e11_near,),
    "E12": (e12_near,),
    "E13": (e13_near,),
    "E14": (e14_near,),
    "E16": (e16_near,),
    "E17": (e17_near,),
    "E20": (e20_near,),
    "E21": (e21_near,),
    "E22": (e22_near,),
    "E23": (e23_near,),
    "E25": (e25_near,),
    "E26": (e26_near,),
    **cases_operations.NEAR,
}


# --- logs that no rule is about, for what surrounds the rules -------------------------------------


def below_the_promise() -> LogBuilder:
    """Kafka 3.0 let fenced brokers into ISRs: nothing was promised then."""
    log = LogBuilder(mv=1)
    for broker in (1, 2):
        log.register(broker)
    log.op(r.UnfenceBrokerRecord(id=1, epoch=log.broker_epochs[1]))
    return log.topic(partition((1, 2), (1, 2)))


def without_metadata_version() -> LogBuilder:
    """Kafka 3.0 to 3.2: no FeatureLevelRecord, the first broker's epoch is 0, a leader's next one
    is that of its LeaderChange, and a fenced broker is in an ISR."""
    log = LogBuilder(mv=None).register(1, epoch=0)
    log.op(r.UnfenceBrokerRecord(id=1, epoch=0))
    log.lead(102, epoch=2)
    log.register(2, epoch=log.offset - 1)
    log.topic(partition((1, 2), (1, 2)))
    return log.op(change((1,), leader=1)).op(change((1, 2)))


def without_metadata_version_yet() -> LogBuilder:
    """A log of Kafka 3.2 that was upgraded: promises begin with the FeatureLevelRecord."""
    log = without_metadata_version()
    log.op(r.FeatureLevelRecord(name="metadata.version", feature_level=7))
    return log.op(change((1,), leader=1)).op(change((1, 2)))


def epoch_of_nothing() -> LogBuilder:
    """No LeaderChange lies between the epoch and the registration, and one is not enough."""
    log = LogBuilder(mv=None).register(1, epoch=0)
    return log.register(2, epoch=log.offset - 1)


def aborted_transaction() -> LogBuilder:
    """What an aborted transaction wrote never happened."""
    log = cluster().op(r.BeginTransactionRecord(name="never"), change((2, 3)))
    return log.op(r.AbortTransactionRecord(reason="no")).op(change((1, 2)))


def transaction() -> LogBuilder:
    """Between its batches a transaction may show what must not stand at its end."""
    log = cluster()
    log.op(r.BeginTransactionRecord(name="once"), log.registration(1, shutdown=1))
    return log.op(change((2, 3), leader=2), r.EndTransactionRecord())


def merged_operations() -> LogBuilder:
    """Two operations that lingered into one batch."""
    log = cluster()
    first = log.offset
    records = [change((1, 2)), log.registration(3, fenced=1), log.registration(3, fenced=-1)]
    versions = [0, 1, 1]
    log.add(
        metadata_batch(
            first, 1, 5, [r.VersionedRecord(x, v) for x, v in zip(records, versions, strict=True)]
        )
    )
    return log
