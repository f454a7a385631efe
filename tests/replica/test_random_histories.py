"""Random histories: whatever happens to brokers and links, what was acknowledged stays.

Every election is clean and no disk loses anything. No leader may ever lack a record that was
acknowledged with acks=all, and at the end all logs are one.
"""

from __future__ import annotations

import random

import pytest

from minicluster.faults import Faults
from minicluster.protocol import ErrorCode
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
        if link[0] != CONTROLLER:
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
            assert not missing, f"broker {member} of the ISR {known.isr} lacks {missing}"

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


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 100))]
)
def test_what_was_acknowledged_survives_any_history_of_clean_elections(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
        history.look()
    history.end()
    assert history.count > 0


@pytest.mark.parametrize("switch", ["S11", "S32"])
def test_with_a_planted_fault_some_history_loses_what_was_acknowledged(switch: str) -> None:
    with pytest.raises(AssertionError, match="lacks"):
        for seed in range(4):
            history = History(seed, Faults.of([switch]))
            for _ in range(STEPS):
                history.step()
                history.look()
