"""An action as a class: its fields are the arguments, each read once when the action is made."""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, fields
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from minicluster.errors import UserError
from minicluster.scenario.actions.arguments import Flag, Kind, choice
from minicluster.values import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an action."""

    kind: Kind
    required: bool
    default: Any
    may_be_none: bool

    def read(self, value: Any, where: str) -> Any:
        """The value as the action holds it.

        Errors:  UserError that begins with where.
        """
        if value is not None:
            return self.kind.read(value, where)
        if self.may_be_none:
            return None
        raise UserError(f"{where}: None was given; it takes {self.kind.text}")


ADMIN_WITHIN = "30s"


class Action:
    """The base of all actions: their arguments are read when they are made."""

    __slots__ = ()
    method: ClassVar[str]
    of_scenarios: ClassVar[bool] = False  # a step alone, no method

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.method = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def __post_init__(self) -> None:
        for name, argument in arguments_of(type(self)).items():
            value = getattr(self, name)
            if argument.required or value is not argument.default:  # which has been read
                value = argument.read(value, f"{self.method}: {name}")
                object.__setattr__(self, name, value)

    @property
    def given(self) -> dict[str, Any]:
        """The arguments as a scenario file has them, defaults left out."""
        arguments = {}
        for name, argument in arguments_of(type(self)).items():
            value = getattr(self, name)
            if argument.required or value != argument.default:
                arguments[name] = None if value is None else argument.kind.written(value)
        return arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusable(Action):
    """The base of the actions that the cluster may reject: then nothing happens, if that may be."""

    may_fail: Flag = False


def arguments_of(action: type[Action]) -> dict[str, Argument]:
    """The arguments of an action by name, in the order of the method."""
    if action not in _arguments:
        _arguments[action] = _declared_by(action)
    return _arguments[action]


def fields_of(action: type[Any]) -> list[Field[Any]]:
    """The fields of an action, its own before those of its bases.

    So a signature, and the page of the vocabulary, begin with what distinguishes the action.
    """
    known = {field.name: field for field in fields(action)}
    names = (name for kind in action.__mro__ for name in vars(kind).get("__annotations__", ()))
    return [known[name] for name in dict.fromkeys(names) if name in known]


_arguments: dict[type[Action], dict[str, Argument]] = {}


def _declared_by(action: Any) -> dict[str, Argument]:
    hints = get_type_hints(action, include_extras=True)
    declared = {}
    for field in fields_of(action):
        kind, may_be_none = _kind_of(hints[field.name])
        default = None if field.default is MISSING else field.default
        if default is not None:
            default = kind.read(default, field.name)
        declared[field.name] = Argument(kind, field.default is MISSING, default, may_be_none)
    return declared


def _kind_of(hint: Any) -> tuple[Kind, bool]:
    """The kind that a type names, and whether None is one of its values."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for member in members:
        if get_origin(member) is Annotated:
            return member.__metadata__[0], NoneType in members
        if get_origin(member) is Literal:
            return choice(*get_args(member)), NoneType in members
    raise TypeError(f"{hint} names no kind of argument")
