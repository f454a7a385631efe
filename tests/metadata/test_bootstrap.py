"""The first records of a new log, in both releases."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.errors import UserError
from minicluster.metadata.bootstrap import (
    activation_records,
    bootstrap_records,
    default_features,
)
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.metadata_version import MetadataVersion, production_version
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    VersionedRecord,
    ZkMigrationStateRecord,
)
from minicluster.rules import Rules
from tests.metadata.records import version

NEW, OLD = Rules.KAFKA_4_3, Rules.KAFKA_3_9
ELR = "eligible.leader.replicas.version"


def activate(
    *records: Any, rules: Rules = NEW, open_transaction: bool = False, **given: Any
) -> tuple[list[Any], bool]:
    """The first records that activation adds to a log; true if they are one atomic batch."""
    settings = {
        "log_is_empty": not records and not open_transaction,
        "bootstrap": bootstrap_records(production_version(rules), {}, rules=rules),
    } | given
    activation = activation_records(
        apply_all(MetadataImage.EMPTY, records),
        transaction_is_open=open_transaction,
        rules=rules,
        **settings,  # type: ignore[arg-type]
    )
    return [versioned.record for versioned in activation.records], activation.atomic


BEGIN, END = BeginTransactionRecord(name="Bootstrap records"), EndTransactionRecord()


def test_a_fresh_log_gets_its_version_in_a_transaction() -> None:
    assert activate() == ([BEGIN, version(30), END], False)


def test_3_9_adds_the_migration_state() -> None:
    state = ZkMigrationStateRecord(zk_migration_state=0)
    assert activate(rules=OLD) == ([BEGIN, version(21), state, END], False)
    before = bootstrap_records(MetadataVersion.V3_3_IV3, {}, rules=OLD)
    assert activate(rules=OLD, bootstrap=before) == ([version(7)], True)


def test_below_3_6_there_are_no_transactions_and_all_goes_into_one_batch() -> None:
    records = bootstrap_records(MetadataVersion.V3_6_IV0, {})
    assert activate(bootstrap=records) == ([version(12)], True)


def test_elr_from_the_start_fixes_the_clusters_min_isr() -> None:
    records = bootstrap_records(MetadataVersion.V4_3_IV0, {ELR: 1})
    written, _ = activate(bootstrap=records, static_min_insync_replicas=2)
    minimum = ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")
    elr = FeatureLevelRecord(name=ELR, feature_level=1)
    assert written == [BEGIN, version(30), elr, minimum, END]


def test_a_log_with_a_version_gets_nothing() -> None:
    for rules in (NEW, OLD):
        assert activate(version(13), rules=rules) == ([], True)


def test_a_log_without_a_version_is_bootstrapped_by_4_3_only() -> None:
    assert activate(NoOpRecord())[0] == [BEGIN, version(30), END]
    assert activate(NoOpRecord(), rules=OLD) == ([], True)


def test_an_open_transaction_is_aborted_first() -> None:
    [abort], atomic = activate(version(13), open_transaction=True)
    assert isinstance(abort, AbortTransactionRecord) and atomic
    written, _ = activate(open_transaction=True)
    assert isinstance(written[0], AbortTransactionRecord)
    assert written[1:] == [BEGIN, version(30), END]


def test_an_open_transaction_that_the_version_does_not_have_is_an_error() -> None:
    with pytest.raises(ReplayError, match="does not support transactions"):
        activate(version(12), open_transaction=True)
    with pytest.raises(ReplayError, match="does not support transactions"):
        activate(open_transaction=True, bootstrap=bootstrap_records(MetadataVersion.V3_6_IV0, {}))


def test_bootstrap_records_without_a_version_are_an_error() -> None:
    with pytest.raises(ReplayError):
        activate(bootstrap=(VersionedRecord(NoOpRecord(), 0),))


def test_default_features_grow_with_the_version() -> None:
    assert default_features(MetadataVersion.V3_9_IV0) == {}
    assert default_features(MetadataVersion.V4_0_IV0) == {"group.version": 1}
    assert default_features(MetadataVersion.V4_0_IV3) == {
        "group.version": 1,
        "transaction.version": 2,
    }
    assert ELR in default_features(MetadataVersion.V4_1_IV0)
    assert default_features(MetadataVersion.V4_3_IV0) == {
        ELR: 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


@pytest.mark.parametrize(
    ("version", "share", "streams"),
    [
        (MetadataVersion.V4_1_IV1, 0, 0),
        (MetadataVersion.V4_2_IV0, 1, 0),
        (MetadataVersion.V4_2_IV1, 1, 1),
        (MetadataVersion.V4_3_IV0, 1, 1),
    ],
)
def test_share_and_streams_groups_are_finalized_from_their_own_levels_on(
    version: MetadataVersion, share: int, streams: int
) -> None:
    """As ``kafka-features describe`` shows them (ShareVersion, StreamsVersion)."""
    levels = default_features(version)
    assert (levels.get("share.version", 0), levels.get("streams.version", 0)) == (share, streams)


@pytest.mark.parametrize(("rules", "lowest"), [(NEW, 7), (OLD, 4)])
def test_a_new_cluster_does_not_start_below_the_lowest_level(rules: Rules, lowest: int) -> None:
    assert bootstrap_records(MetadataVersion(lowest), {}, rules=rules)
    with pytest.raises(UserError, match="cannot start"):
        bootstrap_records(MetadataVersion(lowest - 1), {}, rules=rules)


def test_elr_needs_its_version_and_level_zero_is_no_record() -> None:
    with pytest.raises(UserError, match=ELR):
        bootstrap_records(MetadataVersion.V4_0_IV0, {ELR: 1})
    assert len(bootstrap_records(MetadataVersion.V4_3_IV0, {ELR: 0})) == 1
