"""``server.properties`` of a node: its role, its addresses, and the settings of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from minicluster.actors.cluster.run_folder import HIDDEN
from minicluster.actors.export.conversion import Address
from minicluster.actors.nodes.config import (
    BROKER_RACK,
    COUNTS,
    DURATIONS,
    SWITCHES,
    ClusterConfig,
)
from minicluster.configs.definitions import broker_configs
from minicluster.security.protocols import CONTROLLER_LISTENER
from minicluster.values import Value

_FIELDS = (DURATIONS, COUNTS, SWITCHES)
PROPERTIES_NAME = "server.properties"


class QuorumAddresses(Value, kw_only=True):
    """The addresses of the controllers.

    Shapes:  is_dynamic: the voters are in the log (kraft.version 1), not in these files.
    """

    controllers: Mapping[int, Address]
    is_dynamic: bool


def run_settings(config: ClusterConfig, given: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a run that Kafka has as well, as its files have them; no passwords."""
    settings = {name: value for name, value in config.static.items() if value != HIDDEN}
    settings.pop(BROKER_RACK, None)
    for name in given:
        field = next((fields[name] for fields in _FIELDS if name in fields), None)
        if field is not None and name in broker_configs():
            value = getattr(config, field)
            settings[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return dict(sorted(settings.items()))


def broker_properties(
    broker_id: int,
    listeners: Mapping[str, Address],
    quorum: QuorumAddresses,
    *,
    log_dirs: Sequence[Path],
    metadata_log_dir: Path | None,
    rack: str | None,
) -> dict[str, str]:
    """The properties of a broker."""
    places = ",".join(_listener(name, address) for name, address in listeners.items())
    values = {
        "process.roles": "broker",
        "node.id": str(broker_id),
        "listeners": places,
        "advertised.listeners": places,
        "log.dirs": ",".join(map(str, log_dirs)),
    }
    if metadata_log_dir is not None:
        values["metadata.log.dir"] = str(metadata_log_dir)
    if rack is not None:
        values["broker.rack"] = rack
    return values | _of_quorum(quorum)


def controller_properties(
    controller_id: int, quorum: QuorumAddresses, *, log_dir: Path
) -> dict[str, str]:
    """The properties of a controller."""
    return {
        "process.roles": "controller",
        "node.id": str(controller_id),
        "listeners": _listener(CONTROLLER_LISTENER, quorum.controllers[controller_id]),
        "log.dirs": str(log_dir),
    } | _of_quorum(quorum)


def _of_quorum(quorum: QuorumAddresses) -> dict[str, str]:
    values = {"controller.listener.names": CONTROLLER_LISTENER}
    places = {node_id: f"{host}:{port}" for node_id, (host, port) in quorum.controllers.items()}
    if quorum.is_dynamic:
        values["controller.quorum.bootstrap.servers"] = ",".join(places.values())
    else:
        voters = (f"{node_id}@{place}" for node_id, place in places.items())
        values["controller.quorum.voters"] = ",".join(voters)
    return values


def _listener(name: str, address: Address) -> str:
    host, port = address
    return f"{name}://{host}:{port}"
