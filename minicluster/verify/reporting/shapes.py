"""What a figure is made of, for ``templates/figure.html``; places are of the SVG's own grid."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from minicluster.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A span of time in a lane."""

    kind: ClassVar[str] = "rect"
    name: str
    x: float
    y: float
    width: float
    height: float
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A line between two places."""

    kind: ClassVar[str] = "line"
    name: str = ""
    x1: float
    x2: float
    y1: float
    y2: float
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Some words."""

    kind: ClassVar[str] = "text"
    name: str = ""
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An outline, in the words of SVG."""

    kind: ClassVar[str] = "path"
    d: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Shapes that have one title and lead to one place of the page, if to any."""

    kind: ClassVar[str] = "group"
    name: str
    title: str
    shapes: tuple[Shape, ...]
    href: str = ""


Shape: TypeAlias = Rect | Stroke | Label | Path | Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its heading; label: what it shows, for who cannot see it."""

    title: str
    small: str
    label: str
    width: int
    height: float
    shapes: tuple[Shape, ...]
