"""Planted faults: the zoo switches that a check must catch, all off by default.

A machine gets a ``Faults`` value as it gets its ``Rules`` and asks at the place where it would do
right; where a switch changes what it does, it returns ``effects.FaultHit``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from minicluster.errors import UserError


def _switch(zoo_id: str, text: str) -> bool:
    return field(default=False, metadata={"zoo": zoo_id, "text": text})  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Which faults are planted in a run."""

    NONE: ClassVar[Faults]

    z01_no_eligibility_check: bool = _switch(
        "Z01", "the controller accepts fenced and shutting-down replicas into an ISR"
    )
    z05_fenced_replicas_in_new_isr: bool = _switch(
        "Z05", "a new partition's ISR holds fenced replicas"
    )
    s09_expand_while_recovering: bool = _switch(
        "S09", "a recovering partition's ISR may grow before it has recovered"
    )
    s11_shrink_applied_early: bool = _switch(
        "S11", "a leader applies an ISR shrink before it is committed"
    )
    s26_reply_before_commit: bool = _switch(
        "S26", "the controller answers before its records are committed"
    )

    @classmethod
    def switches(cls) -> dict[str, str]:
        """The field name of each zoo id, in order of declaration."""
        return {f.metadata["zoo"]: f.name for f in fields(cls)}

    @classmethod
    def of(cls, ids: Iterable[str]) -> Faults:
        """Turn on the faults with these zoo ids.

        Errors:  UserError for an id that no switch has.
        """
        names, known = {}, cls.switches()
        for zoo_id in ids:
            if zoo_id not in known:
                raise UserError(f"faults: {zoo_id!r} is no switch; known: {', '.join(known)}")
            names[known[zoo_id]] = True
        return replace(cls.NONE, **names)

    @property
    def on(self) -> tuple[str, ...]:
        """The zoo ids of the faults that are on."""
        return tuple(f.metadata["zoo"] for f in fields(self) if getattr(self, f.name))


Faults.NONE = Faults()
