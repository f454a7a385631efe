"""Coverage of a campaign: what its runs went through, and the seed that saw each first.

An observation is a kind and a name: a refusal with its reason, an error of an API, a transition of
a replica or of a voter, a state of an ISR, a combination of fields that a record changed, a rule
that had a case. A seed that saw something new is worth a variation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

Observation = tuple[str, str]  # kind, name
MISSED_SHOWN = 12

KINDS: Mapping[str, str] = {
    "rules": "rules that had a case during the run",
    "refusals": "reasons for which a controller rejected",
    "errors": "errors in responses, by API",
    "replicas": "transitions of replicas",
    "ISRs": "sizes of ISRs beside their minimum, with changes that are pending",
    "voters": "transitions of controllers and observers in the quorum",
    "records": "types of records, with the fields that they changed",
}


class Coverage(Struct):
    """The observations of the seeds so far.

    Shapes:  known: the names that a kind can have, where they are a closed list.
    """

    known: Mapping[str, frozenset[str]] = field(default_factory=dict)
    first_seen: dict[Observation, str] = field(default_factory=dict)  # observation -> seed
    fresh: dict[str, int] = field(default_factory=dict)  # seed -> how many it saw first

    def add(self, seed: str, observations: Iterable[Observation]) -> int:
        """Add the observations of one seed; how many of them are new."""
        new = sorted(set(observations) - self.first_seen.keys())
        self.first_seen |= dict.fromkeys(new, seed)
        if new:
            self.fresh[seed] = len(new)
        return len(new)

    def of_kind(self, kind: str) -> list[str]:
        """The names that were seen, sorted."""
        return sorted(name for other_kind, name in self.first_seen if other_kind == kind)

    def missed(self, kind: str) -> list[str]:
        """The names of a closed list that no seed has seen."""
        return sorted(self.known.get(kind, frozenset()) - set(self.of_kind(kind)))

    def lines(self) -> list[str]:
        """The table for people."""
        rows = [("coverage", "seen", "of", "last new at seed")]
        for kind in KINDS:
            seeds = [
                seed for (other_kind, _), seed in self.first_seen.items() if other_kind == kind
            ]
            closed = len(self.known[kind]) if kind in self.known else ""
            last = seeds[-1] if seeds else "-"
            rows.append((kind, str(len(seeds)), str(closed), last))
        lines = [f"{kind:10} {seen:>5} {of:>5}  {last}" for kind, seen, of, last in rows]
        for kind in self.known:
            missed = self.missed(kind)
            if missed:
                more = (
                    f" and {len(missed) - MISSED_SHOWN} more" if len(missed) > MISSED_SHOWN else ""
                )
                lines.append(f"{kind} not seen: {', '.join(missed[:MISSED_SHOWN])}{more}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The same for programs: each observation with the seed that saw it first."""
        return {
            "kinds": {
                kind: {
                    "what": text,
                    "seen": {name: self.first_seen[kind, name] for name in self.of_kind(kind)},
                    **({"missed": self.missed(kind)} if kind in self.known else {}),
                }
                for kind, text in KINDS.items()
            },
            "seeds": dict(self.fresh),
        }
