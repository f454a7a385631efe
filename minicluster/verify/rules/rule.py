"""A rule: one promise of the protocol, as one function over what a fold has seen.

::

    @rule("E10", "The leader is in the ISR", source="KIP-497; PartitionRegistration")
    def leader_is_in_the_isr(step: PartitionStep) -> Findings:
        \"\"\"The leader is a member of the ISR, or there is no leader.\"\"\"
        if not step.leaves_a_state:
            return
        yield CASE
        if step.after.leader != NO_LEADER and step.after.leader not in step.after.isr:
            yield broken(f"leader {step.after.leader} is not in the ISR {ids(step.after.isr)}")

Its docstring is the promise. The annotation of its one parameter names the steps that it judges; a
rule that stands beside the fold of its subject is called by it instead, with whatever it needs. It
yields, for each thing that it looks at, ``CASE`` (the promise holds for it), ``NOT_PROMISED`` (the
release or the metadata.version promises nothing), or ``exempt(why)``; and ``broken(…)`` where the
promise was not kept. Nothing at all: the step is none of its business.

``breaks`` and ``keeps`` tell of one case that breaks it, and of one that nearly does: the suite has
both, with many more, as logs and runs that are judged (``tests/verify/examples``).

A rule does not know who drives it. Offset, topic and partition of a finding are those of the step,
or of the event that ``broken`` is told. It is judged while a cluster runs, or ``at_end``.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from minicluster.values import Value
from minicluster.verify.model import Evidence


class _Counted:
    """An outcome that is only counted."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name  # there is one of it in every process: judges compare by ``is``


NOTHING_HAPPENED = "nothing of the kind happened"
CASE = _Counted("CASE")
NOT_PROMISED = _Counted("NOT_PROMISED")


class Exempt(Value):
    """Something that the rule would judge, were there not a reason to leave it out."""

    why: str


class Broken(Value, kw_only=True):
    """A promise that was not kept; what is None is taken from the place of the step."""

    message: str
    broker: int = -1
    offset: int | None = None
    topic: str | None = None
    partition: int | None = None
    event: int | None = None
    earlier: int = -1


class Crashed(Value):
    """The rule itself could not judge: it is unknown from here on."""

    error: Exception


class Event(Protocol):
    """An event of a partition, to which a finding belongs."""

    seq: int
    topic: str
    part: int
    broker: int


class Record(Protocol):
    """A record about a partition in the metadata log, at which a finding is."""

    @property
    def offset(self) -> int: ...

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...


Outcome = _Counted | Exempt | Broken
Findings = Iterator[Outcome]
Judgement = Callable[..., Findings]
Said = Iterable[tuple[str, Outcome | Crashed]]
"""Outcomes, each with the id of its rule."""
SaidOf = tuple[Said, str, int, int]
"""The outcomes of rules, with the topic, partition and event that they are about."""


def exempt(why: str) -> Exempt:
    """Leave something out, with the reason that the report shows where no case is left."""
    return Exempt(why)


def broken(
    message: str,
    event: Event | None = None,
    *,
    record: Record | None = None,
    broker: int | None = None,
    offset: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    seq: int | None = None,
    earlier: int = -1,
) -> Broken:
    """A violation, as one sentence without a full stop.

    Shapes:  event: that shows it; its partition and its broker are those of the finding. record: of
             the metadata log, likewise with its offset. broker: another one that the finding is
             about. offset, topic, partition: in place of the step's; an offset of -1 is shown
             nowhere in the metadata log. seq: of an event of which nothing else is told. earlier:
             an event before, without which it were none.
    """
    if record is not None:
        offset, topic, partition = record.offset, record.topic, record.partition
    if event is not None:
        topic, partition = event.topic, event.part
        broker = event.broker if broker is None else broker
    return Broken(
        message=message,
        broker=-1 if broker is None else broker,
        offset=offset,
        topic=topic,
        partition=partition,
        event=seq if event is None else event.seq,
        earlier=earlier,
    )


def ids(numbers: Iterable[int] | None) -> str:
    """Broker ids as a finding shows them: ``[1, 2, 3]``."""
    return "[" + ", ".join(str(number) for number in numbers or ()) + "]"


class Rule:
    """One promise, and the functions that judge it.

    Shapes:  parts: its functions, each with the type of the steps that it judges; None: the fold
             of its subject calls it. tables: those of the trace without which the rule is unknown.
             at_end: it needs to know what comes later, or what only a whole run shows; else it is
             judged while a cluster runs as well. without_cases: why a run has none, where nothing
             of it was exempt. breaks, keeps: for people, a sentence each.
    """

    def __init__(
        self,
        id: str,
        title: str,
        source: str,
        evidence: Evidence,
        tables: tuple[str, ...] = (),
        without_cases: str = NOTHING_HAPPENED,
        breaks: str = "",
        keeps: str = "",
        at_end: bool = False,
    ) -> None:
        self.id = id
        self.title = title
        self.source = source
        self.evidence = evidence
        self.tables = tables
        self.without_cases = without_cases
        self.breaks = breaks
        self.keeps = keeps
        self.at_end = at_end
        self.statement = ""
        self.parts: list[tuple[type | None, Judgement]] = []

    def also(self, function: Judgement) -> Callable[..., Said]:
        """Let another function judge by the same promise: other steps, or where a fold calls it."""
        for step_type in _steps_of(function):
            self.parts.append((step_type, function))
        return lambda *what: self.said(function, what)

    def said(self, function: Judgement, what: tuple[Any, ...]) -> Said:
        """The outcomes of a function of the rule. Once one raises, the rule says no more."""
        said: list[tuple[str, Outcome | Crashed]] = []
        try:
            for outcome in function(*what):
                said.append((self.id, outcome))
        except Exception as error:
            said.append((self.id, Crashed(error)))
        return said

    def __call__(self, *what: Any) -> Said:
        """Judge what the fold of its subject has seen."""
        return self.said(self.parts[0][1], what)

    def __repr__(self) -> str:
        return f"<Rule {self.id}>"

    def __reduce__(self) -> tuple[Any, ...]:
        function = self.parts[0][1]
        return _rule_of, (function.__module__, self.id)


def rule(
    id: str,
    title: str,
    *,
    source: str,
    evidence: Evidence = Evidence.LOG,
    tables: tuple[str, ...] = (),
    without_cases: str = NOTHING_HAPPENED,
    breaks: str = "",
    keeps: str = "",
    at_end: bool = False,
) -> Callable[[Judgement], Rule]:
    """Make a rule of a function to findings.

    Shapes:  breaks, keeps: one case that breaks the rule and one that nearly does, as ``minicluster
             explain`` shows them. at_end: it is judged when the run is over, and not before.
    Errors:  TypeError for a function without a docstring, or with a parameter that names no type.
    """

    def declare(function: Judgement) -> Rule:
        declared = Rule(id, title, source, evidence, tables, without_cases, breaks, keeps, at_end)
        if not function.__doc__:
            raise TypeError(
                f"rule {id}: {function.__name__} has no docstring, which is the promise"
            )
        declared.statement = " ".join(function.__doc__.split())
        declared.also(function)
        return declared

    return declare


def _steps_of(function: Judgement) -> tuple[type | None, ...]:
    """The types of steps that the one parameter of a function names; None: a fold calls it."""
    hints = {name: kind for name, kind in _hints(function).items() if name != "return"}
    if not hints:
        raise TypeError(f"{function.__name__}: a rule has a parameter, annotated with its step")
    if len(hints) > 1:
        return (None,)
    (kind,) = hints.values()
    return typing.get_args(kind) or (kind,)


def _hints(function: Judgement) -> dict[str, Any]:
    return typing.get_type_hints(function)


def _rule_of(module: str, rule_id: str) -> Rule:
    """The rule of an id in a module: rules travel to other processes by their names."""
    import importlib

    return next(rule for rule in rules_in(importlib.import_module(module)) if rule.id == rule_id)


def rules_in(module: Any) -> tuple[Rule, ...]:
    """The rules that a module declares, by names or as a table (``RULES``), in their order."""
    return tuple(
        value
        for value in (*vars(module).values(), *getattr(module, "RULES", ()))
        if isinstance(value, Rule) and value.parts[0][1].__module__ == module.__name__
    )
