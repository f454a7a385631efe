"""The bootstrap checkpoint 0-0 of a dynamic quorum, as the storage tool writes it."""

from __future__ import annotations

from minicluster.log.checkpoint import Snapshot, encode_snapshot
from minicluster.protocol.records import KRaftVersionRecord
from minicluster.quorum.state.voters import VoterSet


def bootstrap_checkpoint(voters: VoterSet, kraft_version: int = 1) -> bytes:
    """Its bytes."""
    version = KRaftVersionRecord(version=0, kraft_version=kraft_version)
    control = (version, voters.to_record())
    snapshot = Snapshot(records=(), last_contained_log_timestamp=0, control=control)
    return encode_snapshot(snapshot, epoch=0, timestamp_ms=0)
