"""The result of a verification's jobs: counts and findings of each rule in each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.rules.model import Check, Finding, Rule, finding_message


@dataclass(slots=True)
class Tally:
    """The counts and findings of all checks of one rule in one run."""

    looked_at: int = 0
    not_promised: int = 0
    findings: tuple[Finding, ...] = ()


class Tallies:
    """The tallies of a verification, by rule and run."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Tally] = {}
        self.crashes: dict[str, str] = {}  # view -> the reason why it could not be computed

    def of(self, rule_id: str, run: str) -> Tally:
        """The tally of a rule in a run; an empty one where nothing was judged."""
        return self._held.get((rule_id, run)) or Tally()

    def add(
        self,
        rule_id: str,
        run: str,
        looked_at: int,
        not_promised: int,
        findings: Iterable[Finding] = (),
    ) -> None:
        """Add counts and findings of some checks of a rule."""
        tally = self._held.setdefault((rule_id, run), Tally())
        tally.looked_at += looked_at
        tally.not_promised += not_promised
        tally.findings += tuple(findings)

    def add_check(
        self,
        rule: Rule,
        check: Check,
        run: str,
        counts: tuple[int, int],
        rows: Iterable[Sequence[Any]],
    ) -> None:
        """Add what one check has looked at and not promised, and the columns of its findings."""
        looked_at, not_promised = counts if check.counts else (0, 0)
        findings = [_finding(rule, check, run, *row) for row in rows]
        self.add(rule.id, run, looked_at, not_promised, findings)


def _finding(
    rule: Rule,
    check: Check,
    run: str,
    offset: int | None,
    topic: str | None,
    partition: int | None,
    broker: int | None,
    old: list[int] | None,
    new: list[int] | None,
    number: int | None,
) -> Finding:
    return Finding(
        run=run,
        offset=-1 if offset is None else offset,
        rule=rule.id,
        topic=topic or "",
        partition=-1 if partition is None else partition,
        broker=-1 if broker is None else broker,
        message=finding_message(
            check,
            offset=offset,
            topic=topic,
            partition=partition,
            broker=broker,
            old=old,
            new=new,
            number=number,
        ),
    )
