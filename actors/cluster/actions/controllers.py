"""The actions on controllers: fail-over, snapshots, and which of them vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.processes import kill, restart
from minicluster.actors.cluster.actions.requests import raise_if_rejected, reject_on_zookeeper, send
from minicluster.actors.cluster.cluster import ZOOKEEPER
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.cluster.views import Node
from minicluster.actors.nodes.quorum_controller import (
    Compact,
    GiveUp,
    QuorumController,
    TakeSnapshot,
)
from minicluster.errors import UserError
from minicluster.metadata.metadata_version import KRAFT_VERSION
from minicluster.protocol import messages as m
from minicluster.quorum.state.voters import VoterSet
from minicluster.quorum.voter_changes import voters_support
from minicluster.scenario.actions import nodes as declared
from minicluster.scenario.actions.arguments import Duration, Nodes


@performs(declared.FailOver)
def fail_over(cluster: ClusterRoles, do: declared.FailOver) -> None:
    active = cluster.active_controller_id()
    if active is None:
        cluster.note("fail_over", [], "note", "no controller is active")
        return
    kill(cluster, active)
    if len(cluster.controller_ids) > 1 or cluster.mode == ZOOKEEPER:
        before = (None, active)
        cluster.run_until(lambda: cluster.active_controller_id() not in before, ms(do.within))
    restart(cluster, active)


@performs(declared.Resign)
def resign(cluster: ClusterRoles, do: declared.Resign) -> None:
    _let(cluster, "resign", do.node, GiveUp())


@performs(declared.Snapshot)
def snapshot(cluster: ClusterRoles, do: declared.Snapshot) -> None:
    _let(cluster, "snapshot", do.node, TakeSnapshot())


@performs(declared.Compact)
def compact(cluster: ClusterRoles, do: declared.Compact) -> None:
    _let(cluster, "compact", do.node, Compact())


def _let(cluster: ClusterRoles, action: str, nodes: Nodes, message: object) -> None:
    for node_id, controller in _controllers(cluster, action, nodes):
        controller.deliver(message)
        cluster.note(action, [node_id], "start")


def _controllers(
    cluster: ClusterRoles, action: str, nodes: Nodes
) -> Iterator[tuple[int, QuorumController]]:
    for node_id in cluster.ids(nodes):
        if node_id not in cluster.controller_ids:
            raise UserError(f"{action}: node {node_id} is not a controller")
        process = cluster.processes.get(node_id)
        if process is None or process.controller is None:
            cluster.note(action, [node_id], "note", "it is down")
        else:
            yield node_id, process.controller


# Voters (KIP-853); config kraft.version is 1, or has been raised to it.


def voters(cluster: ClusterRoles) -> tuple[Node, ...]:
    """The voters of the active controller; none while no controller is active."""
    known = _voter_set(cluster)
    return () if known is None else tuple(Node(cluster, voter_id) for voter_id in known.ids)


def _voter_set(cluster: ClusterRoles) -> VoterSet | None:
    active = cluster.active_controller_id()
    process = None if active is None else cluster.processes.get(active)
    if process is None or process.controller is None:
        return None
    return process.controller.quorum.voters


@performs(declared.AddVoter)
def add_voter(cluster: ClusterRoles, do: declared.AddVoter) -> None:
    for node_id in cluster.ids(do.node):
        endpoint = cluster.plan.endpoint(node_id)
        listener = m.AddRaftVoterRequest.Listener(
            name=endpoint.name, host=endpoint.host, port=endpoint.port
        )
        request = m.AddRaftVoterRequest(
            cluster_id=cluster.plan.cluster_id,
            timeout_ms=int(ms(do.within)),
            voter_id=node_id,
            voter_directory_id=cluster.disks[node_id].directory_ids[0],
            listeners=(listener,),
        )
        _change_voters(cluster, f"add voter {node_id}", request, do.within)


@performs(declared.RemoveVoter)
def remove_voter(cluster: ClusterRoles, do: declared.RemoveVoter) -> None:
    for node_id in cluster.ids(do.node):
        request = m.RemoveRaftVoterRequest(
            cluster_id=cluster.plan.cluster_id,
            voter_id=node_id,
            voter_directory_id=_voting_directory(cluster, node_id),
        )
        _change_voters(cluster, f"remove voter {node_id}", request, do.within)


@performs(declared.UpgradeKraftVersion)
def upgrade_kraft_version(cluster: ClusterRoles, do: declared.UpgradeKraftVersion) -> None:
    key = m.UpdateFeaturesRequest.FeatureUpdateKey(
        feature=KRAFT_VERSION, max_version_level=1, upgrade_type=1
    )
    request = m.UpdateFeaturesRequest(feature_updates=(key,))
    if cluster.mode != ZOOKEEPER:
        cluster.run_until(lambda: _voters_support(cluster, 1), ms(do.within))
    _change_voters(cluster, "upgrade kraft.version", request, do.within)


def _voters_support(cluster: ClusterRoles, version: int) -> bool:
    """The leader knows of every voter that it supports a kraft.version (UpdateRaftVoter)."""
    active = cluster.active_controller_id()
    process = None if active is None else cluster.processes.get(active)
    if process is None or process.controller is None:
        return False
    return voters_support(process.controller.quorum.node, version)


def _voting_directory(cluster: ClusterRoles, node_id: int) -> UUID:
    """The directory id in the voter set, which may be that of a lost disk."""
    known = _voter_set(cluster)
    entry = None if known is None else known.get(node_id)
    if entry is not None and entry.key.directory_id is not None:
        return entry.key.directory_id
    return cluster.disks[node_id].directory_ids[0]


def _change_voters(cluster: ClusterRoles, task: str, request: Any, within: Duration) -> None:
    reject_on_zookeeper(cluster, task, "this cluster has no Raft quorum")
    response = send(cluster, task, request, within)
    raise_if_rejected(task, response.error_code, response.error_message)
