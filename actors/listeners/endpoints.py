"""The ports of a cluster: reserved at first, listened on while the broker's process runs.

A reserved port is bound, so that no other program takes it while a broker is down; without a
socket that listens it refuses connections, as the port of a killed process does.
"""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Sequence
from typing import Any

from minicluster.protocol.messages import DescribeClusterResponse, MetadataResponse

LOOPBACK = "127.0.0.1"


class Endpoints:
    """The real address of each broker, and the made-up one that the metadata has for it."""

    def __init__(self, nodes: Sequence[int], made_up: Callable[[int], tuple[str, int]]) -> None:
        self.nodes: dict[int, tuple[str, int]] = {}
        self._reserved: list[socket.socket] = []
        self._real: dict[tuple[str, int], tuple[str, int]] = {}
        for node_id in nodes:
            reserved = _bound(LOOPBACK, 0)
            self._reserved.append(reserved)
            self.nodes[node_id] = self._real[made_up(node_id)] = (
                LOOPBACK,
                reserved.getsockname()[1],
            )

    @property
    def bootstrap_servers(self) -> str:
        """All addresses, as clients take them."""
        return ",".join(f"{host}:{port}" for host, port in self.nodes.values())

    def listen(self, node_id: int, backlog: int) -> socket.socket:
        """A socket that takes connections on a node's port."""
        listening = _bound(*self.nodes[node_id])
        listening.listen(backlog)
        listening.setblocking(False)
        return listening

    def advertise(self, response: Any) -> Any:
        """The response with real addresses where it has made-up ones."""
        if type(response) not in (MetadataResponse, DescribeClusterResponse):
            return response
        return dataclasses.replace(response, brokers=tuple(map(self._moved, response.brokers)))

    def close(self) -> None:
        """Free the ports."""
        for reserved in self._reserved:
            reserved.close()

    def _moved(self, broker: Any) -> Any:
        real = self._real.get((broker.host, broker.port))
        return broker if real is None else dataclasses.replace(broker, host=real[0], port=real[1])


def _bound(host: str, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made
