"""A client of ZooKeeper, and what becomes of its requests when its session has expired."""

from __future__ import annotations

from typing import Any

from minicluster.effects import Effect, Send
from minicluster.zookeeper.server.client import (
    Results,
    SessionExpired,
    SessionOpened,
    ZooKeeperClient,
)
from minicluster.zookeeper.server.messages import (
    ZooKeeperConnectRequest,
    ZooKeeperConnectResponse,
    ZooKeeperOperationRequest,
)
from minicluster.zookeeper.server.operations import Code, Create, GetData, Result

SERVER, TIMEOUT_MS = 201, 6_000
EXPIRED = Result(Code.SESSIONEXPIRED)


def sent(effects: list[Effect], kind: type) -> Any:
    """The only request of a kind, with its correlation id."""
    [send] = [e for e in effects if isinstance(e, Send) and isinstance(e.request, kind)]
    return send


def connected(client: ZooKeeperClient, effects: list[Effect], session: int) -> list[Effect]:
    """The server responds to the request for a session; 0: there is no such session any more."""
    connect = sent(effects, ZooKeeperConnectRequest)
    return client.on_response(connect.correlation_id, ZooKeeperConnectResponse(session), 0)


def started() -> ZooKeeperClient:
    client = ZooKeeperClient(server=SERVER, timeout_ms=TIMEOUT_MS)
    assert SessionOpened(7) in connected(client, client.start(0), 7)
    return client


def test_a_request_before_the_first_session_waits_for_it() -> None:
    client = ZooKeeperClient(server=SERVER, timeout_ms=TIMEOUT_MS)
    begun = client.start(0)
    assert client.submit("read", (GetData("/controller"),), 0) == []
    assert sent(connected(client, begun, 7), ZooKeeperOperationRequest).request.session == 7


def test_requests_of_a_controller_whose_session_has_expired_are_not_sent_in_the_next_one() -> None:
    """Else a controller that has lost its office would write in its new session (K2)."""
    client = started()
    in_flight = client.submit("first", (GetData("/a"),), 0)
    sent(in_flight, ZooKeeperOperationRequest)
    silent = client.on_timer("zookeeper-session", TIMEOUT_MS)
    gone = connected(client, silent, 0)
    failed = Results("first", (EXPIRED,))
    assert [e for e in gone if isinstance(e, Results | SessionExpired)] == [
        failed,
        SessionExpired(),
    ]
    # What the failure made the controller ask for next fails as well; others wait.
    two = (GetData("/a"), GetData("/b"))
    failed = Results("next", (EXPIRED,) * 2)
    assert client.submit("next", two, TIMEOUT_MS, may_wait=False) == [failed]
    assert client.submit("other", (GetData("/c"),), TIMEOUT_MS) == []
    opened = connected(client, gone, 8)
    assert SessionOpened(8) in opened
    assert sent(opened, ZooKeeperOperationRequest).request.request == GetData("/c")
    later = client.submit("later", two[:1], TIMEOUT_MS, may_wait=False)
    assert sent(later, ZooKeeperOperationRequest).request.session == 8


def test_requests_whose_connection_is_lost_are_sent_again_in_their_order() -> None:
    """KafkaZkClient.retryRequestsUntilConnected sends what has failed as it was."""
    client = started()
    paths = ("/a", "/a/b", "/a/b/c")
    submitted = client.submit("create", tuple(Create(path) for path in paths), 0)
    lost = [effect.correlation_id for effect in submitted if isinstance(effect, Send)]
    assert len(lost) == 3
    for correlation_id in lost:
        client.on_failure(correlation_id, 4_000)
    again = client.submit("later", (GetData("/a"),), 4_000)
    requests = [effect.request.request for effect in again if isinstance(effect, Send)]
    assert requests == [*map(Create, paths), GetData("/a")]
