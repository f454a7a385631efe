"""Examples of the rules in `brokers.py`."""

from __future__ import annotations

from minicluster.protocol import records as r
from minicluster.verify.rules.brokers import (
    broker_epochs_are_offsets_and_increase,
    only_a_fenced_broker_is_unfenced,
    records_carry_the_current_epoch,
    records_name_registered_brokers,
    registering_again_changes_nothing,
)
from tests.verify.examples.example import breaks, keeps
from tests.verify.handwritten.log import LogBuilder, change, cluster


@breaks(records_carry_the_current_epoch)
def d4_bad() -> LogBuilder:
    """Broker 3 is fenced by a record with broker epoch 1, which is not its own."""
    log = cluster()
    return log.op(change((1, 2)), log.registration(3, fenced=1, epoch=1))


@keeps(records_carry_the_current_epoch)
def d4_near() -> LogBuilder:
    """Broker 3 is fenced with its epoch, registers a new incarnation, and is unfenced with the new
    one."""
    log = cluster().fence(3, change((1, 2)))
    return log.register(3, incarnation=2).unfence(3)


@breaks(broker_epochs_are_offsets_and_increase)
def e20_bad() -> LogBuilder:
    """A new incarnation of broker 3 registers with the epoch of the one before."""
    log = cluster().fence(3, change((1, 2)))
    return log.register(3, incarnation=2, epoch=log.broker_epochs[3])


@breaks(broker_epochs_are_offsets_and_increase)
def e20_ahead() -> LogBuilder:
    """Broker 1 registers with an epoch above the offset of its registration."""
    log = LogBuilder()
    return log.register(1, epoch=log.offset + 1)


@keeps(broker_epochs_are_offsets_and_increase)
def e20_near() -> LogBuilder:
    """Two clean-up records come before the registration, whose epoch is the offset of the first."""
    log = cluster()
    return log.register(3, incarnation=2, before=[change((1, 2)), change((1,))])


@breaks(only_a_fenced_broker_is_unfenced)
def e21_bad() -> LogBuilder:
    """Broker 1 is unfenced twice in a row."""
    return LogBuilder().brokers(1).unfence(1)


@keeps(only_a_fenced_broker_is_unfenced)
def e21_near() -> LogBuilder:
    """Broker 1 is fenced twice in a row, and then unfenced."""
    log = LogBuilder().brokers(1)
    return log.fence(1).fence(1).unfence(1)


@breaks(registering_again_changes_nothing)
def e22_bad() -> LogBuilder:
    """The same incarnation of broker 1, which is unfenced, registers again and is fenced by
    that."""
    log = LogBuilder().brokers(1)
    return log.register(1, epoch=log.broker_epochs[1], fenced=True)


@breaks(registering_again_changes_nothing)
def e22_epoch() -> LogBuilder:
    """The same incarnation of broker 1 registers again with another epoch."""
    return LogBuilder().brokers(1).register(1, fenced=False)


@keeps(registering_again_changes_nothing)
def e22_near() -> LogBuilder:
    """The same incarnation of broker 1 registers again with its epoch, and stays unfenced."""
    log = LogBuilder().brokers(1)
    return log.register(1, epoch=log.broker_epochs[1], fenced=False)


@breaks(records_name_registered_brokers)
def e23_bad() -> LogBuilder:
    """Broker 1 unregisters, and is unfenced after that."""
    log = LogBuilder().register(1)
    log.op(r.UnregisterBrokerRecord(broker_id=1, broker_epoch=log.broker_epochs[1]))
    return log.unfence(1)


@keeps(records_name_registered_brokers)
def e23_near() -> LogBuilder:
    """Broker 1 unregisters, registers a new incarnation, and is unfenced."""
    log = LogBuilder().register(1)
    log.op(r.UnregisterBrokerRecord(broker_id=1, broker_epoch=log.broker_epochs[1]))
    return log.register(1, incarnation=2).unfence(1)
