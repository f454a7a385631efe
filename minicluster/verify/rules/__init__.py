"""Every rule, each declared once; the groups in which their checks are computed."""

from __future__ import annotations

from minicluster.verify.rules import activity, broker, log, partition, topic, trace
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

RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            *activity.RULES,
            *partition.RULES,
            *broker.RULES,
            *topic.RULES,
            *log.RULES,
            *trace.RULES,
            _CREATION,
        ),
        key=lambda rule: rule.id,
    )
)
BY_ID = {rule.id: rule for rule in RULES}

__all__ = ["BY_ID", "RULES", "Check", "Evidence", "Finding", "Rule", "Verdict"]
