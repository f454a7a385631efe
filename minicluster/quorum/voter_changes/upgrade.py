"""The upgrade of kraft.version from 0 to 1: a control batch with the voters' directories.

Source:  4.3 notes 10.14; LeaderState.maybeAppendUpgradedKRaftVersion.
"""

from __future__ import annotations

from minicluster.protocol.records import KRaftVersionRecord
from minicluster.quorum.errors import IllegalArgument, NotLeader
from minicluster.quorum.leader_state import Leader
from minicluster.quorum.node import QuorumNode
from minicluster.quorum.voters import VoterSet


def upgrade(
    node: QuorumNode, epoch: int, version: int, now_ms: int, *, validate_only: bool
) -> bool:
    """Append the new level and the voters with what each has told the leader of itself."""
    role = node.role
    if not isinstance(role, Leader) or role.epoch != epoch:
        raise NotLeader(f"kraft.version: node {node.key.id} does not lead epoch {epoch}")
    present = node.history.kraft_version
    if role.upgraded_version is not None and role.upgraded_version != version > present:
        raise IllegalArgument("kraft.version: another upgrade is pending")
    if version < present:
        raise IllegalArgument(f"kraft.version: {version} is below {present}: no downgrade")
    if version == present or role.upgraded_version == version:
        return False
    voters = []
    for voter in node.history.voters.voters:
        known = node.own if voter.key.id == node.key.id else role.reported_voters.get(voter.key.id)
        if known is None or known.key.directory_id is None:
            raise IllegalArgument(f"kraft.version: the directory of voter {voter.key.id} unknown")
        if not known.versions.holds(version):
            raise IllegalArgument(f"kraft.version: voter {voter.key.id} does not support {version}")
        voters.append(known)
    if not validate_only:
        record = KRaftVersionRecord(version=0, kraft_version=version)
        role.accumulator.append_control((record, VoterSet.of(voters).to_record()), now_ms)
        role.upgraded_version = version
    return not validate_only
