"""The generated part of docs/reference/views.md: the columns of each view."""

from __future__ import annotations

from docs.generate.pages import table
from minicluster.verify.shown.declared import SHOWN_VIEWS


def parts() -> dict[str, str]:
    """A table for each view."""
    texts = []
    for view in SHOWN_VIEWS:
        rows = [(f"`{name}`", f"`{kind}`", text) for name, kind, text in view.columns]
        texts.append(f"### {view.name}\n\n{view.about[0].upper()}{view.about[1:]}.\n")
        texts.append(table(("column", "type", ""), rows) + "\n")
    return {"views": "\n".join(texts).rstrip()}
