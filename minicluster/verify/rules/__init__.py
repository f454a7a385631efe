"""Every rule, each declared once; the groups in which their checks are computed."""

from __future__ import annotations

from minicluster.verify.rules import (
    activity,
    broker,
    directory,
    log,
    partition,
    quorum,
    replica,
    topic,
    trace,
    transaction,
)
from minicluster.verify.rules.model import FROM_3_3, Check, Evidence, Finding, Rule, Verdict

_CREATION = Rule(
    id="E17",
    title="A partition begins with its active replicas",
    statement="A new partition has epochs 0, its ISR is the active part of its replicas and the "
    "first of the ISR leads.",
    source="KAFKA-13083; ReplicationControlManager.createTopic",
    evidence=Evidence.LOG,
    promised_from=FROM_3_3,
    online=True,
    checks=(partition.CREATION, activity.ISR_OF_NEW),
)

_WHOLE = Rule(
    id="E29",
    title="Operations are all or nothing",
    statement="A topic comes with its partitions in one operation, and a request that makes or "
    "deletes topics or partitions writes all of its records in one.",
    source="KIP-631, KAFKA-12376; QuorumController (ControllerResult.atomicOf)",
    evidence=Evidence.LOG,
    online=True,
    checks=(topic.WHOLE_TOPICS, trace.ATOMIC_REQUESTS),
    tables=("rpc",),
)

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *activity.RULES,
            *partition.RULES,
            *broker.RULES,
            *topic.RULES,
            *log.RULES,
            *trace.RULES,
            *directory.RULES,
            *transaction.RULES,
            *replica.RULES,
            *quorum.RULES,
            _CREATION,
            _WHOLE,
        ),
        key=lambda rule: rule.id,
    )
)
BY_ID = {rule.id: rule for rule in RULES}

__all__ = ["BY_ID", "RULES", "Check", "Evidence", "Finding", "Rule", "Verdict"]
