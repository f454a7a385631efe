"""Planted faults that can be switched while a cluster runs."""

from __future__ import annotations

from minicluster.errors import UserError
from minicluster.faults import NO_FAULT, Faults


class LiveFaults(Faults):
    """The faults that all machines of a cluster share; each fault's place reads its switch.

    For a machine they are a frozen value. This one is changed in place, past the frozen dataclass,
    so that a switch reaches the machines that have it already.
    """

    __slots__ = ("_ever_on", "is_any_on")

    is_any_on: bool  # kept, as every step that a fault is planted at reads it
    _ever_on: dict[str, None]

    def __init__(self, initial: Faults) -> None:
        super().__init__()
        object.__setattr__(self, "is_any_on", False)
        object.__setattr__(self, "_ever_on", {})
        if initial.is_any_on:
            for zoo_id in initial.on:
                self.plant(zoo_id)

    def plant(self, zoo_id: str, on: bool = True) -> None:
        """Switch one fault.

        Errors:  UserError for an id that no switch has.
        """
        names = Faults.switches()
        if zoo_id not in names:
            raise UserError(f"faults: {zoo_id!r} {NO_FAULT}")
        _plant_all()
        object.__setattr__(self, names[zoo_id], on)
        object.__setattr__(self, "is_any_on", bool(self.on))
        if on:
            self._ever_on[zoo_id] = None

    @property
    def ever_on(self) -> tuple[str, ...]:
        """The zoo ids of the faults that are on or have been."""
        return tuple(self._ever_on)


def _plant_all() -> None:
    """Load the zoo, which other clusters do without."""
    import minicluster.zoo  # noqa: F401
