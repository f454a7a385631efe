"""The kinds of arguments on the page about Python, from their declarations."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from docs.generate.pages import table
from minicluster.scenario.actions import arguments, clients, nodes, topics


def kinds() -> dict[str, arguments.Kind]:
    """The named kinds of arguments: as a signature shows them, and what they take."""
    named: dict[str, Any] = {}
    for module in (arguments, clients, nodes, topics):
        named |= vars(module)
    annotated = {name: hint for name, hint in named.items() if get_origin(hint) is Annotated}
    return {name: get_args(hint)[1] for name, hint in annotated.items()}


def parts() -> dict[str, str]:
    """The generated part of the page."""
    rows = [(f"`{name}`", kind.text) for name, kind in sorted(kinds().items())]
    return {"arguments": table(("argument", "takes"), rows)}
