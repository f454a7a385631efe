"""An example of a rule: a log or run written by hand that breaks it, or a near miss that keeps it.

::

    @breaks(the_leader_is_in_the_isr)
    def e10_bad() -> LogBuilder:
        \"\"\"Leader 1 leaves the ISR, which becomes [2, 3], and still leads.\"\"\"
        return cluster().op(change((2, 3)))

Its docstring says in one sentence what it builds. Those of the rules in ``rules/partitions.py`` are
in ``examples/partitions.py``, in the order of the rules; all of them are judged by every driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

from minicluster.values import dataclass
from minicluster.verify.rules.rule import Rule


class Written(Protocol):
    """Evidence that can be written into a folder: ``LogBuilder``, ``RunBuilder``, ``ZnodeRun``."""

    def write(self, folder: Path) -> Path:
        """Write it, and return the folder."""


Evidence = TypeVar("Evidence", bound=Written)


@dataclass(frozen=True, slots=True)
class Example(Generic[Evidence]):
    """One function that builds evidence, and the rules of which it is an example.

    Shapes:  is_broken: the rules are broken by it; otherwise it is a near miss, in which they find
             nothing. has_cases: they look at it; otherwise they promise nothing of it.
    """

    build: Callable[[], Evidence]
    rules: tuple[Rule, ...]
    is_broken: bool
    has_cases: bool = True

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.build.__name__

    @property
    def sentence(self) -> str:
        """What it builds."""
        return " ".join((self.build.__doc__ or "").split())

    def __call__(self) -> Evidence:
        """Build it, also as the beginning of another one."""
        return self.build()


class Declare(Protocol):
    """What makes an example of a function."""

    def __call__(self, build: Callable[[], Evidence]) -> Example[Evidence]: ...


def breaks(*rules: Rule) -> Declare:
    """Make an example that breaks some rules of a function that builds evidence.

    Errors:  TypeError for a function without a docstring, which is what people are shown.
    """
    return _declare(rules, is_broken=True)


def keeps(*rules: Rule) -> Declare:
    """Make a near miss of a function that builds evidence: the rules look at it and are kept.

    Errors:  TypeError for a function without a docstring, which is what people are shown.
    """
    return _declare(rules, is_broken=False)


def exempts(*rules: Rule) -> Declare:
    """Make a near miss of which some rules promise nothing: they have no case in it.

    Errors:  TypeError for a function without a docstring, which is what people are shown.
    """
    return _declare(rules, is_broken=False, has_cases=False)


def _declare(rules: tuple[Rule, ...], *, is_broken: bool, has_cases: bool = True) -> Declare:
    def declare(build: Callable[[], Evidence]) -> Example[Evidence]:
        if not build.__doc__:
            raise TypeError(f"example {build.__name__} has no docstring, which says what it builds")
        return Example(build, rules, is_broken, has_cases)

    return declare


def examples_of(rule: Rule, examples: Iterable[Example[Any]]) -> tuple[Example[Any], ...]:
    """Those of a rule: first what breaks it, then its near misses."""
    of_rule = [example for example in examples if rule in example.rules]
    return tuple(sorted(of_rule, key=lambda example: not example.is_broken))


def examples_in(module: ModuleType) -> tuple[Example[Any], ...]:
    """The examples that a module declares, in their order there."""
    return tuple(
        value
        for value in vars(module).values()
        if isinstance(value, Example) and value.build.__module__ == module.__name__
    )
