"""Dataclasses that compile their methods at first use.

``dataclasses.dataclass`` compiles up to ten methods when a class is declared. A start declares some
450 classes and calls 192 of those methods, so their compilation was nearly half of the time of an
import. Here a class is declared with its fields and slots only. Its ``__init__``, ``__repr__``,
comparisons and ``__hash__`` are compiled when they are first called; all else is written once for
all classes.

``fields``, ``replace``, ``asdict``, pickling and ``match`` work as with any dataclass.

**Invariant:** an instance of a frozen class never changes. The type checker refuses an assignment.
Nothing refuses it at run time: a ``__setattr__`` that does is passed by each field of each new
instance, which doubled the cost of the hundred thousand effects and messages of a run.

Leaves out: ``InitVar``, ``unsafe_hash``, a dictionary in place of slots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from reprlib import recursive_repr
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    *,
    slots: bool,
    frozen: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    order: bool = False,
) -> Callable[[type[T]], type[T]]:
    """Declare a dataclass; the arguments are those of ``dataclasses.dataclass``."""
    assert slots, "these classes have slots"

    def declare(cls: type[T]) -> type[T]:
        given = {name for name, value in vars(cls).items() if value is not None}
        declared: type[T] = _with_slots(cls, kw_only=kw_only)
        methods: dict[str, Any] = {"__init__": _at_first_call(declared, "__init__", _init)}
        methods["__repr__"] = _at_first_call(declared, "__repr__", _repr(frozen))
        if eq:
            methods["__eq__"] = _at_first_call(declared, "__eq__", _comparison("=="))
            hashing = _at_first_call(declared, "__hash__", _hash)
            methods["__hash__"] = hashing if frozen else None
        if order:
            for name, sign in _ORDER.items():
                methods[name] = _at_first_call(declared, name, _comparison(sign))
        for name, method in methods.items():
            if name not in given:
                setattr(declared, name, method)
        return declared

    return declare


def replace(instance: T, /, **changes: Any) -> T:
    """The instance with other values in some fields, in half of the time of ``dataclasses``.

    Shapes:  an instance of a class of this module, whose fields are all arguments.
    """
    cls: Any = instance.__class__
    kept = {
        name: getattr(instance, name) for name in cls.__dataclass_fields__ if name not in changes
    }
    made: T = cls(**kept, **changes)
    return made


def _with_slots(cls: Any, *, kw_only: bool) -> Any:
    """The class again, with its fields as slots, as ``dataclasses`` would make it without methods.

    ``dataclasses`` matches the text of each annotation three times: a tenth of an import.
    """
    declared: dict[str, Field[Any]] = {}
    for base in reversed(cls.__mro__[1:]):
        declared |= vars(base).get("__dataclass_fields__", {})
    inherited = set(declared)
    own = dict(vars(cls))
    for name, annotation in cls.__annotations__.items():
        if annotation == "KW_ONLY":
            kw_only = True
        elif not annotation.startswith("ClassVar"):
            default = own.pop(name, MISSING)
            declared[name] = _field(name, annotation, default, kw_only=kw_only)
    for name in ("__dict__", "__weakref__"):
        own.pop(name, None)
    own["__slots__"] = tuple(name for name in declared if name not in inherited)
    own["__dataclass_fields__"] = declared
    by_position = (name for name, field in declared.items() if not field.kw_only)
    own.setdefault("__match_args__", tuple(by_position))
    again = type(cls)(cls.__name__, cls.__bases__, {**_OF_DATACLASSES, **own})
    again.__qualname__ = cls.__qualname__
    if again.__doc__ is None:
        again.__doc__ = f"{cls.__qualname__}."
    return again


def _field(name: str, annotation: str, default: Any, *, kw_only: bool) -> Any:
    made: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
    made.name, made.type, made._field_type = name, annotation, _ORDINARY
    if made.kw_only is MISSING:
        made.kw_only = kw_only
    assert made.init, f"{name}: these classes have all of their fields as arguments"
    if made.default.__class__.__hash__ is None:
        raise ValueError(f"{name}: a default that changes belongs into default_factory")
    return made


def _at_first_call(cls: type, name: str, compiled: Callable[[type], Any]) -> Callable[..., Any]:
    """A method that compiles the one that takes its place."""

    def first(*args: Any, **kwargs: Any) -> Any:
        method = compiled(cls)
        setattr(cls, name, method)
        return method(*args, **kwargs)

    return first


def _compile(name: str, arguments: list[str], lines: list[str], space: dict[str, Any]) -> Any:
    exec("\n ".join([f"def {name}({', '.join(arguments)}):", *lines]), space)
    return space[name]


def _init(cls: Any) -> Any:
    space: dict[str, Any] = {"MISSING": MISSING}
    arguments, lines = ["self"], []
    declared = fields(cls)
    by_position = [field for field in declared if not field.kw_only]
    by_name = [field for field in declared if field.kw_only]
    arguments += [_argument(field, space) for field in by_position]
    if by_name:
        arguments += ["*", *(_argument(field, space) for field in by_name)]
    for field in declared:
        name = value = field.name
        if field.default_factory is not MISSING:
            space[f"make_{name}"] = field.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        lines.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compile("__init__", arguments, lines or ["pass"], space)


def _argument(field: Field[Any], space: dict[str, Any]) -> str:
    """A parameter with its default, which the compiled function finds in its space."""
    if field.default_factory is not MISSING:
        return f"{field.name}=MISSING"
    if field.default is MISSING:
        return field.name
    space[f"default_{field.name}"] = field.default
    return f"{field.name}=default_{field.name}"


def _comparison(sign: str) -> Callable[[type], Any]:
    def compiled(cls: type) -> Any:
        mine, others = _values(cls, "self"), _values(cls, "other")
        lines = [f"if other.__class__ is self.__class__: return {mine} {sign} {others}"]
        return _compile("compare", ["self", "other"], [*lines, "return NotImplemented"], {})

    return compiled


def _hash(cls: type) -> Any:
    return _compile("hashed", ["self"], [f"return hash({_values(cls, 'self')})"], {})


def _values(cls: Any, of: str) -> str:
    return "(" + "".join(f"{of}.{field.name}, " for field in fields(cls) if field.compare) + ")"


def _repr(frozen: bool) -> Callable[[type], Any]:
    def compiled(cls: Any) -> Any:
        shown = ", ".join(f"{f.name}={{self.{f.name}!r}}" for f in fields(cls) if f.repr)
        line = f'return f"{{self.__class__.__qualname__}}({shown})"'
        method = _compile("shown", ["self"], [line], {})
        return method if frozen else recursive_repr()(method)  # frozen ones are in no circle

    return compiled


@dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)
class _Sample:
    """A class of ``dataclasses``. Without this text they would parse a signature for it."""

    field: int


_SAMPLE: Any = fields(_Sample)[0]
_ORDINARY = _SAMPLE._field_type
_OF_DATACLASSES = {
    name: value
    for name, value in vars(_Sample).items()
    if name in ("__dataclass_params__", "__replace__")
}
_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
