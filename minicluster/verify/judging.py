"""The judge: takes the steps of histories, asks the rules about each, adds up what they say.

Every driver runs this one program, live, over a run in this process, and in Spark's workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from minicluster.verify.evidence.run import Problem
from minicluster.verify.model import Finding
from minicluster.verify.rules.rule import (
    CASE,
    NOT_PROMISED,
    Broken,
    Crashed,
    Exempt,
    Judgement,
    Outcome,
    Rule,
    Said,
)

_REMEMBERED_MAX = 100_000  # steps about which the rules are not asked again


class Tally(Struct):
    """The count of one rule in one run: cases, findings, exemptions."""

    looked_at: int
    not_promised: int
    exempt: Counter[str]  # by the reason
    findings: list[Finding]

    @classmethod
    def empty(cls) -> Tally:
        """The tally of a rule that has seen nothing."""
        return cls(0, 0, Counter(), [])

    def count(self, outcome: Outcome) -> None:
        """Count an outcome that is not a violation."""
        if outcome is CASE:
            self.looked_at += 1
        elif outcome is NOT_PROMISED:
            self.not_promised += 1
        elif isinstance(outcome, Exempt):
            self.exempt[outcome.why] += 1

    def add(self, other: Tally, times: int) -> None:
        """Add the counts of another tally, so many times."""
        self.looked_at += other.looked_at * times
        self.not_promised += other.not_promised * times
        for why, number in other.exempt.items():
            self.exempt[why] += number * times


class Remembered:
    """The outcomes of the rules for steps that many records share.

    Shapes:  times: how often they came since they were counted last.
    """

    __slots__ = ("broken", "counts", "times")

    def __init__(self) -> None:
        self.times = 0
        self.counts: dict[str, Tally] = {}  # by rule, of one record
        self.broken: list[tuple[str, Broken]] = []


class Judge:
    """The rules over the steps of one run.

    Shapes:  new: the findings since ``take_new``. crashes: rule -> why it could not judge.
             problems: evidence that the histories could not use.
    """

    def __init__(self, run: str, rules: Sequence[Rule]) -> None:
        self.run = run
        self.rules = tuple(rules)
        self.crashes: dict[str, str] = {}
        self.problems: list[Problem] = []
        self._tallies = {rule.id: Tally.empty() for rule in rules}
        self._parts: dict[type, list[tuple[Rule, Judgement]]] = {}
        for rule in rules:
            for step_type, function in rule.parts:
                if step_type is not None:
                    self._parts.setdefault(step_type, []).append((rule, function))
        self._new: list[Finding] = []
        self._remembered: dict[Any, Remembered] = {}

    def judges(self, *step_types: type) -> bool:
        """Some rule judges steps of one of these types; else their history need not be made."""
        return any(step_type in self._parts for step_type in step_types)

    def asks(self, rules: Iterable[Rule]) -> bool:
        """One of these rules is asked; else their fold need not be made."""
        return any(rule.id in self._tallies for rule in rules)

    def hear(
        self,
        said: Said,
        offset: int = -1,
        topic: str = "",
        partition: int = -1,
        event: int = -1,
        *,
        request: int = -1,
    ) -> None:
        """Take what the rules say that stand beside the fold of their subject.

        Shapes:  offset, topic, partition, event: of a finding that does not name its own. request:
                 that they say it of, by its number.
        """
        for rule_id, outcome in said:
            tally = self._tallies.get(rule_id)
            if tally is None or rule_id in self.crashes:
                continue
            if outcome is CASE:  # as nearly all are
                tally.looked_at += 1
            elif isinstance(outcome, Broken):
                place = offset, topic, partition, event
                self._add(rule_id, outcome, *place, request=request)
            elif isinstance(outcome, Crashed):
                self.crashed(rule_id, outcome.error)
            else:
                tally.count(outcome)

    def take(
        self,
        step: Any,
        offset: int = -1,
        topic: str = "",
        partition: int = -1,
        event: int = -1,
        *,
        request: int = -1,
    ) -> None:
        """Judge a step at its place: in the log, of a partition, by an event of the trace."""
        self.hear(self._said(step), offset, topic, partition, event, request=request)

    def take_known(self, step: Any, offset: int, topic: str, partition: int) -> None:
        """Judge a step of which many places make equal ones.

        A cluster that restarts its brokers repeats the same few changes in all of its partitions,
        so a million records are some thousand steps: the rules are asked about each of them once,
        and only a finding has a place of its own (120 s of the processor for a million records
        become 12).
        """
        self.hear_known(self._said, (step,), offset, topic, partition)

    def hear_known(
        self, ask: Callable[..., Said], what: tuple[Any, ...], offset: int, topic: str, part: int
    ) -> None:
        """Take what rules say of something that many places repeat, likewise."""
        known = self._remembered.get((ask, what))
        if known is None:
            known = self._remember((ask, what), ask(*what))
        known.times += 1
        for rule_id, outcome in known.broken:
            self._add(rule_id, outcome, offset, topic, part)

    def _said(self, step: Any) -> Said:
        for rule, function in self._parts.get(type(step), ()):
            yield from rule.said(function, (step,))

    def _remember(self, key: Any, said: Said) -> Remembered:
        """Ask each rule once."""
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._count_again()
            self._remembered.clear()
        known = self._remembered[key] = Remembered()
        for rule_id, outcome in said:
            if isinstance(outcome, Crashed):
                self.crashed(rule_id, outcome.error)
            elif rule_id not in self._tallies or rule_id in self.crashes:
                continue
            elif isinstance(outcome, Broken):
                known.broken.append((rule_id, outcome))
            else:
                known.counts.setdefault(rule_id, Tally.empty()).count(outcome)
        return known

    def _count_again(self) -> None:
        for known in self._remembered.values():
            for rule_id, tally in known.counts.items() if known.times else ():
                self._tallies[rule_id].add(tally, known.times)
            known.times = 0

    def _add(
        self,
        rule_id: str,
        outcome: Broken,
        offset: int,
        topic: str,
        partition: int,
        event: int = -1,
        *,
        request: int = -1,
    ) -> None:
        finding = Finding(
            run=self.run,
            offset=offset if outcome.offset is None else outcome.offset,
            rule=rule_id,
            topic=topic if outcome.topic is None else outcome.topic,
            partition=partition if outcome.partition is None else outcome.partition,
            broker=outcome.broker,
            message=outcome.message,
            event=event if outcome.event is None else outcome.event,
            earlier=outcome.earlier,
            request=request,
        )
        self._tallies[rule_id].findings.append(finding)
        self._new.append(finding)

    def crashed(self, rule_id: str, error: Exception) -> None:
        """A rule, or the history of its steps, raised: it is unknown from here on."""
        self.crashes.setdefault(rule_id, f"it crashed: {type(error).__name__}: {error}")

    def history_crashed(self, step_types: Iterable[type], error: Exception) -> None:
        """A history raised: every rule over its steps is unknown."""
        for step_type in step_types:
            for rule, _ in self._parts.get(step_type, ()):
                self.crashed(rule.id, error)

    def fold_crashed(self, rules: Iterable[Rule], error: Exception) -> None:
        """The fold of a subject raised: every rule that it asks is unknown."""
        for rule in rules:
            if rule.id in self._tallies:
                self.crashed(rule.id, error)

    def take_new(self) -> list[Finding]:
        """The findings since the last call."""
        new, self._new = self._new, []
        return new

    def tally(self, rule_id: str) -> Tally:
        """The tally of a rule so far."""
        self._count_again()
        return self._tallies[rule_id]

    @property
    def tallies(self) -> dict[str, Tally]:
        """The tally of each rule so far."""
        self._count_again()
        return self._tallies
