"""The control records with which a leader's epoch begins (KIP-595, KIP-853).

Source:  LeaderState.appendStartOfEpochControlRecords.
"""

from __future__ import annotations

from minicluster.protocol.records import KRaftVersionRecord, LeaderChangeMessage
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voter_set_history import BEFORE_THE_LOG


def epoch_start_records(node: QuorumNode, role: LeaderState) -> tuple[object, ...]:
    """LeaderChange; and the voters, if no record has them or this node's entry is old."""
    history = node.history
    records: list[object] = [
        LeaderChangeMessage(
            version=0,
            leader_id=node.key.id,
            voters=tuple(LeaderChangeMessage.Voter(voter_id=i) for i in sorted(role.voters)),
            granting_voters=tuple(LeaderChangeMessage.Voter(voter_id=i) for i in role.granting),
        )
    ]
    only_bootstrapped = history.voters_offset == BEFORE_THE_LOG
    if history.kraft_version > 0 and (only_bootstrapped or history.voters.needs_update(node.own)):
        voters = history.voters.update(node.own) or history.voters
        records.append(KRaftVersionRecord(version=0, kraft_version=history.kraft_version))
        records.append(voters.to_record())
    return tuple(records)
