"""A quorum under a seeded nemesis and a seeded load, healed at the end."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from minicluster.faults import Faults
from minicluster.protocol.messages import AddRaftVoterRequest, RemoveRaftVoterRequest
from minicluster.rules import Rules
from tests.quorum.network import CLUSTER_ID, LISTENER, Network

SETTLING_MS = 60_000


@dataclass(frozen=True)
class Story:
    """The result of one run."""

    elections: int
    committed: int
    looked_at: int
    trace: tuple[str, ...]


def add_request(node: int, directory: UUID) -> AddRaftVoterRequest:
    """Let a node vote."""
    listener = AddRaftVoterRequest.Listener(name=LISTENER, host=f"node{node}", port=9090 + node)
    return AddRaftVoterRequest(
        cluster_id=CLUSTER_ID, voter_id=node, voter_directory_id=directory, listeners=(listener,)
    )


class Chaos:
    """One run: load and faults for a while, then none, then everybody agrees."""

    def __init__(
        self,
        seed: int,
        *,
        voters: int = 5,
        observers: int = 1,
        dynamic: bool = False,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        step_ms: tuple[int, int] = (150, 1_500),
        write_ms: tuple[int, int] = (5, 60),
        wire: bool = False,
    ) -> None:
        self.random = random.Random(f"chaos {seed}")
        self.network = Network(
            range(1, voters + 1),
            range(11, 11 + observers),
            seed=seed,
            dynamic=dynamic,
            rules=rules,
            faults=faults,
            wire=wire,
        )
        self.step_ms = step_ms
        self.write_ms = write_ms
        self.written = 0
        self.active = True
        self.actions: list[tuple[Callable[[], None], int]] = [
            (self.kill, 3),
            (self.kill_leader, 2),
            (self.restart, 6),
            (self.isolate_leader, 2),
            (self.cut_one_way, 3),
            (self.split, 2),
            (self.heal, 5),
            (self.resign, 1),
            (self.shut_down, 1),
            (self.compact, 2),
        ]
        if dynamic:
            self.actions.append((self.change_voters, 6))

    # --- the nemesis ------------------------------------------------------------------------

    def down(self) -> list[int]:
        return [i for i, m in self.network.members.items() if m.machine is None]

    def up(self) -> list[int]:
        return [i for i, m in self.network.members.items() if m.machine is not None]

    def kill(self) -> None:
        if self.up():
            self.network.kill(self.random.choice(self.up()), lossy=self.random.random() < 0.5)

    def kill_leader(self) -> None:
        for leader in self.network.leaders()[:1]:
            self.network.kill(leader, lossy=self.random.random() < 0.5)

    def restart(self) -> None:
        for node in self.down():
            if self.random.random() < 0.7:
                self.network.start(node)

    def isolate_leader(self) -> None:
        for leader in self.network.leaders()[:1]:
            self.network.isolate(leader)

    def cut_one_way(self) -> None:
        one, other = self.random.sample(list(self.network.members), 2)
        self.network.cut([one], [other], both=False)

    def split(self) -> None:
        nodes = list(self.network.members)
        self.random.shuffle(nodes)
        half = self.random.randrange(1, len(nodes))
        self.network.cut(nodes[:half], nodes[half:])

    def heal(self) -> None:
        self.network.heal()

    def resign(self) -> None:
        for leader in self.network.leaders():
            machine = self.network.members[leader].up
            machine.resign(machine.epoch)
            self.network.do(leader, machine.poll(self.network.now_ms))

    def shut_down(self) -> None:
        if self.up():
            node = self.random.choice(self.up())
            machine = self.network.members[node].up
            machine.shutdown(2_000, self.network.now_ms)
            self.network.do(node, machine.poll(self.network.now_ms))

    def compact(self) -> None:
        """A node makes a snapshot of all that it has committed, and deletes the log before it."""
        for node in self.up():
            member = self.network.members[node]
            mark = member.up.high_watermark
            if mark <= member.log.start_offset or not member.up.is_running:
                continue
            batch = member.log.batch_at(mark - 1)
            if batch is not None and batch.next_offset == mark:
                snapshot_id = (mark, batch.leader_epoch)
                if member.up.create_snapshot(snapshot_id, (), self.network.now_ms):
                    member.up.node.log.delete_before_snapshot(snapshot_id)
                    return

    def change_voters(self) -> None:
        """Send a leader an AddRaftVoter for an observer, or a RemoveRaftVoter for a voter."""
        network = self.network
        for leader in network.leaders()[:1]:
            voters = network.members[leader].up.voters
            node = self.random.choice(list(network.members))
            entry = voters.get(node)
            directory = network.members[node].directory
            if entry is None:
                network.request(leader, add_request(node, directory), 1)
            elif len(voters) > 2:
                request = RemoveRaftVoterRequest(
                    cluster_id=CLUSTER_ID,
                    voter_id=node,
                    voter_directory_id=entry.key.wire_directory_id,
                )
                network.request(leader, request, 0)

    def _strike(self) -> None:
        if not self.active:
            return
        names = [action for action, weight in self.actions for _ in range(weight)]
        self.random.choice(names)()
        self.network.at(self.network.now_ms + self.random.randint(*self.step_ms), self._strike)

    # --- the load ---------------------------------------------------------------------------

    def _write(self) -> None:
        network = self.network
        for leader in network.leaders():
            if network.members[leader].up.is_running:
                self.written += 1
                network.append(leader, b"%d" % self.written)
        network.at(network.now_ms + self.random.randint(*self.write_ms), self._write)

    # --- the run ----------------------------------------------------------------------------

    def run(self, ms: int) -> Story:
        """Play, heal, and wait until everybody has everything."""
        network = self.network
        network.at(network.now_ms, self._strike)
        network.at(network.now_ms, self._write)
        network.advance(ms)
        self.active = False
        network.heal()
        for node in self.up():
            machine = network.members[node].up
            if not machine.is_running or machine.node.is_shutting_down:
                network.kill(node)
        for node in self.down():
            network.start(node)
        goal = len(network.checks.committed) + 20
        network.run_until(lambda: self._all_have(goal), SETTLING_MS)
        network.checks.on_rest(network)
        checks = network.checks
        return Story(
            checks.elections, len(checks.committed), checks.looked_at, tuple(network.trace)
        )

    def _all_have(self, goal: int) -> bool:
        return all(m.machine and m.up.high_watermark >= goal for m in self.network.members.values())
