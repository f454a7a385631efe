"""Who is accused of what programs seem to have done: they, or the cluster that they run against."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from minicluster.values import replace
from minicluster.verify.model import Evidence, Finding
from minicluster.verify.rules.every import BY_ID, RULES


def beside_the_cluster(findings: Iterable[Finding], every: Iterable[Finding]) -> list[Finding]:
    """Findings; those about programs have the rules that the cluster has broken in their run.

    A cluster that breaks a promise of its own makes innocent programs look guilty: then it is the
    cluster that is accused.

    Shapes:  every: the findings of all rules that were judged.
    """
    broken: dict[str, set[str]] = {}
    for finding in every:
        if finding.rule in BY_ID and not _is_about_programs(finding):
            broken.setdefault(finding.run, set()).add(finding.rule)
    return [
        replace(finding, message=f"{finding.message}; {_accused(broken[finding.run])}")
        if finding.run in broken and _is_about_programs(finding)
        else finding
        for finding in findings
    ]


def _is_about_programs(finding: Finding) -> bool:
    rule = BY_ID.get(finding.rule)
    return rule is not None and rule.evidence is Evidence.PROGRAMS


def _accused(rules: Collection[str]) -> str:
    shown = ", ".join(rule.id for rule in RULES if rule.id in rules)
    return f"but accused first is the cluster, which broke {shown} in the same run"
