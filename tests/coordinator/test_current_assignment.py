"""The step of a member towards its target assignment, as a table.

Source:  CurrentAssignmentBuilderTest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from minicluster.coordinator.group.consumer.assignment import Reconciliation
from minicluster.coordinator.group.consumer.group import ConsumerGroupMember, MemberState
from minicluster.coordinator.group.conversion.embedded import OwnedTopic
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import uuid_hash
from minicluster.protocol import ErrorCode
from minicluster.values import replace
from tests.metadata.records import uid

STABLE = MemberState.STABLE
UNREVOKED = MemberState.UNREVOKED_PARTITIONS
UNRELEASED = MemberState.UNRELEASED_PARTITIONS
ONE, TWO = uid(1), uid(2)


@dataclass(frozen=True)
class Case:
    """A member in epoch 10 with the partitions 1 to 3 of a topic, and a target in epoch 11.

    Partitions map to the epoch in which they were assigned; ``taken`` are those of other members.
    """

    name: str
    target: set[int]
    state: MemberState = STABLE
    assigned: dict[int, int] = field(default_factory=lambda: {1: 10, 2: 10, 3: 10})
    revoking: dict[int, int] = field(default_factory=dict)
    owned: set[int] | None = None
    taken: set[int] = field(default_factory=set)
    target_epoch: int = 11
    subscribed: bool = True
    changed: bool = False
    then: tuple[MemberState, int, dict[int, int], dict[int, int]] = (STABLE, 11, {}, {})


HELD = {1: 10, 2: 10, 3: 10}
CASES = [
    Case("the same target in a newer epoch", {1, 2, 3}, then=(STABLE, 11, HELD, {})),
    Case("more, and free", {1, 2, 3, 4}, then=(STABLE, 11, {**HELD, 4: 11}, {})),
    Case("more, and taken", {1, 2, 3, 4}, taken={4}, then=(UNRELEASED, 11, HELD, {})),
    Case("less", {1, 4}, then=(UNREVOKED, 10, {1: 10}, {2: 10, 3: 10})),
    Case("less, given up before", {1, 4}, owned={1}, then=(STABLE, 11, {1: 10, 4: 11}, {})),
    Case("up to date", {1, 2, 3}, target_epoch=10, then=(STABLE, 10, HELD, {})),
    Case(
        "still has what it is to give up",
        {1, 4},
        state=UNREVOKED,
        assigned={1: 10},
        revoking={2: 10},
        owned={1, 2},
        then=(UNREVOKED, 10, {1: 10}, {2: 10}),
    ),
    Case(
        "without a report it still has it",
        {1, 4},
        state=UNREVOKED,
        assigned={1: 10},
        revoking={2: 10},
        then=(UNREVOKED, 10, {1: 10}, {2: 10}),
    ),
    Case(
        "has given it up, and gets what is free",
        {1, 4},
        state=UNREVOKED,
        assigned={1: 10},
        revoking={2: 10},
        owned={1},
        then=(STABLE, 11, {1: 10, 4: 11}, {}),
    ),
    Case(
        "gets back what it has just given up",
        {1, 2},
        state=UNREVOKED,
        assigned={1: 10},
        revoking={2: 10},
        owned={1},
        taken={2},  # by itself
        then=(STABLE, 11, {1: 10, 2: 11}, {}),
    ),
    Case(
        "has to give up more in the meantime",
        {4},
        state=UNREVOKED,
        assigned={1: 10},
        revoking={2: 10},
        owned={1},
        then=(UNREVOKED, 10, {}, {1: 10}),
    ),
    Case(
        "waits for what is taken",
        {1, 4, 5},
        state=UNRELEASED,
        assigned={1: 10},
        taken={5},
        then=(UNRELEASED, 11, {1: 10, 4: 11}, {}),
    ),
    Case(
        "does not subscribe to the topic any more",
        {1, 2, 3},
        target_epoch=10,
        subscribed=False,
        changed=True,
        then=(UNREVOKED, 10, {}, HELD),
    ),
    Case(
        "does not subscribe to it, and has given it up",
        {1, 2, 3},
        target_epoch=10,
        subscribed=False,
        changed=True,
        owned=set(),
        then=(STABLE, 10, {}, {}),
    ),
    Case("a target of a topic without subscription", {1}, subscribed=False, owned=set()),
]


def reconciliation(case: Case, member: ConsumerGroupMember) -> Reconciliation:
    owned = None if case.owned is None else [OwnedTopic(ONE, tuple(case.owned))]
    return Reconciliation(
        member=member,
        target_epoch=case.target_epoch,
        target={ONE: frozenset(case.target)},
        subscribed=frozenset({ONE} if case.subscribed else {TWO}),
        names_no_topic=False,
        has_subscription_changed=case.changed,
        owned=owned,
        partition_epoch=lambda _, index: 10 if index in case.taken else -1,
        topic_hash=uuid_hash,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_member_takes_a_step(case: Case) -> None:
    member = ConsumerGroupMember(
        member_id="a",
        epoch=10,
        previous_epoch=9,
        state=case.state,
        assigned={ONE: case.assigned} if case.assigned else {},
        pending_revocation={ONE: case.revoking} if case.revoking else {},
    )
    after = reconciliation(case, member).next_member()
    state, epoch, assigned, revoking = case.then
    assert (after.state, after.epoch) == (state, epoch)
    assert after.assigned == ({ONE: assigned} if assigned else {})
    assert after.pending_revocation == ({ONE: revoking} if revoking else {})
    assert after == member or after.previous_epoch == 10


def test_a_member_in_a_state_of_a_newer_release_begins_again() -> None:
    case = Case("unknown", {1, 2})
    member = ConsumerGroupMember(member_id="a", epoch=10, state=MemberState.of(42))
    with pytest.raises(OperationError) as refusal:
        reconciliation(case, member).next_member()
    assert refusal.value.error == ErrorCode.FENCED_MEMBER_EPOCH
    begun = replace(reconciliation(case, member), owned=[])
    after = begun.next_member()
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, {ONE: {1: 11, 2: 11}})
