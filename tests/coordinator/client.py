"""A client that sends one raw request to a broker of a simulated cluster."""

from __future__ import annotations

from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Exchange, Sender
from minicluster.actors.network import Completion

CLIENT = -9
WITHIN_MS = 30_000


class _Client:
    def __init__(self) -> None:
        self.completion: Completion | None = None

    def deliver(self, completion: Completion, /) -> None:
        self.completion = completion


def exchange(
    cluster: MiniCluster, broker: int, request: Any, version: int, client_id: str = "client"
) -> Any:
    """The response of a broker to a request."""
    client = _Client()
    sent: Exchange = inside(cluster).network.request(
        src=CLIENT,
        dst=broker,
        body=request,
        version=version,
        caller=client,
        sender=Sender(client_id=client_id),
    )
    inside(cluster).run_until(lambda: client.completion is not None, WITHIN_MS)
    assert client.completion is not None, f"no response to {sent}"
    assert client.completion.failure is None, f"{sent}: {client.completion.failure}"
    return client.completion.response
