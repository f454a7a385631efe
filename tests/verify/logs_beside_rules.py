"""Logs that no rule is about: what surrounds the rules, old releases and ends of operations."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.log.batch import metadata_batch
from minicluster.protocol import records as r
from tests.verify.examples.by_rule import LOGS_BAD, LOGS_NEAR, by_name
from tests.verify.handwritten.log import LogBuilder, change, cluster, partition


def below_the_promise() -> LogBuilder:
    """Kafka 3.0 let fenced brokers into ISRs: nothing was promised then."""
    log = LogBuilder(mv=1)
    for broker in (1, 2):
        log.register(broker)
    log.op(r.UnfenceBrokerRecord(id=1, epoch=log.broker_epochs[1]))
    return log.topic(partition((1, 2), (1, 2)))


def a8_of_kafka_3() -> LogBuilder:
    """Below 4.0-IV1 the log may be Kafka 3.9's, which leaves a new incarnation in its ISRs."""
    return cluster(mv=21).register(3, incarnation=2)


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
    """The records of an aborted transaction have no effect."""
    log = cluster().op(r.BeginTransactionRecord(name="never"), change((2, 3)))
    return log.op(r.AbortTransactionRecord(reason="no")).op(change((1, 2)))


def transaction() -> LogBuilder:
    """A state inside a transaction that would break a rule at its end."""
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


def fenced() -> LogBuilder:
    """Broker 3 is fenced, and out of the ISR."""
    return cluster().fence(3, change((1, 2)))


EVERY_LOG: dict[str, Callable[[], LogBuilder]] = {
    **by_name(LOGS_BAD, LOGS_NEAR),
    **{
        log.__name__: log
        for log in (
            below_the_promise,
            without_metadata_version,
            without_metadata_version_yet,
            epoch_of_nothing,
            a8_of_kafka_3,
            aborted_transaction,
            transaction,
            merged_operations,
        )
    },
}
"""These, and the examples of rules that are logs."""
