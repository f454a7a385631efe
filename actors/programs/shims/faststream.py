"""FastStream: its subscribers start in the order of a set, which is that of addresses in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from minicluster.actors.programs.shims.shim import Replaced, Shim


def _replaced() -> Iterator[Replaced]:
    from faststream._internal.broker.registrator import Registrator

    def subscribers(this: Any) -> list[Any]:
        own = _in_order(this._subscribers, this._Registrator__persistent_subscribers)
        return [*own, *(each for router in this.routers for each in router.subscribers)]

    def publishers(this: Any) -> list[Any]:
        own = _in_order(this._publishers, this._Registrator__persistent_publishers)
        return [*own, *(each for router in this.routers for each in router.publishers)]

    yield Registrator, "subscribers", property(subscribers)
    yield Registrator, "publishers", property(publishers)


def _in_order(members: Iterable[Any], declared: list[Any]) -> list[Any]:
    """The members of a set in the order in which the program has declared them."""
    there = {id(member) for member in members}
    in_order = [member for member in declared if id(member) in there]
    listed = {id(member) for member in in_order}
    return [*in_order, *(member for member in members if id(member) not in listed)]


SHIM = Shim("faststream", "faststream", ("0.6", "0.7"), _replaced)
