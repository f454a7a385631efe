"""HTML from the templates of ``templates/``: every value is escaped where it is written."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from minicluster.errors import counted

STYLE = "page.css"
_PACKAGE = "minicluster.verify.reporting"


def rendered(template: str, **values: Any) -> str:
    """A template with its values; ``style`` is the style sheet of all pages."""
    style = files(_PACKAGE).joinpath(STYLE).read_text(encoding="utf-8")
    return _environment().get_template(template).render(style=style, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,  # a value with a wrong name is an error, not a gap in the page
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["counted"] = counted
    environment.filters["place"] = lambda value: f"{value:.1f}"
    return environment
