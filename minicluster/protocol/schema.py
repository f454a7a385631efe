"""The declaration of a message: one class for all of its versions, one specifier for each field.

::

    @message(api_key=56, kind="request", versions="0-3", flexible="0+")
    class AlterPartitionRequest(Message):
        class BrokerState(Struct):
            broker_id: int = int32("3+", default=0)

        broker_epoch: int = int64("0+", default=-1)
        states: tuple[BrokerState, ...] = array("BrokerState", "3+", default=())

The declaration is the schema: the codec compiles an encoder and a decoder for each version from
it when that version is first used. Each class is a ``msgspec.Struct``, and a type checker reads the
same lines as its fields. ``dataclasses.replace``, ``fields`` and ``asdict`` take it as well.

**Invariant:** an instance never changes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar, dataclass_transform
from uuid import UUID

import msgspec

from minicluster.protocol.uuids import ZERO_UUID
from minicluster.protocol.versions import NONE, parse_versions
from minicluster.values import Value, replace

_S = TypeVar("_S", bound="Struct")
ALL_DEFAULTS = object()
"""The default of a structure: one whose fields hold their defaults."""

_Str = TypeVar("_Str", bound="str | None")
_Bytes = TypeVar("_Bytes", bound="bytes | None")
_Tuple = TypeVar("_Tuple", bound="tuple[Any, ...] | None")


class FieldSpec(Value, kw_only=True):
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
    return FieldSpec(
        name="",
        json_name=json,
        type_=type_,
        element=element,
        struct=None,
        versions=parse_versions(versions),
        nullable=parse_versions(nullable),
        tagged=parse_versions(tagged) if tagged else NONE,
        tag=tag,
        default=default,
        ignorable=ignorable,
        flexible=parse_versions(flexible) if flexible else None,
        entity=entity,
        former=former,
        is_set=is_set,
    )


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
class Struct(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The base of messages and of the structures inside them."""

    schema: ClassVar[tuple[FieldSpec, ...]] = ()
    """The fields in order."""

    def __repr__(self) -> str:
        """The call that makes an equal value: fields at their default are left out."""
        values = [(spec, getattr(self, spec.name)) for spec in self.schema]
        shown = ", ".join(
            f"{spec.name}={value!r}" for spec, value in values if value != spec.default
        )
        return f"{type(self).__qualname__}({shown})"


class Message(Struct):
    """A request, a response, a record, or a piece of data with versions of its own."""

    api_key: ClassVar[int]
    kind: ClassVar[str]
    valid_versions: ClassVar[range]
    flexible_versions: ClassVar[range]
    latest_version: ClassVar[int]
    encoders: ClassVar[dict[int, Callable[[Any], bytes]]]
    decoders: ClassVar[dict[int, Callable[[bytes, int, int], tuple[Any, int]]]]


def _build(cls: type[Struct], structs: Mapping[str, type[Struct]]) -> Any:
    """The class whose fields have their defaults in place of their specifiers; with its schema."""
    specs = [_spec(name, declared, structs) for name, declared in _declared(cls)]
    doc = cls.__doc__ or cls.__qualname__  # otherwise dataclasses writes a signature
    built: Any = msgspec.defstruct(
        cls.__name__,
        [(spec.name, cls.__annotations__[spec.name], spec.default) for spec in specs],
        bases=cls.__bases__,
        module=cls.__module__,
        namespace={"__qualname__": cls.__qualname__, "__doc__": doc, **structs},
        frozen=True,
        gc=False,
        kw_only=True,
    )
    built.schema = tuple(specs)
    # So that dataclasses.replace, fields and asdict take it.
    return dataclasses.dataclass(init=False, eq=False, repr=False, match_args=False)(built)


def _declared(cls: type[Struct]) -> Iterator[tuple[str, FieldSpec]]:
    return zip(cls.__struct_fields__, cls.__struct_defaults__, strict=True)


def _spec(name: str, declared: FieldSpec, structs: Mapping[str, type[Struct]]) -> FieldSpec:
    struct = structs.get(declared.element)
    return replace(
        declared,
        name=name,
        json_name=declared.json_name or _camel(name),
        struct=struct,
        element=declared.element if struct is None else "struct",
        default=declared.default
        if declared.default is not ALL_DEFAULTS
        else structs[declared.element](),
    )


def _build_structs(cls: type) -> dict[str, type[Struct]]:
    """Build the structures inside a message, each after those that it holds itself."""
    declared = {
        name: value
        for name, value in vars(cls).items()
        if isinstance(value, type) and issubclass(value, Struct)
    }
    built: dict[str, type[Struct]] = {}

    def build(name: str) -> None:
        for _, spec in _declared(declared[name]):
            if spec.element in declared and spec.element not in built:
                build(spec.element)
        built[name] = _build(declared[name], built)

    for name in declared:
        if name not in built:
            build(name)
    return built


def message(
    *, api_key: int = -1, kind: str, versions: str, flexible: str
) -> Callable[[type[_S]], type[_S]]:
    """Declare a message of the versions that exist; flexible ones have compact forms and tags."""

    def declare(cls: type[_S]) -> type[_S]:
        built = _build(cls, _build_structs(cls))
        built.api_key = api_key
        built.kind = kind
        built.valid_versions = parse_versions(versions)
        built.flexible_versions = parse_versions(flexible)
        built.latest_version = max(built.valid_versions)
        built.encoders = {}
        built.decoders = {}
        return built  # type: ignore[no-any-return]

    return declare
