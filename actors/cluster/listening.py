"""The listeners of a cluster, opened before its nodes start."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.securing import listener_security
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.listeners.endpoints import Endpoints, is_loopback
from minicluster.actors.listeners.limits import ConnectionLimits
from minicluster.actors.listeners.server import Listeners
from minicluster.actors.nodes.quorum_shell import CONTROLLER_LISTENER, LISTENER
from minicluster.broker.kafka_apis import supported_versions
from minicluster.broker.requests.api_versions import api_versions
from minicluster.configs.effective import BrokerLevels
from minicluster.protocol.api import enabled_versions
from minicluster.server.controller_listener import controller_versions


def open_listeners(cluster: Cluster, address: ListenAddress) -> Listeners:
    """Reserve a port for each node, and listen at it while its process runs.

    At that of a combined node it listens as a broker: its controller has none.

    Errors:  AddressUnavailable where a port is in use.
    """
    cluster.rt.epoch_ms = int(time.time() * 1000) - cluster.rt.now()
    endpoints = Endpoints(cluster.broker_ids, address, cluster.controller_ids)
    if not is_loopback(address):
        open_to_all = f"listening on {address.host}: every machine that reaches it reads and writes"
        cluster.log.root.warning("listeners.open", actor="listeners", reason=open_to_all)
        sys.stderr.write(f"{open_to_all}\n")
    if cluster.runtime_name == "threaded":
        outside = {} if cluster.quorum is None else cluster.quorum.controllers
        combined = set(cluster.broker_ids) & set(cluster.controller_ids)
        own = endpoints.advertised
        cluster.plan = replace(
            cluster.plan,
            addresses={**outside, **{n: own[n] for n in own if n not in combined}},
            of_brokers={n: own[n] for n in combined},
        )
    else:
        plan = cluster.plan
        endpoints.hide({n: (plan.host(n), plan.port(n)) for n in cluster.node_ids})
    versions = served_versions(cluster)
    listeners = Listeners(
        cluster.network,
        cluster.client_nodes,
        endpoints,
        versions,
        limits=partial(connection_limits, cluster),
        log=cluster.log.root.bind(actor="listeners"),
        security=listener_security(cluster, partial(_api_versions, cluster, versions)),
        address_of=partial(_address_outside, cluster),
    )
    cluster.rt.at_close.append(listeners.close)
    return listeners


def _address_outside(cluster: Cluster, node_id: int) -> tuple[str, int] | None:
    """Where a node of another process listens, by its registration; None for nodes here."""
    if node_id in cluster.node_ids:
        return None
    if cluster.quorum is not None and node_id in cluster.quorum.controllers:
        return cluster.quorum.controllers[node_id]
    image = cluster.image.cluster
    registered = image.broker(node_id) or image.controllers.get(node_id)
    for endpoint in () if registered is None else registered.endpoints:
        if endpoint.name in (LISTENER, CONTROLLER_LISTENER):
            return endpoint.host, endpoint.port
    return None


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


def _api_versions(
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
