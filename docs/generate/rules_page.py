"""docs/reference/rules.md, from the fields of ``Rules`` and the comments above them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields

from docs.generate.pages import table
from docs.generate.rules_shown import SHOWN_BY
from minicluster.rules import FailedReplicas, IsrChanges, Rules, UncleanRecovery

CHOICES = (FailedReplicas, IsrChanges, UncleanRecovery)
# The headings in minicluster/rules.py -> the parts of the page.
PARTS = {
    "Releases: the metadata": "metadata",
    "Releases: brokers, controllers, replicas": "nodes",
    "Where Kafka differs from the texts of its KIPs": "texts",
    "Bugs that stay on, because others can see them on the wire": "bugs-on",
    "Bugs that are fixed": "bugs-fixed",
    "Bugs of the authorization that are fixed": "bugs-quorum",
    "Bugs of the quorum that are fixed": "bugs-quorum",
}


@dataclass(frozen=True, slots=True)
class Described:
    """A field with its heading and the comment above it; fields without one share the last."""

    name: str
    part: str
    text: str


def described() -> Iterator[Described]:
    """Every field but the name, in order of declaration."""
    part, text, fresh = "", "", True
    wanted = {f.name for f in fields(Rules)} - {"name"}
    for line in inspect.getsource(Rules).splitlines():
        words = line.strip()
        heading = re.fullmatch(r"# -- (.*) --", words)
        field = re.match(r"(\w+): ", words)
        if heading:
            part, text, fresh = PARTS[heading[1]], "", True
        elif words.startswith("# "):
            text = words[2:] if fresh else f"{text} {words[2:]}"
            fresh = False
        elif field and field[1] in wanted and line.startswith("    "):
            fresh = True
            yield Described(field[1], part, text)


def rules_parts() -> dict[str, str]:
    """The generated parts of docs/reference/rules.md."""
    rows: dict[str, list[tuple[str, ...]]] = {part: [] for part in PARTS.values()}
    metadata = {f.name: f.metadata for f in fields(Rules)}
    old, new = Rules.KAFKA_3_9, Rules.KAFKA_4_3
    for field in described():
        shown = "<br>".join(f"`{reference}`" for reference in SHOWN_BY.get(field.name, ()))
        if field.part.startswith("bugs"):
            release = metadata[field.name].get("release", "")
            zoo = metadata[field.name].get("zoo", "")
            rows[field.part].append((f"`{field.name}`", zoo, release, field.text, shown))
        else:
            values = (_value(getattr(new, field.name)), _value(getattr(old, field.name)))
            rows[field.part].append((f"`{field.name}`", *values, field.text, shown))
    heads = {
        part: ("field", "zoo", "only in", "meaning", "shown by")
        if part.startswith("bugs")
        else ("field", "kafka-4.3", "kafka-3.9", "meaning", "shown by")
        for part in rows
    }
    choices = [(f"`{kind.__name__}`", ", ".join(f"`{c}`" for c in kind)) for kind in CHOICES]
    return {
        **{part: table(heads[part], found) for part, found in rows.items()},
        "choices": table(("kind", "values, Kafka's first"), choices),
    }


def _value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"
