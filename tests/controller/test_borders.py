"""Values exactly on a border: an offset that is just reached, a level just left out."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.controller.decision import KRaftVersion
from minicluster.controller.operations.update_features import update_features
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerControlState,
    BrokerHeartbeatManager,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from tests.controller.kit import CLUSTER_ID, Cluster, dir_id

ELR = "eligible.leader.replicas.version"
MV = "metadata.version"


def update(feature: str, level: int, kind: int = 1) -> m.UpdateFeaturesRequest:
    Request = m.UpdateFeaturesRequest
    key = Request.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    return Request(feature_updates=(key,))


@pytest.mark.parametrize(("behind", "caught_up"), [(0, True), (1, False), (-1, True)])
def test_a_broker_is_caught_up_with_the_very_record_of_its_registration(
    behind: int, caught_up: bool
) -> None:
    cluster = Cluster()
    cluster.register(1)
    broker = cluster.machine.image.cluster.broker(1)
    assert broker is not None
    response = cluster.heartbeat(1, current_metadata_offset=broker.register_offset - behind)
    assert response.is_caught_up is caught_up
    assert response.is_fenced is not caught_up


@pytest.mark.parametrize(
    ("slowest", "following"),
    [(98, BrokerControlState.CONTROLLED_SHUTDOWN), (99, BrokerControlState.SHUTDOWN_NOW)],
)
def test_a_broker_may_go_once_the_slowest_is_at_its_shutdown_offset(
    slowest: int, following: BrokerControlState
) -> None:
    heartbeats = BrokerHeartbeatManager(Rules.KAFKA_4_3, 9_000)
    for broker_id, offset in ((1, slowest), (2, 200), (3, 150)):
        heartbeats.register(broker_id, True, 0)
        heartbeats.touch(broker_id, False, offset, 0)
    heartbeats.set_shutdown_offset(3, 99)
    assert following is heartbeats.next_state(
        3,
        want_fence=False,
        want_shut_down=True,
        metadata_offset=150,
        register_offset=0,
        has_leaderships=lambda: False,
    )


def offering(*features: tuple[str, int, int]) -> Cluster:
    """A controller of which one broker, that offers these levels, is registered.

    A broker that needs a feature can be registered while the feature is on only.
    """
    cluster = Cluster(metadata_version="4.3-IV0", elr=any(low for _, low, _ in features))
    Request = m.BrokerRegistrationRequest
    registered = cluster.request(
        Request(
            broker_id=1,
            cluster_id=CLUSTER_ID,
            log_dirs=(dir_id(1),),
            features=tuple(
                Request.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, low, high in ((MV, 7, 30), *features)
            ),
        )
    )
    assert registered.error_code == 0
    return cluster


@pytest.mark.parametrize(
    ("features", "error"),
    [
        ([], ErrorCode.NONE),  # a broker without the feature can do without it
        ([(ELR, 0, 1)], ErrorCode.NONE),
        ([(ELR, 0, 0)], ErrorCode.NONE),
        ([(ELR, 1, 1)], ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_a_feature_can_be_off_unless_a_broker_cannot_do_without_it(
    features: list[tuple[str, int, int]], error: ErrorCode
) -> None:
    assert offering(*features).request(update(ELR, 0)).error_code == error


def test_a_change_of_features_is_written_whole_or_not_at_all() -> None:
    cluster = Cluster(metadata_version="4.2-IV1")

    def decide(request: m.UpdateFeaturesRequest) -> Any:
        return update_features(cluster.machine.state, request, 2, KRaftVersion(), 0)

    turned_on = decide(update(ELR, 1))
    assert len(turned_on.records) == 2 and turned_on.atomic
    refused = decide(update(ELR, 2))
    assert refused.response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.records == ()
