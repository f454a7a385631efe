"""One node of a KRaft quorum, voter or observer, as a pure machine.

Kafka 4.3's KRaft: pre-vote and vote (KIP-595, KIP-996), replication by Fetch with divergence and
truncation, high watermark, check-quorum, snapshots (KIP-630), changes of the voter set (KIP-853).
Controllers, brokers and standby non-voters are all this machine: who is in the voter set votes,
the rest observes.

How to drive it::

    machine = QuorumMachine(node_id=101, directory_id=…, cluster_id="…", log=log, draws=draws,
                            voters=VoterSet.static((101, 102, 103)),
                            bootstrap_servers=(Node(101, "node101", 9191), …),
                            persisted=stored_quorum_state)      # None on the first start
    for effect in machine.start(now_ms): …
    for effect in machine.on_request(token, request, version, now_ms): …
    for effect in machine.on_response(correlation_id, response, now_ms): …
    for effect in machine.on_failure(correlation_id, now_ms): …     # connection refused or broken
    last_offset = machine.append(epoch, records, now_ms)            # leader only
    for effect in machine.poll(now_ms): …                           # due timers, pending appends
    wake_ms = machine.next_wake_ms()                                # poll again then; None: never

Every input returns the effects, in the order in which they happened; the shell carries them out
in that order (``Persist`` before what follows it). The machine owns its ``Log`` and appends,
truncates and flushes it itself; ``Appended`` and ``Truncated`` only report it. After ``append``,
``resign`` or ``shutdown`` call ``poll`` (or look at ``next_wake_ms``, which is then now).

After a crash, build a new machine from the last persisted state and the same ``Log``, on which
the shell has called ``lose_unflushed()`` if the crash was lossy.

Effects: ``effects.SendTo`` (a ``Send``; ``to`` is the node id), ``Respond``, ``Persist``,
``Voted``, ``VoteRejected``, ``RequestInvalid``, ``Began``, ``Appended``, ``Flushed``,
``Truncated``, ``SnapshotInstalled``, ``VotersChanged``, ``HighWatermarkChanged``, ``Deposed``,
``Commit``, ``LoadSnapshot``, ``LoadBootstrap``, ``LeaderChange``, ``ShutDown``, ``FaultHit``.
``Deposed`` comes at once when leadership ends; a ``LeaderChange`` of another epoch or leader comes
later, and none comes of a resignation.

Leaves out: authentication; the metrics.
Source:  KafkaRaftClient, QuorumState, LeaderState.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from minicluster.effects import Effect
from minicluster.faults import Faults
from minicluster.log.log import Log, SnapshotId
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.records import VersionedRecord
from minicluster.quorum import handlers, polling, replication, snapshots, voter_changes
from minicluster.quorum.errors import IllegalArgument
from minicluster.quorum.settings import QuorumSettings
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import Draws, QuorumNode
from minicluster.quorum.state.voters import Endpoints, Node, VoterSet
from minicluster.rules import Rules


class QuorumMachine:
    """A quorum node behind inputs and effects; the head of this module shows how to drive it.

    Shapes:  every input takes the time last and returns effects in the order of their happening.
    Units:   times in milliseconds of one clock that never goes back.
    Source:  KafkaRaftClient.
    """

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: UUID,
        cluster_id: str,
        log: Log,
        draws: Draws,
        voters: VoterSet | None = None,
        bootstrap_servers: Sequence[Node] = (),
        endpoints: Endpoints = (),
        listener_name: str = "CONTROLLER",
        persisted: QuorumState | None = None,
        can_become_voter: bool = True,
        settings: QuorumSettings | None = None,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
    ) -> None:
        """Build a node that does nothing until ``start``.

        Shapes:  ``voters`` is the static voter set (kraft.version 0); None where the log or a
                 checkpoint, such as the bootstrap checkpoint 0-0, holds the voters.
                 ``bootstrap_servers`` get a Fetch while no leader is known.
                 ``endpoints`` are this node's own (default: those the voter set has for it).
        """
        self.node = QuorumNode(
            node_id=node_id,
            directory_id=directory_id,
            cluster_id=cluster_id,
            log=log,
            draws=draws,
            static_voters=voters or VoterSet(),
            bootstrap_servers=tuple(bootstrap_servers),
            endpoints=endpoints,
            listener_name=listener_name,
            persisted=persisted,
            can_become_voter=can_become_voter,
            settings=settings or QuorumSettings(),
            rules=rules,
            faults=faults,
        )

    # --- inputs -----------------------------------------------------------------------------

    def start(self, now_ms: int, *, listener: str | None = "") -> list[Effect]:
        """Begin with the persisted state; ``listener`` None registers none."""
        if listener is not None:
            self.node.register_listener(listener)
        polling.start(self.node, now_ms)
        polling.poll_until_idle(self.node, now_ms)
        return self.node.take_effects()

    def on_request(self, token: Any, request: Any, version: int, now_ms: int) -> list[Effect]:
        """Take a request of a peer or an admin.

        Shapes:  -> its ``Respond``, under the token, comes now or with a later input.
        Errors:  TypeError for a request that no quorum node handles.
        """
        polling.on_message(self.node, handlers.handle_request, (token, request, version), now_ms)
        return self.node.take_effects()

    def on_response(self, correlation_id: int, response: Any, now_ms: int) -> list[Effect]:
        """Take the response to a request that was sent; that of a dropped request is ignored.

        Shapes:  a response with the error UNSUPPORTED_VERSION where no version is in common.
        """
        polling.on_message(self.node, handlers.handle_response, (correlation_id, response), now_ms)
        return self.node.take_effects()

    def on_failure(self, correlation_id: int, now_ms: int) -> list[Effect]:
        """Take the failure of a request's connection, as BROKER_NOT_AVAILABLE.

        Shapes:  a silent peer needs no input: the machine has a request timeout.
        Source:  KafkaNetworkChannel.
        """
        polling.on_message(self.node, handlers.handle_failure, (correlation_id,), now_ms)
        return self.node.take_effects()

    def poll(self, now_ms: int) -> list[Effect]:
        """Handle due timers, write what was appended, send what is due."""
        polling.poll_until_idle(self.node, now_ms)
        return self.node.take_effects()

    def append(
        self,
        epoch: int,
        records: Sequence[VersionedRecord | bytes],
        now_ms: int,
    ) -> int:
        """Append records as the leader of an epoch; they form one batch, whole or not at all.

        Shapes:  -> offset of the last record. They reach the log with the first poll after the
                 linger time, together with what was appended meanwhile.
        Errors:  NotLeader if the epoch is past or another leads; IllegalArgument for none or too
                 many records, or an epoch that has not come.
        """
        return replication.append(self.node, epoch, records, now_ms)

    def resign(self, epoch: int) -> None:
        """Give up leadership of an epoch; of a past epoch, nothing happens.

        Errors:  IllegalArgument for an epoch that has not come, or one that another leads.
        """
        role = self.node.role
        if epoch < 0 or epoch > role.epoch:
            raise IllegalArgument(f"resign from epoch {epoch} in epoch {role.epoch}")
        if epoch == role.epoch and role.leader_id != self.node.key.id:
            raise IllegalArgument(f"resign from epoch {epoch}: node does not lead it")
        if epoch == role.epoch and isinstance(role, LeaderState):
            role.resign_requested = True
            self.node.wake_ms = 0

    def shutdown(self, timeout_ms: int, now_ms: int) -> None:
        """Begin a graceful shutdown; ``ShutDown`` is returned when it has ended."""
        self.node.shutdown_deadline_ms = now_ms + timeout_ms
        self.node.wake_ms = now_ms

    # --- snapshots --------------------------------------------------------------------------

    def create_snapshot(
        self,
        snapshot_id: SnapshotId,
        records: Sequence[VersionedRecord],
        now_ms: int,
        *,
        last_contained_log_timestamp: int = -1,
        content: bytes | None = None,
    ) -> bool:
        """Store a snapshot of everything below an end offset (KIP-630).

        Shapes:  ``content`` are the file's bytes; without it they are made of the records and
                 the voters as of that offset. -> False if it exists or lies below the log start.
        Errors:  IllegalArgument unless the offset is committed, begins a batch or is the end,
                 and has that epoch.
        """
        return snapshots.create(
            self.node, snapshot_id, records, last_contained_log_timestamp, content, now_ms
        )

    def compact(self) -> bool:
        """Let the log begin at its newest snapshot; older snapshots are deleted."""
        newest = self.log.latest_snapshot
        return newest is not None and self.node.log.delete_before_snapshot(newest)

    def clean(self, retention_bytes: int, retention_ms: int, now_ms: int) -> bool:
        """Let the log begin at a later snapshot while it is too large, or its oldest too old.

        Shapes:  at least one snapshot stays. -> anything was deleted.
        """
        return snapshots.clean(self.node, retention_bytes, retention_ms, now_ms)

    def upgrade_kraft_version(
        self, epoch: int, version: int, now_ms: int, *, validate_only: bool = False
    ) -> bool:
        """Raise kraft.version by a control batch with the voter set (KIP-853).

        Shapes:  -> it is a change: the version is neither the present one nor on its way.
        Errors:  NotLeader; IllegalArgument where UpdateFeatures gets INVALID_UPDATE_VERSION.
        """
        changes = voter_changes.upgrade_kraft_version(
            self.node, epoch, version, now_ms, validate_only=validate_only
        )
        if changes and not validate_only:
            self.node.wake_ms = now_ms
        return changes

    # --- state ------------------------------------------------------------------------------

    def next_wake_ms(self) -> int | None:
        """The time of the next poll if nothing arrives before; None: never."""
        return self.node.wake_ms if self.node.running else None

    @property
    def role(self) -> str:
        """Unattached, Follower, Prospective, Candidate, Leader or Resigned."""
        return self.node.role.name

    @property
    def epoch(self) -> int:
        """The epoch the node is in."""
        return self.node.role.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch, -1 while this node has learnt of none."""
        leader_id = self.node.role.leader_id
        return -1 if leader_id is None else leader_id

    @property
    def is_leader(self) -> bool:
        """This node leads; a resigned leader does not."""
        return isinstance(self.node.role, LeaderState)

    @property
    def next_append_offset(self) -> int | None:
        """The offset of the leader's next record, behind what is not written; None elsewhere."""
        role = self.node.role
        return role.accumulator.next_offset if isinstance(role, LeaderState) else None

    @property
    def is_voter(self) -> bool:
        """This node is in the voter set as last read from the log."""
        return self.node.is_voter

    @property
    def high_watermark(self) -> int:
        """The end of what is committed, -1 while unknown."""
        mark = self.node.role.high_watermark
        return -1 if mark is None else mark

    @property
    def log(self) -> Log:
        """The node's log."""
        return self.node.log.log

    @property
    def voters(self) -> VoterSet:
        """The voter set as last read from the log, committed or not."""
        return self.node.history.voters

    @property
    def kraft_version(self) -> int:
        """The kraft.version as last read from the log, committed or not."""
        return self.node.history.kraft_version

    @property
    def kraft_version_to_be(self) -> int:
        """The kraft.version that this leader is raising, else the one last read from the log."""
        role = self.node.role
        raised = role.upgraded_version if isinstance(role, LeaderState) else None
        return self.kraft_version if raised is None else raised

    @property
    def persisted(self) -> QuorumState:
        """The quorum-state as last written."""
        return self.node.persisted or QuorumState()

    @property
    def is_running(self) -> bool:
        """Started, and not shut down."""
        return self.node.running
