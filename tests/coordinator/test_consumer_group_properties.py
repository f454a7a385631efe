"""Rules for every consumer group, whatever its members do: seeded clients over one coordinator.

Each client keeps to the protocol: it reports what it has, gives up what it has to give up, and
begins again once it is fenced. Some leave, die, lose responses or subscribe to something else;
topics grow, and the coordinator fails over.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from minicluster.protocol import ErrorCode
from tests.coordinator.groups import Groups

TOPICS = ("alpha", "beta", "gamma")
SUBSCRIPTIONS = (("alpha",), ("alpha", "beta"), TOPICS, ("gamma",))
FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
STEPS = 120


class Client:
    """One member."""

    def __init__(self, groups: Groups, name: str, given: dict[str, Any]) -> None:
        self.groups = groups
        self.name = name
        self.epoch = 0
        self.has_missed = False
        self.owned: dict[str, list[int]] = {}
        self.given = given

    def beat(self, *, lost: bool = False, full: bool = False) -> None:
        """Send a heartbeat, and take over its response unless that is lost."""
        # A member that has missed a response sends all again, and gets all again.
        is_full = full or self.has_missed or self.epoch == 0
        given = dict(self.given, rebalance_timeout_ms=5_000) if is_full else {}
        response = self.groups.heartbeat(self.name, self.epoch, owned=self.owned, **given)
        self.has_missed = lost
        if lost:
            return
        if response.error_code in FENCED:
            self.epoch, self.owned = 0, {}
            return
        assert response.error_code == ErrorCode.NONE, response
        assert response.member_epoch >= self.epoch  # epochs never fall
        self.epoch = response.member_epoch
        assigned = self.groups.assignment(response)
        if assigned is not None:
            self.owned = assigned


def subscription(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.2:
        return {"topics": (), "subscribed_topic_regex": chance.choice(("alp.*", ".*a"))}
    return {"topics": chance.choice(SUBSCRIPTIONS), "subscribed_topic_regex": ""}


def assert_each_partition_has_one_owner(groups: Groups) -> None:
    owners: dict[tuple[str, int], str] = {}
    for member in groups.describe().members:
        for topic in member.assignment.topic_partitions:
            for index in topic.partitions:
                other = owners.setdefault((topic.topic_name, index), member.member_id)
                assert other == member.member_id, (topic.topic_name, index)


def assert_converged(groups: Groups, clients: dict[str, Client]) -> None:
    group = groups.describe()
    assert group.group_state == ("Stable" if clients else "Empty")
    for member in group.members:
        assert member.assignment == member.target_assignment
        shown = groups.partitions(member.assignment.topic_partitions)
        assert shown == clients[member.member_id].owned
    wanted = {name for client in clients.values() for name in _topics(client)}
    held = {
        (name, index)
        for client in clients.values()
        for name, indexes in client.owned.items()
        for index in indexes
    }
    assert held == {(name, i) for name in wanted for i in range(groups.counts[name])}


def _topics(client: Client) -> tuple[str, ...]:
    expression = client.given["subscribed_topic_regex"]
    if not expression:
        return tuple(client.given["topics"])
    return ("alpha",) if expression == "alp.*" else TOPICS


def _converge(groups: Groups, clients: dict[str, Client]) -> None:
    groups.advance(10_001)  # expressions are matched again
    for _ in range(4 * len(clients) + 6):
        for client in clients.values():
            client.beat()


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))]


@pytest.mark.parametrize("seed", SEEDS)
def test_members_converge_whatever_happened_before(seed: int) -> None:
    chance = random.Random(seed)
    groups = Groups(alpha=3, beta=2, gamma=5)
    clients: dict[str, Client] = {}
    names = iter(range(1_000))
    last_epoch = 0
    for _ in range(STEPS):
        client = chance.choice(list(clients.values())) if clients else None
        what = chance.random()
        if client is None or what < 0.12:
            name = f"member-{next(names)}"
            clients[name] = Client(groups, name, subscription(chance))
            clients[name].beat()
        elif what < 0.16:
            groups.heartbeat(client.name, -1)
            del clients[client.name]
        elif what < 0.19:
            del clients[client.name]  # it dies, and its session ends later
        elif what < 0.25:
            client.given = subscription(chance)
            client.beat(full=True)
        elif what < 0.27:
            name = chance.choice(TOPICS)
            groups.create_topic(name, groups.counts[name] + 1)
        elif what < 0.29:
            before = groups.describe()
            groups.restart()
            assert groups.describe() == before  # the state is the fold of the log
        else:
            client.beat(lost=chance.random() < 0.1, full=chance.random() < 0.1)
        groups.advance(chance.choice((0, 0, 300)))
        assert_each_partition_has_one_owner(groups)
        group = groups.describe()
        assert group.assignment_epoch <= group.group_epoch
        assert group.group_epoch >= last_epoch
        last_epoch = group.group_epoch
    for _ in range(12):  # sessions of dead members end
        groups.advance(4_000)
        for client in clients.values():
            client.beat()
    _converge(groups, clients)
    assert_converged(groups, clients)
