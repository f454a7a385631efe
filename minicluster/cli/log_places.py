"""The part of a log that ``log`` shows: between two places, near one, records of some types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from minicluster.errors import UserError, instead
from minicluster.moments import Span

NEAR_OFFSETS, NEAR_MS = 10, 10_000


class Shown(Struct):
    """The part of a log that is shown.

    Shapes:  types: of records, as they were given; none for all of them. seen: the types of the log
             so far, by their plain form.
    Units:   offsets and moments, both ends included; None where there is no bound.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None
    types: Sequence[str] = ()
    count: int = 0
    seen: dict[str, str] = field(default_factory=dict)

    @property
    def is_part(self) -> bool:
        """Something is left out by its place."""
        bounds = self.from_offset, self.to_offset, self.from_ms, self.to_ms
        return any(bound is not None for bound in bounds)

    def keeps(self, record: Mapping[str, Any]) -> bool:
        """A record, as ``dump_json`` has it, is shown."""
        kind = str(record.get("control") or record.get("type"))
        return self.keeps_at(record["offset"], record["create_time"], kind)

    def keeps_at(self, offset: int, ms: int, kind: str) -> bool:
        """A record of a type at a place is shown."""
        self.seen.setdefault(plain(kind), kind)
        is_kept = (
            _is_between(self.from_offset, offset, self.to_offset)
            and _is_between(self.from_ms, ms, self.to_ms)
            and (not self.types or plain(kind) in map(plain, self.types))
        )
        self.count += is_kept
        return is_kept

    def check(self, span: Span) -> None:
        """Reject what has shown no record, once the whole log was read.

        Errors:  UserError.
        """
        for word in self.types:
            if plain(word) not in self.seen:
                known = sorted(map(_as_class, self.seen.values()))
                raise UserError(f"--type: no record is of type {word!r}; {instead(word, known)}")
        if not self.count and self.is_part:
            raise UserError(f"no record is there; the log goes {span}")


def _is_between(first: int | None, value: int, last: int | None) -> bool:
    return (first is None or first <= value) and (last is None or value <= last)


def shown_part(
    span: Span, start: str | None, end: str | None, around: str | None, types: Sequence[str]
) -> Shown:
    """Read the places that are given, each an offset or a moment.

    Errors:  UserError.
    """
    if around is not None and (start is not None or end is not None):
        raise UserError("--around: has both ends already; leave out --from and --to")
    bounds: dict[str, int] = {}
    if around is not None and around.isdecimal():
        at = int(around)
        bounds = {"from_offset": at - NEAR_OFFSETS, "to_offset": at + NEAR_OFFSETS}
    elif around is not None:
        at = span.moment_ms(around, what="--around")
        bounds = {"from_ms": at - NEAR_MS, "to_ms": at + NEAR_MS}
    for name, text in (("from", start), ("to", end)):
        if text is not None and text.isdecimal():
            bounds[f"{name}_offset"] = int(text)
        elif text is not None:
            bounds[f"{name}_ms"] = span.moment_ms(text, what=f"--{name}")
    shown = Shown(types=types)
    for name, value in bounds.items():
        setattr(shown, name, value)
    return shown


def _as_class(kind: str) -> str:
    return kind.removesuffix("_RECORD").title().replace("_", "") if kind.isupper() else kind


def plain(kind: str) -> str:
    """A type of records however it is written: PARTITION_CHANGE_RECORD, PartitionChange."""
    return kind.replace("_", "").lower().removesuffix("record")
