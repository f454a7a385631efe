"""Snapshots: created, cleaned up, served to a replica, downloaded and installed (KIP-630).

A snapshot (end offset, epoch) stands for the whole log below its end offset, voters included. So it
may end only where the log is committed, and at the border of a batch. Once one is stored, the log
before it may go: the log then starts at a snapshot's end.

A follower whose next record is gone from the leader gets, in place of records, the id of the newest
snapshot. It leaves Fetch for FetchSnapshot, asks for one part after the other from position 0, and
keeps them in memory: a change of role drops them, an id in another Fetch response begins again.
With the last part the snapshot *replaces* the log: everything in it goes, uncommitted records too;
start, end and high watermark are then the snapshot's end.

FetchSnapshot: 0-1. v1: the replica's directory id and the leader's endpoint (KIP-853).
Source:        KafkaRaftLog.createNewSnapshot, maybeClean; KafkaRaftClient.
               handleFetchSnapshotRequest, handleFetchSnapshotResponse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.log.checkpoint import (
    Snapshot,
    checkpoint_name,
    decode_snapshot,
    encode_snapshot,
)
from minicluster.log.errors import InvalidBatch
from minicluster.log.log import SnapshotId, snapshot_order
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from minicluster.protocol.records import KRaftVersionRecord, VersionedRecord
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum import message_checks, wire
from minicluster.quorum.effects import HighWatermarkChanged, SnapshotInstalled, Truncated
from minicluster.quorum.errors import IllegalArgument, InconsistentState, InvalidRequest
from minicluster.quorum.message_checks import ResponseEpoch
from minicluster.quorum.state.epoch_state import FetchingSnapshot, FollowerState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT, Position
from minicluster.quorum.state.voter_set_history import decode_snapshot_control
from minicluster.quorum.state.voters import ReplicaKey

# --- create, clean --------------------------------------------------------------------------------


@step
def create(
    node: QuorumNode,
    snapshot_id: SnapshotId,
    records: Sequence[VersionedRecord],
    last_contained_log_timestamp: int,
    content: bytes | None,
    now_ms: int,
) -> bool:
    """Store a snapshot; see ``QuorumMachine.create_snapshot``."""
    offset, epoch = snapshot_id
    log = node.log
    if offset < log.start_offset:
        return False
    if offset > log.high_watermark:
        raise IllegalArgument(f"snapshot {snapshot_id}: committed up to {log.high_watermark}")
    if log.validate(offset, epoch).position is not Position.VALID:
        raise IllegalArgument(f"snapshot {snapshot_id}: the log has another epoch there")
    # Otherwise a log that begins at this snapshot would begin inside a batch.
    if not log.begins_batch(offset):
        raise IllegalArgument(f"snapshot {snapshot_id}: the offset is inside a batch")
    if snapshot_id in log.log.snapshots:
        return False
    if content is None:
        snapshot = Snapshot(
            records=tuple(records),
            last_contained_log_timestamp=last_contained_log_timestamp,
            control=_voters_before(node, offset),
        )
        content = encode_snapshot(snapshot, epoch=epoch, timestamp_ms=now_ms)
    log.log.snapshots[snapshot_id] = content
    return True


def _voters_before(node: QuorumNode, offset: int) -> tuple[object, ...]:
    """The control records that a node needs which starts from the snapshot alone."""
    version = node.history.kraft_version_at(offset - 1)
    voters = node.history.voters_at(offset - 1)
    if version == 0 or voters is None:
        return ()
    return KRaftVersionRecord(version=0, kraft_version=version), voters.to_record()


def clean(node: QuorumNode, retention_bytes: int, retention_ms: int, now_ms: int) -> bool:
    """Drop old snapshots and the log before them; see ``QuorumMachine.clean``."""
    log, cleaned = node.log.log, False
    # One snapshot always stays: without it, a log that starts above 0 could serve no new replica.
    while len(log.snapshots) >= 2:
        oldest, follows = sorted(log.snapshots, key=snapshot_order)[:2]
        size = sum(map(len, log.snapshots.values())) + sum(batch.size for batch in log.batches)
        content = decode_snapshot(log.snapshots[oldest], checkpoint_name(oldest))
        age_ms = now_ms - content.last_contained_log_timestamp
        # A limit of -1 is none.
        if not (0 <= retention_bytes < size or 0 <= retention_ms < age_ms):
            break
        if not node.log.delete_before_snapshot(follows):
            break
        cleaned = True
    return cleaned


# --- the leader: a request ------------------------------------------------------------------------


def validate_request(
    node: QuorumNode, request: FetchSnapshotRequest, version: int
) -> FetchSnapshotResponse | None:
    """Reject another cluster, and a request that does not name the metadata partition."""
    if not message_checks.has_valid_cluster_id(node, request.cluster_id):
        return wire.fetch_snapshot_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics:
        error = message_checks.contradiction(node, InvalidRequest.OTHER_PARTITION)
        return wire.fetch_snapshot_error(error)
    first = request.topics[0]
    # "and", as in Kafka: one partition among several topics is looked for by its name.
    if not first.partitions or (len(request.topics) != 1 and len(first.partitions) != 1):
        error = message_checks.invalid(node, InvalidRequest.OTHER_PARTITION)
        return wire.fetch_snapshot_error(error)
    if wire.snapshot_partition(request) is None:
        index = first.partitions[0].partition
        return wire.unknown_snapshot_topic(node, version, first.name, index, _no_records(node))
    return None


def check_request_epoch(
    node: QuorumNode, request: FetchSnapshotRequest, now_ms: int
) -> ErrorCode | None:
    """The epoch of the leader that the replica fetches from."""
    partition = wire.snapshot_partition(request)
    assert partition is not None
    return message_checks.check_leader_request(node, partition.current_leader_epoch)


def error_response(
    node: QuorumNode, request: FetchSnapshotRequest, version: int, error: ErrorCode
) -> FetchSnapshotResponse:
    """Reject the partition, with the leader that this node has learnt of."""
    return wire.fetch_snapshot_response(node, version, error=error, content=_no_records(node))


def handle_request(
    node: QuorumNode, request: FetchSnapshotRequest, version: int, token: Any, now_ms: int
) -> FetchSnapshotResponse:
    """Respond with a part of a snapshot.

    The bootstrap checkpoint is not served: each node is formatted with its own.
    """
    leader, partition = node.role, wire.snapshot_partition(request)
    assert isinstance(leader, LeaderState) and partition is not None
    snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    content = node.log.log.snapshots.get(snapshot_id)
    if content is None or snapshot_id == BOOTSTRAP_SNAPSHOT:
        return error_response(node, request, version, ErrorCode.SNAPSHOT_NOT_FOUND)
    position = partition.position
    if not 0 <= position < len(content):
        return error_response(node, request, version, ErrorCode.POSITION_OUT_OF_RANGE)
    if request.replica_id == node.key.id:
        error = message_checks.contradiction(node, InvalidRequest.FETCH_OF_OWN_ID)
        return error_response(node, request, version, error)
    if request.replica_id >= 0:
        replica = ReplicaKey.of(request.replica_id, partition.replica_directory_id)
        # Otherwise a leader whose followers all load a long snapshot would resign.
        leader.on_contact(replica, now_ms)
    return wire.fetch_snapshot_response(
        node,
        version,
        snapshot_id=snapshot_id,
        size=len(content),
        position=position,
        content=content[position : position + max(0, request.max_bytes)],
    )


def _no_records(node: QuorumNode) -> bytes | None:
    return None if node.rules.refused_fetch_snapshot_has_no_records else b""


# --- the follower: a response ---------------------------------------------------------------------


def epoch_of_response(node: QuorumNode, response: FetchSnapshotResponse) -> ResponseEpoch | bool:
    """The leader and epoch of the peer; False for a response about another partition."""
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    topic, partition = response.topics[0], response.topics[0].partitions[0]
    if topic.name != METADATA_TOPIC or partition.index != 0:
        return False
    leader = partition.current_leader
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    return ResponseEpoch(
        ErrorCode.for_code(partition.error_code),
        leader_id,
        leader.leader_epoch,
        wire.response_endpoints(response, leader_id, node.listener_name),
    )


def handle_response(
    node: QuorumNode, node_id: int, response: FetchSnapshotResponse, now_ms: int
) -> bool:
    """Add the bytes to the snapshot that is fetched.

    A download that the leader has deleted meanwhile ends: the next Fetch names a newer snapshot.
    """
    # Also a long download keeps the fetch timer from running out, part by part: the leader lives.
    partition = response.topics[0].partitions[0]
    role, timeout_ms = node.role, node.settings.fetch_timeout_ms
    if not isinstance(role, FollowerState):
        return False
    snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if partition.error_code == ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot_id) < 0:
        # Also this is a response of a leader that lives: the fetch timer starts again.
        role.fetching_snapshot = None
        role.reset_fetch_timeout_for_successful_fetch(timeout_ms, now_ms)
        return True
    if partition.error_code != ErrorCode.NONE:
        return False
    # A part of another snapshot, or of another place in this one, is of an earlier download: added
    # here, it would make a file of the right size and the wrong bytes.
    fetching = role.fetching_snapshot
    if fetching is None or fetching.snapshot_id != snapshot_id:
        return False
    if partition.position != len(fetching.content):
        return False
    fetching.content += bytes(partition.unaligned_records or b"")
    if len(fetching.content) >= partition.size:
        role.fetching_snapshot = None
        if not _install(node, role, fetching):
            return False
    role.reset_fetch_timeout_for_successful_fetch(timeout_ms, now_ms)
    return True


def _install(node: QuorumNode, role: FollowerState, fetched: FetchingSnapshot) -> bool:
    """Replace the log by a snapshot; -> False for one whose bytes are damaged: it is dropped."""
    snapshot_id = fetched.snapshot_id
    try:
        decode_snapshot_control(bytes(fetched.content))
    except (InvalidBatch, ProtocolError):
        return False
    if node.rules.snapshot_of_lower_epoch_is_fatal and not node.log.would_install(snapshot_id):
        raise InconsistentState(f"the downloaded snapshot {snapshot_id} is not ahead of the log")
    # An uncommitted tail goes with the log, be its epoch higher than the snapshot's (Z58).
    if node.log.end_offset > snapshot_id[0]:
        node.emit(Truncated(*snapshot_id))
    node.log.install(snapshot_id, bytes(fetched.content))
    node.emit(SnapshotInstalled(snapshot_id))
    voters = node.history.state
    if not node.rules.reader_keeps_position_after_truncation:
        # Otherwise voters written below the old end would be missed (Z61).
        node.history.start_over()
    node.history.update()
    node.emit_voters_changed(voters)
    role.high_watermark = snapshot_id[0]
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(snapshot_id[0]))
    return True
