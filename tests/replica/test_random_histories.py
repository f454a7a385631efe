"""Random histories: whatever happens to brokers and links, what replication promises holds.

Every election is clean and no disk loses anything. After each event B1, B2 and B10 hold, and after
each step F4. No member of the ISR may ever lack a record that was acknowledged with acks=all (F1),
and at the end all logs are one.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from minicluster.faults import Faults
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.partition import Partition
from tests.replica.cluster import CONTROLLER, Cluster

BROKERS = (1, 2, 3)
STEPS = 120
ERRORS = (
    ErrorCode.INELIGIBLE_REPLICA,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.OPERATION_NOT_ATTEMPTED,
)


class History:
    """A cluster with a topic, a seeded chance, and the values acknowledged to clients."""

    def __init__(self, seed: int, faults: Faults = Faults.NONE) -> None:
        self.chance = random.Random(seed)
        self.cluster = Cluster(faults=faults)
        self.cluster.create_topic(min_isr=self.chance.choice((1, 2)))
        self.cluster.after_step = self.check
        self.checked = 0  # of the traces
        self.waiting: dict[int, bytes] = {}
        self.acked: list[bytes] = []
        self.epoch = 5_000
        self.count = 0

    # -- steps -------------------------------------------------------------------------------

    def produce(self) -> None:
        broker = self.chance.choice(list(self.cluster.managers) or [0])
        if not broker or not self.cluster.partition(broker).is_leader:
            return
        self.count += 1
        value = f"v{self.count}".encode()
        token = self.cluster.produce(broker, value, acks=self.chance.choice((-1, -1, 1)))
        self.waiting[token] = value

    def cut(self) -> None:
        ends = (*BROKERS, CONTROLLER)
        link = tuple(self.chance.sample(ends, 2))
        self.cluster.cuts.add((link[0], link[1]))

    def heal(self) -> None:
        self.cluster.cuts.clear()

    def crash(self) -> None:
        if self.cluster.managers:
            broker = self.chance.choice(list(self.cluster.managers))
            self.cluster.crash(broker)
            if self.chance.random() < 0.7:
                self.cluster.fence_and_elect(broker)

    def restart(self) -> None:
        down = [broker for broker in BROKERS if broker not in self.cluster.managers]
        if down:
            broker = self.chance.choice(down)
            self.epoch += 1
            self.cluster.fence_and_elect(broker)
            self.cluster.start(broker, epoch=self.epoch, fenced=True)
            self.cluster.unfence_and_elect(broker)

    def elect(self) -> None:
        known = self.cluster.image.topics.named("orders").partitions[0]  # type: ignore[union-attr]
        can = [b for b in known.isr if self.cluster.image.cluster.is_active(b)]
        if can and known.leader != -1:
            self.cluster.change(leader=self.chance.choice(can))

    def lag(self) -> None:
        self.cluster.lags = {broker: self.chance.choice((0, 0, 40, 3_000)) for broker in BROKERS}

    def refuse(self) -> None:
        self.cluster.responses.append(self.chance.choice(ERRORS))

    def step(self) -> None:
        moves = (
            *(self.produce,) * 8, self.cut, self.heal, self.crash, self.restart, self.restart,
            self.elect, self.lag, self.refuse,
        )  # fmt: skip
        self.chance.choice(moves)()
        self.cluster.advance(self.chance.choice((0, 1, 5, 50, 700, 5_000, 20_000)))

    # -- what must hold ----------------------------------------------------------------------

    def look(self) -> None:
        for token, value in list(self.waiting.items()):
            if self.cluster.has_response(token):
                del self.waiting[token]
                if self.cluster.response(token) is None:
                    continue
                response = self.cluster.produced(token)
                row_acks = response.error_code == ErrorCode.NONE
                if row_acks and self._was_acks_all(token):
                    self.acked.append(value)
        known = self.cluster.image.topics.named("orders").partitions[0]  # type: ignore[union-attr]
        for member in known.isr:
            have = set(self.cluster.log_values(member))
            missing = [value for value in self.acked if value not in have]
            assert not missing, f"F1: broker {member} of the ISR {known.isr} lacks {missing}"
        replicas = [self.cluster.partition(broker) for broker in self.cluster.managers]
        for one, other in itertools.combinations(replicas, 2):
            below = min(one.high_watermark, other.high_watermark)
            ours, theirs = committed(one, below), committed(other, below)
            assert ours == theirs, f"F4: two brokers differ below {below}"

    def check(self) -> None:
        for row in self.cluster.traces[self.checked :]:
            if row["kind"] == "hw" and row["maximal_isr"] is not None:
                self._check_move(row)
        self.checked = len(self.cluster.traces)
        known = self.cluster.image.topics.named("orders").partitions[0]  # type: ignore[union-attr]
        if known.leader in self.cluster.managers:
            leader = self.cluster.partition(known.leader)
            if leader.is_leader and leader.leader_epoch == known.leader_epoch:
                missing = set(known.isr) - set(leader.isr_state.maximal_isr)
                assert not missing, f"B1: {missing} of the ISR do not hold up the leader"

    @staticmethod
    def _check_move(row: dict[str, Any]) -> None:
        """Each member of the maximal ISR is known, in this epoch, to hold what is passed."""
        known = json.loads(row["follower_leos"])
        for member in row["maximal_isr"]:
            end, epoch, _ = known.get(str(member), (row["hw_new"], row["leader_epoch"], None))
            assert end >= row["hw_new"] and epoch == row["leader_epoch"], f"B2: {row}"
        assert len(row["isr"]) >= row["min_isr"], f"B10: {row}"

    def _was_acks_all(self, token: int) -> bool:
        return self.cluster.acks[token] == -1

    def end(self) -> None:
        """Everything is repaired and time passes: one log, everybody in sync."""
        self.cluster.responses.clear()
        self.cluster.lags.clear()
        self.heal()
        while len(self.cluster.managers) < len(BROKERS):
            self.restart()
        for broker in BROKERS:
            known = self.cluster.image.cluster.broker(broker)
            if known is not None and known.fenced:
                self.cluster.unfence_and_elect(broker)
        self.cluster.advance(180_000)
        self.look()
        leader = next(b for b in BROKERS if self.cluster.partition(b).is_leader)
        assert self.cluster.partition(leader).isr_state.isr == BROKERS
        logs = {broker: self.cluster.log_values(broker) for broker in BROKERS}
        assert logs[1] == logs[2] == logs[3]
        marks = {self.cluster.partition(broker).high_watermark for broker in BROKERS}
        assert marks == {self.cluster.partition(leader).log_end_offset}
        epochs = {self.cluster.partition(broker).log.epochs.entries for broker in BROKERS}
        assert all(len(set(pairs)) == len(pairs) for pairs in epochs)


def committed(replica: Partition, below: int) -> list[tuple[int, bytes | None, int]]:
    """The records below an offset, each with its leader epoch."""
    return [
        (record.offset, record.value, batch.leader_epoch)
        for batch in replica.log.batches
        for record in batch.records
        if record.offset < below
    ]


@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 140))]
)
def test_what_was_acknowledged_survives_any_history_of_clean_elections(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
        history.look()
    history.end()
    assert history.count > 0


@pytest.mark.parametrize(
    ("fault", "promise"), [("S11", "B1"), ("S12", "B2"), ("Z40", "B10"), ("S32", "F1")]
)
def test_a_planted_fault_breaks_the_promise_that_names_it(fault: str, promise: str) -> None:
    with pytest.raises(AssertionError, match=rf"^{promise}: "):
        for seed in range(12):
            history = History(seed, Faults.of([fault]))
            for _ in range(STEPS):
                history.step()
                history.look()
    assert fault in history.cluster.hits


def test_the_same_seed_plays_the_same_story() -> None:
    one, other = History(5), History(5)
    for history in (one, other):
        for _ in range(STEPS):
            history.step()
            history.look()
    assert one.acked == other.acked
    assert one.cluster.traces == other.cluster.traces
