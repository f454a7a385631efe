"""The ports of a cluster: reserved at first, listened on while the node's process runs.

A broker has one for each listener, a node that is a controller alone one for controllers.

A reserved port is bound, so that no other program takes it while a node is down; without a
socket that listens it refuses connections, as the port of a killed process does.
"""

from __future__ import annotations

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
from minicluster.security.protocols import CONTROLLER_LISTENER, LISTENER
from minicluster.values import replace


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


Address = tuple[str, int]


class Advertised:
    """The addresses that the responses on each listener name.

    Handlers name the address of a node that its metadata has for the listener between brokers, or
    a made-up one. A client gets that of the listener on which it has connected, at the border.

    Shapes:  owners: the node of each address that handlers name; by_listener: the address of each
             node that clients of a listener reach.
    """

    def __init__(
        self, owners: Mapping[Address, int], by_listener: Mapping[str, Mapping[int, Address]]
    ) -> None:
        self._owners, self._by_listener = owners, by_listener

    def advertise(self, response: Any, listener: str) -> Any:
        """The response with the addresses of a listener."""
        field = _ENDPOINTS.get(type(response))
        if field is None or not self._owners:
            return response
        of_listener = self._by_listener[listener]
        if isinstance(response, FindCoordinatorResponse):
            response = self._moved(response, of_listener)  # below version 4
        moved = tuple(self._moved(node, of_listener) for node in getattr(response, field))
        return replace(response, **{field: moved}) if moved else response

    def _moved(self, node: Any, of_listener: Mapping[int, Address]) -> Any:
        if isinstance(node, DescribeQuorumResponse.Node):
            listeners = tuple(self._moved(each, of_listener) for each in node.listeners)
            return replace(node, listeners=listeners)
        owner = self._owners.get((node.host, node.port))
        place = None if owner is None else of_listener.get(owner)
        return node if place is None else replace(node, host=place[0], port=place[1])


class Endpoints:
    """The addresses of each node, and those that responses name.

    The metadata of a cluster on threads has the same ones. That of a simulated cluster has made-up
    ones, so that a run does not depend on which ports were free.
    """

    def __init__(
        self,
        brokers: Sequence[int],
        at: ListenAddress,
        controllers: Sequence[int] = (),
        *,
        listeners: Sequence[str] = (LISTENER,),
    ) -> None:
        """Reserve a port of each broker for each listener, and one for each other controller.

        Errors:  AddressUnavailable where another program has one, and for a host that is not here.
        """
        self.advertised: dict[str, dict[int, Address]] = {}  # by listener
        self._bound: dict[tuple[int, str], Address] = {}
        self._brokers = tuple(brokers)
        self._reserved: list[socket.socket] = []
        wanted = {
            (broker, listener): at.of_broker(place * len(brokers) + index)
            for place, listener in enumerate(listeners)
            for index, broker in enumerate(brokers)
        }
        alone = [node_id for node_id in controllers if node_id not in self._brokers]
        wanted |= {(node_id, CONTROLLER_LISTENER): (at.host, 0) for node_id in alone}
        try:
            for (node_id, listener), address in wanted.items():
                reserved = _bound(*address)
                self._reserved.append(reserved)
                port = reserved.getsockname()[1]
                self._bound[node_id, listener] = at.host, port
                of_listener = self.advertised.setdefault(listener, {})
                of_listener[node_id] = at.advertised or at.host, port
        except UserError:
            self.close()
            raise

    @property
    def nodes(self) -> dict[int, Address]:
        """Where each node listens; for a broker, the first of its listeners."""
        return {node: self._bound[node, self.listeners(node)[0]] for node, _ in self._bound}

    def listeners(self, node_id: int) -> list[str]:
        """The names of a node's listeners."""
        return [listener for node, listener in self._bound if node == node_id]

    def bootstrap_servers(self, listener: str | None = None) -> str:
        """The addresses of the brokers, as clients take them; by default the first listener's."""
        name = listener or self.listeners(self._brokers[0])[0]
        return _shown(self.advertised[name].values())

    @property
    def bootstrap_controllers(self) -> str:
        """The addresses of the controllers, as clients take them (KIP-919)."""
        return _shown(self.advertised.get(CONTROLLER_LISTENER, {}).values())

    def listen(self, node_id: int, listener: str, backlog: int) -> socket.socket:
        """A socket that takes connections on a port of a node."""
        listening = _bound(*self._bound[node_id, listener])
        listening.listen(backlog)
        listening.setblocking(False)
        return listening

    def close(self) -> None:
        """Free the ports."""
        for reserved in self._reserved:
            reserved.close()


def _shown(addresses: Iterable[Address]) -> str:
    return ",".join(shown_address(*address) for address in addresses)


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
