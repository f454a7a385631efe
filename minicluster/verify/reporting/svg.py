"""Shapes of a figure as SVG, in its own grid; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from minicluster.values import Value


class Figure(Value, kw_only=True):
    """A figure with its heading; label: what it shows, for who cannot see it."""

    title: str
    small: str
    label: str
    width: int
    height: float
    shapes: Markup


def joined(shapes: Iterable[Markup]) -> Markup:
    """Several shapes, the first of them behind the others."""
    return Markup("\n").join(shapes)


def rect(*, name: str, x: float, y: float, width: float, height: float, title: str = "") -> Markup:
    """A span of time in a lane."""
    place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"'
    return Markup(f'<rect class="{escape(name)}" {place}>{_title(title)}</rect>')


def stroke(
    *, name: str = "", x1: float, x2: float, y1: float, y2: float, title: str = ""
) -> Markup:
    """A line between two places."""
    place = f'x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1}" y2="{y2}"'
    return Markup(f"<line{_class(name)} {place}>{_title(title)}</line>")


def label(*, name: str = "", x: float, y: float, text: str) -> Markup:
    """Some words."""
    return Markup(f'<text{_class(name)} x="{x:.1f}" y="{y}">{escape(text)}</text>')


def path(d: str) -> Markup:
    """An outline, in the words of SVG."""
    return Markup(f'<path d="{d}"/>')


def group(*, name: str, title: str, shapes: Iterable[Markup], href: str = "") -> Markup:
    """Shapes that have one title and lead to one place of the page, if to any."""
    inside = Markup(f'<g class="{escape(name)}">{_title(title)}\n{joined(shapes)}\n</g>')
    return Markup(f'<a href="#{escape(href)}">{inside}</a>') if href else inside


def _class(name: str) -> str:
    return f' class="{escape(name)}"' if name else ""


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""
