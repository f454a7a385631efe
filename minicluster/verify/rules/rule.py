"""A rule: one promise of the protocol, as one function over the steps of a history.

::

    @rule("E10", "The leader is in the ISR", source="KIP-497; PartitionRegistration")
    def leader_is_in_the_isr(step: PartitionStep) -> Findings:
        \"\"\"The leader is a member of the ISR, or there is no leader.\"\"\"
        if not step.leaves_a_state:
            return
        yield CASE
        if step.after.leader != NO_LEADER and step.after.leader not in step.after.isr:
            yield broken(f"leader {step.after.leader} is not in the ISR {ids(step.after.isr)}")

The annotation of its parameter names the steps that it judges; its docstring is the promise. It
yields, for each thing that it looks at, ``CASE`` (the promise holds for it), ``NOT_PROMISED`` (the
release or the metadata.version promises nothing), or ``exempt(why)``; and ``broken(…)`` where the
promise was not kept. Nothing at all: the step is none of its business.

``breaks`` and ``keeps`` tell of one case that breaks it, and of one that nearly does: the suite has
both, with many more, as logs and runs that are judged (``tests/verify/examples``).

A rule neither knows who drives it, nor where the step lies: offset, topic and partition of a
finding are those of the step, unless ``broken`` names others.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from minicluster.values import dataclass
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


@dataclass(frozen=True, slots=True)
class Exempt:
    """Something that the rule would judge, were there not a reason to leave it out."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A promise that was not kept; what is None is taken from the place of the step."""

    message: str
    broker: int = -1
    offset: int | None = None
    topic: str | None = None
    partition: int | None = None


Outcome = _Counted | Exempt | Broken
Findings = Iterator[Outcome]
Judgement = Callable[[Any], Findings]


def exempt(why: str) -> Exempt:
    """Leave something out, with the reason that the report shows where no case is left."""
    return Exempt(why)


def broken(
    message: str,
    *,
    broker: int | None = None,
    offset: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
) -> Broken:
    """A violation, as one sentence without a full stop.

    Shapes:  broker: the one that the finding is about, if any. offset, topic, partition: in place
             of the step's; an offset of -1 is shown nowhere in the metadata log.
    """
    return Broken(
        message=message,
        broker=-1 if broker is None else broker,
        offset=offset,
        topic=topic,
        partition=partition,
    )


def ids(numbers: Iterable[int] | None) -> str:
    """Broker ids as a finding shows them: ``[1, 2, 3]``."""
    return "[" + ", ".join(str(number) for number in numbers or ()) + "]"


class Rule:
    """One promise, and the functions that judge it.

    Shapes:  parts: types of steps, each with the function that judges them. tables: those of the
             trace without which the rule is unknown. without_cases: why a run has none, where
             nothing of it was exempt. breaks, keeps: for people, a sentence each.
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
    ) -> None:
        self.id = id
        self.title = title
        self.source = source
        self.evidence = evidence
        self.tables = tables
        self.without_cases = without_cases
        self.breaks = breaks
        self.keeps = keeps
        self.statement = ""
        self.parts: list[tuple[type, Judgement]] = []

    def also(self, function: Judgement) -> Judgement:
        """Let another function judge steps of another type by the same promise."""
        for step_type in _steps_of(function):
            self.parts.append((step_type, function))
        return function

    def __call__(self, step: Any) -> Findings:
        """Judge a step, as the function itself would."""
        for step_type, function in self.parts:
            if isinstance(step, step_type):
                yield from function(step)

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
) -> Callable[[Judgement], Rule]:
    """Make a rule of a function from a step to findings.

    Shapes:  breaks, keeps: one case that breaks the rule and one that nearly does, as ``minicluster
             explain`` shows them.
    Errors:  TypeError for a function without a docstring, or whose parameter names no step.
    """

    def declare(function: Judgement) -> Rule:
        declared = Rule(id, title, source, evidence, tables, without_cases, breaks, keeps)
        if not function.__doc__:
            raise TypeError(
                f"rule {id}: {function.__name__} has no docstring, which is the promise"
            )
        declared.statement = " ".join(function.__doc__.split())
        declared.also(function)
        return declared

    return declare


def _steps_of(function: Judgement) -> tuple[type, ...]:
    """The types of steps that the parameter of a function names."""
    hints = {name: kind for name, kind in _hints(function).items() if name != "return"}
    if len(hints) != 1:
        raise TypeError(f"{function.__name__}: a rule has one parameter, annotated with its step")
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
