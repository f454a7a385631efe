"""Results of the online checker: cases counted per rule, and findings with the text of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.rules.model import Finding, finding_message
from minicluster.verify.rules.online import LOG_RULES, online_rule
from minicluster.verify.rules.promises import Promises

Counts = dict[str, int]


def _no_cases() -> Counts:
    return {rule.id: 0 for rule in LOG_RULES if rule.online}


@dataclass(slots=True)
class Findings:
    """Counts the cases of each rule and collects findings, at the offset in hand."""

    run: str
    promises: Promises
    offset: int = 0
    looked_at: dict[str, int] = field(default_factory=_no_cases)
    not_promised: dict[str, int] = field(default_factory=_no_cases)
    new: list[Finding] = field(default_factory=list)
    left_out: frozenset[tuple[str, int]] = frozenset()  # checks that another share judges
    _promised: dict[tuple[str, int | None], bool] = field(default_factory=dict)
    _counters: dict[tuple[str, int, int | None], tuple[Counts | None, bool]] = field(
        default_factory=dict
    )

    def promised(self, rule_id: str, mv: int | None) -> bool:
        """The rule promises something under a metadata.version."""
        known = self._promised.get((rule_id, mv))
        if known is None:
            known = self._promised[rule_id, mv] = self._holds(rule_id, mv)
        return known

    def _holds(self, rule_id: str, mv: int | None) -> bool:
        if rule_id == "C5" and not self.promises.failures_in_log:
            return False
        level = online_rule(rule_id).promised_from
        if rule_id == "A8":
            level = self.promises.new_incarnation_leaves_from
        return level is None or (mv is not None and mv >= level)

    def counter(self, rule_id: str, index: int, mv: int | None) -> tuple[Counts | None, bool]:
        """Where a check counts its cases, None if nowhere, and its rule promises something."""
        key = (rule_id, index, mv)
        known = self._counters.get(key)
        if known is None:
            known = self._counters[key] = self._counter(rule_id, index, mv)
        return known

    def _counter(self, rule_id: str, index: int, mv: int | None) -> tuple[Counts | None, bool]:
        promised = self.promised(rule_id, mv)
        counts = online_rule(rule_id).checks[index].counts
        if (rule_id, index) in self.left_out or not counts:
            return None, promised
        return (self.looked_at if promised else self.not_promised), promised

    def look(self, rule_id: str, index: int, mv: int | None) -> bool:
        """Count a case of a check; True if its rule promises something about it."""
        counts, promised = self.counter(rule_id, index, mv)
        if counts is not None:
            counts[rule_id] += 1
        return promised

    def find(
        self,
        rule_id: str,
        index: int,
        *,
        offset: int | None = None,
        topic: str | None = None,
        part: int | None = None,
        broker: int | None = None,
        old: Sequence[int] | None = None,
        new: Sequence[int] | None = None,
        number: int | None = None,
    ) -> None:
        """Add a finding, at the offset in hand unless another is given."""
        if (rule_id, index) in self.left_out:
            return
        at = self.offset if offset is None else offset
        message = finding_message(
            online_rule(rule_id).checks[index],
            offset=at,
            topic=topic,
            partition=part,
            broker=broker,
            old=None if old is None else list(old),
            new=None if new is None else list(new),
            number=number,
        )
        self.new.append(
            Finding(
                run=self.run,
                offset=at,
                rule=rule_id,
                topic=topic or "",
                partition=-1 if part is None else part,
                broker=-1 if broker is None else broker,
                message=message,
            )
        )

    def take_new(self) -> list[Finding]:
        """The findings since the last call."""
        new, self.new = self.new, []
        return new
