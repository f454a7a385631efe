"""Lazy dataclasses behave as those of the standard library, but for the guard of frozen ones."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any

import pytest

from minicluster.lazy_dataclass import dataclass

SHAPES: list[dict[str, bool]] = [
    {"slots": True},
    {"slots": True, "frozen": True},
    {"slots": True, "frozen": True, "kw_only": True},
    {"slots": True, "frozen": True, "order": True},
    {"slots": True, "eq": False},
]


def declared(decorator: Callable[..., Any], shape: dict[str, bool]) -> Any:
    """A class with every kind of field."""

    class Base:
        __slots__ = ()

    @decorator(**shape)
    class Value(Base):
        a: int
        b: list[int] = field(default_factory=list)
        c: str = field(default="c", compare=False)
        _: KW_ONLY
        d: str = field(default="d", repr=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "d", self.d + "!")

    return Value


def behaviour(cls: Any) -> list[Any]:
    """The results of all that a dataclass does, as text that does not name the class's home."""
    calls: list[Callable[[], Any]] = [
        lambda: cls(a=1),
        lambda: cls(),
        lambda: cls(1, [2]),
        lambda: cls(a=1, d="e").d,
        lambda: cls(a=1).b is cls(a=1).b,
        lambda: cls(a=1) == cls(a=1, c="other"),
        lambda: cls(a=1) == cls(a=2),
        lambda: cls(a=1) == 1,
        lambda: cls(a=1) < cls(a=2),
        lambda: cls(a=1) >= cls(a=2),
        lambda: hash(cls(a=1, b=(1,))) == hash(cls(a=1, b=(1,), c="other")),
        lambda: dataclasses.replace(cls(a=1), a=3),
        lambda: dataclasses.asdict(cls(a=1, b=[1])),
        lambda: copy.deepcopy(cls(a=1, b=[1])),
        lambda: cls.__match_args__,
        lambda: [f.name for f in dataclasses.fields(cls)],
    ]
    results = []
    for call in calls:
        try:
            results.append(repr(call()))
        except (TypeError, AttributeError) as error:
            results.append(type(error).__name__)
    return results


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: " ".join(shape))
def test_a_lazy_dataclass_behaves_as_that_of_the_standard_library(shape: dict[str, bool]) -> None:
    lazy, standard = declared(dataclass, shape), declared(dataclasses.dataclass, shape)
    first, again = behaviour(lazy), behaviour(lazy)
    assert first == again == behaviour(standard)


@dataclass(slots=True, frozen=True)
class Point:
    x: int
    y: int = 0


@dataclass(slots=True, frozen=True)
class Named(Point):
    name: str = ""


def test_a_subclass_has_the_fields_of_its_base() -> None:
    assert repr(Named(1, 2, "n")) == "Named(x=1, y=2, name='n')"
    assert Named(1) != Point(1)


def test_a_lazy_dataclass_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Named(1, name="n"))) == Named(1, name="n")


def test_a_method_of_the_class_itself_stays() -> None:
    @dataclass(slots=True, frozen=True)
    class Silent:
        x: int

        def __repr__(self) -> str:
            return "silent"

        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Silent(1)), hash(Silent(1)), Silent(1) == 3) == ("silent", 7, True)
