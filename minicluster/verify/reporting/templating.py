"""HTML from a room's ``templates/``: every value is escaped where it is written."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from minicluster.errors import counted

STYLE = "page.css"
_PACKAGE = "minicluster.verify.reporting"  # has the style sheet


def rendered(template: str, room: str = _PACKAGE, **values: Any) -> str:
    """A template of a room with its values; ``style`` is the style sheet of all pages."""
    style = files(_PACKAGE).joinpath(STYLE).read_text(encoding="utf-8")
    return _environment(room).get_template(template).render(style=style, **values)


@cache
def _environment(room: str) -> Environment:
    environment = Environment(
        loader=PackageLoader(room),
        autoescape=True,
        undefined=StrictUndefined,  # a value with a wrong name is an error, not a gap in the page
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["counted"] = counted
    environment.filters["place"] = lambda value: f"{value:.1f}"
    return environment
