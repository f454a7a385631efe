"""Three replicas of one partition and a small controller, driven by a seed.

Messages are lost, late or out of order: metadata reaches a broker some time after it was written, a
proposal reaches the controller late, and its response comes later still. Brokers are fenced and
come back, or restart over their logs with an old high watermark. Elections are clean.
"""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, field, replace
from uuid import UUID

import minicluster.zoo  # noqa: F401  (the faults that tests plant)
from minicluster.effects import FaultHit, Trace
from minicluster.faults import Faults
from minicluster.log import Log, Record, RecordBatch
from minicluster.metadata.image.partition import NO_LEADER, PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.replica.broker_context import (
    AlterPartitionItem,
    AlterPartitionResult,
    BrokerContext,
    BrokerView,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.follower_log import append_records_to_follower, truncate
from minicluster.replica.partition.isr import run_isr_task
from minicluster.replica.partition.leader_log import (
    ACKS_ALL,
    acknowledge,
    append_records_to_leader,
    check_enough_replicas,
)
from minicluster.replica.partition.leadership import make_follower, make_leader
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import fetch_records
from minicluster.rules import Rules
from tests.replica.partition_kit import Broker, HeldBack, registration

BROKERS = (1, 2, 3)
LAG_MS = 1_000
MIN_ISR = 2


class Broken(AssertionError):
    """A promise does not hold; the text names it."""


@dataclass(slots=True)
class Node:
    """One broker: its partition, the metadata applied, and the produce requests that wait."""

    id: int
    partition: Partition
    log: Log
    epoch: int
    alter_partition: HeldBack
    received: int = 0  # how much of the metadata log it has applied
    waiting: list[tuple[int, bytes]] = field(default_factory=list)


@dataclass(slots=True)
class Request:
    """A proposal on its way, and its response once the controller has one."""

    broker: int
    broker_epoch: int
    item: AlterPartitionItem
    respond: AlterPartitionResult | None = None


class Replication:
    """The replicas, the controller between them and everything that is under way."""

    def __init__(
        self, seed: int, *, rules: Rules = Rules.KAFKA_4_3, faults: Faults = Faults.NONE
    ) -> None:
        self.random = random.Random(seed)
        self.rules, self.faults = rules, faults
        self.now_ms = 10_000
        self.values = itertools.count()
        self.epochs = itertools.count(100)
        self.image = {b: Broker(next(self.epochs)) for b in BROKERS}
        self.history: list[tuple[PartitionRegistration, dict[int, Broker]]] = []
        self.requested: list[Request] = []
        self.acked: list[tuple[int, bytes]] = []
        self.hits: list[str] = []
        self.moves = 0
        self.state = registration(
            replicas=BROKERS, isr=BROKERS, leader=1, leader_epoch=0, partition_epoch=0
        )
        self.nodes = {b: self._node(b, Log(), 0) for b in BROKERS}
        self._publish()

    def run(self, events: int) -> None:
        """Let so many things happen, checking after each.

        Errors:  Broken.
        """
        deeds = [
            (self.fetch, 100),
            (self.produce, 20),
            (self.receive, 40),
            (self.control, 30),
            (self.receive_response, 20),
            (self.wait, 5),
            (self.shrink, 5),
            (self.fence, 2),
            (self.unfence, 6),
            (self.restart, 1),
        ]
        chosen = self.random.choices(
            [deed for deed, _ in deeds], [weight for _, weight in deeds], k=events
        )
        for deed in chosen:
            deed()
            self.check()

    # --- deeds --------------------------------------------------------------------------------

    def fetch(self) -> None:
        """A follower fetches from the node that it takes for its leader."""
        node = self._any()
        leader = self.nodes.get(node.partition.leader or 0)
        if leader is None or leader is node or node.partition.leader is None:
            return
        mine = node.partition
        latest = mine.latest_epoch
        try:
            found = fetch_records(
                leader.partition,
                replica_id=node.id,
                broker_epoch=node.epoch,
                fetch_offset=mine.log_end_offset,
                log_start_offset=mine.log_start_offset,
                current_leader_epoch=mine.leader_epoch,
                last_fetched_epoch=latest,
                max_bytes=self.random.choice((1, 1 << 20)),
                now_ms=self.now_ms,
            )
        except ReplicaError as refusal:
            if refusal.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                truncate(mine, leader.partition.log_end_offset)
                self._look(node)
            return
        self._look(leader)
        if self.random.random() < 0.1:
            return  # the response is lost
        if found.diverging_epoch is not None:
            theirs = found.diverging_epoch
            end = min(mine.log.end_offset_for(theirs.epoch)[1], theirs.end_offset)
            truncate(mine, max(end, 0))
        else:
            append_records_to_follower(
                mine,
                found.records.batches,
                partition_leader_epoch=mine.leader_epoch,
                leader_high_watermark=found.high_watermark,
                leader_log_start_offset=found.log_start_offset,
                now_ms=self.now_ms,
            )
        self._look(node)

    def produce(self) -> None:
        """A producer writes with acks=all to any node that accepts it as a leader."""
        node = self._any()
        value = str(next(self.values)).encode()
        batch = RecordBatch.of([Record(0, self.now_ms, None, value)], leader_epoch=-1)
        try:
            appended = append_records_to_leader(node.partition, batch, ACKS_ALL, self.now_ms)
        except ReplicaError:
            return
        node.waiting.append((appended.last_offset, value))
        self._look(node)

    def receive(self) -> None:
        """A broker applies the next metadata that the controller wrote."""
        node = self._any()
        if node.received == len(self.history):
            return
        printed, brokers = self.history[node.received]
        node.received += 1
        node.partition.context.view = BrokerView(node.epoch, brokers)
        if printed.leader == node.id:
            make_leader(node.partition, printed, self.now_ms)
        else:
            make_follower(node.partition, printed)
        self._look(node)

    def control(self) -> None:
        """The controller decides a proposal."""
        open_ones = [requested for requested in self.requested if requested.respond is None]
        if open_ones:
            requested = self.random.choice(open_ones)
            requested.respond = self._decide(requested)

    def receive_response(self) -> None:
        """A leader receives a response, or the failure of its request."""
        if not self.requested:
            return
        requested = self.requested.pop(self.random.randrange(len(self.requested)))
        node = self.nodes[requested.broker]
        if node.epoch != requested.broker_epoch:
            return
        lost = AlterPartitionResult(error=ErrorCode.NETWORK_EXCEPTION)
        node.alter_partition.complete(requested.respond or lost, self.now_ms)
        self._look(node)

    def wait(self) -> None:
        """Time passes."""
        self.now_ms += self.random.randrange(LAG_MS)

    def shrink(self) -> None:
        """The periodic task of one broker."""
        node = self._any()
        run_isr_task(node.partition, self.now_ms)
        self._look(node)

    def fence(self) -> None:
        """The controller fences a broker: out of the ISR unless it is the last, and no leader."""
        broker = self._any().id
        if self.image[broker].fenced:
            return
        self.image[broker] = replace(self.image[broker], fenced=True)
        isr = tuple(b for b in self.state.isr if b != broker) or self.state.isr
        self._write(isr, elect=self.state.leader == broker)

    def unfence(self) -> None:
        """The controller unfences a broker and elects, if nobody leads."""
        broker = self._any().id
        if self.image[broker].fenced:
            self.image[broker] = replace(self.image[broker], fenced=False)
            self._write(self.state.isr, elect=self.state.leader == NO_LEADER)

    def restart(self) -> None:
        """A broker comes back over its log as a new incarnation, which is fenced at first."""
        node = self._any()
        self.fence_before_restart(node.id)
        checkpoint = self.random.randrange(node.partition.high_watermark + 1)
        fresh = self._node(node.id, node.log, checkpoint)
        fresh.received = len(self.history) - 1
        brokers = self.history[fresh.received - 1][1] if fresh.received else {}
        fresh.partition.context.view = BrokerView(fresh.epoch, brokers)
        self.nodes[node.id] = fresh

    def fence_before_restart(self, broker: int) -> None:
        """Register the new incarnation."""
        self.image[broker] = Broker(next(self.epochs), fenced=True)
        isr = tuple(b for b in self.state.isr if b != broker) or self.state.isr
        self._write(isr, elect=self.state.leader == broker)

    # --- the controller -----------------------------------------------------------------------

    def _decide(self, requested: Request) -> AlterPartitionResult:
        state, proposal = self.state, requested.item
        members = tuple(member for member, _ in proposal.isr)
        error = ErrorCode.NONE
        if self.image[requested.broker].epoch != requested.broker_epoch:
            error = ErrorCode.NETWORK_EXCEPTION
        elif proposal.leader_epoch != state.leader_epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif proposal.leader != state.leader:
            error = ErrorCode.INVALID_REQUEST
        elif proposal.partition_epoch != state.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif any(
            self.image[member].fenced or self.image[member].epoch != epoch
            for member, epoch in proposal.isr
            if epoch != -1
        ):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error != ErrorCode.NONE:
            return AlterPartitionResult(error=error)
        self._write(members, elect=False)
        return AlterPartitionResult(
            leader=self.state.leader,
            leader_epoch=self.state.leader_epoch,
            isr=members,
            partition_epoch=self.state.partition_epoch,
        )

    def _write(self, isr: tuple[int, ...], *, elect: bool) -> None:
        state = self.state
        leader, leader_epoch = state.leader, state.leader_epoch
        if elect:
            able = [b for b in isr if not self.image[b].fenced]
            leader = self.random.choice(able) if able else NO_LEADER
            leader_epoch += 1
        if isr == state.isr and not elect:
            return
        self.state = replace(
            state,
            isr=isr,
            leader=leader,
            leader_epoch=leader_epoch,
            partition_epoch=state.partition_epoch + 1,
        )
        self._publish()

    def _publish(self) -> None:
        self.history.append((self.state, dict(self.image)))

    # --- brokers ------------------------------------------------------------------------------

    def _node(self, broker: int, log: Log, checkpoint: int) -> Node:
        config = ReplicaManagerConfig(broker_id=broker, replica_lag_time_max_ms=LAG_MS)
        context = BrokerContext(config, rules=self.rules, faults=self.faults)
        epoch = self.image[broker].epoch
        context.view = BrokerView(epoch)
        context.alter_partition_manager = manager = HeldBack()
        partition = Partition(
            context,
            topic="t",
            topic_id=UUID(int=1),
            partition=0,
            log=log,
            high_watermark_checkpoint=checkpoint,
            min_insync_replicas=MIN_ISR,
        )
        return Node(broker, partition, log, epoch, manager)

    def _any(self) -> Node:
        return self.nodes[self.random.choice(BROKERS)]

    def _look(self, node: Node) -> None:
        """Take what came of an event: items to the controller, acknowledged produces."""
        for item in node.alter_partition.take():
            self.requested.append(Request(node.id, node.epoch, item))
        left = []
        for offset, value in node.waiting:
            enough = check_enough_replicas(node.partition, offset + 1)
            if enough.reached and enough.error == ErrorCode.NONE:
                self.acked.append((offset, value))
                acknowledge(node.partition, offset)
            elif enough.error == ErrorCode.NONE:
                left.append((offset, value))
        node.waiting = left
        for effect in node.partition.context.take_effects():
            if isinstance(effect, FaultHit):
                self.hits.append(effect.fault)
            elif isinstance(effect, Trace) and effect.row["kind"] == "hw":
                self._check_move(effect)

    # --- promises -----------------------------------------------------------------------------

    def _check_move(self, effect: Trace) -> None:
        """B2: every member of the maximal ISR is known, in this epoch, to hold what is passed."""
        row = effect.row
        if row["maximal_isr"] is None:
            return
        self.moves += 1
        known = json.loads(row["follower_leos"])
        for member in row["maximal_isr"]:
            if str(member) in known:
                end, epoch, _ = known[str(member)]
                if end < row["hw_new"] or epoch != row["leader_epoch"]:
                    raise Broken(f"B2: {dict(row)}")
        if len(row["isr"]) < row["min_isr"]:
            raise Broken(f"B10: {dict(row)}")

    def check(self) -> None:
        """B1, F1 and F4."""
        leader = self.nodes.get(self.state.leader)
        if leader is not None:
            partition = leader.partition
            if partition.is_leader and partition.leader_epoch == self.state.leader_epoch:
                missing = set(self.state.isr) - set(partition.isr_state.maximal_isr)
                if missing:
                    raise Broken(f"B1: {sorted(missing)} of the ISR do not hold up the leader")
            held = _values(leader)
            for offset, value in self.acked:
                if held.get(offset, (0, b""))[1] != value:
                    raise Broken(f"F1: {value!r} at {offset} is not on leader {leader.id}")
        for one, other in itertools.combinations(self.nodes.values(), 2):
            below = min(one.partition.high_watermark, other.partition.high_watermark)
            ours, theirs = _values(one), _values(other)
            for offset in range(below):
                if ours.get(offset) != theirs.get(offset):
                    raise Broken(f"F4: brokers {one.id} and {other.id} differ at {offset}")


def _values(node: Node) -> dict[int, tuple[int, bytes | None]]:
    return {
        record.offset: (batch.leader_epoch, record.value)
        for batch in node.log.batches
        for record in batch.records
    }
