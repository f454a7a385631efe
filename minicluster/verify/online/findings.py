"""Results of the online checker: cases counted per rule, and findings with the text of the rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.rules import BY_ID, RULES
from minicluster.verify.rules.model import Finding, finding_message
from minicluster.verify.rules.promises import Promises


def _no_cases() -> dict[str, int]:
    return {rule.id: 0 for rule in RULES if rule.online}


@dataclass(slots=True)
class Findings:
    """Counts the cases of each rule and collects findings, at the offset in hand."""

    run: str
    promises: Promises
    offset: int = 0
    looked_at: dict[str, int] = field(default_factory=_no_cases)
    not_promised: dict[str, int] = field(default_factory=_no_cases)
    new: list[Finding] = field(default_factory=list)

    def promised(self, rule_id: str, mv: int | None) -> bool:
        """The rule promises something under a metadata.version."""
        if rule_id == "C5" and not self.promises.failures_in_log:
            return False
        level = BY_ID[rule_id].promised_from
        if rule_id == "A8":
            level = self.promises.new_incarnation_leaves_from
        return level is None or (mv is not None and mv >= level)

    def look(self, rule_id: str, index: int, mv: int | None) -> bool:
        """Count a case of a check; True if its rule promises something about it."""
        promised = self.promised(rule_id, mv)
        if BY_ID[rule_id].checks[index].counts:
            counter = self.looked_at if promised else self.not_promised
            counter[rule_id] += 1
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
        at = self.offset if offset is None else offset
        message = finding_message(
            BY_ID[rule_id].checks[index],
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
