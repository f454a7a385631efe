"""The documentation as a site, by Sphinx: ``make site``."""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from typing import Annotated, Any, get_origin

from minicluster.scenario.actions import arguments, clients, nodes, topics

project = "minicluster"
copyright = "the minicluster maintainers"
version = release = version_of("minicluster")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 3
# Links to files of the repository are checked by tests/house/test_docs.py; here they are no pages.
suppress_warnings = ["myst.xref_missing"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
# The kinds of arguments have names; written out, each would fill three lines of a signature.
autodoc_type_aliases = {
    name: name
    for module in (arguments, clients, nodes, topics)
    for name, hint in vars(module).items()
    if get_origin(hint) is Annotated
}
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

html_theme = "furo"
html_title = "minicluster"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["conf.py", "generate"]

# These parts of a docstring are fields of reStructuredText; what engineers call the shapes of a
# function's values are to readers of the site its arguments.
_FIELD = re.compile(r"^(Shapes|Arguments|Returns|Units|Errors|Source):\s+")


def _as_fields(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [_FIELD.sub(r":\1: ", line).replace(":Shapes: ", ":Arguments: ") for line in lines]
    for number in range(len(lines) - 1, 0, -1):
        begins_a_field = re.match(r":(Arguments|Returns|Units|Errors|Source): ", lines[number])
        if begins_a_field and lines[number - 1] and not lines[number - 1].startswith((":", " ")):
            lines.insert(number, "")


def setup(app: Any) -> None:
    """Connect what autodoc calls with each docstring."""
    app.connect("autodoc-process-docstring", _as_fields)
