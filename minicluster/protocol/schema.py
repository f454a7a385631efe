"""The declaration of a message: one class for all of its versions, one specifier for each field.

::

    @message(api_key=56, kind="request", versions="0-3", flexible="0+")
    class AlterPartitionRequest(Message):
        @struct
        class BrokerState(Struct):
            broker_id: int = int32("3+", default=0)

        broker_epoch: int = int64("0+", default=-1)
        states: tuple[BrokerState, ...] = array("BrokerState", "3+", default=())

The declaration is the schema: the codec compiles an encoder and a decoder for each version from
it when that version is first used. Each class is a dataclass with slots, and a type checker reads
the same lines as its fields.

**Invariant:** an instance never changes; the type checker rejects an assignment.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform
from uuid import UUID

from minicluster.protocol.uuids import ZERO_UUID
from minicluster.protocol.versions import NONE, parse_versions
from minicluster.values import dataclass

_T = TypeVar("_T")
ALL_DEFAULTS = object()
"""The default of a structure: one whose fields hold their defaults."""

_Str = TypeVar("_Str", bound="str | None")
_Bytes = TypeVar("_Bytes", bound="bytes | None")
_Tuple = TypeVar("_Tuple", bound="tuple[Any, ...] | None")


class Struct:
    """The base of messages and of the structures inside them."""

    __slots__ = ()
    schema: ClassVar[tuple[FieldSpec, ...]] = ()
    """The fields in order."""
    _defaults: ClassVar[dict[str, Any]] = {}
    _values: ClassVar[Callable[[Any], Any]]
    """The values of all fields, for comparing."""

    def __init__(self, **fields: Any) -> None:
        values = self._defaults | fields
        if len(values) != len(self._defaults):
            unknown = ", ".join(sorted(fields.keys() - self._defaults.keys()))
            raise TypeError(f"{type(self).__qualname__} has no {unknown}")
        for name, value in values.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        values = self.__class__._values
        return bool(values(self) == values(other))

    def __hash__(self) -> int:
        return hash(self.__class__._values(self))

    def __repr__(self) -> str:
        """The call that makes an equal value: fields at their default are left out."""
        values = [(spec, getattr(self, spec.name)) for spec in self.schema]
        shown = ", ".join(
            f"{spec.name}={value!r}" for spec, value in values if value != spec.default
        )
        return f"{type(self).__qualname__}({shown})"


class Message(Struct):
    """A request, a response, a record, or a piece of data with versions of its own."""

    __slots__ = ()
    api_key: ClassVar[int]
    kind: ClassVar[str]
    valid_versions: ClassVar[range]
    flexible_versions: ClassVar[range]
    latest_version: ClassVar[int]
    encoders: ClassVar[dict[int, Callable[[Any], bytes]]]
    decoders: ClassVar[dict[int, Callable[[bytes, int, int], tuple[Any, int]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """One field: its type and in which versions it is there, nullable and tagged."""

    name: str
    json_name: str
    type_: str
    """int8 … float64, boolean, uuid, string, bytes, records, struct, or array."""
    element: str
    """The type of an array's items; of any other field the type again."""
    struct: type[Struct] | None
    versions: range
    nullable: range
    tagged: range
    tag: int | None
    default: Any
    ignorable: bool
    flexible: range | None
    entity: str
    former: str
    """The JSON name that an earlier release had for it."""
    is_set: bool
    """An array of which Kafka makes a set: elements that are repeated count once."""


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name.rstrip("_"))


def _field(
    type_: str,
    element: str,
    versions: str,
    default: Any,
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    entity: str = "",
    json: str = "",
    flexible: str | None = None,
    former: str = "",
    is_set: bool = False,
) -> Any:
    if tag is not None and tagged is None:
        tagged = versions
    partial = {
        "json_name": json,
        "type_": type_,
        "element": element,
        "versions": parse_versions(versions),
        "nullable": parse_versions(nullable),
        "tagged": parse_versions(tagged) if tagged else NONE,
        "tag": tag,
        "ignorable": ignorable,
        "flexible": parse_versions(flexible) if flexible else None,
        "entity": entity,
        "former": former,
        "is_set": is_set,
    }
    return dataclasses.field(default=default, metadata=partial)


def int8(versions: str, *, default: int, **more: Any) -> int:
    """A signed 8-bit number."""
    return _field("int8", "int8", versions, default, **more)  # type: ignore[no-any-return]


def int16(versions: str, *, default: int, **more: Any) -> int:
    """A signed 16-bit number."""
    return _field("int16", "int16", versions, default, **more)  # type: ignore[no-any-return]


def uint16(versions: str, *, default: int, **more: Any) -> int:
    """An unsigned 16-bit number."""
    return _field("uint16", "uint16", versions, default, **more)  # type: ignore[no-any-return]


def int32(versions: str, *, default: int, **more: Any) -> int:
    """A signed 32-bit number."""
    return _field("int32", "int32", versions, default, **more)  # type: ignore[no-any-return]


def uint32(versions: str, *, default: int, **more: Any) -> int:
    """An unsigned 32-bit number."""
    return _field("uint32", "uint32", versions, default, **more)  # type: ignore[no-any-return]


def int64(versions: str, *, default: int, **more: Any) -> int:
    """A signed 64-bit number."""
    return _field("int64", "int64", versions, default, **more)  # type: ignore[no-any-return]


def float64(versions: str, *, default: float, **more: Any) -> float:
    """A double."""
    return _field("float64", "float64", versions, default, **more)  # type: ignore[no-any-return]


def boolean(versions: str, *, default: bool, **more: Any) -> bool:
    """One byte; on reading, any other than zero is true."""
    return _field("boolean", "boolean", versions, default, **more)  # type: ignore[no-any-return]


def uuid(versions: str, *, default: UUID = ZERO_UUID, **more: Any) -> UUID:
    """Sixteen bytes; zero means "none"."""
    return _field("uuid", "uuid", versions, default, **more)  # type: ignore[no-any-return]


def string(versions: str, *, default: _Str, **more: Any) -> _Str:
    """Text in UTF-8 of at most 32767 bytes."""
    return _field("string", "string", versions, default, **more)  # type: ignore[no-any-return]


def bytes_(versions: str, *, default: _Bytes, **more: Any) -> _Bytes:
    """Any bytes."""
    return _field("bytes", "bytes", versions, default, **more)  # type: ignore[no-any-return]


def records(versions: str, *, default: bytes | None = None, **more: Any) -> Any:
    """Record batches: ``bytes`` when decoded; anything with ``__bytes__`` can be encoded."""
    return _field("records", "records", versions, default, **more)


def array(of: str, versions: str, *, default: _Tuple, **more: Any) -> _Tuple:
    """Any number of values of a type, or of a structure of the same message, that is named."""
    return _field("array", of, versions, default, **more)  # type: ignore[no-any-return]


def nested(of: str, versions: str, *, default: Any = ALL_DEFAULTS, **more: Any) -> Any:
    """One structure of the same message; by default one whose fields hold their defaults."""
    return _field("struct", of, versions, default, **more)


def _build(cls: type, structs: Mapping[str, type[Struct]]) -> Any:
    """The class as a dataclass with slots, and with its schema."""
    for name in vars(cls).get("__annotations__", ()):
        field = vars(cls)[name]
        if field.default is ALL_DEFAULTS:
            field.default = structs[field.metadata["element"]]()
    cls.__doc__ = cls.__doc__ or cls.__qualname__  # otherwise dataclasses writes a signature
    # The methods are those of Struct: 600 classes with methods of their own take long to import.
    built: Any = dataclasses.dataclass(
        slots=True, kw_only=True, init=False, eq=False, repr=False, match_args=False
    )(cls)
    fields = dataclasses.fields(built)
    built.schema = tuple(_spec(field, structs) for field in fields)
    built._defaults = {field.name: field.default for field in fields}
    names = [field.name for field in fields]
    built._values = operator.attrgetter(*names) if names else staticmethod(lambda _: ())
    return built


def _spec(field: dataclasses.Field[Any], structs: Mapping[str, type[Struct]]) -> FieldSpec:
    partial = dict(field.metadata)
    partial["json_name"] = partial["json_name"] or _camel(field.name)
    partial["struct"] = structs.get(partial["element"])
    if partial["struct"] is not None:
        partial["element"] = "struct"
    return FieldSpec(name=field.name, default=field.default, **partial)


def _build_structs(cls: type) -> dict[str, type[Struct]]:
    """Build the structures inside a message, each after those that it holds itself."""
    declared = {
        name: value
        for name, value in vars(cls).items()
        if isinstance(value, type) and issubclass(value, Struct)
    }
    built: dict[str, type[Struct]] = {}

    def build(name: str) -> None:
        for field in vars(declared[name]).values():
            if isinstance(field, dataclasses.Field):
                element = field.metadata["element"]
                if element in declared and element not in built:
                    build(element)
        built[name] = _build(declared[name], built)

    for name in declared:
        if name not in built:
            build(name)
    return built


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(
        int8,
        int16,
        uint16,
        int32,
        uint32,
        int64,
        float64,
        boolean,
        uuid,
        string,
        bytes_,
        records,
        array,
    ),
)
def struct(cls: type[_T]) -> type[_T]:
    """Declare a structure inside a message, which builds it; its versions are the message's."""
    return cls


@dataclass_transform(
    kw_only_default=True,
    frozen_default=True,
    field_specifiers=(
        int8,
        int16,
        uint16,
        int32,
        uint32,
        int64,
        float64,
        boolean,
        uuid,
        string,
        bytes_,
        records,
        array,
    ),
)
def message(
    *, api_key: int = -1, kind: str, versions: str, flexible: str
) -> Callable[[type[_T]], type[_T]]:
    """Declare a message of the versions that exist; flexible ones have compact forms and tags."""

    def declare(cls: type[_T]) -> type[_T]:
        structs = _build_structs(cls)
        built = _build(cls, structs)
        for name, value in structs.items():
            setattr(built, name, value)
        built.api_key = api_key
        built.kind = kind
        built.valid_versions = parse_versions(versions)
        built.flexible_versions = parse_versions(flexible)
        built.latest_version = max(built.valid_versions)
        built.encoders = {}
        built.decoders = {}
        return built  # type: ignore[no-any-return]

    return declare
