"""Sets of a client library that are iterated in ascending order.

A set of texts has the order of the process (PYTHONHASHSEED), and one of tuples with None in them,
before Python 3.12, that of an address. Clients shuffle a set of brokers and write sets of topics
into requests. Their modules get these classes for ``set`` and ``frozenset``.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any, ClassVar

from minicluster.actors.programs.shims.shim import Replaced

_Base: Any = object  # of a class whose superclass is a builtin of either kind


def of_package(package: str) -> Iterator[Replaced]:
    """``set`` and ``frozenset`` in each module of a package."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and isinstance(module, ModuleType):
            for replaced in (SortedSet, SortedFrozenSet):
                own = replaced.builtin
                if vars(module).get(own.__name__, own) is own:
                    yield module, own.__name__, replaced


class _LikeBuiltin(type):
    """``isinstance(topics, set)`` in a library is true for the sets that users hand to it, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, vars(cls).get("builtin", cls))


class _Sorted(_Base):  # type: ignore[misc]
    """What iterates, and what gives another set; all else is the builtin's."""

    builtin: ClassVar[type]

    def __iter__(self) -> Iterator[Any]:
        own: Iterator[Any] = super().__iter__()
        try:
            return iter(sorted(super().__iter__()))
        except TypeError:  # futures, batches: nothing that is written into a request
            return own

    def copy(self) -> Any:
        return type(self)(self)

    def union(self, *others: Any) -> Any:
        return type(self)(super().union(*others))

    def intersection(self, *others: Any) -> Any:
        return type(self)(super().intersection(*others))

    def difference(self, *others: Any) -> Any:
        return type(self)(super().difference(*others))

    def symmetric_difference(self, other: Any) -> Any:
        return type(self)(super().symmetric_difference(other))

    def __or__(self, other: Any) -> Any:
        return _again(self, super().__or__(other))

    def __and__(self, other: Any) -> Any:
        return _again(self, super().__and__(other))

    def __sub__(self, other: Any) -> Any:
        return _again(self, super().__sub__(other))

    def __xor__(self, other: Any) -> Any:
        return _again(self, super().__xor__(other))

    def __ror__(self, other: Any) -> Any:
        return _again(self, super().__ror__(other))

    def __rand__(self, other: Any) -> Any:
        return _again(self, super().__rand__(other))

    def __rsub__(self, other: Any) -> Any:
        return _again(self, super().__rsub__(other))

    def __rxor__(self, other: Any) -> Any:
        return _again(self, super().__rxor__(other))


def _again(one: Any, given: Any) -> Any:
    return given if given is NotImplemented else type(one)(given)


class SortedSet(_Sorted, builtins.set[Any], metaclass=_LikeBuiltin):
    """A set, iterated in ascending order."""

    builtin = builtins.set

    def pop(self) -> Any:
        for item in self:
            self.remove(item)
            return item
        raise KeyError("pop from an empty set")


class SortedFrozenSet(_Sorted, builtins.frozenset[Any], metaclass=_LikeBuiltin):
    """A frozen set, iterated in ascending order."""

    builtin = builtins.frozenset
