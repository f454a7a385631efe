"""Parsed SQL: expressions, sources and queries."""

from __future__ import annotations

from dataclasses import field

from minicluster.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, a truth value or null."""

    value: int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column, perhaps with its table before it and fields of a struct behind it."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments; operators are functions with their sign as name."""

    name: str
    args: tuple[Expression, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """``case when … then … else … end``."""

    whens: tuple[tuple[Expression, Expression], ...]
    default: Expression


@dataclass(frozen=True, slots=True)
class Cast:
    """``cast(… as type)``; ``lenient`` for try_cast, which gives null for what does not fit."""

    value: Expression
    kind: str
    lenient: bool


@dataclass(frozen=True, slots=True)
class InQuery:
    """``… in (select …)``."""

    value: Expression
    query: Query


@dataclass(frozen=True, slots=True)
class Lambda:
    """``x -> …``."""

    name: str
    body: Expression


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct that an expression gives."""

    value: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Star:
    """``*``, ``t.*`` or ``* except (…)``."""

    table: str | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a window: up to the current one, up to the one before, or by distance.

    Shapes:  end: 0 for the current row, -1 for the one before; by_value: over order values.
    """

    end: int = 0
    by_value: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """A window: its partition, its order with the direction, its frame if one is written."""

    partition: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    frame: Frame | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A function over a window, which is written out or named."""

    call: Call
    spec: Spec | str


@dataclass(frozen=True, slots=True)
class Named:
    """A table or view."""

    name: str
    alias: str


@dataclass(frozen=True, slots=True)
class Derived:
    """A query in parentheses."""

    query: Query
    alias: str


@dataclass(frozen=True, slots=True)
class Join:
    """Two sources and the condition between them; ``outer``: rows of the left one stay."""

    left: Source
    right: Source
    on: Expression
    outer: bool


@dataclass(frozen=True, slots=True)
class Select:
    """One ``select``."""

    items: tuple[tuple[Expression, str | None], ...]
    source: Source
    where: Expression | None = None
    group: tuple[Expression, ...] | None = None
    having: Expression | None = None
    windows: dict[str, Spec] = field(default_factory=dict)
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """Selects joined by ``union all``."""

    parts: tuple[Query, ...]


Expression = Literal | Column | Call | Case | Cast | InQuery | Lambda | Field | Star | Window
Source = Named | Derived | Join
Query = Select | Union
