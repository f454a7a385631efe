"""The table of the roles: each of its rows is played once, and nothing beside it is carried out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import VoteRequest, VoteResponse
from minicluster.quorum import transitions
from minicluster.quorum.state.epoch_state import EpochState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.transitions import TRANSITIONS, Event
from tests.quorum.probe import Probe

Row = tuple[str, Event, str]
ROWS: list[Row] = [
    (role.name, event, to.name)
    for role, events in TRANSITIONS.items()
    for event, to in events.items()
]


def wait(probe: Probe) -> None:
    """Let time pass until the role changes."""
    role = probe.role
    while probe.role == role:
        wake_ms = probe.machine.next_wake_ms()
        assert wake_ms is not None
        probe.advance(max(0, wake_ms - probe.now_ms))


def respond_to_votes(probe: Probe, *, granted: bool) -> None:
    """Respond to the vote requests, one after the other, until the role changes."""
    role = probe.role
    probe.poll()
    for send in probe.sent(VoteRequest):
        if probe.role == role:
            probe.grant(send, granted=granted)


def respond_without_pre_votes(probe: Probe) -> None:
    """Respond to a pre-vote as an older release does."""
    probe.poll()
    response = VoteResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    probe.respond(probe.sent(VoteRequest)[0], response)


def resign(probe: Probe) -> None:
    probe.machine.resign(probe.machine.epoch)
    probe.poll()


def node_as(role: str, event: Event) -> Probe:
    """A voter of three in a role; its leader is node 2 where the event needs one."""
    probe = Probe((1, 2, 3))
    if role == "Follower" or event is Event.LOST_TO_LEADER:
        probe.begin(probe.machine.epoch + 1, 2)
    if role == "Prospective":
        wait(probe)
    elif role == "Candidate":
        probe.unread = probe.become_candidate()
    elif role in ("Leader", "Resigned"):
        probe.become_leader()
    if role == "Resigned":
        resign(probe)
    assert probe.role == role
    return probe


PLAYED: dict[Event, Callable[[Probe], object]] = {
    Event.EPOCH: lambda probe: probe.vote(probe.machine.epoch + 1, 3),
    Event.LEADER: lambda probe: probe.begin(probe.machine.epoch + 1, 3),
    Event.FETCH_TIMEOUT: wait,
    Event.ELECTION_TIMEOUT: wait,
    Event.NO_PRE_VOTES: respond_without_pre_votes,
    Event.WON: lambda probe: respond_to_votes(probe, granted=True),
    Event.LOST: lambda probe: respond_to_votes(probe, granted=False),
    Event.LOST_TO_LEADER: lambda probe: respond_to_votes(probe, granted=False),
    Event.RESIGNED: resign,
}

ALONE = {"Unattached": None, "Resigned": QuorumState(leader_id=1, leader_epoch=2, data_version=0)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}-{row[1].name}")
def test_each_row_of_the_table_is_played(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[Row] = []
    become = transitions._become

    def noted(node: QuorumNode, event: Event, role: EpochState) -> None:
        changes.append((node.role.name, event, role.name))
        become(node, event, role)

    role, event, _ = row
    if event is Event.ONLY_VOTER:
        monkeypatch.setattr(transitions, "_become", noted)
        Probe((1,), stored=ALONE[role])
    else:
        probe = node_as(role, event)
        monkeypatch.setattr(transitions, "_become", noted)
        PLAYED[event](probe)
    assert changes and changes[0] == row


def test_a_change_of_role_that_is_not_in_the_table_is_not_carried_out() -> None:
    probe = Probe((1, 2, 3))
    probe.become_leader()
    with pytest.raises(AssertionError, match="Leader: ELECTION_TIMEOUT to Prospective"):
        transitions.to_prospective(probe.machine.node, Event.ELECTION_TIMEOUT, probe.now_ms)
    assert probe.role == "Leader"
