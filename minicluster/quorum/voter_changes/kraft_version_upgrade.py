"""The upgrade of kraft.version from 0 to 1: a control batch with the voters' directories.

Source:  KIP-853; LeaderState.maybeAppendUpgradedKRaftVersion, KRaftVersionUpgrade.
"""

from __future__ import annotations

from minicluster.protocol.records import KRaftVersionRecord
from minicluster.quorum.errors import IllegalArgument, NotLeader
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter, VoterSet


def upgrade(
    node: QuorumNode, epoch: int, version: int, now_ms: int, *, validate_only: bool
) -> bool:
    """Append the new level and the voters, each with what its UpdateRaftVoter has named.

    Errors:  NotLeader off the leader or for a past epoch; IllegalArgument for an epoch to come, a
             second upgrade to another level, a downgrade, a level that some voter does not support,
             or for which its UpdateRaftVoter is missing.
    """
    role = node.role
    if not isinstance(role, LeaderState) or epoch < role.epoch:
        raise NotLeader(f"kraft.version: node {node.key.id} does not lead epoch {epoch}")
    if epoch > role.epoch:
        raise IllegalArgument(f"kraft.version: epoch {epoch} is above the leader's {role.epoch}")
    present = node.history.kraft_version
    if role.upgraded_version is not None:
        if role.upgraded_version == version:
            return False
        raise IllegalArgument(
            f"kraft.version: an upgrade to {role.upgraded_version} came before that to {version}"
        )
    if version == present:
        return False
    if version < present:
        raise IllegalArgument(f"kraft.version: {version} is below {present}: no downgrade")
    voters = _reported_voters(node, role)
    if any(voter.key.directory_id is None or not voter.versions.holds(version) for voter in voters):
        raise IllegalArgument(
            f"Invalid upgrade of kraft.version to KRAFT_VERSION_{version} because not all of the "
            "voters support it"
        )
    if not validate_only:
        record = KRaftVersionRecord(version=0, kraft_version=version)
        role.accumulator.append_control((record, VoterSet.of(voters).to_record()), now_ms)
        role.upgraded_version = version
    return True


def _reported_voters(node: QuorumNode, role: LeaderState) -> list[Voter]:
    """The voters, with the directory and versions that their UpdateRaftVoter has named."""
    return [
        node.own if voter.key.id == node.key.id else role.reported_voters.get(voter.key.id, voter)
        for voter in node.history.voters.voters
    ]
