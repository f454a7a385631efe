"""Planted faults and Kafka's own: on, something breaks that a check sees; off, nothing does."""

from __future__ import annotations

import pytest

from minicluster.effects import FaultHit
from minicluster.faults import Faults
from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.state.voters import VoterSet
from minicluster.rules import Rules
from tests.quorum.chaos import Chaos
from tests.quorum.checks import Violated
from tests.quorum.network import Network, voter_of
from tests.quorum.probe import Probe, log_of
from tests.quorum.test_rows_snapshots import downloading, hand_out

SHIPPED = Rules.KAFKA_4_3.as_shipped()


def first_violation(zoo_id: str, seeds: int) -> str:
    """The violation in the first run under chaos that the fault spoils."""
    for seed in range(seeds):
        try:
            Chaos(seed, observers=0, faults=Faults.of([zoo_id])).run(15_000)
        except Violated as violated:
            return str(violated)
    return ""


def test_s24_a_commit_below_the_majority_is_seen() -> None:
    assert first_violation("S24", 3).startswith("E06")


def test_z32_a_leader_that_resumes_its_epoch_is_seen() -> None:
    assert first_violation("Z32", 8)[:3] in ("E05", "E07")


def test_s23_a_vote_for_a_shorter_log_is_seen() -> None:
    assert first_violation("S23", 8).startswith("E07")


@pytest.mark.parametrize("fault", [None, "S22"])
def test_s22_a_vote_that_is_not_persisted_is_given_twice(fault: str | None) -> None:
    faults = Faults.of([fault] if fault else [])
    before = Probe(faults=faults)
    assert before.vote(2, 2) == (ErrorCode.NONE, True)
    after = Probe(stored=before.stored, faults=faults)
    assert after.vote(2, 3) == (ErrorCode.NONE, fault is not None)
    hits = [effect for effect in after.effects if isinstance(effect, FaultHit)]
    assert hits == ([FaultHit("S22")] if fault else [])


@pytest.mark.parametrize("fault", [None, "Z34"])
def test_z34_a_leader_isolated_from_the_majority_resigns_unless_the_fault_keeps_it(
    fault: str | None,
) -> None:
    network = Network([1, 2, 3], faults=Faults.of([fault] if fault else []))
    leader = network.wait_for_leader()
    others = [i for i in network.members if i != leader]
    network.cut(others, [leader], both=False)
    network.advance(4_000)
    assert network.members[leader].up.is_leader == (fault is not None)


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["mended", "as shipped"])
def test_z58_a_snapshot_below_the_own_tail_is_installed_or_fatal(rules: Rules) -> None:
    tail = log_of((3, 2))
    probe, content = downloading(tail)
    probe.machine.node.rules = rules
    if rules is SHIPPED:
        with pytest.raises(InconsistentState):
            hand_out(probe, content)
    else:
        hand_out(probe, content)
        assert (probe.log.start_offset, probe.log.last_epoch) == (3, 1)


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["mended", "as shipped"])
def test_z59_a_fetch_parked_at_a_deposed_leader_fails_or_completes_in_its_name(
    rules: Rules,
) -> None:
    probe = Probe(rules=rules)
    epoch = probe.become_leader()
    probe.fetch(2, 1, epoch)
    assert probe.fetch(2, 1, epoch, wait_ms=500) is None
    token = probe.last_token
    probe.vote(epoch + 1, 3, last=(epoch, 1))
    assert probe.role == "Unattached"
    if rules is SHIPPED:
        assert token not in probe.responses
        probe.advance(500)
    part = probe.responses[token].responses[0].partitions[0]
    if rules is SHIPPED:
        assert (part.error_code, part.current_leader.leader_id) == (ErrorCode.NONE, 1)
        assert part.current_leader.leader_epoch == epoch
    else:
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_epoch == epoch + 1


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["mended", "as shipped"])
def test_z61_voters_written_below_a_truncated_tail_are_read_or_missed(rules: Rules) -> None:
    """E43. At the offsets of a truncated tail the next leader writes the removal of a voter."""
    from minicluster.log.control import control_batch
    from tests.quorum.probe import data_batch

    log = log_of()
    stored = QuorumState(leader_id=2, leader_epoch=4, data_version=1)
    probe = Probe((1, 2, 3), dynamic=True, log=log, stored=stored, rules=rules)

    def respond(*batches: object, **kwargs: object) -> None:
        (send,) = probe.sent(FetchRequest)
        probe.respond_to_fetch(send, *batches, leader=2, epoch=4, **kwargs)  # type: ignore[arg-type]

    respond(data_batch(0, 3, b"a"), data_batch(1, 3, b"lost", b"lost", b"lost"))
    respond(diverging=(3, 1))
    assert log.end_offset == 1
    smaller = VoterSet.of(voter_of(i, dynamic=True) for i in (1, 2))
    respond(control_batch(1, 4, 0, [smaller.to_record()]))
    assert log.end_offset == 2
    assert probe.machine.voters.ids == ((1, 2, 3) if rules is SHIPPED else (1, 2))


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3, SHIPPED], ids=["mended", "as shipped"])
def test_a_refused_fetch_snapshot_has_empty_records_or_none(rules: Rules) -> None:
    probe = Probe(rules=rules)
    part = probe.fetch_snapshot(2, (3, 1))
    assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert part.unaligned_records == (None if rules is SHIPPED else b"")
