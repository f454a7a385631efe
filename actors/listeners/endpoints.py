"""The ports of a cluster: reserved at first, listened on while the node's process runs.

A reserved port is bound, so that no other program takes it while a node is down; without a
socket that listens it refuses connections, as the port of a killed process does.
"""

from __future__ import annotations

import dataclasses
import errno
import ipaddress
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from minicluster.actors.listeners.address import ListenAddress
from minicluster.errors import UserError
from minicluster.protocol.messages import (
    DescribeClusterResponse,
    DescribeQuorumResponse,
    FetchResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    ProduceResponse,
)


class AddressUnavailable(UserError):
    """No socket can listen at an address."""


_ENDPOINTS: dict[type[Any], str] = {
    DescribeClusterResponse: "brokers",
    DescribeQuorumResponse: "nodes",
    FetchResponse: "node_endpoints",
    FindCoordinatorResponse: "coordinators",
    MetadataResponse: "brokers",
    ProduceResponse: "node_endpoints",
}
"""The responses that name addresses, with their field of them."""


class Endpoints:
    """The address of each node, and the one that responses name.

    The metadata of a cluster on threads has the same ones. That of a simulated cluster has made-up
    ones, so that a run does not depend on which ports were free; responses get the real ones at
    the border (``advertise``).
    """

    def __init__(
        self, brokers: Sequence[int], at: ListenAddress, controllers: Sequence[int] = ()
    ) -> None:
        """Reserve a port for each node.

        Errors:  AddressUnavailable where another program has one, and for a host that is not here.
        """
        self.nodes: dict[int, tuple[str, int]] = {}
        self.advertised: dict[int, tuple[str, int]] = {}
        self._brokers = tuple(brokers)
        self._real: dict[tuple[str, int], tuple[str, int]] = {}
        self._reserved: list[socket.socket] = []
        wanted = {broker: at.of_broker(index) for index, broker in enumerate(brokers)}
        alone = [node_id for node_id in controllers if node_id not in wanted]
        wanted |= dict.fromkeys(alone, (at.host, 0))
        try:
            for node_id, address in wanted.items():
                reserved = _bound(*address)
                self._reserved.append(reserved)
                port = reserved.getsockname()[1]
                self.nodes[node_id] = at.host, port
                self.advertised[node_id] = at.advertised or at.host, port
        except UserError:
            self.close()
            raise

    def hide(self, made_up: Mapping[int, tuple[str, int]]) -> None:
        """Name the made-up addresses that the metadata has in place of the real ones."""
        self._real = {address: self.advertised[node] for node, address in made_up.items()}

    def advertise(self, response: Any) -> Any:
        """The response with real addresses where it has made-up ones."""
        field = _ENDPOINTS.get(type(response))
        if not self._real or field is None:
            return response
        if isinstance(response, FindCoordinatorResponse):
            response = self._moved(response)  # below version 4
        moved = tuple(map(self._moved, getattr(response, field)))
        return dataclasses.replace(response, **{field: moved}) if moved else response

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers, as clients take them."""
        return self._shown(self._brokers)

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers, as clients take them (KIP-919)."""
        return self._shown(node for node in self.nodes if node not in self._brokers)

    def listen(self, node_id: int, backlog: int) -> socket.socket:
        """A socket that takes connections on a node's port."""
        listening = _bound(*self.nodes[node_id])
        listening.listen(backlog)
        listening.setblocking(False)
        return listening

    def close(self) -> None:
        """Free the ports."""
        for reserved in self._reserved:
            reserved.close()

    def _moved(self, node: Any) -> Any:
        if isinstance(node, DescribeQuorumResponse.Node):
            return dataclasses.replace(node, listeners=tuple(map(self._moved, node.listeners)))
        real = self._real.get((node.host, node.port))
        return node if real is None else dataclasses.replace(node, host=real[0], port=real[1])

    def _shown(self, nodes: Iterable[int]) -> str:
        return ",".join(shown_address(*self.advertised[node]) for node in nodes)


def shown_address(host: str, port: int) -> str:
    """An address as people and clients write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(at: ListenAddress) -> bool:
    """True where no other machine connects."""
    resolved = ipaddress.ip_address(_resolved(at.host, at.port)[1][0].partition("%")[0])
    return resolved.is_loopback


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise AddressUnavailable(f"{host}: no address of this name is known here") from None
    return family, address


def _bound(host: str, port: int) -> socket.socket:
    family, address = _resolved(host, port)
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        in_use = "is in use by another program; name another port, or 0 for any that is free"
        why = in_use if error.errno == errno.EADDRINUSE else os.strerror(error.errno or 0)
        raise AddressUnavailable(f"{shown_address(host, port)}: {why}") from None
    return bound
