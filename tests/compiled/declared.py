"""Dataclasses of compiled classes; in the compiled wheel this is ``minicluster._declared``.

``rewrite`` turns a dataclass into a native class whose ``__init__`` and comparisons are compiled.
All else that a dataclass has is set here, from the same functions as in the pure build.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from minicluster import lazy_dataclass as lazy

MISSING: Any = dataclasses.MISSING
# mypyc refuses these calls for a class that is no dataclass to its eyes.
replace: Any = dataclasses.replace
fields: Any = dataclasses.fields
asdict: Any = dataclasses.asdict


def field(**options: Any) -> Any:
    """A field of a dataclass, with the options of ``dataclasses.field``."""
    return dataclasses.field(**options)


def declared(cls: Any, own: dict[str, Any], *, frozen: bool, eq: bool, given: set[str]) -> None:
    """Make a dataclass of a native class.

    Shapes:  own: the fields that the class adds or redeclares; given: the methods it has written.
    """
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        found |= vars(base).get("__dataclass_fields__", {})
    for name, made in own.items():
        made.name, made.type, made._field_type = name, "Any", lazy._ORDINARY
        found[name] = made
    cls.__dataclass_fields__ = found
    methods: dict[str, Any] = {"__reduce__": _reduce}
    methods["__repr__"] = lazy._at_first_call(cls, "__repr__", lazy._repr(frozen))
    if eq and not frozen:
        methods["__hash__"] = None
    for name, value in {**lazy._OF_DATACLASSES, **methods}.items():
        if name not in given:
            setattr(cls, name, value)


def _reduce(self: Any) -> tuple[Any, ...]:
    """For pickling and copying: a native instance is made by its ``__init__`` only."""
    return _made, (
        self.__class__,
        {name: getattr(self, name) for name in self.__dataclass_fields__},
    )


def _made(cls: Any, values: dict[str, Any]) -> Any:
    return cls(**values)
