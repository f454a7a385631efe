"""Eligible leader replicas (KIP-966)."""

from __future__ import annotations

from minicluster.verify.rules.model import Check, Evidence, Rule

RULES = (
    Rule(
        id="E12",
        title="An election stays possible",
        statement="Without ELR the ISR is never empty; with ELR an empty ISR leaves an "
        "eligible leader replica or a last known leader.",
        source="KIP-966; PartitionChangeBuilder.build",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="state",
                bad="size(isr) = 0 and d_isr is not null and not elr_on",
                message="the ISR became empty although eligible leader replicas are off",
            ),
            Check(
                view="partition_states",
                when="state and elr_on",
                counts=False,
                bad="size(isr) = 0 and size(elr) = 0 and size(last_elr) = 0 and kind <> 'ClearElr'",
                message="ISR, eligible leader replicas and last known leaders are all empty",
            ),
            Check(
                view="partition_states",
                when="kind = 'ClearElr' and elr_on",
                counts=False,
                bad="size(isr) = 0 and size(elr) = 0 and size(last_elr) = 0",
                message="a ClearElrRecord removed the last candidates of a partition with an "
                "empty ISR (a bug of Kafka 4.0-4.3)",
            ),
        ),
    ),
    Rule(
        id="E13",
        title="Eligible leader replicas are replicas outside the ISR",
        statement="ELR and ISR are disjoint, ELR and last known leaders are replicas, and the "
        "ELR is empty while the ISR has min.insync.replicas members.",
        source="KIP-966; PartitionChangeBuilder.maybePopulateTargetElr",
        evidence=Evidence.LOG,
        online=True,
        checks=(
            Check(
                view="partition_states",
                when="state and elr_on and (size(elr) > 0 or size(last_elr) > 0)",
                bad="arrays_overlap(elr, isr)",
                message="eligible leader replicas {new} and ISR {old} overlap",
                old="isr",
                new="elr",
            ),
            Check(
                view="partition_states",
                when="state and elr_on and (size(elr) > 0 or size(last_elr) > 0)",
                counts=False,
                bad="size(array_except(concat(elr, last_elr), replicas)) > 0",
                message="eligible or last known leaders {new} are not all replicas {old} "
                "(Kafka 4.0-4.3 leaves them so when a reassignment completes)",
                old="replicas",
                new="concat(elr, last_elr)",
            ),
            Check(
                view="partition_states",
                when="change and elr_on and d_isr is not null and min_isr is not null",
                counts=False,
                bad="size(isr) >= min_isr and size(elr) > 0",
                message="eligible leader replicas {new} remain although the ISR {old} has "
                "reached min.insync.replicas {number}",
                old="isr",
                new="elr",
                number="min_isr",
            ),
        ),
    ),
)
