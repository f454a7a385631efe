"""UpdateFeatures of kraft.version: the quorum writes it, a NoOp behind it has the response."""

from __future__ import annotations

import pytest

from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import NoOpRecord
from tests.controller.kit import CLUSTER_ID, Cluster, dir_id, incarnation

Key = m.UpdateFeaturesRequest.FeatureUpdateKey
UPGRADE, SAFE, UNSAFE = 1, 2, 3
OK, INVALID = ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION


def at(level: int, *, why_not: str | None = None) -> Cluster:
    """A cluster whose quorum is at a level, and can be raised or not."""
    cluster = Cluster()
    cluster.start(1)
    cluster.machine.kraft_version = level
    cluster.machine.kraft_version_stays = why_not
    return cluster


def update(cluster: Cluster, *keys: Key, validate_only: bool = False) -> ErrorCode:
    request = m.UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    return ErrorCode(cluster.request(request).error_code)


def kraft(level: int, kind: int = UPGRADE) -> Key:
    return Key(feature="kraft.version", max_version_level=level, upgrade_type=kind)


def test_it_is_written_by_the_quorum_and_completed_when_the_noop_behind_it_is_committed() -> None:
    cluster = at(0)
    cluster.held = True
    end = cluster.end
    token = cluster.send(m.UpdateFeaturesRequest(feature_updates=(kraft(1),)))
    assert cluster.raised == [(1, end)]
    assert isinstance(cluster.log[end + 2].record, NoOpRecord) and cluster.end == end + 3
    assert token not in cluster.responses
    cluster.commit(end + 2)
    assert token not in cluster.responses
    cluster.commit(end + 3)
    assert cluster.responses[token].response.error_code == OK
    assert cluster.responses[token].records_written == (end + 2,)


@pytest.mark.parametrize(
    ("now", "level", "kind", "error", "records"),
    [
        (0, 1, UPGRADE, OK, 1),
        (0, 0, UPGRADE, OK, 1),  # no change, but a record to wait for
        (1, 1, UPGRADE, OK, 1),
        (0, 0, SAFE, OK, 0),
        (1, 1, UNSAFE, OK, 0),
        (0, 1, SAFE, INVALID, 0),  # higher, and no upgrade
        (1, 0, UPGRADE, INVALID, 0),  # lower, and an upgrade
        (1, 0, SAFE, INVALID, 0),
        (1, 0, UNSAFE, INVALID, 0),
        (0, 2, UPGRADE, INVALID, 0),
        (0, -1, UPGRADE, INVALID, 0),
        (0, 1, 0, INVALID, 0),
    ],
)
def test_it_rises_and_never_falls(
    now: int, level: int, kind: int, error: ErrorCode, records: int
) -> None:
    cluster = at(now)
    before = len(cluster.log)
    assert update(cluster, kraft(level, kind)) == error
    assert len(cluster.log) - before == records
    assert bool(cluster.raised) == (records == 1 and level > now)


def test_a_refusal_of_the_quorum_comes_after_everything_else() -> None:
    cluster = at(0, why_not="voter 103 has not reported that it supports it")
    responses = {
        level: cluster.request(m.UpdateFeaturesRequest(feature_updates=(kraft(level),)))
        for level in (2, 1)
    }
    assert [response.error_code for response in responses.values()] == [INVALID, INVALID]
    assert "voter 103" not in responses[2].error_message
    assert "voter 103" in responses[1].error_message
    assert update(cluster, kraft(0)) == OK


def test_to_validate_only_writes_nothing_and_finds_the_same() -> None:
    assert update(at(0), kraft(1), validate_only=True) == OK
    assert update(at(0, why_not="no"), kraft(1), validate_only=True) == INVALID
    cluster = at(0)
    end = cluster.end
    update(cluster, kraft(1), validate_only=True)
    assert cluster.end == end and not cluster.raised


def test_it_does_not_rise_where_a_feature_named_with_it_is_refused() -> None:
    cluster = at(0)
    other = Key(feature="metadata.version", max_version_level=99, upgrade_type=UPGRADE)
    assert update(cluster, kraft(1), other) == INVALID
    assert not cluster.raised


def test_a_broker_that_does_not_offer_it_keeps_it_down() -> None:
    cluster = at(0)
    Request = m.BrokerRegistrationRequest
    feature = Request.Feature(
        name="metadata.version", min_supported_version=7, max_supported_version=31
    )
    registered = cluster.request(
        Request(
            broker_id=2,
            cluster_id=CLUSTER_ID,
            incarnation_id=incarnation(2),
            features=(feature,),
            log_dirs=(dir_id(2),),
        )
    )
    assert registered.error_code == OK
    assert update(cluster, kraft(1)) == INVALID
