"""Promises about time: from the moment when the last disturbance of a run ended.

Only runs in virtual time are judged, in which every disturbance has ended; the bounds are those
that the timeouts of the cluster give. Those about ISRs count from the end of the ISR changes that
the last disturbance left on their way.
"""

from __future__ import annotations

from minicluster.verify.histories.longest_waits import Awaited, Wait
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

_NO_WAITS = "nothing of the kind was waited for until its bound, after all disturbances"


def _in_time(wait: Wait, message: str) -> Findings:
    if wait.unjudged is not None:
        yield exempt(wait.unjudged)
        return
    yield CASE
    if wait.waited_ms > wait.bound_ms:
        yield broken(f"{message} (for {wait.waited_ms} ms)", broker=wait.node)


@rule("G1", "Brokers are unfenced in time",
      source="KIP-631, KAFKA-13959; BrokerLifecycleManager; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event",),
      without_cases=_NO_WAITS,
      breaks="Broker 3 is fenced when all is healed, and at the end of the run.",
      keeps="Broker 3 is unfenced 300 ms after all is healed.")  # fmt: skip
def brokers_are_unfenced_in_time(wait: Wait) -> Findings:
    """Within two sessions and the election of a controller every broker is registered and
    unfenced."""
    # Two sessions: a broker whose requests were lost may wait for one to end before it registers
    # or sends a heartbeat again, and is unfenced by a heartbeat after it has caught up.
    if wait.awaited is Awaited.UNFENCED:
        yield from _in_time(wait, f"broker {wait.node} was not registered or was fenced")


@rule("G2", "The quorum elects a leader in time",
      source="KIP-595; QuorumController; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "fault"),
      without_cases=_NO_WAITS,
      breaks="Controller 101 resigns at 20 ms, and 102 is elected at 700 ms.",
      keeps="Controller 101 resigns at 20 ms, and 102 is elected at 300 ms.")  # fmt: skip
def the_quorum_elects_a_leader_in_time(wait: Wait) -> Findings:
    """Within twice the timeouts of fetch and election a controller leads."""
    if wait.awaited is Awaited.ELECTED:
        yield from _in_time(wait, "no controller led")


@rule("G3", "Nodes publish what is committed in time",
      source="KIP-631; MetadataLoader; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "publish"),
      without_cases=_NO_WAITS,
      breaks="Broker 2 publishes the last record 700 ms after it is committed.",
      keeps="Broker 2 publishes within 300 ms; the record that is committed later "
      "has no effect on images.")  # fmt: skip
def nodes_publish_what_is_committed_in_time(wait: Wait) -> Findings:
    """Within two seconds, and the election of a controller, each node publishes an image with what
    is committed."""
    if wait.awaited is Awaited.PUBLISHED:
        yield from _in_time(wait, f"node {wait.node} did not publish what was committed")


@rule("G4", "ISR changes end in time",
      source="KIP-497; AlterPartitionManager; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "partition_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="An ISR change of leader 1 is committed at 700 ms.",
      keeps="An ISR change of leader 1 is committed at 300 ms.")  # fmt: skip
def isr_changes_end_in_time(wait: Wait) -> Findings:
    """An ISR change of a leader is committed or reverted, or newer metadata ends it, within two
    request timeouts once replicas are in sync."""
    # One change is in flight at a time. While it is, the high watermark waits for the maximal ISR,
    # so a change that never ends stops the partition, with all of its replicas alive.
    if wait.awaited is Awaited.ISR_CHANGE_ENDED:
        yield from _in_time(wait, f"an ISR change of leader {wait.node} was pending")


@rule("G5", "Leaders commit what they append in time",
      source="KIP-497; Partition.maybeIncrementLeaderHW; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "partition_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="Leader 1 appends 5 records, and its high watermark reaches them at 700 ms.",
      keeps="The high watermark follows at 300 ms; that of orders-1, whose ISR is "
      "too small, at 700 ms.")  # fmt: skip
def leaders_commit_what_they_append_in_time(wait: Wait) -> Findings:
    """While its ISR is large enough, a leader's high watermark reaches what it has appended a
    second after replicas must be in sync."""
    # Until then a member that is gone may hold the high watermark back, rightly: it leaves the ISR
    # only after replica.lag.time.max.ms. An ISR below its minimum holds it back as well (KIP-966).
    if wait.awaited is Awaited.COMMITTED:
        yield from _in_time(wait, f"leader {wait.node} held records above its high watermark")


@rule("G6", "Replicas are in sync in time",
      source="KIP-497, KIP-841; Partition.maybeExpandIsr; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="Replica 3 of an active broker is out of the ISR until the end of the run.",
      keeps="Replica 3 of an active broker comes into the ISR at 300 ms.")  # fmt: skip
def replicas_are_in_sync_in_time(wait: Wait) -> Findings:
    """Each replica of an active broker, in a directory that is online, is in the ISR within
    replica.lag.time.max.ms and five seconds of its broker being unfenced, unless a throttle holds
    it back (KIP-73)."""
    if wait.awaited is Awaited.IN_SYNC:
        yield from _in_time(wait, "a replica of an active broker was outside the ISR")


@rule("G7", "Partitions have a leader in time",
      source="KIP-631, KIP-704; ReplicationControlManager; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="orders-0 has no leader, and broker 1 of ISR [1] is active.",
      keeps="orders-0, whose ISR member is active, gets a leader at 300 ms.")  # fmt: skip
def partitions_have_a_leader_in_time(wait: Wait) -> Findings:
    """A partition with a candidate has a leader, and one that recovers has recovered, five seconds
    after brokers must be unfenced."""
    if wait.awaited is Awaited.LED:
        message = "a partition with a candidate had no leader, or one that recovered"
        yield from _in_time(wait, message)


@rule("G8", "Parked requests are completed in time",
      source="KIP-74, KIP-98; DelayedOperationPurgatory; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "rpc", "partition_event"),
      without_cases=_NO_WAITS,
      breaks="A Produce with timeout 100 ms gets its response after 690 ms.",
      keeps="A Produce with timeout 100 ms gets its response after 590 ms, 500 of "
      "which are the bound.")  # fmt: skip
def parked_requests_are_completed_in_time(wait: Wait) -> Findings:
    """A request that waits at a broker (Produce, Fetch, DeleteRecords) gets its response within two
    seconds of its own timeout. A Produce with acks=all is acknowledged within two seconds of the
    moment at which the last high watermark of its partitions has passed its records, and does not
    time out once they all have."""
    if wait.awaited is Awaited.COMPLETED:
        yield from _in_time(wait, f"a request to broker {wait.node} waited longer than it had to")


@rule("G9", "Reassignments complete in time",
      source="KIP-455; ReplicationControlManager; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="A reassignment to [1, 2, 4] completes at 700 ms, and all its brokers are active.",
      keeps="A reassignment to [1, 2, 4] completes at 300 ms.")  # fmt: skip
def reassignments_complete_in_time(wait: Wait) -> Findings:
    """A reassignment whose new replicas are active, and not held back by a throttle, completes ten
    seconds after replicas must be in sync."""
    if wait.awaited is Awaited.REASSIGNED:
        yield from _in_time(wait, "a reassignment did not complete")


@rule("G10", "Controlled shutdowns end in time",
      source="KIP-631, KIP-841; BrokerLifecycleManager, BrokerHeartbeatManager; "
      "liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "fault"),
      without_cases=_NO_WAITS,
      breaks="Broker 3 begins a controlled shutdown at 200 ms, and still runs at the end.",
      keeps="Broker 3 begins a controlled shutdown at 200 ms, and ends at 500 ms.")  # fmt: skip
def controlled_shutdowns_end_in_time(wait: Wait) -> Findings:
    """While no other node is disturbed, a broker in controlled shutdown ends within two
    sessions."""
    if wait.awaited is Awaited.SHUT_DOWN:
        yield from _in_time(wait, f"broker {wait.node} did not end its controlled shutdown")


@rule("G11", "ISRs come to rest",
      source="KIP-497; Partition.maybeShrinkIsr; liveness after the last disturbance",
      evidence=Evidence.TRACE, tables=("raft_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="Replica 3 of an active broker leaves the ISR at 700 ms.",
      keeps="Replica 3 leaves the ISR at 300 ms; later only as its broker is "
      "fenced, and as the topic is deleted.")  # fmt: skip
def isrs_come_to_rest(wait: Wait) -> Findings:
    """Once replicas must be in sync, no replica of an active broker leaves an ISR."""
    if wait.awaited is Awaited.ISR_AT_REST:
        yield from _in_time(wait, f"broker {wait.node} left an ISR, and was active")


@rule("G12", "Groups reach the end in time",
      source="KIP-848; liveness of consumers; liveness after the last disturbance",
      evidence=Evidence.TRACE,
      tables=("raft_event", "client_record", "partition_event", "rpc"),
      without_cases=_NO_WAITS,
      breaks="5 records are committed, and the group, whose member lives, has committed 3.",
      keeps="5 records are committed, and the group commits 5 at 300 ms.")  # fmt: skip
def groups_reach_the_end_in_time(wait: Wait) -> Findings:
    """Once replicas must be in sync, a group with a living member reads or commits up to what is
    committed within four request timeouts."""
    if wait.awaited is Awaited.AT_THE_END:
        yield from _in_time(wait, "a group did not reach what is committed")
