"""Conformance group B: the partition change builder. B59 to B63: ``tests/metadata``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.leader_election import Election
from minicluster.controller.partition_change import (
    PartitionChangeBuilder,
    Targets,
    change_partition,
)
from minicluster.controller.state.cluster_state import Gates
from minicluster.metadata.image.directory_id import LOST, MIGRATING, UNASSIGNED
from minicluster.metadata.image.partition import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
)
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import PartitionChangeRecord
from minicluster.rules import Rules
from minicluster.values import replace

TOPIC = UUID(int=7)
VERSIONS = {0: "3.7-IV0", 1: "3.7-IV2", 2: "4.0-IV1"}
ANY: Callable[[int], bool] = lambda _: True  # noqa: E731
NOT_3: Callable[[int], bool] = lambda r: r != 3  # noqa: E731
NOBODY: Callable[[int], bool] = lambda _: False  # noqa: E731
FIELDS = {
    "isr": None,
    "leader": NO_LEADER_CHANGE,
    "replicas": None,
    "removing_replicas": None,
    "adding_replicas": None,
    "leader_recovery_state": NO_RECOVERY_CHANGE,
    "directories": None,
    "eligible_leader_replicas": None,
    "last_known_elr": None,
}


def registration(**fields: Any) -> PartitionRegistration:
    values: dict[str, Any] = {
        "leader_recovery_state": RECOVERED,
        "leader_epoch": 100,
        "partition_epoch": 200,
    }
    values |= fields
    values.setdefault("directories", (UNASSIGNED,) * len(values["replicas"]))
    return PartitionRegistration(**values)


FOO = registration(replicas=(2, 1, 3), isr=(2, 1, 3), leader=1)
BAR = registration(
    replicas=(1, 2, 3, 4), isr=(1, 2, 3), removing_replicas=(1,), adding_replicas=(4,), leader=1
)
BAZ = registration(replicas=(2, 1, 3), isr=(1, 3), leader=3)
OFFLINE0 = registration(replicas=(2, 1, 3), isr=(3,), leader=-1)
OFFLINE2 = registration(replicas=(2, 1, 3), isr=(), elr=(3,), last_known_elr=(2,), leader=-1)


def gates(mv: str | int, rules: Rules = Rules.KAFKA_4_3) -> Gates:
    version = MetadataVersion.parse(VERSIONS[mv] if isinstance(mv, int) else mv)
    return Gates(rules=rules, metadata_version=version, elr_enabled=version.elr_supported(rules))


def build(
    partition: PartitionRegistration,
    targets: Targets = Targets(),  # noqa: B008
    *,
    mv: str | int = 2,
    acceptable: Callable[[int], bool] = NOT_3,
    election: Election = Election.ONLINE,
    min_isr: int = 2,
    rules: Rules = Rules.KAFKA_4_3,
) -> dict[str, Any] | None:
    """The fields that the record sets, or None for no record; directories apart."""
    out = change_partition(
        TOPIC,
        0,
        partition,
        targets,
        gates=gates(mv, rules),
        acceptable=acceptable,
        default_dir=lambda _: UNASSIGNED,
        min_isr=min_isr,
        election=election,
    )
    if out is None:
        return None
    assert out.version == gates(mv).metadata_version.partition_change_record_version(rules)
    return {
        name: getattr(out.record, name)
        for name, unset in FIELDS.items()
        if getattr(out.record, name) != unset
    }


def winner(
    partition: PartitionRegistration,
    election: Election,
    acceptable: Callable[[int], bool] = NOT_3,
    mv: int = 0,
    **targets: Any,
) -> tuple[int, bool]:
    """The leader to be and whether that is unclean."""
    builder = PartitionChangeBuilder(
        partition, Targets(**targets), gates(mv), acceptable, min_isr=2, election=election
    )
    return builder.elect_leader()


P, O, U = Election.PREFERRED, Election.ONLINE, Election.UNCLEAN  # noqa: E741
ELECTIONS: list[tuple[str, tuple[int, bool], Any]] = [
    ("B01", (2, False), lambda: winner(FOO, P)),
    ("B02-online", (1, False), lambda: winner(FOO, O)),
    ("B02-unclean", (1, False), lambda: winner(FOO, U)),
    ("B03-online", (1, False), lambda: winner(FOO, O, isr=(1, 3))),
    ("B03-unclean", (1, False), lambda: winner(FOO, U, isr=(1, 3))),
    ("B04", (-1, False), lambda: winner(FOO, O, isr=(3,))),
    ("B05", (2, True), lambda: winner(FOO, U, isr=(3,))),
    ("B06", (4, False), lambda: winner(FOO, U, isr=(4,), replicas=(2, 1, 3, 4))),
    ("B07-preferred", (3, False), lambda: winner(BAZ, P, ANY)),
    ("B07-online", (3, False), lambda: winner(BAZ, O, ANY)),
    ("B07-unclean", (3, False), lambda: winner(BAZ, U, ANY)),
]


@pytest.mark.parametrize(
    ("expected", "act"), [row[1:] for row in ELECTIONS], ids=[row[0] for row in ELECTIONS]
)
def test_who_is_elected(expected: tuple[int, bool], act: Callable[[], tuple[int, bool]]) -> None:
    assert act() == expected


def test_B08_nothing_changed_bumps_nothing() -> None:
    assert build(FOO) is None


@pytest.mark.parametrize("mv", ["3.6-IV0", "3.7-IV2", "4.0-IV0"])
def test_B09_a_smaller_isr_keeps_the_leader_epoch_from_3_6_on(mv: str) -> None:
    assert build(FOO, Targets(isr=(2, 1)), mv=mv) == {"isr": (2, 1)}


@pytest.mark.parametrize("mv", ["3.3-IV3", "3.5-IV2"])
def test_B09_below_3_6_a_smaller_isr_restates_the_leader(mv: str) -> None:
    assert build(FOO, Targets(isr=(2, 1)), mv=mv) == {"isr": (2, 1), "leader": 1}


@pytest.mark.parametrize("mv", ["3.3-IV3", "3.6-IV0", "3.7-IV2", "4.0-IV1"])
def test_B12_another_set_of_replicas_restates_the_leader(mv: str) -> None:
    changed = build(FOO, Targets(replicas=(2, 1, 4)), mv=mv)
    assert changed is not None and changed["leader"] == 1


def test_B15_an_isr_change_alone_is_just_that() -> None:
    assert build(FOO, Targets(isr=(2, 1))) == {"isr": (2, 1)}


@pytest.mark.parametrize("mv", [0, 1, 2])
def test_B17_reordering_replicas_permutes_their_directories_and_bumps_nothing(mv: int) -> None:
    a, b, c = (UUID(int=1000 + n) for n in range(3))
    partition = replace(FOO, directories=(a, b, c))
    expected: dict[str, Any] = {"replicas": (3, 2, 1)}
    if mv:
        expected["directories"] = (c, a, b)
    assert build(partition, Targets(replicas=(3, 2, 1)), mv=mv) == expected


@pytest.mark.parametrize("mv", [0, 1, 2])
def test_B18_the_isr_that_completes_a_reassignment_finishes_it(mv: int) -> None:
    changed = build(BAR, Targets(isr=(1, 2, 3, 4)), mv=mv)
    assert changed is not None
    changed.pop("directories", None)
    assert changed == {
        "replicas": (2, 3, 4),
        "isr": (2, 3, 4),
        "leader": 2,
        "removing_replicas": (),
        "adding_replicas": (),
    }


@pytest.mark.parametrize("mv", [0, 1, 2])
def test_B19_taking_a_reassignment_back_restates_the_leader(mv: int) -> None:
    back = Targets(replicas=(1, 2, 3), isr=(1, 2, 3), removing=(), adding=())
    changed = build(BAR, back, mv=mv)
    assert changed is not None
    changed.pop("directories", None)
    assert changed == {
        "replicas": (1, 2, 3),
        "leader": 1,
        "removing_replicas": (),
        "adding_replicas": (),
    }


def test_B22_an_unclean_election_leaves_the_leader_alone_and_recovering() -> None:
    expected = {"isr": (2,), "leader": 2, "leader_recovery_state": RECOVERING}
    assert build(FOO, Targets(isr=(3,)), election=U, mv=0) == expected


@pytest.mark.parametrize("isr", [None, (2,)])
@pytest.mark.parametrize("mv", [0, 1])
def test_B23_a_leaderless_partition_is_elected_uncleanly(
    isr: tuple[int, ...] | None, mv: int
) -> None:
    expected = {"isr": (1,), "leader": 1, "leader_recovery_state": RECOVERING}
    only_1 = lambda r: r == 1  # noqa: E731
    assert build(OFFLINE0, Targets(isr=isr), election=U, acceptable=only_1, mv=mv) == expected


def test_B24_an_unclean_election_empties_elr_and_last_known_leader() -> None:
    assert build(OFFLINE2, election=U, acceptable=lambda r: r == 1) == {
        "isr": (1,),
        "leader": 1,
        "leader_recovery_state": RECOVERING,
        "eligible_leader_replicas": (),
        "last_known_elr": (),
    }


@pytest.mark.parametrize("mv", ["3.1-IV0", "3.2-IV0"])
def test_B25_B26_a_clean_change_of_leader_keeps_the_recovery_state(mv: str) -> None:
    partition = registration(
        replicas=(1, 2, 3), isr=(1,), leader=1, leader_recovery_state=RECOVERING
    )
    lost = build(partition, Targets(isr=()), acceptable=NOBODY, mv=mv)
    assert lost == {"leader": -1}
    partition = partition.merge(PartitionChangeRecord(**lost))
    assert (partition.leader, partition.isr) == (-1, (1,))
    assert partition.leader_recovery_state == RECOVERING
    assert (partition.leader_epoch, partition.partition_epoch) == (101, 201)
    back = build(partition, acceptable=ANY, mv=mv)
    assert back == {"leader": 1}
    partition = partition.merge(PartitionChangeRecord(**back))
    assert partition.leader_recovery_state == RECOVERING
    assert (partition.leader_epoch, partition.partition_epoch) == (102, 202)


@pytest.mark.parametrize(
    ("mv", "recovery"),
    [("3.2-IV0", {"leader_recovery_state": RECOVERING}), ("3.1-IV0", {})],
    ids=["B27", "B28"],
)
def test_recovery_is_recorded_from_3_2_on(mv: str, recovery: dict[str, int]) -> None:
    partition = registration(replicas=(1, 2, 3), isr=(2, 3), leader=-1)
    changed = build(partition, acceptable=lambda r: r == 1, election=U, mv=mv)
    assert changed == {"isr": (1,), "leader": 1} | recovery


@pytest.mark.parametrize("mv", [0, 1, 2])
def test_B30_who_leaves_below_the_minimum_becomes_eligible(mv: int) -> None:
    partition = registration(replicas=(1, 2, 3, 4), isr=(1, 2, 3, 4), leader=1)
    changed = build(partition, Targets(isr=(1, 2)), election=P, min_isr=3, mv=mv)
    assert changed == {"isr": (1, 2)} | ({"eligible_leader_replicas": (3, 4)} if mv == 2 else {})


def test_B31_reaching_the_minimum_empties_the_elr() -> None:
    """Amended by 4.3: a partition that keeps its leader keeps its last known leader."""
    partition = registration(
        replicas=(1, 2, 3, 4), isr=(1, 2), elr=(3,), last_known_elr=(4,), leader=1
    )
    changed = build(partition, Targets(isr=(1, 2, 3)), min_isr=3, acceptable=ANY)
    assert changed == {"isr": (1, 2, 3), "eligible_leader_replicas": ()}


def test_B32_a_new_member_leaves_the_elr_of_others_alone() -> None:
    partition = registration(
        replicas=(1, 2, 3, 4), isr=(1,), elr=(3,), last_known_elr=(2,), leader=1
    )
    changed = build(partition, Targets(isr=(1, 4)), min_isr=3, acceptable=ANY)
    assert changed == {"isr": (1, 4)}
    for mv in (0, 1):
        changed = build(partition, Targets(isr=(1, 4)), min_isr=3, acceptable=ANY, mv=mv)
        assert changed == {"isr": (1, 4), "eligible_leader_replicas": ()}


def test_B34_an_eligible_replica_is_elected_cleanly_when_the_isr_is_empty() -> None:
    """Amended by 4.3: the election of a leader removes the last known one."""
    partition = registration(
        replicas=(1, 2, 3, 4), isr=(1,), elr=(3,), last_known_elr=(2,), leader=1
    )
    changed = build(partition, Targets(isr=()), min_isr=3, election=P, acceptable=lambda r: r != 1)
    assert changed == {
        "isr": (3,),
        "eligible_leader_replicas": (1,),
        "leader": 3,
        "last_known_elr": (),
    }


def test_B35_B37_the_isr_can_become_empty_and_the_last_leader_is_remembered() -> None:
    partition = registration(replicas=(1, 2, 3, 4), isr=(1, 2, 3, 4), leader=1)
    changed = build(partition, Targets(isr=()), min_isr=3, election=P, acceptable=NOBODY)
    assert changed == {
        "isr": (),
        "leader": -1,
        "eligible_leader_replicas": (1, 2, 3, 4),
        "last_known_elr": (1,),
    }
    partition = partition.merge(PartitionChangeRecord(**changed))
    lost = Targets(isr=(), unclean_shutdown=(2,))
    after = build(partition, lost, min_isr=3, election=P, acceptable=NOBODY)
    assert after == {"eligible_leader_replicas": (1, 3, 4)}


@pytest.mark.parametrize("with_isr", [True, False])
def test_the_last_known_leader_of_3_9_goes_with_the_isr_and_of_4_x_with_the_leader(
    with_isr: bool,
) -> None:
    """Two cases: the leadership ends; a leader remains, with a last known leader in the record."""
    rules = replace(Rules.KAFKA_4_3, last_known_leader_goes_with_isr=with_isr)
    fenced = registration(replicas=(1, 2), isr=(1, 2), leader=1)
    lost = build(fenced, acceptable=NOBODY, min_isr=1, rules=rules) or {}
    assert lost["leader"] == -1 and "isr" not in lost
    assert lost.get("last_known_elr") == (None if with_isr else (1,))
    alone = registration(replicas=(1, 2), isr=(1,), leader=1)
    emptied = build(alone, Targets(isr=()), acceptable=NOBODY, rules=rules) or {}
    assert (emptied["leader"], emptied["isr"], emptied["last_known_elr"]) == (-1, (), (1,))
    leading = registration(replicas=(1, 2), isr=(1, 2), leader=1, last_known_elr=(2,))
    shrunk = build(leading, Targets(isr=(1,)), min_isr=1, rules=rules) or {}
    assert shrunk.get("last_known_elr") == (() if with_isr else None)


LAST_KNOWN = registration(replicas=(1, 2, 3, 4), isr=(), last_known_elr=(1,), leader=-1)


def test_B38_the_last_known_leader_is_elected_uncleanly_when_nobody_else_is_left() -> None:
    changed = build(LAST_KNOWN, Targets(isr=()), min_isr=3, election=P, acceptable=ANY)
    assert changed == {
        "isr": (1,),
        "leader": 1,
        "leader_recovery_state": RECOVERING,
        "last_known_elr": (),
    }


def test_B39_the_last_known_leader_has_to_wait_for_the_eligible() -> None:
    partition = replace(LAST_KNOWN, elr=(3,))
    assert build(partition, Targets(isr=()), min_isr=3, election=P) is None


def test_B43_a_last_known_leader_that_is_not_alive_is_not_elected() -> None:
    """4.3 has it right (KAFKA-19522); the snapshot of the rows had not."""
    assert build(LAST_KNOWN, min_isr=3, election=P, acceptable=lambda r: r != 1) is None


def test_the_last_known_leader_comes_before_an_unclean_candidate() -> None:
    partition = replace(LAST_KNOWN, last_known_elr=(4,))
    changed = build(partition, min_isr=3, election=U, acceptable=ANY)
    assert changed is not None and changed["leader"] == 4


def test_B33_a_replica_that_lost_its_log_leaves_the_elr() -> None:
    partition = registration(replicas=(1, 2, 3, 4), isr=(1,), elr=(2, 3), leader=1)
    lost = Targets(isr=(1,), unclean_shutdown=(3,))
    assert build(partition, lost, min_isr=3, acceptable=ANY) == {"eligible_leader_replicas": (2,)}


def test_B41_directories_are_set_one_by_one() -> None:
    a, b, c, x = (UUID(int=1000 + n) for n in range(4))
    partition = replace(FOO, directories=(a, b, c))
    changed = build(partition, Targets(directories={3: x, 1: LOST}))
    assert changed == {"directories": (a, LOST, x)}


def test_B42_a_change_is_written_where_anything_differs_and_only_there() -> None:
    partition = replace(BAR, directories=(LOST,) * 4)
    assert build(partition, Targets(isr=partition.isr, replicas=partition.replicas)) is None
    for targets in (
        Targets(isr=(2, 3)),
        Targets(replicas=(1, 2, 3, 4, 5)),
        Targets(removing=()),
        Targets(adding=()),
        Targets(recovery_state=RECOVERING),
        Targets(directories={1: MIGRATING}),
    ):
        assert build(partition, targets)


@pytest.mark.parametrize("shipped", [True, False])
def test_nobody_is_no_last_known_leader(shipped: bool) -> None:
    partition = registration(replicas=(1, 2, 3), isr=(), elr=(2,), leader=-1)
    rules = replace(Rules.KAFKA_4_3, last_known_leader_may_be_none=shipped)
    changed = build(partition, Targets(replicas=(2, 3)), acceptable=NOBODY, min_isr=1, rules=rules)
    assert changed is not None and changed["leader"] == -1
    assert changed.get("last_known_elr") == ((-1,) if shipped else None)


@pytest.mark.parametrize("shipped", [True, False])
def test_z56_a_removed_replica_leaves_the_elr(shipped: bool) -> None:
    partition = registration(replicas=(2, 3), isr=(3,), elr=(2,), leader=3)
    rules = replace(Rules.KAFKA_4_3, removed_replica_stays_in_elr=shipped)
    targets = Targets(replicas=(3, 2), removing=(2,))
    changed = build(partition, targets, acceptable=ANY, min_isr=2, rules=rules)
    assert changed is not None and changed["replicas"] == (3,)
    assert changed.get("eligible_leader_replicas") == (None if shipped else ())


@pytest.mark.parametrize("shipped", [True, False])
def test_z56_a_removed_replica_is_no_last_known_leader(shipped: bool) -> None:
    partition = registration(replicas=(2, 3), isr=(3,), last_known_elr=(2,), leader=-1)
    rules = replace(Rules.KAFKA_4_3, removed_replica_stays_in_elr=shipped)
    targets = Targets(replicas=(3, 2), removing=(2,))
    changed = build(partition, targets, acceptable=NOBODY, min_isr=2, rules=rules)
    assert changed is not None and changed["replicas"] == (3,)
    assert changed.get("last_known_elr") == (None if shipped else ())


def test_with_elr_off_the_last_isr_member_stays_with_leader_minus_1() -> None:
    partition = registration(replicas=(1, 2), isr=(1,), leader=1)
    assert build(partition, Targets(isr=()), acceptable=NOBODY, mv="3.9-IV0") == {"leader": -1}
    partition = replace(partition, leader=-1)
    assert build(partition, Targets(isr=()), acceptable=NOBODY, mv="3.9-IV0") is None
