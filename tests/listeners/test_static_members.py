"""A static member comes back under another member id and keeps what it owned (KIP-345)."""

from __future__ import annotations

from typing import Any

from minicluster import MiniCluster
from minicluster.clients.classic_member import _assignment, _payload, assigned_partitions
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from minicluster.verify.model import Verdict
from tests.listeners.raw_client import RawClient

PROTOCOL = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0")


def joined(client: RawClient) -> Any:
    """The response to a member without an id that names its instance."""
    request = JoinGroupRequest(
        group_id="readers",
        group_instance_id="first",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(PROTOCOL,),
    )
    response = client.request(request, 7)
    assert response.error_code == ErrorCode.NONE
    return response


def owned(client: RawClient, join: Any, assigns: bool) -> Any:
    given = _payload(_assignment([("orders", 0)]))
    own = SyncGroupRequest.SyncGroupRequestAssignment(member_id=join.member_id, assignment=given)
    request = SyncGroupRequest(
        group_id="readers",
        generation_id=join.generation_id,
        member_id=join.member_id,
        group_instance_id="first",
        assignments=(own,) if assigns else (),
    )
    response = client.request(request, 4)
    assert response.error_code == ErrorCode.NONE
    return assigned_partitions(response.assignment)


def test_a_static_member_that_comes_back_is_no_second_owner() -> None:
    with MiniCluster(brokers=1, controllers=1, seed=3, listeners=True) as cluster:
        cluster.create_topic("orders", replicas=1)
        with RawClient(cluster) as client:
            finding = FindCoordinatorRequest(key_type=0, coordinator_keys=("readers",))
            cluster.wait_until(
                lambda: client.request(finding, 4).coordinators[0].error_code == ErrorCode.NONE
            )
            first = joined(client)
            assert owned(client, first, assigns=True) == (("orders", 0),)
            second = joined(client)
            assert second.member_id != first.member_id
            assert second.generation_id == first.generation_id
            assert owned(client, second, assigns=False) == (("orders", 0),)
            beat = HeartbeatRequest(
                group_id="readers",
                generation_id=first.generation_id,
                member_id=first.member_id,
                group_instance_id="first",
            )
            assert client.request(beat, 4).error_code == ErrorCode.FENCED_INSTANCE_ID
        assert cluster.verify(engine="process").rule("H2").verdict is Verdict.VALID
