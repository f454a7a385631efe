"""Which Kafka: every difference between releases, and every known bug, is one named field.

No rule anywhere compares release numbers; it asks a field of this value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

from minicluster.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One release's rules. The defaults are those of Kafka 4.3."""

    KAFKA_4_3: ClassVar[Rules]
    KAFKA_3_9: ClassVar[Rules]

    name: str = "kafka-4.3"

    @classmethod
    def named(cls, name: str) -> Rules:
        """Find the rules that a scenario names (``kafka-4.3``, ``kafka-3.9``)."""
        known = {rules.name: rules for rules in (cls.KAFKA_4_3, cls.KAFKA_3_9)}
        if name not in known:
            raise UserError(f"rules: {name!r} is not known; choose one of {', '.join(known)}")
        return known[name]

    def as_shipped(self) -> Rules:
        """These rules with every bug of the release as it shipped."""
        bugs = {f.name: True for f in fields(self) if f.metadata.get("bug")}
        return replace(self, **bugs)  # type: ignore[arg-type]


Rules.KAFKA_4_3 = Rules()
Rules.KAFKA_3_9 = Rules(name="kafka-3.9")
