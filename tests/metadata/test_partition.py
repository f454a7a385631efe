"""PartitionRegistration: rows B59 to B63 of the conformance cases, and the rules of a merge."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from minicluster.metadata.errors import MetadataLost, ReplayError
from minicluster.metadata.image import directory_id
from minicluster.metadata.image.partition import (
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    PartitionRegistration,
)
from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.protocol.records import PartitionChangeRecord, PartitionRecord
from minicluster.rules import Rules
from minicluster.values import replace

KAFKA_4_3 = Rules.KAFKA_4_3
TOPIC = UUID(int=77 << 64)
A, B, C = (UUID(int=1000 + n) for n in range(3))
MIGRATING, UNASSIGNED, LOST = directory_id.MIGRATING, directory_id.UNASSIGNED, directory_id.LOST


def registration(*, leader: int = 1, epochs: str = "0/0", **given: object) -> PartitionRegistration:
    leader_epoch, partition_epoch = epochs.split("/")
    fields: dict[str, object] = {
        "replicas": (1, 2, 3),
        "directories": (A, B, C),
        "isr": (1, 2, 3),
        "leader_recovery_state": RECOVERED,
    } | given
    return PartitionRegistration(
        leader=leader,
        leader_epoch=int(leader_epoch),
        partition_epoch=int(partition_epoch),
        **fields,  # type: ignore[arg-type]
    )


def test_b59_a_new_leader_raises_both_epochs() -> None:
    before = registration(isr=(1, 2))
    after = before.merge(PartitionChangeRecord(leader=3, isr=(3,)))
    assert after == registration(isr=(3,), leader=3, epochs="1/1")


def test_b60_a_reassignment_comes_and_goes_without_a_new_leader_epoch() -> None:
    start = registration(epochs="100/200")
    moving = start.merge(
        PartitionChangeRecord(
            removing_replicas=(3,),
            adding_replicas=(4,),
            replicas=(1, 2, 3, 4),
            directories=(A, B, C, UNASSIGNED),
        )
    )
    assert moving == registration(
        epochs="100/201",
        replicas=(1, 2, 3, 4),
        directories=(A, B, C, UNASSIGNED),
        removing_replicas=(3,),
        adding_replicas=(4,),
    )
    assert moving.is_reassigning
    done = moving.merge(
        PartitionChangeRecord(
            isr=(1, 2, 4),
            removing_replicas=(),
            adding_replicas=(),
            replicas=(1, 2, 4),
            directories=(A, B, UNASSIGNED),
        )
    )
    assert done == registration(
        epochs="100/202",
        replicas=(1, 2, 4),
        isr=(1, 2, 4),
        directories=(A, B, UNASSIGNED),
    )
    assert not done.is_reassigning


FULL = registration(
    replicas=(0, 1, 2, 3, 4),
    directories=(LOST, A, UNASSIGNED, B, MIGRATING),
    isr=(0,),
    leader=0,
    elr=(2, 3),
    last_known_elr=(4,),
)


@pytest.mark.parametrize(("rules", "first_elr"), [(KAFKA_4_3, 23), (Rules.KAFKA_3_9, 22)])
@pytest.mark.parametrize("version", list(MetadataVersion))
def test_b61_a_record_carries_what_its_version_can(
    version: MetadataVersion, rules: Rules, first_elr: int
) -> None:
    losses: list[str] = []
    written = FULL.to_record(TOPIC, 5, version, True, rules, losses.append)
    record: Any = written.record
    assert written.version == version.partition_record_version(rules)
    assert (record.topic_id, record.partition_id, record.isr) == (TOPIC, 5, (0,))
    has_elr = version.level >= first_elr
    assert record.eligible_leader_replicas == ((2, 3) if has_elr else None)
    assert record.last_known_elr == ((4,) if has_elr else None)
    if version.level >= 17:
        assert record.directories == FULL.directories and losses == []
    else:
        assert record.directories == ()
        assert losses == ["the directory assignment state of one or more replicas"]


def test_b61_a_loss_is_an_error_unless_somebody_takes_it() -> None:
    with pytest.raises(MetadataLost, match="directory assignment"):
        FULL.to_record(TOPIC, 5, MetadataVersion.V3_7_IV1, True, KAFKA_4_3)
    without = replace(FULL, directories=(MIGRATING,) * 5)
    without.to_record(TOPIC, 5, MetadataVersion.V3_7_IV1, True, KAFKA_4_3)


def test_b62_an_empty_elr_is_not_written_nor_any_while_the_feature_is_off() -> None:
    version = MetadataVersion.V4_0_IV1
    empty: Any = registration().to_record(TOPIC, 0, version, True, KAFKA_4_3)
    assert empty.version == 2
    assert (empty.record.eligible_leader_replicas, empty.record.last_known_elr) == (None, None)
    off: Any = FULL.to_record(TOPIC, 0, version, False, KAFKA_4_3)
    assert (off.record.eligible_leader_replicas, off.record.last_known_elr) == (None, None)


@pytest.mark.parametrize("leader", [1, 2, NO_LEADER])
def test_any_leader_that_is_given_starts_an_epoch_the_same_one_too(leader: int) -> None:
    after = registration(epochs="4/9").merge(PartitionChangeRecord(leader=leader))
    assert (after.leader, after.leader_epoch, after.partition_epoch) == (leader, 5, 10)


def test_a_record_that_gives_nothing_is_one_partition_epoch() -> None:
    before = registration(epochs="4/9", leader_recovery_state=RECOVERING, elr=(2,))
    assert before.merge(PartitionChangeRecord()) == replace(before, partition_epoch=10)


def test_empty_lists_replace_and_missing_ones_keep() -> None:
    before = registration(elr=(2,), last_known_elr=(3,), adding_replicas=(3,))
    after = before.merge(PartitionChangeRecord(isr=(), eligible_leader_replicas=()))
    assert (after.isr, after.elr) == ((), ())
    assert (after.last_known_elr, after.adding_replicas) == ((3,), (3,))


def test_directories_stay_when_replicas_change_places_and_fall_back_when_they_cannot() -> None:
    swapped = registration().merge(PartitionChangeRecord(replicas=(3, 2, 1)))
    assert swapped.directories == (A, B, C)
    grown = registration().merge(PartitionChangeRecord(replicas=(1, 2, 3, 4)))
    assert grown.directories == (MIGRATING,) * 4


def test_a_recovery_state_changes_only_when_given() -> None:
    recovering = registration(leader_recovery_state=RECOVERING)
    assert recovering.merge(PartitionChangeRecord(isr=(1,))).is_recovering
    after = recovering.merge(PartitionChangeRecord(leader_recovery_state=RECOVERED))
    assert not after.is_recovering


@pytest.mark.parametrize(
    "change",
    [
        PartitionChangeRecord(leader_recovery_state=2),
        PartitionChangeRecord(directories=(A,)),
        PartitionChangeRecord(replicas=(1, 2), directories=(A, B, C)),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(change: PartitionChangeRecord) -> None:
    with pytest.raises(ReplayError):
        registration().merge(change)


def test_a_record_without_directories_means_migrating() -> None:
    record = PartitionRecord(replicas=(1, 2), isr=(1,), leader=1)
    partition = PartitionRegistration.from_record(record)
    assert partition.directories == (MIGRATING, MIGRATING)
    assert (partition.elr, partition.last_known_elr) == ((), ())


def test_written_and_read_again_it_is_the_same() -> None:
    written = FULL.to_record(TOPIC, 5, MetadataVersion.V4_3_IV0, True, KAFKA_4_3)
    assert PartitionRegistration.from_record(written.record) == FULL


def test_the_first_replica_is_the_preferred_leader_and_no_leader_is_imbalance() -> None:
    assert registration(leader=1).has_preferred_leader
    assert not registration(leader=2).has_preferred_leader
    assert not registration(leader=NO_LEADER).has_preferred_leader


def test_a_directory_is_online_by_kafkas_rules() -> None:
    assert directory_id.is_online(UNASSIGNED, [A]) and directory_id.is_online(MIGRATING, [A])
    assert not directory_id.is_online(LOST, []) and not directory_id.is_online(LOST, [LOST])
    assert directory_id.is_online(A, []) and directory_id.is_online(A, [A, B])
    assert not directory_id.is_online(C, [A, B])
    assert directory_id.is_reserved(UUID(int=99)) and not directory_id.is_reserved(UUID(int=100))


def test_ids_sort_as_signed_halves_as_in_java() -> None:
    negative, positive = UUID(int=1 << 127), UUID(int=1 << 64)
    assert sorted([positive, negative], key=directory_id.java_order) == [negative, positive]
