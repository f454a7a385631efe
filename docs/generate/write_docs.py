"""``python -m docs.generate.write_docs``: write the generated parts of the pages in docs/ again."""

from __future__ import annotations

from collections.abc import Callable

from docs.generate import (
    api_page,
    conformance,
    coverage,
    programs_page,
    rules_page,
    views_page,
    vocabulary,
    zoo_page,
)
from docs.generate.pages import DOCS, with_parts

PAGES: dict[str, Callable[[], dict[str, str]]] = {
    "reference/vocabulary.md": vocabulary.scenario_parts,
    "reference/cli.md": vocabulary.cli_parts,
    "reference/api.md": api_page.parts,
    "reference/coverage.md": coverage.parts,
    "reference/rules.md": rules_page.rules_parts,
    "reference/zoo.md": zoo_page.parts,
    "reference/programs.md": programs_page.parts,
    "reference/views.md": views_page.parts,
    "reference/conformance.md": lambda: conformance.measure().parts,
}


def main() -> None:
    """Write every page; prints which of them have changed."""
    for name, parts in PAGES.items():
        path = DOCS / name
        page = path.read_text(encoding="utf-8")
        new = with_parts(page, parts())
        path.write_text(new, encoding="utf-8")
        print(f"docs/{name}: {'written again' if new != page else 'up to date'}")


if __name__ == "__main__":
    main()
