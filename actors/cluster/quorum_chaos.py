"""What a test can do to the metadata quorum: fail-over, snapshots, disks, voters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from minicluster.actors.cluster.admin import RequestRefused
from minicluster.actors.cluster.chaos import Duration, Nodes, milliseconds
from minicluster.actors.cluster.processes import Process, Processes
from minicluster.actors.nodes.disk import LoseTail
from minicluster.actors.nodes.quorum_controller import Compact, GiveUp, TakeSnapshot
from minicluster.errors import UserError
from minicluster.metadata.metadata_version import KRAFT_VERSION
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m

if TYPE_CHECKING:
    from minicluster.actors.cluster.views import Node

TAKES_OVER_WITHIN = "30s"


class QuorumChaos(Processes):
    """Disturbances of controllers, and their disks; mixed into the cluster."""

    @property
    def active_controller(self) -> Node | None:
        """The controller that leads, None while there is none."""
        raise NotImplementedError

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Let the cluster run until a condition holds, or the time is over; whether it held."""
        raise NotImplementedError

    # Who leads.

    def fail_over(self, *, within: Duration = TAKES_OVER_WITHIN) -> None:
        """Kill the active controller, and start it again when another has taken over.

        With one controller, or where no other takes over in time, it is started all the same.
        """
        active = self.active_controller
        if active is None:
            self.note("fail_over", [], "note", "no controller is active")
            return
        self.kill(active)
        within_ms = milliseconds(within, what="fail_over: within")
        if len(self.controller_ids) > 1:
            self.run_until(lambda: self.active_controller not in (None, active), within_ms)
        self.restart(active)

    def resign(self, node: Nodes = None) -> None:
        """Let the active controller give up its epoch; the others elect anew."""
        ids = self._ids(self.active_controller if node is None else node)
        for node_id in ids:
            process = self._controller_process("resign", node_id)
            if process is not None and process.controller is not None:
                process.controller.hear(GiveUp())
                self.note("resign", [node_id], "start")

    # Crashes that mend themselves.

    def bounce(self, node: Nodes, *, down: Duration = "1s", lose_tail: LoseTail = "none") -> None:
        """Kill nodes, and start them again after a while."""
        down_ms = milliseconds(down, what="bounce: down")
        for node_id in self._ids(node):
            if not self.is_running(node_id):
                self.note("bounce", [node_id], "note", "it is down already")
                continue
            self.kill(node_id, lose_tail=lose_tail)
            self.rt.schedule(self.rt.now() + down_ms, self._start_again, node_id)

    def _start_again(self, node_id: int) -> None:
        if not self.is_running(node_id):
            self.restart(node_id)

    # Snapshots.

    def snapshot(self, node: Nodes) -> None:
        """Let controllers write a snapshot of what is committed (KIP-630)."""
        for node_id in self._ids(node):
            process = self._controller_process("snapshot", node_id)
            if process is not None and process.controller is not None:
                process.controller.hear(TakeSnapshot())
                self.note("snapshot", [node_id], "start")

    def compact(self, node: Nodes) -> None:
        """Let controllers drop their log before their newest snapshot; who lags must load that."""
        for node_id in self._ids(node):
            process = self._controller_process("compact", node_id)
            if process is not None and process.controller is not None:
                process.controller.hear(Compact())
                self.note("compact", [node_id], "start")

    # Voters (KIP-853); config kraft.version is 1, or has been raised to it.

    @property
    def voters(self) -> tuple[Node, ...]:
        """The voters as the active controller knows them; none while there is no such."""
        active = self.active_controller
        process = None if active is None else self.processes.get(active.id)
        if process is None or process.controller is None:
            return ()
        return tuple(self.node(voter_id) for voter_id in process.controller.quorum.voters.ids)

    def add_voter(self, node: Nodes, *, within: Duration = "30s") -> None:
        """Let controllers that only observe vote, one after the other.

        Errors:  RequestRefused with the leader's reason; NotAnswered.
        """
        for node_id in self._ids(node):
            endpoint = self.plan.endpoint(node_id)
            listener = m.AddRaftVoterRequest.Listener(
                name=endpoint.name, host=endpoint.host, port=endpoint.port
            )
            request = m.AddRaftVoterRequest(
                cluster_id=self.plan.cluster_id,
                timeout_ms=milliseconds(within, what="add_voter: within"),
                voter_id=node_id,
                voter_directory_id=self.disks[node_id].directory_ids[0],
                listeners=(listener,),
            )
            self._change_voters(f"add voter {node_id}", request, within)

    def remove_voter(self, node: Nodes, *, within: Duration = "30s") -> None:
        """Let voters only observe from now on, one after the other.

        Errors:  RequestRefused with the leader's reason; NotAnswered.
        """
        for node_id in self._ids(node):
            request = m.RemoveRaftVoterRequest(
                cluster_id=self.plan.cluster_id,
                voter_id=node_id,
                voter_directory_id=self._voting_directory(node_id),
            )
            self._change_voters(f"remove voter {node_id}", request, within)

    def upgrade_kraft_version(self, *, within: Duration = "30s") -> None:
        """Let the voters stand in the log from now on (kraft.version 1), by UpdateFeatures.

        Errors:  RequestRefused with the controller's reason, such as a voter that has not told the
                 leader yet that it supports it; NotAnswered.
        """
        key = m.UpdateFeaturesRequest.FeatureUpdateKey(
            feature=KRAFT_VERSION, max_version_level=1, upgrade_type=1
        )
        request = m.UpdateFeaturesRequest(feature_updates=(key,))
        self._change_voters("upgrade kraft.version", request, within)

    def _voting_directory(self, node_id: int) -> UUID:
        """The directory that a voter votes with, which may be of a disk that it has lost."""
        active = self.active_controller
        process = None if active is None else self.processes.get(active.id)
        if process is not None and process.controller is not None:
            entry = process.controller.quorum.voters.get(node_id)
            if entry is not None and entry.key.directory_id is not None:
                return entry.key.directory_id
        return self.disks[node_id].directory_ids[0]

    def _change_voters(self, what: str, request: Any, within: Duration) -> None:
        response = self.admin(request, within=within)
        if response.error_code != ErrorCode.NONE:
            raise RequestRefused(
                what, ErrorCode.for_code(response.error_code), response.error_message
            )

    if TYPE_CHECKING:

        def admin(self, request: Any, *, within: Duration = "30s") -> Any:
            """Send any request to the active controller and give its response."""

    def node(self, node_id: int) -> Node:
        """A node by its id."""
        raise NotImplementedError

    # Disks.

    def slow_disk(self, node: Nodes, delay: Duration, *, lasting: Duration | None = None) -> None:
        """Let each write of a controller to its log or election state take a while; 0s ends it.

        Brokers do not wait for their disks: Kafka acknowledges what is in memory.
        """
        delay_ms = milliseconds(delay, what="slow_disk: delay")
        lasting_ms = None if lasting is None else milliseconds(lasting, what="slow_disk: lasting")
        for node_id in self._ids(node):
            if node_id not in self.controller_ids:
                self.note("slow_disk", [node_id], "note", "a broker does not wait for its disk")
                continue
            self._set_write_ms((node_id, delay_ms))
            if lasting_ms is not None:
                self.rt.schedule(self.rt.now() + lasting_ms, self._set_write_ms, (node_id, 0))

    def _set_write_ms(self, what: tuple[int, int]) -> None:
        node_id, write_ms = what
        if self.disks[node_id].write_ms != write_ms:
            self.disks[node_id].write_ms = write_ms
            self.note("slow_disk", [node_id], "start" if write_ms else "stop", f"{write_ms}ms")

    def flush_off(self, node: Nodes, *, off: bool = False) -> None:
        """Let disks say that they have flushed though they have not; ``off`` ends it.

        A crash with ``lose_tail="unflushed"`` then takes what the node has promised to keep.
        """
        for node_id in self._ids(node):
            self.disks[node_id].lie(not off)
            self.note("flush_off", [node_id], "stop" if off else "start")

    def mend_disks(self) -> None:
        """No disk is slow any more, none lies."""
        for node_id in self.node_ids:
            self._set_write_ms((node_id, 0))
            if self.disks[node_id].flushed_when_lying is not None:
                self.flush_off(node_id, off=True)

    def _controller_process(self, action: str, node_id: int) -> Process | None:
        if node_id not in self.controller_ids:
            raise UserError(f"{action}: node {node_id} is no controller")
        process = self.processes.get(node_id)
        if process is None:
            self.note(action, [node_id], "note", "it is down")
        return process
