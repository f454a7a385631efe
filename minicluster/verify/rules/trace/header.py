"""The header of a run: crashes, indexes, trace hashes."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule, View

_HEADERS = """
select *, cast(null as bigint) as offset, cast(null as string) as topic, cast(null as int) as part
from headers
"""


VIEWS = (View(name="header_states", sql=_HEADERS),)

RULES = (
    Rule(
        id="E41",
        title="A controller's indexes match its image",
        statement="At the end of a run the indexes of each controller (brokers to ISRs, "
        "partitions without leader, …) equal those computed anew from its image.",
        source="ReplicationControlManager (BrokersToIsrs); 4.3 breaks it twice",
        evidence=Evidence.META,
        checks=(
            Check(
                view="header_states",
                when="stale_indexes is not null",
                bad="size(stale_indexes) > 0",
                message="the indexes of controllers {new} do not match their images",
                new="stale_indexes",
            ),
        ),
    ),
    Rule(
        id="E42",
        title="No actor crashes, and no controller resigns because of a fault",
        statement="No machine raises anything but a protocol error, whatever it receives; no "
        "decision or periodic task of a controller meets a state that cannot be, and no controller "
        "gives up its leadership for it.",
        source="design of this project; Kafka's own faults are FaultHandler.handleFault, "
        "QuorumController.handleEventException",
        evidence=Evidence.META,
        checks=(
            Check(
                view="header_states",
                when="crashes is not null",
                bad="crashes > 0",
                message="{number} actors crashed",
                number="crashes",
            ),
            Check(
                view="header_states",
                when="controller_faults is not null",
                counts=False,
                bad="controller_faults > 0",
                message="controllers met {number} faults of their own (controller_faults of "
                "run.json)",
                number="controller_faults",
            ),
        ),
    ),
    Rule(
        id="X1",
        title="The same seed gives the same run",
        statement="A run that was repeated from its seed left the same trace hash.",
        source="design of this project",
        evidence=Evidence.META,
        checks=(
            Check(
                view="header_states",
                when="trace_hash is not null and repeat_trace_hash is not null",
                bad="trace_hash <> repeat_trace_hash",
                message="the run was repeated from its seed and left another trace",
            ),
        ),
    ),
)
