"""The listeners of a cluster, opened before its nodes start."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from minicluster.actors.cluster.cluster import KRAFT, Cluster
from minicluster.actors.cluster.securing import listener_security
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.listeners.endpoints import Address, Advertised, Endpoints, is_loopback
from minicluster.actors.listeners.limits import ConnectionLimits
from minicluster.actors.listeners.outside import OutsideAddress
from minicluster.actors.listeners.server import Listeners
from minicluster.broker.kafka_apis import supported_versions
from minicluster.broker.requests.api_versions import api_versions
from minicluster.configs.effective import BrokerLevels
from minicluster.protocol.api import enabled_versions
from minicluster.security.authorizer import SUPER_USERS
from minicluster.security.protocols import CONTROLLER_LISTENER, SecurityProtocol
from minicluster.server.controller_listener import controller_versions
from minicluster.values import replace


def open_listeners(cluster: Cluster, address: ListenAddress) -> Listeners:
    """Reserve the ports of each node, and listen at them while its process runs.

    A combined node listens as a broker: its controller has no port.

    Errors:  AddressUnavailable where a port is in use.
    """
    cluster.rt.epoch_ms = int(time.time() * 1000) - cluster.rt.now()
    security = cluster.security
    names = tuple(security.listeners)
    endpoints = Endpoints(cluster.broker_ids, address, cluster.controller_ids, listeners=names)
    if not is_loopback(address):
        open_to_all = f"listening on {address.host}: every machine that reaches it reads and writes"
        cluster.log.root.warning("listeners.open", actor="listeners", reason=open_to_all)
        sys.stderr.write(f"{open_to_all}\n")
    if cluster.runtime_name == "threaded":
        outside = {} if cluster.quorum is None else cluster.quorum.controllers
        own = endpoints.advertised
        of_nodes = {n: a for n, a in own[names[0]].items() if n not in cluster.controller_ids}
        cluster.plan = replace(
            cluster.plan,
            addresses={**outside, **of_nodes, **own.get(CONTROLLER_LISTENER, {})},
            of_brokers={name: own[name] for name in names},
        )
    versions = served_versions(cluster)
    protocols = {CONTROLLER_LISTENER: security.controller_protocol, **security.listeners}
    securities = {
        name: listener_security(
            cluster, partial(node_api_versions, cluster, versions), name, protocol
        )
        for name, protocol in protocols.items()
    }
    listeners = Listeners(
        cluster.network,
        cluster.client_nodes,
        endpoints,
        versions,
        limits=partial(connection_limits, cluster),
        log=cluster.log.root.bind(actor="listeners"),
        security=securities.__getitem__,
        advertised=advertised(cluster, endpoints.advertised),
        address_of=partial(_address_outside, cluster),
    )
    cluster.rt.at_close.append(listeners.close)
    return listeners


def advertised(cluster: Cluster, own: Mapping[str, Mapping[int, Address]]) -> Advertised:
    """The addresses that responses name, by those of each listener that clients reach."""
    plan, names = cluster.plan, tuple(cluster.security.listeners)
    of_controllers = own.get(CONTROLLER_LISTENER, {})
    by_listener = {name: {**of_controllers, **own[name]} for name in names}
    by_listener[CONTROLLER_LISTENER] = {**own[names[0]], **of_controllers}
    owners = {(plan.host(node), plan.port(node)): node for node in cluster.node_ids}
    if cluster.mode == KRAFT:
        owners |= {plan.broker_address(broker): broker for broker in cluster.broker_ids}
    if len(names) == 1 and all(by_listener[names[0]].get(n) == a for a, n in owners.items()):
        owners = {}  # they are the same
    return Advertised(owners, by_listener)


def _address_outside(cluster: Cluster, node_id: int) -> OutsideAddress | None:
    """Where a node of another process listens, by its registration; None for nodes here."""
    if node_id in cluster.node_ids:
        return None
    if cluster.quorum is not None and node_id in cluster.quorum.controllers:
        host, port = cluster.quorum.controllers[node_id]
        return _outside(cluster, host, port, cluster.security.controller_protocol)
    image = cluster.image.cluster
    registered = image.broker(node_id) or image.controllers.get(node_id)
    for endpoint in () if registered is None else registered.endpoints:
        if endpoint.name in (cluster.plan.inter_broker_listener, CONTROLLER_LISTENER):
            protocol = SecurityProtocol.of(endpoint.security_protocol)
            return _outside(cluster, endpoint.host, endpoint.port, protocol)
    return None


def _outside(cluster: Cluster, host: str, port: int, protocol: SecurityProtocol) -> OutsideAddress:
    credentials = None
    if protocol.has_sasl and cluster.security.users:
        super_users = cluster.config.static.get(SUPER_USERS, "").split(";")
        credentials = cluster.security.node_credentials(super_users)
    return OutsideAddress(host, port, credentials)


def served_versions(cluster: Cluster) -> dict[int, Mapping[int, range]]:
    """The versions of each API that clients of each node may use."""
    rules = cluster.rules
    of_brokers, of_controllers = supported_versions(rules), controller_versions(rules)
    return {
        **dict.fromkeys(cluster.controller_ids, of_controllers),
        **dict.fromkeys(cluster.broker_ids, enabled_versions(rules, of_brokers)),
    }


def connection_limits(cluster: Cluster, node_id: int) -> ConnectionLimits:
    """The limits that a node sets to its connections now."""
    process = cluster.processes.get(node_id)
    if process is None or process.broker is None:
        return ConnectionLimits.of(BrokerLevels({}, {}, cluster.config.static))
    return ConnectionLimits.of(process.broker.apis.state.broker_levels)


def node_api_versions(
    cluster: Cluster,
    versions: Mapping[int, Mapping[int, range]],
    node_id: int,
    request: Any,
    version: int,
) -> Any:
    """A node's response to ApiVersions, without its actor: Kafka's threads of I/O give it."""
    process = cluster.processes[node_id]
    if process.broker is not None:
        state = process.broker.apis.state
    else:
        assert process.controller is not None
        state = process.controller.listener_state
    return api_versions(state, request, version, versions[node_id])
