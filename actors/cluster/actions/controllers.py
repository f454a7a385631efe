"""The actions on controllers: fail-over, snapshots, and which of them vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from minicluster.actors.cluster.actions.performing import ms, performs
from minicluster.actors.cluster.actions.processes import ProcessActions
from minicluster.actors.cluster.actions.requests import Requests, refuse
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
from minicluster.scenario.actions import nodes as declared
from minicluster.scenario.actions.arguments import Duration, Nodes


class ControllerActions(ProcessActions, Requests):
    """The actions on controllers and their quorum."""

    @performs(declared.FailOver)
    def fail_over(self, do: declared.FailOver) -> None:
        active = self.active_controller_id()
        if active is None:
            self.note("fail_over", [], "note", "no controller is active")
            return
        self.kill(active)
        if len(self.controller_ids) > 1:
            before = (None, active)
            self.run_until(lambda: self.active_controller_id() not in before, ms(do.within))
        self.restart(active)

    @performs(declared.Resign)
    def resign(self, do: declared.Resign) -> None:
        self._let("resign", do.node, GiveUp())

    @performs(declared.Snapshot)
    def snapshot(self, do: declared.Snapshot) -> None:
        self._let("snapshot", do.node, TakeSnapshot())

    @performs(declared.Compact)
    def compact(self, do: declared.Compact) -> None:
        self._let("compact", do.node, Compact())

    def _let(self, action: str, nodes: Nodes, message: object) -> None:
        for node_id, controller in self._controllers(action, nodes):
            controller.hear(message)
            self.note(action, [node_id], "start")

    def _controllers(self, action: str, nodes: Nodes) -> Iterator[tuple[int, QuorumController]]:
        for node_id in self.ids(nodes):
            if node_id not in self.controller_ids:
                raise UserError(f"{action}: node {node_id} is no controller")
            process = self.processes.get(node_id)
            if process is None or process.controller is None:
                self.note(action, [node_id], "note", "it is down")
            else:
                yield node_id, process.controller

    # Voters (KIP-853); config kraft.version is 1, or has been raised to it.

    @property
    def voters(self) -> tuple[Node, ...]:
        """The voters of the active controller; none while no controller is active."""
        known = self._voter_set()
        return () if known is None else tuple(Node(self, voter_id) for voter_id in known.ids)

    def _voter_set(self) -> VoterSet | None:
        active = self.active_controller_id()
        process = None if active is None else self.processes.get(active)
        if process is None or process.controller is None:
            return None
        return process.controller.quorum.voters

    @performs(declared.AddVoter)
    def add_voter(self, do: declared.AddVoter) -> None:
        for node_id in self.ids(do.node):
            endpoint = self.plan.endpoint(node_id)
            listener = m.AddRaftVoterRequest.Listener(
                name=endpoint.name, host=endpoint.host, port=endpoint.port
            )
            request = m.AddRaftVoterRequest(
                cluster_id=self.plan.cluster_id,
                timeout_ms=int(ms(do.within)),
                voter_id=node_id,
                voter_directory_id=self.disks[node_id].directory_ids[0],
                listeners=(listener,),
            )
            self._change_voters(f"add voter {node_id}", request, do.within)

    @performs(declared.RemoveVoter)
    def remove_voter(self, do: declared.RemoveVoter) -> None:
        for node_id in self.ids(do.node):
            request = m.RemoveRaftVoterRequest(
                cluster_id=self.plan.cluster_id,
                voter_id=node_id,
                voter_directory_id=self._voting_directory(node_id),
            )
            self._change_voters(f"remove voter {node_id}", request, do.within)

    @performs(declared.UpgradeKraftVersion)
    def upgrade_kraft_version(self, do: declared.UpgradeKraftVersion) -> None:
        key = m.UpdateFeaturesRequest.FeatureUpdateKey(
            feature=KRAFT_VERSION, max_version_level=1, upgrade_type=1
        )
        request = m.UpdateFeaturesRequest(feature_updates=(key,))
        self._change_voters("upgrade kraft.version", request, do.within)

    def _voting_directory(self, node_id: int) -> UUID:
        """The directory id in the voter set, which may be that of a lost disk."""
        known = self._voter_set()
        entry = None if known is None else known.get(node_id)
        if entry is not None and entry.key.directory_id is not None:
            return entry.key.directory_id
        return self.disks[node_id].directory_ids[0]

    def _change_voters(self, what: str, request: Any, within: Duration) -> None:
        response = self.request(what, request, within)
        refuse(what, response.error_code, response.error_message)
