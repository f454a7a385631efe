"""Promises about time, as one table: what is awaited, from when on, its source, its sentence.

Only runs in virtual time have bounds, those that the timeouts of their cluster give (``bounds_ms``
of run.json), and only where every disturbance has ended, or for controlled shutdowns in their
middle. A run that ends before a bound is over decides nothing about it.

===============  ==================================================================================
what is awaited  the folds that note it
===============  ==================================================================================
a state          that the log has (G1 G6 G7 G9) or does not leave (G11): ``log.py``; that a
                 controller leads (G2), that a node is down (G10): ``nodes.py``
an offset        that an image reaches (G3): ``nodes.py``; a high watermark (G5): ``leaders.py``; a
                 group (G12): ``groups.py``
a response       to a leader (G4), to a producer (G8): ``leaders.py``; to anybody (G8): ``nodes.py``
===============  ==================================================================================

One function judges them all: the longest wait of each subject is within the bound.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from minicluster.verify.histories.commits import Commits
from minicluster.verify.model import Evidence
from minicluster.verify.rules.rule import CASE, Findings, Rule, broken, exempt, rule
from minicluster.verify.waits.longest import Waits

_NO_WAITS = "nothing of the kind was waited for until its bound, after all disturbances"


class Awaited(StrEnum):
    """What is waited for: the rule about it, as ``bounds_ms`` of run.json names it."""

    UNFENCED = "G1"
    ELECTED = "G2"
    PUBLISHED = "G3"
    ISR_CHANGE_ENDED = "G4"
    COMMITTED = "G5"
    IN_SYNC = "G6"
    LED = "G7"
    COMPLETED = "G8"
    REASSIGNED = "G9"
    SHUT_DOWN = "G10"
    ISR_AT_REST = "G11"
    AT_THE_END = "G12"


class Liveness(NamedTuple):
    """What is awaited, and what is said where it comes too late.

    Shapes:  says: of the node that waits. by_lost_requests: it counts from the end of the ISR
             changes and Fetches that the last disturbance left on their way, not from the
             disturbance's.
    """

    awaited: Awaited
    title: str
    promise: str
    source: str
    tables: tuple[str, ...]
    says: str
    breaks: str
    keeps: str
    by_lost_requests: bool = False


# A lost ISR change ends by controller.socket.timeout.ms, and until then its leader proposes nothing
# else (DefaultAlterPartitionManager). A lost Fetch ends by request.timeout.ms, and until then its
# follower fetches nothing else from that leader: what they hold back is by_lost_requests.
TABLE = (
    # Two sessions: a broker whose requests were lost may wait for one to end before it registers or
    # sends a heartbeat again, and is unfenced by a heartbeat after it has caught up.
    Liveness(Awaited.UNFENCED, "Brokers are unfenced in time",
        "Within two sessions and the election of a controller every broker is registered and "
        "unfenced.",
        "KIP-631, KAFKA-13959; BrokerLifecycleManager", ("raft_event",),
        "broker {node} was not registered or was fenced",
        breaks="Broker 3 is fenced when all is healed, and at the end of the run.",
        keeps="Broker 3 is unfenced 300 ms after all is healed."),
    Liveness(Awaited.ELECTED, "The quorum elects a leader in time",
        "Within twice the timeouts of fetch and election a controller leads.",
        "KIP-595; QuorumController", ("raft_event", "fault"),
        "no controller led",
        breaks="Controller 101 resigns at 20 ms, and 102 is elected at 700 ms.",
        keeps="Controller 101 resigns at 20 ms, and 102 is elected at 300 ms."),
    Liveness(Awaited.PUBLISHED, "Nodes publish what is committed in time",
        "Within two seconds, and the election of a controller, each node publishes an image with "
        "what is committed.",
        "KIP-631; MetadataLoader", ("raft_event", "publish"),
        "node {node} did not publish what was committed",
        breaks="Broker 2 publishes the last record 700 ms after it is committed.",
        keeps="Broker 2 publishes within 300 ms; the record that is committed later has no effect "
        "on images."),
    # One change is in flight at a time. While it is, the high watermark waits for the maximal ISR,
    # so a change that never ends stops the partition, with all of its replicas alive.
    Liveness(Awaited.ISR_CHANGE_ENDED, "ISR changes end in time",
        "An ISR change of a leader is committed or reverted, or newer metadata ends it, within two "
        "request timeouts once replicas are in sync.",
        "KIP-497; AlterPartitionManager", ("raft_event", "partition_event", "rpc"),
        "an ISR change of leader {node} was pending",
        breaks="An ISR change of leader 1 is committed at 700 ms.",
        keeps="An ISR change of leader 1 is committed at 300 ms.",
        by_lost_requests=True),
    # Until then a member that is gone may hold the high watermark back, rightly: it leaves the ISR
    # only after replica.lag.time.max.ms. An ISR below its minimum holds it back as well (KIP-966).
    Liveness(Awaited.COMMITTED, "Leaders commit what they append in time",
        "While its ISR is large enough, a leader's high watermark reaches what it has appended a "
        "second after replicas must be in sync.",
        "KIP-497; Partition.maybeIncrementLeaderHW", ("raft_event", "partition_event", "rpc"),
        "leader {node} held records above its high watermark",
        breaks="Leader 1 appends 5 records, and its high watermark reaches them at 700 ms.",
        keeps="The high watermark follows at 300 ms; that of orders-1, whose ISR is too small, at "
        "700 ms.",
        by_lost_requests=True),
    Liveness(Awaited.IN_SYNC, "Replicas are in sync in time",
        "Each replica of an active broker, in a directory that is online, is in the ISR within "
        "replica.lag.time.max.ms and five seconds of its broker being unfenced, unless a throttle "
        "holds it back (KIP-73).",
        "KIP-497, KIP-841; Partition.maybeExpandIsr", ("raft_event", "rpc"),
        "a replica of an active broker was outside the ISR",
        breaks="Replica 3 of an active broker is out of the ISR until the end of the run.",
        keeps="Replica 3 of an active broker comes into the ISR at 300 ms.",
        by_lost_requests=True),
    Liveness(Awaited.LED, "Partitions have a leader in time",
        "A partition with a candidate has a leader, and one that recovers has recovered, five "
        "seconds after brokers must be unfenced.",
        "KIP-631, KIP-704; ReplicationControlManager", ("raft_event", "rpc"),
        "a partition with a candidate had no leader, or one that recovered",
        breaks="orders-0 has no leader, and broker 1 of ISR [1] is active.",
        keeps="orders-0, whose ISR member is active, gets a leader at 300 ms.",
        by_lost_requests=True),
    Liveness(Awaited.COMPLETED, "Parked requests are completed in time",
        "A request that waits at a broker (Produce, Fetch, DeleteRecords) gets its response within "
        "two seconds of its own timeout. A Produce with acks=all is acknowledged within two "
        "seconds of the moment at which the last high watermark of its partitions has passed its "
        "records, and does not time out once they all have.",
        "KIP-74, KIP-98; DelayedOperationPurgatory", ("raft_event", "rpc", "partition_event"),
        "a request to broker {node} waited longer than it had to",
        breaks="A Produce with timeout 100 ms gets its response after 690 ms.",
        keeps="A Produce with timeout 100 ms gets its response after 590 ms, 500 of which are the "
        "bound."),
    Liveness(Awaited.REASSIGNED, "Reassignments complete in time",
        "A reassignment whose new replicas are active, and not held back by a throttle, completes "
        "ten seconds after replicas must be in sync.",
        "KIP-455; ReplicationControlManager", ("raft_event", "rpc"),
        "a reassignment did not complete",
        breaks="A reassignment to [1, 2, 4] completes at 700 ms, and all its brokers are active.",
        keeps="A reassignment to [1, 2, 4] completes at 300 ms.",
        by_lost_requests=True),
    Liveness(Awaited.SHUT_DOWN, "Controlled shutdowns end in time",
        "While no other node is disturbed, a broker in controlled shutdown ends within two "
        "sessions.",
        "KIP-631, KIP-841; BrokerLifecycleManager, BrokerHeartbeatManager", ("raft_event", "fault"),
        "broker {node} did not end its controlled shutdown",
        breaks="Broker 3 begins a controlled shutdown at 200 ms, and still runs at the end.",
        keeps="Broker 3 begins a controlled shutdown at 200 ms, and ends at 500 ms."),
    Liveness(Awaited.ISR_AT_REST, "ISRs come to rest",
        "Once replicas must be in sync, no replica of an active broker leaves an ISR.",
        "KIP-497; Partition.maybeShrinkIsr", ("raft_event", "rpc"),
        "broker {node} left an ISR, and was active",
        breaks="Replica 3 of an active broker leaves the ISR at 700 ms.",
        keeps="Replica 3 leaves the ISR at 300 ms; later only as its broker is fenced, and as the "
        "topic is deleted.",
        by_lost_requests=True),
    Liveness(Awaited.AT_THE_END, "Groups reach the end in time",
        "Once replicas must be in sync, a group with a living member reads or commits up to what "
        "is committed within four request timeouts.",
        "KIP-848; liveness of consumers", ("raft_event", "client_record", "partition_event", "rpc"),
        "a group did not reach what is committed",
        breaks="5 records are committed, and the group, whose member lives, has committed 3.",
        keeps="5 records are committed, and the group commits 5 at 300 ms.",
        by_lost_requests=True),
)  # fmt: skip
BY_LOST_REQUESTS = frozenset(line.awaited for line in TABLE if line.by_lost_requests)


def _rule_of(line: Liveness) -> Rule:
    """The rule about one line of the table."""

    def in_time(waits: Waits, commits: Commits) -> Findings:
        if line.awaited in waits.unjudged:
            yield exempt(waits.unjudged[line.awaited])
        for subject, (waited_ms, since_ms) in waits.longest[line.awaited].items():
            yield CASE
            if waited_ms > waits.bounds_ms[line.awaited]:
                offset = None if since_ms is None else commits.last_at(since_ms)
                yield broken(
                    f"{line.says.format(node=subject.node)} (for {waited_ms} ms)",
                    broker=subject.node,
                    offset=offset,
                    topic=subject.topic,
                    partition=subject.partition,
                )

    in_time.__doc__ = line.promise
    return rule(
        str(line.awaited),
        line.title,
        source=f"{line.source}; liveness after the last disturbance",
        evidence=Evidence.TRACE,
        tables=line.tables,
        without_cases=_NO_WAITS,
        breaks=line.breaks,
        keeps=line.keeps,
        at_end=True,
    )(in_time)


RULES = tuple(map(_rule_of, TABLE))
