"""Per log rule about epochs, and registrations and topics from first to last: a log that breaks it
and a near miss.
"""

from __future__ import annotations

from minicluster.protocol import records as r
from tests.verify.build import OTHER_TOPIC, TOPIC, Case, LogBuilder, change, cluster, partition

_NO_OP = r.NoOpRecord()


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
    "D4": (d4_bad,),
    "E01": (e01_bad,),
    "E02": (e02_bad,),
    "E03": (e03_bad, e03_two_leaders),
    "E20": (e20_bad, e20_ahead),
    "E21": (e21_bad,),
    "E22": (e22_bad, e22_epoch),
    "E23": (e23_bad,),
    "E25": (e25_bad, e25_name, e25_late),
    "E26": (e26_bad, e26_unknown, e26_unknown_partition, e26_removed_twice),
}
NEAR: dict[str, tuple[Case, ...]] = {
    "D4": (d4_near,),
    "E01": (e01_near,),
    "E02": (e02_near,),
    "E03": (e03_near,),
    "E20": (e20_near,),
    "E21": (e21_near,),
    "E22": (e22_near,),
    "E23": (e23_near,),
    "E25": (e25_near,),
    "E26": (e26_near,),
}
