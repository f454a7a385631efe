"""metadata.version: names, levels and gates, as the specification's tables have them."""

from __future__ import annotations

import pytest

from minicluster.metadata.errors import UnknownMetadataVersion
from minicluster.metadata.metadata_version import (
    MetadataVersion,
    latest_version,
    lowest_version,
    production_version,
)
from minicluster.rules import Rules

NAMES = """
    3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2
    3.6-IV0 3.6-IV1 3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0
    4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0
"""

FIRST_LEVEL_OF_GATE = {
    "leader_recovery_supported": 3,
    "no_op_record_supported": 5,
    "broker_registration_change_supported": 6,
    "in_controlled_shutdown_supported": 7,
    "migration_supported": 8,
    "scram_supported": 11,
    "metadata_transactions_supported": 13,
    "delegation_tokens_supported": 14,
    "controller_registration_supported": 15,
    "directory_assignment_supported": 17,
    "cordoned_log_dirs_supported": 30,
}

RECORD_VERSIONS = {
    "register_broker_record_version": {1: 0, 7: 1, 8: 2, 17: 3, 30: 4},
    "register_controller_record_version": {1: 0},
    "fetch_request_version": {1: 12, 2: 13, 9: 14, 10: 15, 19: 16, 21: 17, 27: 18},
}


def test_levels_count_the_names_from_one() -> None:
    assert [version.version_name for version in MetadataVersion] == NAMES.split()
    assert [version.level for version in MetadataVersion] == list(range(1, 32))
    assert f"{MetadataVersion(30)}" == "4.3-IV0"


@pytest.mark.parametrize("gate", FIRST_LEVEL_OF_GATE)
def test_a_gate_opens_at_its_level_and_stays_open(gate: str) -> None:
    opened = [version.level for version in MetadataVersion if getattr(version, gate)]
    assert opened == list(range(FIRST_LEVEL_OF_GATE[gate], 32))


def test_an_isr_shrink_bumps_the_leader_epoch_below_3_6_only() -> None:
    bumping = [
        version.level for version in MetadataVersion if version.isr_shrink_bumps_leader_epoch
    ]
    assert bumping == list(range(1, 12))


@pytest.mark.parametrize("name", RECORD_VERSIONS)
def test_records_and_requests_take_the_version_of_the_level(name: str) -> None:
    steps = RECORD_VERSIONS[name]
    for version in MetadataVersion:
        expected = steps[max(level for level in steps if level <= version.level)]
        assert getattr(version, name) == expected, version


@pytest.mark.parametrize(("rules", "first"), [(Rules.KAFKA_4_3, 23), (Rules.KAFKA_3_9, 22)])
def test_eligible_leader_replicas_begin_at_another_level_in_3_9(rules: Rules, first: int) -> None:
    """MetadataVersion.isElrSupported and partitionRecordVersion of 4.3.0 and 3.9.2."""
    supported = [version.level for version in MetadataVersion if version.elr_supported(rules)]
    assert supported == list(range(first, 32))
    for version in MetadataVersion:
        written = 2 if version.level >= first else 1 if version.level >= 17 else 0
        assert version.partition_record_version(rules) == written
        assert version.partition_change_record_version(rules) == written


@pytest.mark.parametrize(
    ("text", "level"),
    [("4.3-IV0", 30), ("30", 30), (" 3.3-IV3 ", 7), ("3.5", 11), ("4.2", 29), ("1", 1)],
)
def test_a_version_is_read_from_name_release_or_level(text: str, level: int) -> None:
    assert MetadataVersion.parse(text).level == level


@pytest.mark.parametrize("text", ["4.3-IV1", "0", "32", "2.8", "", "4.9", "latest"])
def test_an_unknown_version_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(UnknownMetadataVersion, match=r"metadata\.version.*1 to 31"):
        MetadataVersion.parse(text)


def test_each_release_has_its_range() -> None:
    assert [
        f(Rules.KAFKA_4_3).level for f in (lowest_version, production_version, latest_version)
    ] == [
        7,
        30,
        31,
    ]
    assert [
        f(Rules.KAFKA_3_9).level for f in (lowest_version, production_version, latest_version)
    ] == [
        1,
        21,
        23,
    ]


@pytest.mark.parametrize(
    ("rules", "changing"),
    [
        (Rules.KAFKA_4_3, {7, 8, 11, 13, 14, 15, 17, 23, 30}),
        (Rules.KAFKA_3_9, {3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 22}),
    ],
)
def test_going_down_loses_metadata_where_a_level_added_some(
    rules: Rules, changing: set[int]
) -> None:
    lowest, latest = lowest_version(rules), latest_version(rules)
    for level in range(lowest + 1, latest + 1):
        higher, lower = MetadataVersion(level), MetadataVersion(level - 1)
        assert lower.changes_metadata_since(higher, rules) is (level in changing)
        assert higher.changes_metadata_since(lower, rules) is (level in changing)
        assert not higher.changes_metadata_since(higher, rules)
    assert MetadataVersion(18).changes_metadata_since(latest, rules)
