"""Exchanges with the controller: what a request wrote, and what its sender was told of it
(KIP-497, KIP-631).

subject   an exchange: a request, its response, the records that its handling wrote
keeps     nothing of it, but for C6: the partitions about which a leader never learned what became
          of its AlterPartition, and the offsets at which an exchange ended a recovery
"""

from __future__ import annotations

from minicluster.values import Value
from minicluster.verify.exchange.exchange import Exchange, Struct, each, topic_key
from minicluster.verify.histories.partitions import RECOVERED, RECOVERING
from minicluster.verify.histories.timeline import CommittedBroker, CommittedPartition, Timeline
from minicluster.verify.model import Evidence
from minicluster.verify.partition.applied import (
    leader_epochs_are_those_of_the_log,
    partition_epochs_are_those_of_the_log,
)
from minicluster.verify.rules.rule import CASE, Broken, Findings, Said, broken, ids, rule

NEW_LEADER_ELECTED, FENCED_LEADER_EPOCH = 108, 74
_CREATE_OR_DELETE = ("CreateTopics", "CreatePartitions", "DeleteTopics")
_WITH_BROKER_EPOCH = (
    "AlterPartition",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
)
_MAY_REJECT_A_STALE_EPOCH = ("STALE_BROKER_EPOCH", "NOT_CONTROLLER", "REQUEST_TIMED_OUT")


class AlteredPartition(Value):
    """One partition of an AlterPartition that got a response.

    Shapes:  topic: its name, "" where the request has the id. asked, told: of it, as the messages
             have it; told is empty where the response leaves it out. committed: the state that its
             record made, None if it wrote none.
    """

    exchange: Exchange
    topic: str
    partition: int
    asked: Struct
    told: Struct
    committed: CommittedPartition | None

    @property
    def offset(self) -> int:
        """Of its record, or of the last one of the request."""
        return self.exchange.last_written if self.committed is None else self.committed.offset

    @property
    def is_rejected(self) -> bool:
        """The request or the partition got an error that means: nothing was changed."""
        if self.is_rejected_whole:
            return True
        error = self.told.get("errorCode")
        if error in (None, 0, NEW_LEADER_ELECTED):
            return False
        # Before version 2 there was no NEW_LEADER_ELECTED: a leader whose change took its
        # leadership away got FENCED_LEADER_EPOCH, for a change with a record.
        return not (self.exchange.version < 2 and error == FENCED_LEADER_EPOCH)

    @property
    def is_rejected_whole(self) -> bool:
        """The whole request was rejected."""
        return self.exchange.error not in (None, "NONE")

    @property
    def is_accepted(self) -> bool:
        """The partition got no error, or the one that says that the change took the leadership."""
        return self.told.get("errorCode") in (0, NEW_LEADER_ELECTED)


class ControllerExchanges:
    """The exchanges with controllers, one by one; log: the committed states that they made."""

    def __init__(self, log: Timeline) -> None:
        self.log = log
        self.unlearned: set[tuple[int, str | None, int]] = set()
        self.recoveries: set[int] = set()

    def on_exchange(self, exchange: Exchange) -> Said:
        """An exchange that has ended."""
        yield from a_stale_broker_epoch_is_rejected(exchange)
        yield from responses_leave_after_the_commit(exchange)
        if exchange.api == "AlterPartition":
            yield from self._on_alter_partition(exchange)
        elif exchange.api in _CREATE_OR_DELETE:
            yield from the_records_of_a_request_are_one_operation(exchange, self.log)
        for offset in exchange.written:
            if (broker := self.log.unfenced.get(offset)) is not None:
                yield from a_broker_is_unfenced_when_it_has_caught_up(exchange, broker)
            for state in self.log.written_at(offset):
                yield from self._on_record(exchange, state)

    def _on_alter_partition(self, exchange: Exchange) -> Said:
        told: dict[tuple[str | None, int], Struct] = {}
        for topic in each(exchange.response, "topics"):
            for partition in each(topic, "partitions"):
                told.setdefault((topic_key(topic), partition["partitionIndex"]), partition)
        for topic in each(exchange.request, "topics"):
            for asked in each(topic, "partitions"):
                place = topic_key(topic), asked["partitionIndex"]
                # A controller that resigns rejects what it has appended, and the next one may
                # commit it.
                if exchange.resp_seq is None or exchange.error == "NOT_CONTROLLER":
                    self.unlearned.add((exchange.sender, *place))
                if exchange.resp_seq is not None:
                    for state in self._written_by(exchange, *place) or [None]:
                        name = topic.get("topicName") or "" if state is None else state.topic
                        yield from _on_altered_partition(
                            AlteredPartition(
                                exchange, name, place[1], asked, told.get(place, {}), state
                            ),
                            self.log,
                        )

    def _written_by(
        self, exchange: Exchange, topic: str | None, partition: int
    ) -> list[CommittedPartition | None]:
        """The states of a partition that its records made."""
        return [
            state
            for offset in exchange.written
            for state in self.log.written_at(offset)
            if state.partition == partition and topic in (state.topic_id, state.topic)
        ]

    def _on_record(self, exchange: Exchange, state: CommittedPartition) -> Said:
        if exchange.api == "AlterPartition":
            yield from alter_partition_elects_no_leader(state)
        elif exchange.api == "ElectLeaders":
            yield from a_preferred_election_is_clean(exchange, state)
        if _ends_recovery(state):
            self.recoveries.add(state.offset)
            yield from only_the_leader_ends_a_recovery(exchange, state)

    def at_end(self) -> Said:
        """There are no more exchanges: what no one of them has written is judged without it.

        Where the controller died or resigned before it responded, none names the record.
        """
        for offset, states in self.log.by_offset.items():
            for state in states if offset not in self.recoveries else ():
                if _ends_recovery(state):
                    yield from _also_where_it_got_no_response(state, self.unlearned)


def _on_altered_partition(alter: AlteredPartition, log: Timeline) -> Said:
    yield from a_rejected_alter_partition_writes_nothing(alter)
    if alter.committed is not None:
        if alter.is_accepted:
            yield from an_accepted_alter_partition_is_current(alter, alter.committed)
            yield from an_accepted_isr_names_current_incarnations(alter, log)
        yield from _and_so_are_the_partition_epochs_in_responses(alter, alter.committed)
        yield from _and_so_are_the_leader_epochs_in_responses(alter, alter.committed)


def _ends_recovery(state: CommittedPartition) -> bool:
    return (
        state.step.is_change
        and state.before.recovery == RECOVERING
        and state.step.sets.recovery == RECOVERED
    )


# --- AlterPartition -------------------------------------------------------------------------------


@rule("A6", "A rejected AlterPartition writes nothing",
      source="KIP-497; ReplicationControlManager.alterPartition", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="AlterPartition gets INELIGIBLE_REPLICA for its partition, and has written a "
      "PartitionChange.",
      keeps="A change that was made gets NEW_LEADER_ELECTED; INELIGIBLE_REPLICA "
      "comes without a record, and reverts a change.")  # fmt: skip
def a_rejected_alter_partition_writes_nothing(alter: AlteredPartition) -> Findings:
    """A rejected AlterPartition writes no record for its partition, and its leader gives up the
    change only for errors that mean a final rejection."""
    if not alter.is_rejected:
        return
    yield CASE
    exchange = alter.exchange
    if alter.committed is not None or (alter.is_rejected_whole and exchange.written):
        yield broken(
            f"AlterPartition {exchange.id} of broker {exchange.sender} was rejected and wrote a "
            "record",
            record=alter,
            broker=exchange.sender,
        )


@rule("A7", "An accepted ISR names current incarnations",
      source="KIP-903; ReplicationControlManager.ineligibleReplicasForIsr",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="An accepted ISR names broker 2 with broker epoch 1, which is not its own.",
      keeps="An accepted ISR names broker 2 without an epoch (-1); its next "
      "incarnation comes after the record.")  # fmt: skip
def an_accepted_isr_names_current_incarnations(alter: AlteredPartition, log: Timeline) -> Findings:
    """Each member of an accepted ISR carries no broker epoch (-1) or the epoch that was registered
    right before the record."""
    for member in each(alter.asked, "newIsrWithEpochs"):
        broker, epoch = member["brokerId"], member.get("brokerEpoch")
        if epoch is None:
            continue
        yield CASE
        before = log.broker_at(broker, alter.offset - 1)
        if epoch not in (-1, None if before is None else before.epoch):
            yield broken(
                f"broker {broker} was accepted into an ISR with broker epoch {epoch}, which is not "
                "the registered one",
                record=alter,
                broker=broker,
            )


@rule("B4", "An accepted AlterPartition matches the current leader and epochs",
      source="KIP-497; ReplicationControlManager.validateAlterPartitionData",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="orders-0 is at partition epoch 0, and an AlterPartition with 1 is accepted.",
      keeps="A shrink with partition epoch 0 is accepted, and then an expansion "
      "with 1.")  # fmt: skip
def an_accepted_alter_partition_is_current(
    alter: AlteredPartition, written: CommittedPartition
) -> Findings:
    """The request comes from the current leader and carries the leader epoch, partition epoch and
    broker epoch that were current right before its record."""
    exchange, asked = alter.exchange, alter.asked
    if exchange.error != "NONE":
        return
    yield CASE
    if (
        asked.get("partitionEpoch") != written.old_partition_epoch
        or asked.get("leaderEpoch") != written.old_leader_epoch
        or exchange.sender != written.before.leader
        or _is_stale(exchange)
    ):
        yield broken(
            f"AlterPartition {exchange.id} of broker {exchange.sender} was accepted although its "
            "leader, leader epoch, partition epoch or broker epoch was not the current one",
            record=alter,
            broker=exchange.sender,
        )


@partition_epochs_are_those_of_the_log.also
def _and_so_are_the_partition_epochs_in_responses(
    alter: AlteredPartition, written: CommittedPartition
) -> Findings:
    epochs = None, written.old_partition_epoch + 1
    if alter.told.get("errorCode") == 0 and alter.told.get("partitionEpoch") not in epochs:
        yield broken(
            f"the response to AlterPartition {alter.exchange.id} of broker {alter.exchange.sender} "
            "has another partition epoch than its record",
            record=alter,
            broker=alter.exchange.sender,
        )


@leader_epochs_are_those_of_the_log.also
def _and_so_are_the_leader_epochs_in_responses(
    alter: AlteredPartition, written: CommittedPartition
) -> Findings:
    epochs = None, written.leader_epoch
    if alter.told.get("errorCode") == 0 and alter.told.get("leaderEpoch") not in epochs:
        yield broken(
            f"the response to AlterPartition {alter.exchange.id} of broker {alter.exchange.sender} "
            "has another leader epoch than the log",
            record=alter,
            broker=alter.exchange.sender,
        )


@rule("B9", "AlterPartition elects no leader",
      source="KIP-497, KIP-455; ReplicationControlManager.alterPartition",
      at_end=True, evidence=Evidence.TRACE, tables=("rpc",),
      breaks="An accepted AlterPartition writes ISR [2, 3] and leader 2.",
      keeps="A shrink is accepted, a snapshot takes its record from the log, and "
      "then an expansion.")  # fmt: skip
def alter_partition_elects_no_leader(written: CommittedPartition) -> Findings:
    """The record of an accepted AlterPartition names another leader only if it completes a
    reassignment."""
    yield CASE
    after = written.after
    if after.leader != written.before.leader and not written.step.ends_reassignment:
        yield broken(
            f"an AlterPartition made broker {after.leader} the leader (ISR {ids(after.isr)}) "
            "without completing a reassignment",
            record=written,
            broker=after.leader,
        )


@rule("C6", "Only the leader's AlterPartition ends a recovery",
      source="KIP-704; ReplicationControlManager.alterPartition", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="A heartbeat of leader 2 writes the record that makes orders-0 RECOVERED.",
      keeps="The AlterPartition of leader 2 makes orders-0 RECOVERED.")  # fmt: skip
def only_the_leader_ends_a_recovery(exchange: Exchange, written: CommittedPartition) -> Findings:
    """RECOVERING becomes RECOVERED only by an AlterPartition of the leader."""
    yield CASE
    if exchange.api != "AlterPartition" or exchange.sender != written.before.leader:
        yield _ended_otherwise(written)


@only_the_leader_ends_a_recovery.also
def _also_where_it_got_no_response(
    written: CommittedPartition, unlearned: set[tuple[int, str | None, int]]
) -> Findings:
    yield CASE
    names = written.topic_id, written.topic
    leader, number = written.before.leader, written.partition
    if not any((leader, name, number) in unlearned for name in names):
        yield _ended_otherwise(written)


def _ended_otherwise(written: CommittedPartition) -> Broken:
    leader = written.before.leader
    return broken(
        f"the recovery of leader {leader} ended without an AlterPartition of its own",
        record=written,
        broker=leader,
    )


# --- other requests -------------------------------------------------------------------------------


@rule("C7", "A preferred election is clean",
      source="KIP-460; ReplicationControlManager.electLeader", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="ElectLeaders asks for preferred leaders, and broker 2 is elected from outside the "
      "ISR.",
      keeps="ElectLeaders asks for preferred leaders, and broker 2 is elected from the "
      "ISR.")  # fmt: skip
def a_preferred_election_is_clean(exchange: Exchange, written: CommittedPartition) -> Findings:
    """A request for preferred leaders elects nobody from outside ISR and ELR."""
    # UNCLEAN is 1, PREFERRED 0; version 0, which names none, is left out.
    if exchange.request.get("electionType", 1) == 1:
        return
    yield CASE
    if written.step.is_unclean:
        yield broken(
            f"the preferred election of request {exchange.id} elected broker "
            f"{written.after.leader} from outside the ISR {ids(written.before.isr)}",
            record=written,
            broker=written.after.leader,
        )


@rule("D3", "A stale broker epoch is rejected",
      source="KIP-589, KIP-380; ClusterControlManager.checkBrokerEpoch", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="Broker 1 has epoch 5, and its heartbeat with epoch 1 gets NONE.",
      keeps="Broker 1 has epoch 5; a heartbeat with 1 gets STALE_BROKER_EPOCH, and "
      "one with 5 NONE.")  # fmt: skip
def a_stale_broker_epoch_is_rejected(exchange: Exchange) -> Findings:
    """A request whose broker epoch is not the registered one gets STALE_BROKER_EPOCH and writes
    nothing."""
    if exchange.api not in _WITH_BROKER_EPOCH or exchange.resp_seq is None:
        return
    if not _is_stale(exchange):
        return
    yield CASE
    is_rejected = exchange.error is None or exchange.error in _MAY_REJECT_A_STALE_EPOCH
    if exchange.written or not is_rejected:
        yield broken(
            f"request {exchange.id} of broker {exchange.sender} carried a stale broker epoch and "
            "was not rejected for it",
            broker=exchange.sender,
            offset=exchange.last_written,
        )


def _is_stale(exchange: Exchange) -> bool:
    """It carries another broker epoch than the registered one."""
    epoch, registered = exchange.broker_epoch, exchange.registered_epoch
    return epoch is not None and registered is not None and epoch >= 0 and epoch != registered


@rule("E24", "A broker is unfenced only when it has caught up",
      source="KIP-631; BrokerHeartbeatManager.calculateNextBrokerState", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="Broker 1 registered at offset 2, and a heartbeat with metadata offset 1 unfences it.",
      keeps="Broker 1 registered at offset 2, and a heartbeat with metadata offset "
      "2 unfences it.")  # fmt: skip
def a_broker_is_unfenced_when_it_has_caught_up(
    exchange: Exchange, unfenced: CommittedBroker
) -> Findings:
    """A broker is unfenced by its own BrokerHeartbeat, whose metadata offset is at its registration
    or later."""
    yield CASE
    reached = exchange.request.get("currentMetadataOffset")
    registered = unfenced.registered_at
    is_behind = reached is not None and registered is not None and reached < registered
    is_its_own = exchange.api == "BrokerHeartbeat" and exchange.sender == unfenced.broker
    if is_behind or not is_its_own:
        yield broken(
            f"broker {unfenced.broker} was unfenced at metadata offset {reached}, before its "
            "registration, or not by its own BrokerHeartbeat",
            broker=unfenced.broker,
            offset=unfenced.offset,
        )


@rule("E40", "Responses leave after the commit",
      source="KIP-631, KIP-595; QuorumController.ControllerWriteEvent", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="CreateTopics gets NONE while its record is not below the high watermark.",
      keeps="CreateTopics gets NOT_CONTROLLER before its record is committed, and "
      "NONE after it.")  # fmt: skip
def responses_leave_after_the_commit(exchange: Exchange) -> Findings:
    """A successful response is sent only after the records that the request wrote are committed."""
    if exchange.resp_seq is None or exchange.error != "NONE":
        return
    if not exchange.written or exchange.high_watermark is None:
        return
    yield CASE
    if exchange.last_written >= exchange.high_watermark:
        yield broken(
            f"the response to request {exchange.id} was sent before its last record was committed",
            broker=exchange.sender,
            offset=exchange.last_written,
        )


@rule("E44", "The records of a request are one operation",
      source="KIP-631; QuorumController (ControllerResult.atomicOf)", evidence=Evidence.TRACE,
      at_end=True, tables=("rpc",),
      breaks="One CreateTopics request writes its two topics in two operations.",
      keeps="One CreateTopics request writes its two topics in one operation.")  # fmt: skip
def the_records_of_a_request_are_one_operation(exchange: Exchange, log: Timeline) -> Findings:
    """A request that creates or deletes topics or partitions writes all of its records in one
    operation."""
    operations = {log.operation_of(offset) for offset in exchange.written} - {None}
    if not operations:
        return
    yield CASE
    if len(operations) > 1:
        states = (state for offset in exchange.written for state in log.written_at(offset))
        yield broken(
            f"request {exchange.id} of node {exchange.sender} wrote its records in more than one "
            "operation",
            broker=exchange.sender,
            offset=exchange.last_written,
            topic=next((state.topic for state in states), ""),
        )
