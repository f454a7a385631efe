"""Leader recovery after an unclean election (KIP-704)."""

from __future__ import annotations

from minicluster.verify.rules.model import FROM_3_2, Check, Evidence, Rule

RULES = (
    Rule(
        id="C1",
        title="A RECOVERING partition has one ISR member",
        statement="A RECOVERING partition has at most one ISR member, and none only with ELR "
        "and without a leader.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="state and final and rec = 1",
                bad="size(isr) > 1 or (size(isr) = 0 and not (elr_on and leader = -1))",
                message="the partition is RECOVERING with ISR {new}",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C2",
        title="The ISR does not expand before the leader has recovered",
        statement="While a partition is RECOVERING its ISR does not grow, unless the same "
        "record makes it RECOVERED.",
        source="KIP-704; ReplicationControlManager.validateAlterPartitionData",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="change and p_rec = 1",
                bad="size(isr) > greatest(1, size(p_isr)) and rec <> 0",
                message="the ISR grew from {old} to {new} while the partition is still RECOVERING",
                old="p_isr",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C3",
        title="Recovery begins with the election of a lone leader",
        statement="RECOVERED becomes RECOVERING only by a record that elects a leader and "
        "leaves it alone in the ISR.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="change and d_rec = 1 and p_rec = 0",
                bad="not (coalesce(d_leader, -1) >= 0 and isr = array(d_leader))",
                message="recovery begins with leader {broker} and ISR {new}, not with a "
                "newly elected leader alone",
                broker="coalesce(d_leader, -1)",
                new="isr",
            ),
        ),
    ),
    Rule(
        id="C4",
        title="An unclean election marks the partition RECOVERING",
        statement="A leader elected from outside ISR and ELR is alone in the ISR, and the "
        "partition is RECOVERING.",
        source="KIP-704; PartitionChangeBuilder.electLeader",
        evidence=Evidence.LOG,
        promised_from=FROM_3_2,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="unclean",
                bad="not (rec = 1 and isr = array(leader))",
                message="broker {broker} was elected from outside the ISR {old}, and the ISR "
                "is {new} with recovery state {number}",
                broker="leader",
                old="p_isr",
                new="isr",
                number="rec",
            ),
        ),
    ),
)
