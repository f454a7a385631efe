"""The checks of a cluster's arguments, before any part of it is created."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minicluster.actors.cluster.live_faults import LiveFaults
from minicluster.actors.listeners.address import ListenAddress
from minicluster.actors.nodes.config import THREADED, ClusterConfig
from minicluster.configs.without_effect import reason_without_effect
from minicluster.errors import NoEffectWarning, UserError, counted
from minicluster.faults import Faults
from minicluster.files import FILE_NAME_BYTES_MAX
from minicluster.metadata import metadata_version as mv
from minicluster.metadata.supported_features import UNSTABLE
from minicluster.rules import Rules
from minicluster.scenario.checks.limits import (
    BROKERS_MAX,
    CONTROLLERS_MAX,
    SEED_MAX,
    checked_pace,
    shown,
    whole_number,
)
from minicluster.values import Value

NODE_ID_MAX = 2**31 - 1  # node.id is an int
INTERNAL_REPLICATION_FACTOR = 3  # Kafka's default for its internal topics


class OutsideQuorum(Value, kw_only=True):
    """The controllers of another process, with which the brokers of a cluster register.

    Shapes:  cluster_id: the one that they are formatted with; controllers: the host and port of
             each voter, by its node id.
    """

    cluster_id: str
    controllers: Mapping[int, tuple[str, int]]


def check_counts(*, brokers: object, controllers: object, seed: object, runtime: object) -> None:
    """Reject invalid numbers and names.

    Errors:  UserError in one line.
    """
    whole_number(brokers, "brokers", 1, BROKERS_MAX)
    whole_number(controllers, "controllers", 1, CONTROLLERS_MAX)
    whole_number(seed, "seed", 0, SEED_MAX)
    if runtime not in ("simulated", "threaded"):
        raise UserError(f"runtime: {runtime!r} is not one of simulated, threaded")


class OwnIds(NamedTuple):
    """The ids that the caller has chosen; None: they are numbered."""

    brokers: tuple[int, ...] | None
    controllers: tuple[int, ...] | None


def checked_ids(
    broker_ids: Sequence[int] | None,
    controller_ids: Sequence[int] | None,
    *,
    mode: str,
) -> OwnIds:
    """The caller's ids of nodes, in ascending order.

    Errors:  UserError for ids that no node can have, and for nodes that cannot be.
    """
    if mode != "kraft" and (broker_ids is not None or controller_ids is not None):
        raise UserError(
            "broker_ids, controller_ids: on ZooKeeper brokers are numbered; give brokers"
        )
    ids = OwnIds(
        _own_ids(broker_ids, "broker_ids", 1, BROKERS_MAX),
        _own_ids(controller_ids, "controller_ids", 1, CONTROLLERS_MAX),
    )
    return ids


def _own_ids(node_ids: object, name: str, low: int, high: int) -> tuple[int, ...] | None:
    if node_ids is None:
        return None
    if isinstance(node_ids, str) or not isinstance(node_ids, Sequence):
        raise UserError(f"{name}: {shown(node_ids)} is not a list of ids such as [0, 1, 2]")
    ids = sorted(whole_number(node_id, name, 0, NODE_ID_MAX) for node_id in node_ids)
    if len(set(ids)) < len(ids):
        raise UserError(f"{name}: an id is there twice; each node has its own")
    whole_number(len(ids), f"{name}: how many", low, high)
    return tuple(ids)


_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "config": ((Mapping,), "a mapping of names and values"),
    "node_configs": ((Mapping,), "a mapping of node ids to names and values"),
    "features": ((Mapping,), "a mapping of names and levels"),
    "scenario": ((Mapping,), "a mapping, as a scenario file has it"),
    "checks": ((list, tuple), "a list of followers"),
    "exercises": ((list, tuple), "a list of rules such as ['A1']"),
    "faults": ((Faults, Iterable), "a list of zoo ids such as ['Z01']"),
    "rules": ((Rules, str), "a release such as 'kafka-4.3'"),
    "metadata_version": ((str,), "a version such as '4.3-IV0'"),
    "listeners": (
        (bool, str, list, tuple, ListenAddress),
        "True, False, a protocol, a list of listeners or a ListenAddress",
    ),
    "users": ((Mapping,), "a mapping of names and passwords"),
    "super_users": ((list, tuple), "a list of names such as ['admin']"),
    "quorum": ((OutsideQuorum,), "an OutsideQuorum"),
    "inter_broker_protocol": ((str,), "a level such as '2.7-IV2'"),
    "wire": ((bool,), "True or False"),
    "online": ((bool,), "True or False"),
}


def checked_run_id(run_id: object) -> str:
    """A run's id, which names a folder and never leads out of one.

    Errors:  UserError for anything else.
    """
    odd = not isinstance(run_id, str) or run_id in ("", ".", "..") or not run_id.isprintable()
    if odd or any(c in "/\\" for c in str(run_id)):
        raise UserError(f"run_id: {run_id!r} is not the name of a folder, such as orders-7")
    if len(str(run_id).encode("utf-8")) > FILE_NAME_BYTES_MAX:
        raise UserError(f"run_id: a name has at most {FILE_NAME_BYTES_MAX} bytes")
    return str(run_id)


def check_types(arguments: Mapping[str, object]) -> None:
    """Reject arguments of a wrong type.

    Errors:  UserError in one line.
    """
    for name, (types, text) in _TYPES.items():
        value = arguments[name]
        if value is not None and not isinstance(value, types):
            raise UserError(f"{name}: {shown(value)} is not {text}")


def checked_quorum(
    quorum: OutsideQuorum | None, *, listeners: bool, runtime: str
) -> OutsideQuorum | None:
    """The controllers of another process, which need ports and threads.

    Errors:  UserError without them.
    """
    if quorum is not None and not (listeners and runtime == "threaded"):
        why = "its controllers live in real time"
        raise UserError(f'quorum: {why}; take listeners=True, runtime="threaded"')
    return quorum


def checked_mode(mode: str, inter_broker_protocol: str | None) -> str:
    """Where the metadata lives.

    Errors:  UserError for another mode, and for a level without ZooKeeper.
    """
    if mode not in ("kraft", "zookeeper"):
        raise UserError(f"mode: {mode!r} is not one of kraft, zookeeper")
    if mode == "kraft" and inter_broker_protocol is not None:
        raise UserError("inter_broker_protocol: only with mode zookeeper; take metadata_version")
    return mode


def pace_of(pace: object, *, runtime: str, listeners: bool) -> float | None:
    """The pace of a cluster's clock, None for one that follows no pace.

    Errors:  UserError for a number out of range, and for the runtime that is real time.
    """
    if runtime == "threaded":
        if pace is not None:
            raise UserError('pace: threads run in real time; take runtime="simulated"')
        return None
    if pace is None:
        return 1.0 if listeners else None
    return checked_pace(pace)


def config_of(
    arguments: Mapping[str, Any], *, brokers: int, controllers: int, threaded: bool
) -> ClusterConfig:
    """The settings of a cluster; those of groups fit its size, as in Kafka's quick start.

    With Kafka's defaults a group on fewer than three brokers would wait for its topic for ever, and
    the first member of each group three seconds for others.

    Errors:  UserError for a setting that is unknown or out of range. One that changes nothing here
             is a NoEffectWarning.
    """
    for name in arguments:
        reason = reason_without_effect(name)
        if reason is not None:
            text = f"config: {name} has no effect here: {reason}"
            warnings.warn(text, NoEffectWarning, stacklevel=2)
    fitting = {"group.initial.rebalance.delay.ms": 0}
    if 0 < brokers < INTERNAL_REPLICATION_FACTOR:
        fitting["offsets.topic.replication.factor"] = brokers
        fitting["transaction.state.log.replication.factor"] = brokers
        fitting["transaction.state.log.min.isr"] = min(2, brokers)
    config = (THREADED if threaded else ClusterConfig()).with_settings({**fitting, **arguments})
    if config.kraft_version > 1:
        raise UserError(f"kraft.version: {config.kraft_version} is not one of 0, 1")
    if config.initial_controllers > controllers:
        raise UserError(
            f"initial.controllers: the cluster has {counted(controllers, 'controller')}"
        )
    return config


def version_of(version: str | None, rules: Rules) -> mv.MetadataVersion:
    """The metadata.version to format with: the release's own if none is given."""
    return mv.production_version(rules) if version is None else mv.MetadataVersion.parse(version)


def check_supported(levels: Mapping[str, int], supported: Mapping[str, tuple[int, int]]) -> None:
    """Reject levels at which the nodes could not register: the cluster would wait for them.

    Errors:  UserError in one line.
    """
    for name, level in levels.items():
        lowest, highest = supported.get(name, (0, 0))
        if lowest <= level <= highest or level == 0:
            continue
        if name == mv.FEATURE_NAME:
            text, last = mv.MetadataVersion(level).version_name, mv.MetadataVersion(highest)
            raise UserError(
                f"metadata_version: {text} is for testing only and {last.version_name} the last "
                f"stable one; take that, or config={{{UNSTABLE!r}: True}}"
            )
        raise UserError(f"features: {name}: {level} is above {highest}, the last of this release")


def rules_and_faults(
    rules: Rules | str | None, faults: Faults | Iterable[str]
) -> tuple[Rules, LiveFaults]:
    """The release, and the planted faults; zoo ids of Kafka's own bugs become rules."""
    chosen = Rules.named(rules) if isinstance(rules, str) else rules or Rules.KAFKA_4_3
    if isinstance(faults, Faults):
        return chosen, LiveFaults(faults)
    if isinstance(faults, str):
        faults = (faults,)
    ids = list(faults)
    known = Rules.zoo() if ids else {}
    bugs = [zoo_id for zoo_id in ids if zoo_id in known]
    planted = Faults.of(zoo_id for zoo_id in ids if zoo_id not in bugs)
    return chosen.with_bugs(bugs), LiveFaults(planted)
