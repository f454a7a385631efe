"""Per log rule about operations, directories and topics: a log that breaks it and a near miss."""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import records as r
from tests.verify.build import OTHER_TOPIC, TOPIC, Case, LogBuilder, change, cluster, partition

DIR_A, DIR_B, DIR_C = (UUID(int=0xD000 + n) for n in range(3))
LOST = UUID(int=2)  # DirectoryId.LOST: the broker has lost the directory with the replica


# --- A4, A8 --------------------------------------------------------------------------------------


def a4_bad() -> LogBuilder:
    """The ISR change follows the fencing, if only in the same operation."""
    log = cluster()
    return log.op(log.registration(3, fenced=1), change((1, 2)))


def a4_elected_early() -> LogBuilder:
    log = cluster().fence(1, change((2, 3), leader=2)).fence(2, change((3,), leader=3))
    log.fence(3, change(leader=-1))
    return log.op(change(leader=3), log.registration(3, fenced=-1))


def a4_near() -> LogBuilder:
    log = cluster()
    log.op(change((1, 2)), log.registration(3, fenced=1))
    log.fence(2, change((1,))).fence(1, change(leader=-1))
    return log.op(log.registration(1, fenced=-1), change(leader=1))


def a8_bad() -> LogBuilder:
    return cluster().register(3, incarnation=2)


def a8_later_change() -> LogBuilder:
    """A change in the very operation of the registration leaves it in the ISR."""
    return cluster().register(3, incarnation=2, before=[change((1, 3))])


def a8_of_kafka_3() -> LogBuilder:
    """Below 4.0-IV1 the log may be Kafka 3.9's, which leaves a new incarnation in its ISRs."""
    return cluster(mv=21).register(3, incarnation=2)


def a8_near() -> LogBuilder:
    log = cluster()
    log.register(3, incarnation=2, before=[change((1, 2))])
    log.fence(2, change((1,))).fence(1, change(leader=-1))
    return log.register(1, incarnation=2)


# --- D -------------------------------------------------------------------------------------------


def _directories(*, dirs: tuple[UUID, ...] = (DIR_A, DIR_B)) -> LogBuilder:
    """orders-0 on 1 and 2, each with directories of its own; 1 has two."""
    log = LogBuilder(mv=17)
    log.register(1, log_dirs=(DIR_A, DIR_C)).unfence(1)
    log.register(2, log_dirs=(DIR_B,)).unfence(2)
    return log.topic(partition((1, 2), directories=dirs))


def _offline(log: LogBuilder, *changes: r.PartitionChangeRecord) -> LogBuilder:
    """Directory A of broker 1 fails."""
    lost = r.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=log.broker_epochs[1], log_dirs=(DIR_C,)
    )
    return log.op(lost, *changes)


def d1_bad() -> LogBuilder:
    return _offline(_directories())


def d1_stays() -> LogBuilder:
    """It was never taken out; what changes later makes it no newcomer."""
    log = _offline(_directories())
    return log.op(change((1, 2)))


def d1_joins_again() -> LogBuilder:
    """A leader with an old image proposes it; Kafka makes no promise about that."""
    log = _offline(_directories(), change((2,), leader=2))
    return log.op(change((2, 1))).op(change((1, 2)))


def _moved(directory: UUID, isr: tuple[int, ...] | None = None) -> r.PartitionChangeRecord:
    """AssignReplicasToDirs puts orders-0 of broker 1 into a directory."""
    leader = -2 if isr is None or 1 in isr else isr[0]
    return r.PartitionChangeRecord(
        partition_id=0, topic_id=TOPIC, isr=isr, leader=leader, directories=(directory, DIR_B)
    )


def d1_kept_in_lost() -> LogBuilder:
    """Broker 1 reports that it has lost the directory, and its replica stays in sync."""
    return _directories().op(_moved(LOST))


def d1_moved_into_lost() -> LogBuilder:
    """The replica is moved into the directory that has failed."""
    log = _offline(_directories(), change((2,), leader=2))
    log.op(_moved(DIR_C)).op(change((1, 2)))
    return log.op(_moved(DIR_A))


def d1_created_in_lost() -> LogBuilder:
    """A new partition begins with a member in the directory that has failed."""
    return _offline(_directories(), change((2,), leader=2)).topic(
        partition((1, 2), directories=(DIR_A, DIR_B), topic_id=OTHER_TOPIC),
        name="other",
        topic_id=OTHER_TOPIC,
    )


def d1_elected_in_lost() -> LogBuilder:
    """No leader proposed it: the controller itself takes it into the ISR, as the leader."""
    log = _directories().op(_moved(LOST, isr=(2,)))
    return log.op(change((1,), leader=1, recovery=1))


def d1_lost_again() -> LogBuilder:
    """It joined late, which nobody promises; the directory came back, and failed once more."""
    log = d1_joins_again()
    epoch = log.broker_epochs[1]
    log.register(1, epoch=epoch, fenced=False, log_dirs=(DIR_A, DIR_C))
    return _offline(log)


def d1_lost_near() -> LogBuilder:
    """It leaves the ISR as its directory is lost; only a leader with an old image proposes it."""
    return _directories().op(_moved(LOST, isr=(2,))).op(change((2, 1)))


def d1_moved_near() -> LogBuilder:
    """It is moved out of the directory that then fails."""
    return _offline(_directories().op(_moved(DIR_C)))


def d1_near() -> LogBuilder:
    log = _offline(_directories(), change((2,), leader=2))
    log.topic(
        partition((1,), directories=(DIR_C,), topic_id=OTHER_TOPIC),
        name="other",
        topic_id=OTHER_TOPIC,
    )
    return log


def d2_bad() -> LogBuilder:
    log = _offline(_directories(), change((2,), leader=2))
    return log.op(change((1,), leader=1, recovery=1))


def d2_near() -> LogBuilder:
    return _directories().op(change((1, 2), leader=2))


def d5_bad() -> LogBuilder:
    return _directories(dirs=(DIR_A,))


def d5_two_owners() -> LogBuilder:
    return _directories().register(3, log_dirs=(DIR_B,))


def d5_near() -> LogBuilder:
    """An owner that is gone owns nothing; the same broker may come again."""
    log = _directories()
    log.op(change((1,)), r.UnregisterBrokerRecord(broker_id=2, broker_epoch=log.broker_epochs[2]))
    log.register(3, log_dirs=(DIR_B,))
    return log.register(1, incarnation=2, log_dirs=(DIR_A, DIR_C), before=[change(leader=-1)])


# --- E -------------------------------------------------------------------------------------------


def e18_bad() -> LogBuilder:
    return LogBuilder().brokers(1).topic(partition((1,)), partition((1,), part=2))


def e18_again() -> LogBuilder:
    return LogBuilder().brokers(1).topic(partition((1,)), partition((1,), part=0))


def e18_near() -> LogBuilder:
    return LogBuilder().brokers(1).topic(partition((1,))).op(partition((1,), part=1))


def _reassigning() -> LogBuilder:
    log = LogBuilder().brokers(1, 2, 3).topic(partition((1, 2)))
    return log.op(change(replicas=(3, 2, 1), adding=(3,), removing=(1,)))


def e28_bad() -> LogBuilder:
    return _reassigning().op(change((2,), replicas=(3, 2), adding=(), removing=(), leader=2))


def e28_near() -> LogBuilder:
    """It ends with its new replica in the ISR; another one is cancelled."""
    log = _reassigning().op(change((2, 3), replicas=(3, 2), adding=(), removing=(), leader=3))
    log.op(change(replicas=(1, 3, 2), adding=(1,)))
    return log.op(change(replicas=(3, 2), adding=(), removing=(), leader=3))


def e29_bad() -> LogBuilder:
    log = LogBuilder().brokers(1).op(r.TopicRecord(name="orders", topic_id=TOPIC))
    return log.op(partition((1,)))


def e29_near() -> LogBuilder:
    """The partitions that are added later are an operation of their own."""
    return LogBuilder().brokers(1).topic(partition((1,))).op(partition((1,), part=1))


def e30_bad() -> LogBuilder:
    begin = r.BeginTransactionRecord(name="x")
    return cluster().op(begin, change((1, 2))).op(begin).op(r.EndTransactionRecord())


def e30_end_alone() -> LogBuilder:
    return cluster().op(r.AbortTransactionRecord(reason="no"))


def e30_near() -> LogBuilder:
    log = cluster().op(r.BeginTransactionRecord(name="x"), change((1, 2)))
    log.op(r.AbortTransactionRecord(reason="no"))
    return log.op(r.BeginTransactionRecord(name="y"), change((1, 3)), r.EndTransactionRecord())


def _config(topic: str, value: str | None) -> r.ConfigRecord:
    return r.ConfigRecord(resource_type=2, resource_name=topic, name="retention.ms", value=value)


def e38_bad() -> LogBuilder:
    return cluster().op(r.RemoveTopicRecord(topic_id=TOPIC)).op(_config("orders", "1"))


def e38_near() -> LogBuilder:
    """A config set before the deletion, and a removal of a config after it."""
    log = cluster().op(_config("orders", "1"))
    log.op(_config("other", "1"), r.TopicRecord(name="other", topic_id=OTHER_TOPIC))
    log.op(r.RemoveTopicRecord(topic_id=TOPIC))
    return log.op(_config("orders", None))


BAD: dict[str, tuple[Case, ...]] = {
    "A4": (a4_bad, a4_elected_early),
    "A8": (a8_bad, a8_later_change),
    "D1": (
        d1_bad,
        d1_stays,
        d1_kept_in_lost,
        d1_moved_into_lost,
        d1_created_in_lost,
        d1_elected_in_lost,
        d1_lost_again,
    ),
    "D2": (d2_bad,),
    "D5": (d5_bad, d5_two_owners),
    "E18": (e18_bad, e18_again),
    "E28": (e28_bad,),
    "E29": (e29_bad,),
    "E30": (e30_bad, e30_end_alone),
    "E38": (e38_bad,),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "A4": (a4_near,),
    "A8": (a8_near,),
    "D1": (d1_near, d1_joins_again, d1_lost_near, d1_moved_near),
    "D2": (d2_near,),
    "D5": (d5_near,),
    "E18": (e18_near,),
    "E28": (e28_near,),
    "E29": (e29_near,),
    "E30": (e30_near,),
    "E38": (e38_near,),
}
