"""Many cases one after the other, and what is left of one when it is shrunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from minicluster.metadata.metadata_version import MetadataVersion
from minicluster.rules import Rules
from minicluster.scenario.shrink import Shrunk, shrink
from tests.workload.operations import Operation, generate, groups, simpler
from tests.workload.player import Case, Finding, Played, play

RUN_LENGTH = 2_500

VERSIONS: dict[str, tuple[str, ...]] = {
    "kafka-4.3": ("4.3-IV0", "4.1-IV1", "4.0-IV3", "3.7-IV2", "3.6-IV2", "3.3-IV3"),
    "kafka-3.9": ("3.9-IV0", "3.7-IV4", "3.5-IV2", "3.3-IV3", "3.2-IV0", "3.0-IV1"),
}
"""The metadata.versions that are tried: on either side of what changes records or rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A case, its operations, and what came of them."""

    case: Case
    operations: tuple[Operation, ...]
    played: Played


def cases(rules: Rules, seed: int) -> Iterator[Case]:
    """The cases of one release: each metadata.version, without and (if it can) with ELR."""
    for text in VERSIONS[rules.name.split()[0]]:
        version = MetadataVersion.parse(text)
        yield Case(rules=rules, metadata_version=version, seed=seed)
        if version.elr_supported(rules):
            yield Case(rules=rules, metadata_version=version, seed=seed, elr=True)


def run(some: Sequence[Case], operations: int, *, length: int = RUN_LENGTH) -> Iterator[Run]:
    """Play so many operations in all, case by case in turn, each time around with other seeds."""
    left, around = operations, 0
    while left > 0:
        for case in some:
            if left <= 0:
                return
            chosen = replace(case, seed=case.seed + around)
            steps = generate(chosen.seed, min(length, left))
            left -= len(steps)
            yield Run(case=chosen, operations=steps, played=play(chosen, steps))
        around += 1


def shrink_run(
    case: Case, operations: Sequence[Operation], finding: Finding, *, replays_max: int = 2_000
) -> Shrunk[Operation]:
    """The few operations that still break the same rule."""
    of_the_log = finding.rule not in ("E41", "E42")

    def played(candidate: Sequence[Operation]) -> int | None:
        result = play(case, candidate, only=finding.rule, log_rules=of_the_log)
        return result.operations if result.findings else None

    return shrink(operations, played, groups=groups, simpler=simpler, replays_max=replays_max)
