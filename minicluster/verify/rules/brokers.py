"""Registrations of brokers in the committed log: epochs, incarnations, fencing."""

from __future__ import annotations

from minicluster.verify.histories.brokers import KEEPS_EPOCH, BrokerRecord, Registration
from minicluster.verify.rules.rule import CASE, NOT_PROMISED, Findings, broken, rule


@rule("D4", "A broker's records carry its current epoch",
      source="KIP-631; ClusterControlManager.replay",
      breaks="Broker 3 is fenced by a record with broker epoch 1, which is not its own.",
      keeps="Broker 3 is fenced with its epoch, registers a new incarnation, and is "
      "unfenced with the new one.")  # fmt: skip
def records_carry_the_current_epoch(record: BrokerRecord) -> Findings:
    """Records that fence, unfence, change or unregister a broker carry the epoch of its
    registration."""
    if not record.is_registered:
        return
    yield CASE
    if record.epoch != record.registered_epoch:
        yield broken(
            f"a record of broker {record.broker} carries broker epoch {record.epoch}, which is not "
            "the registered one",
            broker=record.broker,
        )


@rule("E20", "Broker epochs are log offsets and increase",
      source="KIP-631; QuorumController.registerBroker, "
      "ClusterControlManager.registerBroker",
      breaks="A new incarnation of broker 3 registers with the epoch of the one before.",
      keeps="Two clean-up records come before the registration, whose epoch is the "
      "offset of the first.")  # fmt: skip
def broker_epochs_are_offsets_and_increase(registration: Registration) -> Findings:
    """The broker epoch of a new incarnation is the offset at which its registration begins, and
    above every earlier epoch of the broker. Up to 3.5 a new leader does not count the LeaderChange
    right before it (KAFKA-15213), so the first epoch of 3.0 to 3.2 may be 0."""
    if registration.again:
        return
    yield CASE
    broker, epoch = registration.broker, registration.epoch
    if not registration.clean_from <= epoch <= registration.offset:
        yield broken(
            f"broker {broker} registered with epoch {epoch}, which is not the offset at which its "
            "registration begins",
            broker=broker,
        )
    highest = registration.highest_epoch
    if highest is not None and epoch <= highest:
        message = f"broker {broker} registered with epoch {epoch}, not above its earlier epochs"
        yield broken(message, broker=broker)


@rule("E21", "Only a fenced broker is unfenced",
      source="KIP-631; ReplicationControlManager.handleBrokerUnfenced",
      breaks="Broker 1 is unfenced twice in a row.",
      keeps="Broker 1 is fenced twice in a row, and then unfenced.")  # fmt: skip
def only_a_fenced_broker_is_unfenced(record: BrokerRecord) -> Findings:
    """An unfencing record follows a fenced state; a broker may be fenced twice."""
    if not record.is_registered or record.fences is None:
        return
    yield CASE
    if not record.fences and not record.was_fenced:
        message = f"broker {record.broker} was unfenced although it was not fenced"
        yield broken(message, broker=record.broker)


@rule("E22", "Registering the same incarnation again changes nothing but its endpoints",
      source="KAFKA-16952, KAFKA-16757; ClusterControlManager.registerBroker",
      breaks="The same incarnation of broker 1, which is unfenced, registers again and is fenced "
      "by that.",
      keeps="The same incarnation of broker 1 registers again with its epoch, and "
      "stays unfenced.")  # fmt: skip
def registering_again_changes_nothing(registration: Registration) -> Findings:
    """The same incarnation registering again keeps its epoch, its fencing and its controlled
    shutdown, from Kafka 3.9 on."""
    if not registration.again:
        return
    if registration.release < KEEPS_EPOCH:
        yield NOT_PROMISED
        return
    yield CASE
    now = registration.epoch, registration.fenced, registration.in_controlled_shutdown
    before = (
        registration.registered_epoch,
        registration.was_fenced,
        registration.was_in_controlled_shutdown,
    )
    if now != before:
        yield broken(
            f"broker {registration.broker} registered the same incarnation again with another "
            f"epoch ({registration.epoch}), fencing or controlled shutdown",
            broker=registration.broker,
        )


@rule(
    "E23",
    "Records name only registered brokers",
    source="ClusterControlManager.replay",
    breaks="Broker 1 unregisters, and is unfenced after that.",
    keeps="Broker 1 unregisters, registers a new incarnation, and is unfenced.",
)
def records_name_registered_brokers(record: BrokerRecord) -> Findings:
    """No record names a broker before it is registered or after it is unregistered."""
    yield CASE
    if not record.is_registered:
        message = f"a record names broker {record.broker}, which is not registered"
        yield broken(message, broker=record.broker)
