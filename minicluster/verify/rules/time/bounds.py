"""Promises about time, judged after the run: from the moment when the last disturbance ended.

Only runs in virtual time are judged, in which every disturbance has ended; the bounds are those
that the timeouts of the cluster give (``run.json``: ``healed_ms``, ``bounds_ms``). Those about ISRs
count from the end of the ISR changes that the last disturbance left on their way.
"""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View
from minicluster.verify.rules.time.fold import COLUMNS, TABLES, waits_of
from minicluster.verify.rules.time.waits import BY_ISR_CHANGES

VIEWS = (View(name="waits", fold=waits_of, columns=COLUMNS, reads=("timing", "brokers",
    "partitions", "topics", *TABLES)),)  # fmt: skip

_OF_TIME = "liveness after the last disturbance"


def _rule(
    rule_id: str, title: str, statement: str, source: str, message: str, *tables: str
) -> Rule:
    if rule_id in BY_ISR_CHANGES and "rpc" not in tables:
        tables = (*tables, "rpc")
    check = Check(
        view="waits",
        when=f"promise = '{rule_id}'",
        bad="waited_ms > bound_ms",
        message=f"{message} (for {{number}} ms)",
        broker="node",
        number="waited_ms",
    )
    return Rule(
        id=rule_id,
        title=title,
        statement=statement,
        source=f"{source}; {_OF_TIME}",
        evidence=Evidence.TRACE,
        tables=("raft_event", *tables),
        checks=(check,),
    )


RULES = (
    _rule(
        "G1",
        "Brokers are unfenced in time",
        "Within two sessions and the election of a controller every broker is registered and "
        "unfenced.",
        "KIP-631, KAFKA-13959; BrokerLifecycleManager",
        "broker {broker} was not registered or was fenced",
    ),
    _rule(
        "G2",
        "The quorum elects a leader in time",
        "Within twice the timeouts of fetch and election a controller leads.",
        "KIP-595; QuorumController",
        "no controller led",
        "fault",
    ),
    _rule(
        "G3",
        "Nodes publish what is committed in time",
        "Within two seconds, and the election of a controller, each node publishes an image with "
        "what is committed.",
        "KIP-631; MetadataLoader",
        "node {broker} did not publish what was committed",
        "publish",
    ),
    _rule(
        "G4",
        "ISR changes end in time",
        "An ISR change of a leader is committed or reverted, or newer metadata ends it, within "
        "two request timeouts once replicas are in sync.",
        "KIP-497; AlterPartitionManager",
        "an ISR change of leader {broker} was pending",
        "partition_event",
    ),
    _rule(
        "G5",
        "Leaders commit what they append in time",
        "While its ISR is large enough, a leader's high watermark reaches what it has appended "
        "a second after replicas must be in sync.",
        "KIP-497; Partition.maybeIncrementLeaderHW",
        "leader {broker} held records above its high watermark",
        "partition_event",
    ),
    _rule(
        "G6",
        "Replicas are in sync in time",
        "Each replica of an active broker, in a directory that is online, is in the ISR within "
        "replica.lag.time.max.ms and five seconds of its broker being unfenced.",
        "KIP-497, KIP-841; Partition.maybeExpandIsr",
        "a replica of an active broker was outside the ISR",
    ),
    _rule(
        "G7",
        "Partitions have a leader in time",
        "A partition with a candidate has a leader, and one that recovers has recovered, five "
        "seconds after brokers must be unfenced.",
        "KIP-631, KIP-704; ReplicationControlManager",
        "a partition with a candidate had no leader, or one that recovered",
    ),
    _rule(
        "G8",
        "Parked requests are completed in time",
        "A Produce, a Fetch and a DeleteRecords get a response within their own timeout and two "
        "seconds; a Produce with acks=all is acknowledged once the high watermarks have passed its "
        "records, and does not time out then.",
        "KIP-74, KIP-98; DelayedOperationPurgatory",
        "a request to broker {broker} waited longer than it had to",
        "rpc",
        "partition_event",
    ),
    _rule(
        "G9",
        "Reassignments complete in time",
        "A reassignment whose new replicas are active completes ten seconds after replicas must "
        "be in sync.",
        "KIP-455; ReplicationControlManager",
        "a reassignment did not complete",
    ),
    _rule(
        "G10",
        "Controlled shutdowns end in time",
        "While no other node is disturbed, a broker in controlled shutdown ends within two "
        "sessions.",
        "KIP-631, KIP-841; BrokerLifecycleManager, BrokerHeartbeatManager",
        "broker {broker} did not end its controlled shutdown",
        "fault",
    ),
    _rule(
        "G11",
        "ISRs come to rest",
        "Once replicas must be in sync, no replica of an active broker leaves an ISR.",
        "KIP-497; Partition.maybeShrinkIsr",
        "broker {broker} left an ISR, and was active",
    ),
    _rule(
        "G12",
        "Groups reach the end in time",
        "Once replicas must be in sync, a group with a living member reads or commits up to what "
        "is committed within four request timeouts.",
        "KIP-848; liveness of consumers",
        "a group did not reach what is committed",
        "client_record",
        "partition_event",
        "rpc",
    ),
)
